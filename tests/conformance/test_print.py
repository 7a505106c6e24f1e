"""Printing of tensors gives PyTorch's text, character for character."""

import random

import pytest

import taeda
from taeda import _print

torch = pytest.importorskip("torch")

FLOATING = "float32 float64 float16 bfloat16 complex64 complex128".split()
DTYPES = [*FLOATING, *"bool uint8 int8 int16 int32 int64 uint16 uint32 uint64".split()]


@pytest.fixture(autouse=True)
def _default_options():
    yield
    torch.set_printoptions(profile="default")
    _print.set_printoptions(profile="default")


def _floats(rng: random.Random, shape):
    x = torch.randn(shape, dtype=torch.float64)
    kind = rng.choice(["plain", "whole", "large", "small", "wide", "zero", "halves", "special"])
    if kind == "whole":
        return (x * rng.choice([1, 10, 1e3, 1e6, 1e9])).round()
    if kind == "large":
        return x * 1e9
    if kind == "small":
        return x * 1e-5
    if kind == "wide":
        return x * 10 ** torch.randn(shape, dtype=torch.float64).mul(4)
    if kind == "zero":
        return x * 0
    if kind == "halves":
        return (x * 4).round() / 2
    if kind == "special":
        u = torch.rand(shape)
        for low, value in ((0.0, float("nan")), (0.2, float("inf")), (0.4, -float("inf")), (0.5, -0.0)):
            x[(u > low) & (u < low + 0.1)] = value
    return x


def _tensor(rng: random.Random):
    dims = rng.choice([0, 1, 1, 1, 2, 2, 3, 4])
    shape = [rng.choice([0, 1, 2, 3, 5, 8, 30] if dims < 4 else [1, 2, 7]) for _ in range(dims)]
    name = rng.choice(DTYPES)
    dtype = getattr(torch, name)
    if name.startswith("complex"):
        t = torch.complex(_floats(rng, shape), _floats(rng, shape)).to(dtype)
    elif "float" in name:
        t = _floats(rng, shape).to(dtype)
    elif name == "bool":
        t = torch.rand(shape) < 0.5
    else:
        t = (torch.randn(shape) * rng.choice([1, 100, 1e5])).to(torch.int64).to(dtype)
    if t.is_floating_point() or t.is_complex():
        how = rng.random()
        if how < 0.2:
            t.requires_grad_()
        elif how < 0.4:
            t = t.requires_grad_() * 1
        elif how < 0.5:
            t = torch.nn.Parameter(t)
    return t


def _options(rng: random.Random) -> dict:
    choices = {
        "precision": [0, 1, 2, 6, 9],
        "threshold": [0, 5, 50, 1e9],
        "edgeitems": [1, 2, 5],
        "linewidth": [5, 20, 40, 120, 200],
        "sci_mode": [True, False],
        "profile": ["default", "short", "full"],
    }
    return {k: rng.choice(v) for k, v in choices.items() if rng.random() < 0.2}


@pytest.mark.parametrize("seed", range(8))
def test_same_text(seed):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    for _ in range(60):
        options = _options(rng)
        for module in (torch, _print):
            module.set_printoptions(profile="default")
            module.set_printoptions(**options)
        t = _tensor(rng)
        text = repr(t).removeprefix("Parameter containing:\n")  # which nn.Parameter adds
        assert _print.tensor_repr(t, torch.float32) == text, options


@pytest.mark.parametrize("dtype", DTYPES)
def test_same_text_of_our_own_tensors(dtype):
    for shape in [(), (3,), (0, 2), (2, 3), (40, 40), (3, 1, 500)]:
        theirs = (torch.arange(1, 1 + max(1, torch.Size(shape).numel())) % 100).to(getattr(torch, dtype))
        theirs = theirs[: torch.Size(shape).numel()].reshape(shape)
        ours = taeda.tensor(theirs.tolist(), dtype=getattr(taeda, dtype)).reshape(shape)
        assert repr(ours) == repr(theirs).replace("torch.", "taeda.")
