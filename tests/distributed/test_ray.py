"""Ray trains with taeda in several workers, and goes on from the last checkpoint when one of them is lost."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray.train")


@pytest.mark.timeout(1800)
def test_a_worker_that_is_lost(tmp_path):
    program = Path(__file__).parents[2] / "examples" / "ray_ddp.py"
    losses = []
    for more, first in (["--fail-at", "3"], 4), ([], 1):
        storage = tmp_path / f"storage {first}"
        command = [sys.executable, str(program), "--workers", "2", "--epochs", "5", "--storage", str(storage), *more]
        env = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_raylet_start_wait_time_s": "300"}  # 30 s beside other work
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=850, check=False)
        found = re.search(r"epoch 5, loss ([\d.]+), begun with epoch (\d+)", done.stdout)
        assert found is not None, done.stderr[-3000:]
        assert int(found[2]) == first
        losses.append(float(found[1]))
    assert losses[0] == losses[1]  # as if nothing had happened
