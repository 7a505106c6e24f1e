"""The planner table: what computes an op on a device, and where kernels are kept."""

import pytest

import taeda
from taeda._core import planners
from taeda.ops import table

from . import desk  # noqa: F401


def test_a_device_may_compute_an_op_in_its_own_way():
    """``Op.on``: the body is given all arguments; signature, checks and derivative stay the op's."""
    op, seen = table.OPS["exp"], []

    def body(input):
        seen.append(input.device)
        return input * 1 + 7

    op.on("desk", body)
    x = taeda.ones(3, device="desk", requires_grad=True)
    y = x.exp()
    assert seen == [x.device] and y.tolist() == [8, 8, 8]
    assert y.grad_fn.name() == taeda.ones(3, requires_grad=True).exp().grad_fn.name()
    with pytest.raises(TypeError, match="exp"):
        taeda.exp(x, 1, 2, 3)
    assert taeda.ones(1).exp().item() == pytest.approx(2.71828, rel=1e-5)  # the CPU's is untouched


def test_kernels_are_kept_in_one_table():
    x = taeda.randn(3, 5, dtype=taeda.float64)
    x.tril()
    taeda.erfinv(x)
    before = planners.count_kernels()
    for _ in range(3):
        x.tril()
        taeda.erfinv(x)
    assert planners.count_kernels() == before
    taeda.erfinv(x[:, ::2])
    assert planners.count_kernels() > before


def test_a_kept_planner_is_called_once_for_a_form():
    calls = []

    @planners.kept
    def plan(shape, dtype):
        """How it is launched."""
        calls.append((shape, dtype))
        if not shape:
            raise ValueError("no shape")
        return [*shape]

    assert plan((2, 3), "float32") is plan((2, 3), "float32") and plan.__doc__ == "How it is launched."
    assert plan((2, 3), "float64") == [2, 3] and len(calls) == 2
    for _ in range(2):  # an error is not kept
        with pytest.raises(ValueError, match="no shape"):
            plan((), "float32")
    assert len(calls) == 4 and planners.count_forms(plan) == 2
    for n in range(1000):
        plan((n + 4,), "float32")
        assert planners.count_forms(plan) <= 256
