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


def _printed(processes):
    done = [p.communicate(timeout=300) for p in processes]
    assert all(p.returncode == 0 for p in processes), "\n".join(err for _, err in done)
    return json.loads(done[0][0].strip().splitlines()[-1])


def _about(ours, theirs, most):
    """Whether two results are equal but for the rounding of their numbers."""
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(_about(a, b, most) for a, b in zip(ours, theirs, strict=True))
    return ours == theirs or (isinstance(theirs, float) and abs(ours - theirs) <= max(most, 1e-6 * abs(theirs)))


@pytest.mark.parametrize(
    "program", [f"peer_{name}.py" for name in ("program", "tutorials", "strangers", "scripts", "jobs")]
)
def test_the_same_program(program, tmp_path):
    peers = _start(program, [], tmp_path / "torch")
    ours = _printed(_start(program, ["-m", "taeda.standin"], tmp_path / "taeda"))
    theirs = _printed(peers)
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        rough = name.startswith("~")  # rounded to 16 bits on the way
        assert _about(ours[name], expected, 2e-3 if rough else 1e-5), (name, ours[name], expected)
