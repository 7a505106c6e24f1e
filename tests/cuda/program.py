"""Programs with a CUDA device, each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def started(*args, timeout=600, **environment):
    """Run Python with a CUDA device; gives how it ended."""
    path = os.pathsep.join((os.environ["PYTHONPATH"], str(ROOT)))
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", *args], capture_output=True, text=True, timeout=timeout, cwd=ROOT / "tests",
        env={**os.environ, "PYTHONPATH": path, "TAEDA_CUDA": "tests.cuda.emulator", **environment},
    )  # fmt: skip


def emulated(*args, **given):
    """Run Python with a CUDA device, which has to end well; gives its standard output."""
    done = started(*args, **given)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    return done.stdout
