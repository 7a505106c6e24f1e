"""The databases of ops, modules and optimisers on device far, whose memory the host cannot read: the CPU's bits, with kernels of one lane."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the database imports it")
pytest.importorskip("taeda.testing.far", reason="the system has no mprotect", exc_type=OSError)

from .opdb.exceptions import FAR

ROOT = Path(__file__).parents[2]
PARTS = 8  # of the database, each in a process of its own


def differing(run, *arguments):
    """Names of entries that differ, with what the run said of them."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", f"tests.conformance.opdb.{run}", "", *map(str, arguments)],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "TAEDA_TARGET": "lane"},
    )  # fmt: skip
    assert ended.returncode == 0 and " agree" in ended.stdout, ended.stdout[-1000:] + ended.stderr[-2000:]
    found = [line.partition(": ") for line in ended.stdout.splitlines() if ": " in line and not line.startswith(" ")]
    return {name: text for name, _, text in found if name not in FAR}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_entries(part):
    assert not differing("far", 1, f"{part}/{PARTS}")


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("part", range(PARTS))
def test_all_samples(part):
    assert not differing("far", 0, f"{part}/{PARTS}")


@pytest.mark.timeout(900)
def test_modules_and_optimisers():
    assert not differing("far_networks", 1)


@pytest.mark.sweep
@pytest.mark.timeout(0)
def test_all_samples_of_modules_and_optimisers():
    assert not differing("far_networks", 0)
