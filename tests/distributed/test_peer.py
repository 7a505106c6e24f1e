"""Programs after PyTorch's tutorials on two processes: PyTorch's numbers (gloo) and taeda's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .launch import meeting_place

pytest.importorskip("torch")
FOLDER = Path(__file__).parent


def _start(program, prefix, folder):
    folder.mkdir(exist_ok=True)
    where = meeting_place(2)
    path = os.pathsep.join(filter(None, [str(FOLDER), os.environ.get("PYTHONPATH")]))  # they share a module
    return [
        subprocess.Popen(
            [sys.executable, *prefix, str(FOLDER / program), str(folder)],
            env={**os.environ, **where, "PYTHONPATH": path, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]


def _printed(processes, timeout=300):
    """What the first process printed last. All are gone afterwards, whatever happens."""
    try:
        done = [p.communicate(timeout=timeout) for p in processes]
    finally:
        for p in processes:
            p.kill()
    assert all(p.returncode == 0 for p in processes), "\n".join(err for _, err in done)
    return json.loads(done[0][0].strip().splitlines()[-1])


def _of_pytorch(program, folder):
    """What PyTorch gives. On a busy machine its processes sometimes wait for ever for a second group, or abort when they
    end ("terminate called without an active exception"): then once more."""
    for attempt in range(3):
        processes = _start(program, [], folder / f"torch{attempt}")
        try:
            return _printed(processes, timeout=150)
        except subprocess.TimeoutExpired:
            pass
        except AssertionError:
            if all(p.returncode >= 0 for p in processes):
                raise
    pytest.skip("PyTorch's own processes did not end")


def _about(ours, theirs, most):
    """Whether two results are equal but for the rounding of their numbers."""
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(_about(a, b, most) for a, b in zip(ours, theirs, strict=True))
    return ours == theirs or (isinstance(theirs, float) and abs(ours - theirs) <= max(most, 1e-6 * abs(theirs)))


@pytest.mark.parametrize(
    "program", [f"peer_{name}.py" for name in ("program", "tutorials", "strangers", "scripts", "jobs", "plans")]
)
def test_the_same_program(program, tmp_path):
    theirs = _of_pytorch(program, tmp_path)
    ours = _printed(_start(program, ["-m", "taeda.standin"], tmp_path / "taeda"))
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        rough = name.startswith("~")  # rounded to 16 bits on the way
        assert _about(ours[name], expected, 2e-3 if rough else 1e-5), (name, ours[name], expected)
