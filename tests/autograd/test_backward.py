"""``backward`` and ``grad``: what accumulates where, graphs kept and freed, higher derivatives, wrong calls."""

import os
import warnings

import pytest

import taeda
from taeda import autograd


def leaf(*values, **options):
    return taeda.tensor(values, dtype=taeda.float64, requires_grad=True, **options)


def test_accumulates_into_leaves():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_leaf_is_its_own_graph():
    x = leaf(1.0, 2.0)
    x.backward(taeda.tensor([3.0, 4.0], dtype=taeda.float64))
    assert x.grad.tolist() == [3.0, 4.0]


def test_used_many_times():
    x = leaf(2.0)
    y = x * x
    z = y * x + y + x
    z.sum().backward()
    assert x.grad.item() == 3 * 4 + 2 * 2 + 1


def test_several_tensors_at_once():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    autograd.backward([(x * w).sum(), x * 2], [None, taeda.ones(2, dtype=taeda.float64)])
    assert x.grad.tolist() == [5.0, 6.0]
    assert w.grad.tolist() == [1.0, 2.0]


def test_inputs_restrict_accumulation():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * w
    y.sum().backward(inputs=[w])
    assert x.grad is None
    assert w.grad.tolist() == [1.0, 2.0]


def test_inputs_may_be_inside_the_graph():
    x = leaf(1.0, 2.0)
    y = x * 3
    (y * y).sum().backward(inputs=[y, x])
    assert y.grad.tolist() == [6.0, 12.0]
    assert x.grad.tolist() == [18.0, 36.0]
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * 3).sum().backward(inputs=[])


def test_grad_leaves_dot_grad_alone():
    x = leaf(1.0, 2.0)
    (g,) = autograd.grad((x * x).sum(), x)
    assert g.tolist() == [2.0, 4.0]
    assert x.grad is None
    assert not g.requires_grad


def test_grad_of_what_is_inside():
    x = leaf(1.0, 2.0)
    y = x * 3
    z = (y * y).sum()
    gy, gx = autograd.grad(z, [y, x])
    assert gy.tolist() == [6.0, 12.0]
    assert gx.tolist() == [18.0, 36.0]
    (g,) = autograd.grad(y.sum(), y)
    assert g.tolist() == [1.0, 1.0]


def test_grad_computes_only_what_is_asked_for():
    calls = []

    class Watched(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            calls.append(1)
            return g * 2

    x, w = leaf(1.0), leaf(2.0)
    (g,) = autograd.grad((Watched.apply(x) * w).sum(), w)
    assert g.item() == 2.0
    assert calls == []


def test_unused_inputs():
    x, unused = leaf(1.0), leaf(2.0)
    y = (x * 2).sum()
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        autograd.grad(y, [x, unused], retain_graph=True)
    g, none = autograd.grad(y, [x, unused], allow_unused=True, retain_graph=True)
    assert g.item() == 2.0
    assert none is None
    g, zero = autograd.grad(y, [x, unused], materialize_grads=True)
    assert zero.tolist() == [0.0]
    assert not zero.requires_grad
    _, zero = autograd.grad((x * 2).sum(), [x, unused], materialize_grads=True, create_graph=True)
    assert zero.requires_grad  # a product with it can be differentiated, as with the gradient of an input that is used
    with pytest.raises(ValueError, match="allow_unused"):
        autograd.grad(y, [x], allow_unused=False, materialize_grads=True)


def test_batched_gradients():
    x = leaf(1.0, 2.0, 3.0)
    y = x * x
    (g,) = autograd.grad(y, x, taeda.eye(3, dtype=taeda.float64), is_grads_batched=True)
    assert g.tolist() == [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]]


def test_graph_is_freed_once_used():
    x = leaf(1.0, 2.0)
    y = x.exp().sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    y = x.exp().sum()
    y.backward(retain_graph=True)
    first = x.grad.tolist()
    y.backward()
    assert x.grad.tolist() != first
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


@pytest.mark.parametrize("f", [lambda x: x + 1, lambda x: x - 2, lambda x: -x, lambda x: x.lerp(x.detach(), 0.0)])
def test_parts_that_keep_no_operands_can_be_used_again(f):
    x = leaf(1.0, 2.0)
    y = f(x).sum()
    y.backward()
    first = x.grad.tolist()
    y.backward()
    assert x.grad.tolist() == [2 * g for g in first]


@pytest.mark.parametrize("f", [lambda x: x * 2, lambda x: x / 2, lambda x: 3.0 * x, lambda x: 2**x])
def test_a_number_among_the_operands_is_kept_as_a_tensor_would_be(f):
    x = leaf(1.0, 2.0)
    y = f(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_a_branch_that_was_not_used_is_still_there():
    x = leaf(1.0, 2.0)
    shared = x.exp()
    a, b = (shared * 2).sum(), (shared * 3).sum()
    autograd.grad(a, shared)
    autograd.grad(b, x)
    with pytest.raises(RuntimeError, match="second time"):
        autograd.grad(a, x)


def test_second_and_third_derivatives():
    x = leaf(0.5, 1.5)
    y = (x**4).sum()
    (first,) = autograd.grad(y, x, create_graph=True)
    (second,) = autograd.grad(first.sum(), x, create_graph=True)
    (third,) = autograd.grad(second.sum(), x, create_graph=True)
    assert first.tolist() == pytest.approx([4 * v**3 for v in (0.5, 1.5)])
    assert second.tolist() == pytest.approx([12 * v**2 for v in (0.5, 1.5)])
    assert third.tolist() == pytest.approx([24 * v for v in (0.5, 1.5)])
    (fourth,) = autograd.grad(third.sum(), x)
    assert fourth.tolist() == pytest.approx([24.0, 24.0])


def test_second_derivatives_through_everyday_ops():
    x = leaf(0.3, -0.2, 0.8)
    w = taeda.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]], dtype=taeda.float64, requires_grad=True)

    def f(x, w):
        h = (w @ x).tanh()
        return taeda.stack([h[0] * h[1], x.softmax(0)[1], taeda.cat([h, x]).mean()]).sum()

    assert autograd.gradcheck(f, (x, w))
    assert autograd.gradgradcheck(f, (x, w))


def test_create_graph_in_backward_gives_gradients_with_a_graph():
    x = leaf(2.0)
    with pytest.warns(UserWarning, match="create_graph=True"):
        (x**3).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    first, x.grad = x.grad, None
    first.sum().backward()
    assert x.grad.item() == 12.0


def test_gradient_penalty():
    x, w = leaf(1.0, 2.0), leaf(0.5, -0.5)
    (g,) = autograd.grad(((x * w) ** 2).sum(), x, create_graph=True)
    ((g**2).sum()).backward()
    expected = [16 * w**3 * x**2 for x, w in ((1.0, 0.5), (2.0, -0.5))]
    assert w.grad.tolist() == pytest.approx(expected)


# ---- memory of gradients ---------------------------------------------------------------------------------------------


def overlap(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def test_gradients_never_share_memory():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (a + b).sum().backward()
    assert not overlap(a.grad, b.grad)
    a.grad = b.grad = None
    (a.view(2, 1) + b.view(2, 1)).backward(taeda.ones(2, 1, dtype=taeda.float64))
    assert not overlap(a.grad, b.grad)
    a.grad.add_(5)
    assert b.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "function",
    [lambda x: x, lambda x: x.clone(), lambda x: x.view(2), lambda x: x.view(1, 2).reshape(2), lambda x: x + 0],
)
def test_a_gradient_given_by_the_user_stays_the_users(function):
    x = leaf(1.0, 2.0)
    given = taeda.ones(2, dtype=taeda.float64)
    function(x).backward(given)
    x.grad.mul_(7)
    assert given.tolist() == [1.0, 1.0]
    assert not overlap(x.grad, given)


def test_a_gradient_kept_by_backward_or_a_hook_is_not_taken_over():
    kept = []

    class Keeps(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            kept.append(g * 2)
            kept.append(kept[-1].view(1, 2))
            return kept[-2]

    x = leaf(1.0, 2.0)
    Keeps.apply(x).sum().backward()
    assert not overlap(x.grad, kept[0])
    y = leaf(1.0, 2.0)
    y.register_hook(kept.append)
    (y * 2).sum().backward()
    assert not overlap(y.grad, kept[-1])


def test_a_gradient_without_another_owner_is_taken_over():
    x, seen = leaf(*range(100)), []
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs[0].data_ptr()))
    y.sum().backward()
    assert x.grad.data_ptr() == seen[0]


def test_gradient_has_the_layout_and_dtype_of_its_leaf():
    x = taeda.randn(3, 4).requires_grad_()
    (x.t().double() * 2).sum().backward()
    assert x.grad.dtype == taeda.float32
    assert x.grad.stride() == x.stride()
    y = taeda.randn(3, 4).t().requires_grad_()
    (y * 2).sum().backward()
    assert y.grad.stride() == y.stride()


def test_dtypes_change_back_at_every_step():
    x = leaf(1.0, 2.0)
    h = x.float()
    h.retain_grad()
    (h.double() * 2).sum(dtype=taeda.float64).backward()
    assert h.grad.dtype == taeda.float32
    assert x.grad.dtype == taeda.float64


# ---- wrong calls -----------------------------------------------------------------------------------------------------


def test_errors():
    x, plain = leaf(1.0, 2.0), taeda.ones(2)
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        plain.sum().backward()
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 2).backward(taeda.ones(3, dtype=taeda.float64))
    with pytest.raises(TypeError, match="gradients can be either Tensors or None"):
        (x * 2).backward(3)
    with pytest.raises(RuntimeError, match="does not require grad"):
        autograd.grad((x * 2).sum(), plain)
    with pytest.raises(RuntimeError, match="2 tensors and 1 gradients"):
        autograd.backward([x * 2, x * 3], [taeda.ones(2, dtype=taeda.float64)])
    with pytest.raises(RuntimeError, match="only Tensors of floating point and complex dtype"):
        taeda.ones(2, dtype=taeda.int64).requires_grad_()
    with pytest.raises(RuntimeError, match="of leaf variables"):
        (x * 2).requires_grad = False


def test_grad_attribute_is_checked():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="different size"):
        x.grad = taeda.ones(3, dtype=taeda.float64)
    with pytest.raises(RuntimeError, match="different type"):
        x.grad = taeda.ones(2)
    with pytest.raises(TypeError, match="Tensor or None"):
        x.grad = 3
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert (x * 2).grad is None
    assert "not a leaf" in str(caught[0].message)


def test_out_and_recording_do_not_mix():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"out=\.\.\. arguments don't support automatic differentiation"):
        taeda.mul(x, 2, out=taeda.empty(2, dtype=taeda.float64))
    with pytest.raises(RuntimeError, match=r"out=\.\.\. arguments don't support automatic differentiation"):
        taeda.mul(taeda.ones(2, dtype=taeda.float64), 2, out=x)
    with taeda.no_grad():
        taeda.mul(x, 2, out=taeda.empty(2, dtype=taeda.float64))


def test_complex_gradients():
    z = taeda.tensor([1 + 2j, -0.5j], dtype=taeda.complex128, requires_grad=True)
    assert autograd.gradcheck(lambda z: (z * z.conj()).real.sum(), (z,))
    assert autograd.gradcheck(lambda z: z * z, (z,))
    assert autograd.gradgradcheck(lambda z: z * z * z, (z,))
    with pytest.raises(RuntimeError, match="real scalar outputs"):
        z.sum().backward()


@pytest.mark.parametrize("seen", [False, True])
def test_sums_grow_in_place_unless_seen(seen):
    """Several gradients of one tensor are summed in the memory of the first, unless somebody else holds that."""
    x = leaf(0.5, -1.0)
    y = x * 2
    parts, places = [], []

    def note(grads, _):
        places.append(grads[0].data_ptr())
        if seen:
            parts.append(grads[0])

    total = y.sin() + y.cos()
    last = y.exp()  # the newest node runs first
    last.grad_fn.register_hook(note)
    y.register_hook(lambda g: places.append(g.data_ptr()))
    (total + last).sum().backward()
    z = 2 * x.detach()
    assert taeda.allclose(x.grad, 2 * (z.exp() + z.cos() - z.sin()))
    if seen or os.environ.get("TAEDA_TEST_COMPILED") != "1":  # a compiled pass has memory of its own
        assert (places[0] == places[-1]) == (not seen)
    if seen:
        assert taeda.allclose(parts[0], z.exp())


def test_gradients_that_were_asked_for_stay_as_they_were():
    """What ``grad`` gives, ``retain_grad`` keeps or a leaf holds is not what a later sum grows in."""
    x = leaf(0.5, -1.0)
    y = x * 2
    z = y * 1
    w = z.exp() + y * 3 + y.sin() + z * z
    got_z, got_y, got_x = autograd.grad(w.sum(), (z, y, x), retain_graph=True)
    v = 2 * x.detach()
    assert taeda.allclose(got_z, v.exp() + 2 * v)
    assert taeda.allclose(got_y, v.exp() + 2 * v + 3 + v.cos())
    assert taeda.allclose(got_x, 2 * got_y)
    z.retain_grad()
    y.retain_grad()
    w.sum().backward()
    assert taeda.equal(z.grad, got_z) and taeda.equal(y.grad, got_y) and taeda.equal(x.grad, got_x)
    g = taeda.ones(2, dtype=taeda.float64)
    (x + x + x.sin()).backward(g)
    assert g.tolist() == [1.0, 1.0]


def test_any_iterable_will_do():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    parts = {"x": x, "y": y}

    def outputs():
        return iter([x * 2, y * 3])

    seed = [taeda.ones(2, dtype=taeda.float64)] * 2
    for inputs in (parts.values(), (p for p in (x, y)), filter(lambda p: p.requires_grad, [x, y]), [x, y]):
        got = autograd.grad(outputs(), inputs, (g for g in seed))
        assert [g.tolist() for g in got] == [[2.0, 2.0], [3.0, 3.0]]
    got = autograd.grad(outputs(), parts, seed)
    assert list(got) == ["x", "y"] and got["y"].tolist() == [3.0, 3.0]
    autograd.backward(outputs(), iter(seed), inputs=parts.values())
    (x * 5).backward(seed[0], inputs=iter([x]))
    assert x.grad.tolist() == [7.0, 7.0] and y.grad.tolist() == [3.0, 3.0]


def test_inputs_must_be_some_and_a_dict_if_a_mapping():
    from types import MappingProxyType

    x = leaf(1.0)
    for call in (lambda inputs: autograd.grad(x * 2, inputs), lambda inputs: autograd.backward(x * 2, inputs=inputs)):
        with pytest.raises(RuntimeError, match="cannot be empty"):
            call(iter([]))
        with pytest.raises(TypeError, match="must be a dict"):
            call(MappingProxyType({"x": x}))


def test_older_name_of_grad_tensors():
    x = leaf(1.0, 2.0)
    with pytest.warns(FutureWarning, match="grad_variables"):
        autograd.backward(x * 2, grad_variables=taeda.ones(2, dtype=taeda.float64))
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("freeze", [lambda t: t.requires_grad_(False), lambda t: t.detach_()])
def test_a_leaf_frozen_after_the_forward_pass_gets_no_gradient(freeze):
    a, b = taeda.tensor([1.0, 2.0], requires_grad=True), taeda.tensor([3.0], requires_grad=True)
    loss = (a * b).sum()
    freeze(a)
    loss.backward()
    assert a.grad is None and b.grad.tolist() == [3.0]


def test_a_leaf_as_another_class():
    class Other(taeda.Tensor):
        pass

    x = taeda.ones(2, requires_grad=True)
    view = x.as_subclass(Other)
    assert type(view) is Other and not view.is_leaf and view._base is x
    (view * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]
    with taeda.no_grad():
        assert x.as_subclass(Other).grad_fn is None


class Plain(taeda.Tensor):
    pass


@pytest.mark.parametrize("make, gradient", [
    (lambda w: taeda.ones(2), [1, 1]),
    (lambda w: w * 1, [4, 6]),
    (lambda w: taeda.ones(4)[::2], [1, 1]),
])  # fmt: skip
def test_what_is_written_to_an_object_of_a_subclass_is_written_to_the_tensor(make, gradient):
    w = taeda.tensor([2.0, 3.0], requires_grad=True)
    a = make(w)
    c = a.as_subclass(Plain)
    assert c._is_view() and type(c) is Plain
    c.mul_(w)
    assert a.requires_grad and a.grad_fn is not None
    a.sum().backward()
    assert w.grad.tolist() == gradient
