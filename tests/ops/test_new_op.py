"""Adding a pointwise op takes one stanza in one place: everything else about it follows, and is checked here."""

import sys
from pathlib import Path

import derived
import numpy as np
import pytest

import taeda
from taeda.kernels import scalar as s
from taeda.ops import table

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bump():
    """A new op, declared as one would declare it in ``taeda/ops/``; gone from the table after the tests."""
    ops, methods = dict(table.OPS), dict(table.METHODS)

    # ---- the stanza --------------------------------------------------------------------------------------------------
    @table.pointwise(promote="float", dtypes=("float",), reference=lambda x: np.exp(-x * x / 2), domain=(-3, 3))
    def bump(input, width=1.0):
        """A bell of height 1, ``exp(-(x / width)**2 / 2)``."""
        scaled = input / width
        return s.exp(scaled * scaled * -0.5)

    bump.vjp(input=lambda g, input, out, width: -g * out * input / (width * width))
    # ------------------------------------------------------------------------------------------------------------------

    yield bump
    table.OPS.clear()
    table.OPS.update(ops)
    table.METHODS.clear()
    table.METHODS.update(methods)


VALUES = "value dtypes bad_input method inputs_kept layouts broadcast empty out inplace".split()
CHECKS = [*VALUES, "gradient", "gradient_dtype", "second_gradient"]


def test_the_checks_of_the_table_apply(bump):
    assert sorted(derived.checks(bump)) == sorted(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_check(bump, name):
    derived.checks(bump)[name](bump)


def test_function_method_inplace_and_out(bump):
    x = taeda.tensor([0.0, 1.0, -2.0])
    want = np.exp(-np.array([0.0, 1.0, 4.0]) / 2)
    np.testing.assert_allclose(bump(x).numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(x.bump().numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(bump(x, width=2.0).numpy(), want**0.25, rtol=1e-6)
    out = taeda.empty(3)
    assert bump(x, out=out) is out
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-6)
    assert x.bump_() is x
    np.testing.assert_allclose(x.numpy(), want, rtol=1e-6)


def test_integers_are_promoted(bump):
    assert bump(taeda.tensor([1, 2])).dtype == taeda.float32


def test_gradient_reaches_a_parameter(bump):
    x = taeda.tensor([0.5, 1.0], dtype=taeda.float64, requires_grad=True)
    bump(x, 3.0).sum().backward()
    values = x.detach().numpy()
    np.testing.assert_allclose(x.grad.numpy(), -np.exp(-((values / 3) ** 2) / 2) * values / 9, rtol=1e-12)


def test_stub(bump, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "tools")])
    stubs = pytest.importorskip("stubs")
    function = stubs.define("bump", bump, False)
    assert function.startswith("def bump(input: Tensor, width: Number = 1.0, *, out: Any = None) -> Tensor:")
    assert "A bell of height 1" in function
    method = stubs.define("bump_", bump.traits["inplace"], True)
    assert method.startswith("    def bump_(self, width: Number = 1.0) -> Tensor:")
