"""The databases of ops, modules and optimisers on device far, whose memory the host cannot read.

With kernels of one lane they give the bits of the CPU.
"""

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


def differing(run, *arguments, target="lane"):
    """Names of entries that differ, with what the run said of them."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", f"tests.conformance.opdb.{run}", "", *map(str, arguments)],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "TAEDA_TARGET": target},
    )  # fmt: skip
    assert ended.returncode == 0 and " agree" in ended.stdout, ended.stdout[-1000:] + ended.stderr[-2000:]
    found = [line.partition(": ") for line in ended.stdout.splitlines() if ": " in line and not line.startswith(" ")]
    return {name: text for name, _, text in found if name not in FAR}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("target", ["lane", ""])
def test_entries(target):
    """With the processor's own target, values must be close, and what is kept for it may not be used for the device."""
    assert not differing("far", 1, target=target)


@pytest.mark.timeout(900)
def test_modules_and_optimisers():
    assert not differing("far_networks", 1)


@pytest.mark.sweep
@pytest.mark.timeout(0)
@pytest.mark.parametrize("run", ["far", "far_networks"])
def test_all_samples(run):
    assert not differing(run, 0)


@pytest.mark.timeout(900)
def test_kernels_of_one_lane_compute_what_pytorch_computes():
    """What far is compared with is compared with PyTorch."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.conformance.opdb", "--samples", "1"],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "TAEDA_TARGET": "lane"},
    )  # fmt: skip
    last = ended.stdout.splitlines()[-1]
    agree, _, entries = last.removesuffix(" entries agree").partition(" of ")
    assert ended.returncode == 0 and agree == entries, ended.stdout[-3000:] + ended.stderr[-1000:]
