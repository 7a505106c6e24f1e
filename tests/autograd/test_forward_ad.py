"""Dual tensors beside tensors that require grad: what ``unpack_dual`` gives has a graph only where one was asked for."""

import taeda
from taeda.autograd import forward_ad


def test_duals_alone_leave_no_graph():
    x = taeda.tensor([0.5, 1.0])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, taeda.ones(2))
        for y in (dual, dual.exp() * 2, dual.floor()):
            primal, tangent = forward_ad.unpack_dual(y)
            assert not primal.requires_grad and not tangent.requires_grad
        tangent = forward_ad.unpack_dual(dual * dual).tangent
    assert tangent.numpy().tolist() == [1.0, 2.0]


def test_a_leaf_beside_them_gets_gradients_of_value_and_tangent():
    x, w = taeda.tensor([1.0, 2.0]), taeda.tensor([3.0, 4.0], requires_grad=True)
    with forward_ad.dual_level():
        primal, tangent = forward_ad.unpack_dual(forward_ad.make_dual(x, taeda.ones(2)) * w**2)
        (primal.sum() + 10 * tangent.sum()).backward()
    assert w.grad.tolist() == [66.0, 96.0]  # 2 x w + 10 * 2 w


def test_a_dual_of_a_leaf_passes_gradients_on():
    w = taeda.tensor([3.0], requires_grad=True)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(w, taeda.ones(1))
        assert forward_ad.unpack_dual(dual).primal.requires_grad
        primal, tangent = forward_ad.unpack_dual(dual**3)
        (primal + tangent).backward()
    assert w.grad.tolist() == [45.0]  # 3 w^2 + 6 w


def test_a_tangent_that_requires_grad_gets_it():
    v = taeda.ones(2, requires_grad=True)
    with forward_ad.dual_level():
        primal, tangent = forward_ad.unpack_dual(forward_ad.make_dual(taeda.tensor([1.0, 2.0]), v) ** 2)
        tangent.sum().backward()
    assert not primal.requires_grad
    assert v.grad.tolist() == [2.0, 4.0]
