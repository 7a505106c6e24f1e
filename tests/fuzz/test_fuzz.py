"""Random calls of every family end in a result or a Python exception: no crash, no hang, no memory without end.

A sample runs by default, 10,000 calls a family behind the marker ``sweep``. The calls run in a process of their own, which
is started again after the call that ended it.
"""

import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from families import FAMILIES, LEFT_OUT, members, public  # noqa: E402

SECONDS = 200  # one call, kernels compiled on the way, on a busy machine


def fuzz(family: str, seed: int, count: int, seconds: int = SECONDS, begin: int = 0) -> list[str]:
    """Run calls ``begin`` to ``count``; what went wrong, one line a call."""
    home = str(Path(next(iter(find_spec("taeda").submodule_search_locations))).parent)
    path = os.pathsep.join((home, str(HERE), os.environ.get("PYTHONPATH", "")))
    wrong: list[str] = []
    while begin < count:
        done = subprocess.run(
            [sys.executable, str(HERE / "worker.py"), family, str(seed), str(begin), str(count), str(seconds)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        lines = done.stdout.splitlines()
        wrong += [line for line in lines if line.startswith("!")]
        if lines and lines[-1] == "done":
            return wrong
        started = [int(line[2:]) for line in lines if line.startswith("> ")]
        if not started:
            raise AssertionError(f"the worker did not start: {done.stderr[-2000:]}")
        name = signal.Signals(-done.returncode).name if done.returncode < 0 else f"exit code {done.returncode}"
        wrong.append(f"! {started[-1]} {'took too long' if name == 'SIGALRM' else name} {done.stderr[-300:]}")
        begin = started[-1] + 1
    return wrong


def explain(family: str, seed: int, wrong: list[str]) -> str:
    from calls import Call
    from kinds import Case

    make = Case if family.startswith("kinds ") else Call
    return "\n".join(f"{line}\n    {make(family, seed, int(line.split()[1]))}" for line in wrong)


def test_everything_public_is_called_or_left_out_for_a_reason():
    called = [name for family in FAMILIES for name in members(family)]
    assert sorted(called) == sorted(set(public()) - set(LEFT_OUT))  # each of them in one family
    assert set(LEFT_OUT) < set(public())


@pytest.mark.parametrize("family", FAMILIES)
def test_sample(family):
    wrong = fuzz(family, seed=0, count=150)
    assert not wrong, explain(family, 0, wrong)


@pytest.mark.sweep
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("family", FAMILIES)
def test_sweep(family):
    wrong = fuzz(family, seed=1, count=10_000)
    assert not wrong, explain(family, 1, wrong)


@pytest.mark.parametrize("family", FAMILIES)
def test_sample_of_kinds(family):
    from kinds import NAMES

    several = len(members(family)) * len(NAMES)  # those before take one tensor
    wrong = fuzz(f"kinds {family}", 0, 60) + fuzz(f"kinds {family}", 0, several + 60, begin=several)
    assert not wrong, explain(f"kinds {family}", 0, wrong)


@pytest.mark.sweep
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("family", FAMILIES)
def test_sweep_of_kinds(family):
    """Every function with every kind alone, and 40 calls of each with several."""
    from kinds import NAMES

    wrong = fuzz(f"kinds {family}", seed=1, count=len(members(family)) * (len(NAMES) + 40))
    assert not wrong, explain(f"kinds {family}", 1, wrong)
