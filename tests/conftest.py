"""What all tests share: a way to run a program in a new interpreter that sees the same taeda as the tests do."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture
def run_python(tmp_path):
    """``run_python(code, *args, **environment)``: run ``code`` in a new interpreter; gives its standard output."""

    def run(code: str, *args: str, timeout: float = 120, **environment: str) -> str:
        spec = find_spec("taeda")
        home = str(Path(next(iter(spec.submodule_search_locations))).parent)
        path = os.pathsep.join(p for p in (home, os.environ.get("PYTHONPATH", "")) if p)
        done = subprocess.run(
            [sys.executable, "-c", code, *args],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, **environment},
        )
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
