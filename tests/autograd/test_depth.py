"""Graphs of any depth and width: built, differentiated and freed without recursion."""

import gc

import pytest

import taeda
from taeda import autograd

DEPTH = 1_000_000


def leaf():
    return taeda.ones(2, requires_grad=True)


def test_a_million_ops():
    x = leaf()
    y = x
    for _ in range(DEPTH):
        y = y + 1.0
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    del y


def test_a_million_ops_freed_without_backward():
    y = leaf()
    for _ in range(DEPTH):
        y = y * 1.0
    del y


class Pass(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        (_x,) = ctx.saved_tensors
        return g


def stack_step(y):
    return taeda.stack([y, y])[0]


def cat_step(y):
    return taeda.cat([y[:1], y[1:]])


def inplace_step(y):
    y.mul_(1.0)
    return y


def view_step(y):
    return y.view(1, 2).squeeze(0)


def write_through_view_step(y):
    y[0].mul_(1.0)
    return y


def saved_output_step(y):
    return y.sigmoid()


def packed_step(y):
    with autograd.graph.saved_tensors_hooks(lambda t: [t], lambda t: t[0]):
        return y.sin()


STEPS = [
    stack_step,
    cat_step,
    inplace_step,
    view_step,
    write_through_view_step,
    saved_output_step,
    packed_step,
    Pass.apply,
]


@pytest.mark.parametrize("step", STEPS, ids=lambda f: f.__qualname__)
@pytest.mark.parametrize("backward", [True, False], ids=["backward", "freed"])
def test_deep_graphs_of_every_kind(step, backward):
    x = leaf()
    y = x * 1
    for _ in range(30_000):
        y = step(y)
    if backward:
        y.sum().backward()
        assert x.grad is not None
    del y
    gc.collect()


def test_wide_graphs():
    x = taeda.ones(2, dtype=taeda.float64, requires_grad=True)
    taeda.stack([x * i for i in range(20_000)]).sum().backward()
    assert x.grad.tolist() == [sum(range(20_000))] * 2
    x.grad = None
    parts = taeda.stack([x] * 5_000).unbind(0)
    sum(parts[1:], parts[0]).sum().backward()
    assert x.grad.tolist() == [5_000.0, 5_000.0]


def test_deep_second_derivatives():
    x = taeda.full((2,), 0.5, dtype=taeda.float64, requires_grad=True)
    y = x
    for _ in range(20_000):
        square = y * y
        y = y + square - square
    y = y * x
    (g,) = autograd.grad(y.sum(), x, create_graph=True)
    (h,) = autograd.grad(g.sum(), x)
    assert g.tolist() == pytest.approx([1.0, 1.0])
    assert h.tolist() == pytest.approx([2.0, 2.0])
    del y, g, h
    gc.collect()


def test_many_paths_are_walked_once():
    x = taeda.ones(1, dtype=taeda.float64, requires_grad=True)
    y = x
    for _ in range(500):
        y = y * 0.5 + y * 0.5
    y.backward()
    assert x.grad.item() == 1.0


class Below(autograd.Function):
    """Runs a backward pass of the next one within its own."""

    @staticmethod
    def forward(ctx, x):
        with taeda.enable_grad():
            ctx.x = x.detach().requires_grad_() - 1
        return ctx.x.detach()

    @staticmethod
    def backward(ctx, g):
        if ctx.x < 0:
            return g
        with taeda.enable_grad():
            Below.apply(ctx.x).sum().backward()
        return g


def test_passes_within_passes():
    v = taeda.tensor(2000.0, requires_grad=True)
    Below.apply(v).sum().backward()
    assert v.grad.item() == 1


def test_a_failure_deep_within_passes():
    class Fails(Below):
        @staticmethod
        def backward(ctx, g):
            if ctx.x < 0:
                raise ValueError("at the bottom")
            with taeda.enable_grad():
                Fails.apply(ctx.x).sum().backward()
            return g

    with pytest.raises(ValueError, match="at the bottom"):
        Fails.apply(taeda.tensor(60.0, requires_grad=True)).sum().backward()
