"""Ops without a derivative raise when they are differentiated: they give no zeros."""

import pytest

import taeda


def test_floor_division():
    w = taeda.tensor([3.0, 5.0], requires_grad=True)
    for y in (w // 2, 7 // w, taeda.floor_divide(w, w)):
        with pytest.raises(RuntimeError, match=r"floor_divide.*is not implemented"):
            (y + w).sum().backward()
    w.div(2, rounding_mode="floor").sum().backward()
    assert w.grad.tolist() == [0, 0]
    (w % 2).sum().backward()
    assert w.grad.tolist() == [1, 1]


def test_factors_of_ldl_solve():
    A = taeda.tensor([[2.0, 1.0], [1.0, 3.0]])
    LD, pivots = taeda.linalg.ldl_factor(A)
    B = taeda.ones(2, 1, requires_grad=True)
    LD.requires_grad_()
    X = taeda.linalg.ldl_solve(LD, pivots, B)
    (g,) = taeda.autograd.grad(X.sum(), B, retain_graph=True)
    assert taeda.allclose(g, taeda.linalg.solve(A, taeda.ones(2, 1)))
    with pytest.raises(RuntimeError, match="not implemented"):
        taeda.autograd.grad(X.sum(), LD)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: taeda.unique(x),
        lambda x: taeda.unique(x, dim=0, return_counts=True)[0],
        lambda x: taeda.unique_consecutive(x),
        lambda x: taeda.histogram(x, 3)[0],
        lambda x: taeda.histogram(taeda.ones(4), 3, weight=x)[1],
        lambda x: taeda.histogramdd(x.view(2, 2), [2, 2])[0],
        lambda x: taeda.bincount(taeda.tensor([0, 1, 1, 2]), weights=x),
    ],
)
def test_distinct_values_and_counts_have_none(call):
    result = call(taeda.tensor([1.0, 2.0, 2.0, 3.0], requires_grad=True))
    assert result.requires_grad
    with pytest.raises(RuntimeError, match="is not implemented"):
        result.sum().backward()
