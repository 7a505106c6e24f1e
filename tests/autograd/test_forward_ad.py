"""Dual tensors beside tensors that require grad: what ``unpack_dual`` gives has a graph only where one was asked for."""

import pytest

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


def test_tangents_pass_by_no_grad_and_gradients_do_not():
    x, w = taeda.tensor([1.0, 2.0]), taeda.tensor([3.0, 4.0], requires_grad=True)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, taeda.ones(2))
        with taeda.no_grad():
            square = dual * dual * w
            total = taeda.zeros(2)
            total.add_(square)[0].mul_(2)
            assert not taeda.is_grad_enabled()
            assert forward_ad.unpack_dual(total).tangent.tolist() == [12.0, 16.0]
            assert total.numpy().tolist() == [6.0, 16.0]
            total.zero_()
            assert forward_ad.unpack_dual(total).tangent.tolist() == [0.0, 0.0]
        primal, tangent = forward_ad.unpack_dual(square * w)
        (primal.sum() + tangent.sum()).backward()
    assert w.grad.tolist() == [3.0 + 6.0, 16.0 + 16.0]  # square and its tangent are constants: 3 + 2 x w, ...
    with taeda.no_grad(), forward_ad.dual_level():
        primal, tangent = forward_ad.unpack_dual(forward_ad.make_dual(w, taeda.ones(2)) ** 2)
        assert tangent.tolist() == [6.0, 8.0] and not primal.requires_grad and not tangent.requires_grad


def test_a_backward_pass_in_a_level_keeps_the_way_of_tangents():
    w = taeda.tensor([1.0, 2.0], requires_grad=True)
    with forward_ad.dual_level():
        y = forward_ad.make_dual(w, taeda.ones(2)) ** 3
        (g,) = taeda.autograd.grad(y.sum(), w)
        assert forward_ad.unpack_dual(g).tangent.tolist() == [6.0, 12.0]
        y.sum().backward()
        assert forward_ad.unpack_dual(y).tangent.tolist() == w.grad.tolist() == [3.0, 12.0]


def test_leaves_written_under_no_grad_stay_leaves():
    w = taeda.tensor([1.0, 2.0], requires_grad=True)
    with forward_ad.dual_level(), taeda.no_grad():
        dual = forward_ad.make_dual(taeda.ones(2), taeda.ones(2))
        w.mul_(2)
        w[0] = 5.0
        w.zero_()
        assert w.is_leaf and w.grad_fn is None and w.requires_grad
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is written in place"):
            w.add_(dual)
    assert w.tolist() == [0.0, 0.0]


def test_a_gradient_through_what_no_grad_wrote_in_place_raises():
    w = taeda.tensor([1.0, 2.0], requires_grad=True)

    def written(x):
        y = x * w
        with taeda.no_grad():
            y[0].mul_(3)
        return y

    value, tangent = taeda.func.jvp(written, (taeda.ones(2),), (taeda.ones(2),))
    assert value.tolist() == tangent.tolist() == [3.0, 2.0]
    with pytest.raises(RuntimeError, match=r"written in place under no_grad\(\) in forward mode"):
        value.sum().backward()


def test_a_dual_is_made_once_in_a_level():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(taeda.ones(2), taeda.ones(2))
        for args in ((dual, taeda.ones(2)), (dual * 2, taeda.ones(2)), (taeda.ones(2), dual)):
            with pytest.raises(RuntimeError, match="forward gra"):
                forward_ad.make_dual(*args)


def test_save_for_forward():
    class Square(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x * x

        @staticmethod
        def jvp(ctx, t):
            (x,) = ctx.saved_tensors
            return t * 2 * x

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(taeda.ones(3) * 3, taeda.ones(3))
        assert forward_ad.unpack_dual(Square.apply(dual)).tangent.tolist() == [6, 6, 6]


def test_jvp_has_no_tensors_that_were_saved_for_backward_alone():
    seen = []

    class Same(taeda.autograd.Function):
        @staticmethod
        def forward(x):
            return x.clone()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            seen.append(len(ctx.saved_tensors))
            return g

        @staticmethod
        def jvp(ctx, t):
            seen.append(ctx.saved_tensors)
            return t.clone()

    x = taeda.ones(2, requires_grad=True)
    with forward_ad.dual_level():
        made = Same.apply(forward_ad.make_dual(x, taeda.ones(2)))
        assert forward_ad.unpack_dual(made).tangent.tolist() == [1, 1]
        made.sum().backward()
    assert seen == [(), 1]


class Squared(taeda.autograd.Function):
    """A square whose two derivatives differ, so that results tell which one was used."""

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, t):
        return t * 20 * ctx.saved_tensors[0]


def test_function_with_both_derivatives_uses_jvp_in_forward_mode():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    with forward_ad.dual_level():
        primal, tangent = forward_ad.unpack_dual(Squared.apply(forward_ad.make_dual(x, taeda.ones(2))))
        assert tangent.tolist() == [20.0, 40.0]
        assert taeda.autograd.grad(tangent.sum(), x, retain_graph=True)[0].tolist() == [20.0, 20.0]
        assert taeda.autograd.grad(primal.sum(), x)[0].tolist() == [2.0, 4.0]
    assert taeda.func.jvp(Squared.apply, (x.detach(),), (taeda.ones(2),))[1].tolist() == [20.0, 40.0]
    of_gradient = taeda.func.jvp(taeda.func.grad(lambda x: Squared.apply(x).sum()), (x.detach(),), (taeda.ones(2),))
    assert of_gradient[1].tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="Forward mode"):
        taeda.autograd.gradcheck(Squared.apply, x.detach().double().requires_grad_(), check_forward_ad=True)


def test_tangents_of_a_jvp_depend_on_what_it_saved():
    def pushed(x):
        return taeda.func.jvp(Squared.apply, (x,), (taeda.ones(2),))[1].sum()

    assert taeda.func.grad(pushed)(taeda.tensor([1.0, 2.0])).tolist() == [20.0, 20.0]


def test_text_of_dual_tensors():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(taeda.ones(2), taeda.full((2,), 3.0))
        assert repr(dual) == "tensor([1., 1.], tangent=tensor([3., 3.]))"
        assert repr(dual * 2) == "tensor([2., 2.], tangent=tensor([6., 6.]))"
        assert repr(forward_ad.make_dual(taeda.tensor(1.0), taeda.tensor(2.0))) == "tensor(1., tangent=2.0)"
        assert repr(taeda.ones(1)) == "tensor([1.])"
    assert repr(forward_ad.unpack_dual(taeda.ones(1))) == "UnpackedDualTensor(primal=tensor([1.]), tangent=None)"
