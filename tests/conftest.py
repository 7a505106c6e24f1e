"""Fixtures of all tests: a program runs in a new interpreter that sees the same taeda as the tests do."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

# Processes that tests start import the taeda that the tests import, whatever stands in the current directory: a checkout
# whose core is not built, say.
HOME = str(Path(next(iter(find_spec("taeda").submodule_search_locations))).parent)
os.environ["PYTHONSAFEPATH"] = "1"
os.environ["PYTHONPATH"] = os.pathsep.join(p for p in (HOME, os.environ.get("PYTHONPATH", "")) if p)


@pytest.fixture
def run_python(tmp_path):
    """``run_python(code, *args, **environment)``: run ``code`` in a new interpreter; gives its standard output."""

    def run(code: str, *args: str, timeout: float = 250, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, *args],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=tmp_path,
            env={**os.environ, **environment},
        )
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture(autouse=True, scope="session")
def same_seed():
    """Every run of the tests draws the same numbers."""
    import taeda

    taeda.manual_seed(67280421310721)


@pytest.fixture(autouse=True)
def same_threads():
    """Restore the number of threads after a test."""
    import taeda

    before = taeda.get_num_threads()
    yield
    if taeda.get_num_threads() != before:
        taeda.set_num_threads(before)


@pytest.fixture(autouse=True)
def compiled():
    """With TAEDA_TEST_COMPILED=1 every test runs as if it were compiled, with results of all sizes deferred."""
    if os.environ.get("TAEDA_TEST_COMPILED") != "1":
        yield
        return
    from taeda import _core
    from taeda._core import fusion

    least, before = fusion.set_least(0), _core.defer_ops(True)
    yield
    _core.defer_ops(before)
    fusion.set_least(least)
