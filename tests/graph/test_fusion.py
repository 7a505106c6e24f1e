"""Compiled programs give the bits that they give eagerly: those of ``hazards.py`` and of the benchmarks."""

import sys
from pathlib import Path

import pytest

import taeda
from taeda._core import fusion
from taeda.utils import _pytree as pytree
from tests.agree import close

from .hazards import PROGRAMS

BENCH = Path(__file__).parents[2] / "bench"


def tensors(result):
    return [x.detach() for x in pytree.tree_leaves(result) if isinstance(x, taeda.Tensor)]


def assert_same(got, want):
    want = tensors(want)
    assert want
    close(tensors(got), want, rtol=0, atol=0)


@pytest.mark.parametrize("name", PROGRAMS)
def test_hazard(name, everything):
    taeda.manual_seed(0)
    want = PROGRAMS[name]()
    taeda.manual_seed(0)
    assert_same(taeda.compile(PROGRAMS[name])(), want)
    assert fusion.count_deferred() == 0


def steps():
    sys.path.insert(0, str(BENCH))
    try:
        import steps as found
        import workloads
    finally:
        sys.path.remove(str(BENCH))
    made = {p.name: p.make for p in found.PROGRAMS}
    return made | {
        name: make for name, (make, _) in workloads.WORKLOADS.items() if "GPT" not in name and "ResNet" not in name
    }


SLOW = (
    "512",
    "ResNet",
    "MobileNet",
    "BERT",
    "ViT",
    "ConvNeXt",
    "GPT inference",
    "GPT generation",
    "32 MB",
    "diffusion",
    "U-Net",
)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.sweep) if any(s in n for s in SLOW) else n for n in steps()]
)
def test_step_of_the_benchmarks(name, everything):
    results = []
    for wrap in (lambda step: step, taeda.compile):
        taeda.manual_seed(0)
        step = wrap(steps()[name](taeda))
        results.append([step() for _ in range(3)])
    if results[0][0] is not None:
        assert_same(results[1], results[0])
