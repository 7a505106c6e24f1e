"""In-place ops: versions, views and views of views, what may not be written, operands that share memory."""

import pytest

import taeda
from taeda import autograd


def leaf(*shape):
    return (
        taeda.linspace(0.2, 0.9, taeda.Size(shape).numel(), dtype=taeda.float64)
        .reshape(shape)
        .detach()
        .requires_grad_()
    )


def check(function, *inputs):
    """First and second derivatives of ``function`` agree with differences."""
    assert autograd.gradcheck(function, inputs)
    assert autograd.gradgradcheck(function, inputs)


def test_versions_count_writes():
    x = taeda.ones(4)
    version = x._version
    view = x[1:]
    view.add_(1)
    x.mul_(2)
    assert x._version == view._version == version + 2
    x.detach().zero_()
    assert x._version == version + 3
    x.data.zero_()
    assert x._version == version + 3
    autograd.graph.increment_version(x)
    autograd.graph.increment_version([x, view])
    assert x._version == version + 6
    with taeda.inference_mode():
        inference = taeda.ones(2)
    with pytest.raises(RuntimeError, match="inference tensor"):
        autograd.graph.increment_version(inference)


CREATED = {
    "ones": lambda x: taeda.ones(3), "full": lambda x: taeda.full((3,), 2.0), "eye": lambda x: taeda.eye(3),
    "rand": lambda x: taeda.rand(3), "randn": lambda x: taeda.randn(3, requires_grad=True),
    "randint": lambda x: taeda.randint(3, (3,)), "randperm": lambda x: taeda.randperm(3),
    "normal": lambda x: taeda.normal(0.0, 1.0, (3,)), "ones_like": taeda.ones_like, "rand_like": taeda.rand_like,
    "randn_like": taeda.randn_like, "randint_like": lambda x: taeda.randint_like(x, 4),
    "full_like": lambda x: taeda.full_like(x, 2), "new_ones": lambda x: x.new_ones(3),
    "new_full": lambda x: x.new_full((3,), 1.0), "scalar_tensor": lambda x: taeda.scalar_tensor(3.0),
    "tril_indices": lambda x: taeda.tril_indices(3, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", CREATED)
def test_filling_a_new_tensor_is_no_write(name):
    made = CREATED[name](taeda.empty(3))
    assert made._version == 0
    with taeda.no_grad():
        made.zero_()
    assert made._version == 1


def test_out_is_written():
    x = taeda.zeros(3)
    versions = [f(3, out=x)._version for f in (taeda.ones, taeda.rand, taeda.zeros)]
    assert 0 < versions[0] < versions[1] < versions[2]


def test_a_saved_tensor_may_not_change():
    x = leaf(3)
    h = x * 1
    y = h.exp().sum() + (h * h).sum()
    h.add_(1)
    with pytest.raises(
        RuntimeError,
        match=r"modified by an inplace operation: \[taeda.float64 \[3\]\], which is output 0 of MulBackward0, is at version 1; expected version 0",
    ):
        y.backward()


def test_a_saved_output_may_not_change():
    x = leaf(3)
    y = x.exp()
    z = y.sum()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="output 0 of ExpBackward0, is at version 1; expected version 0"):
        z.backward()


def test_a_view_of_a_saved_tensor_may_not_change():
    x = leaf(3)
    h = x * 1
    y = (h * h).sum()
    h[1:].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_what_is_not_saved_may_change():
    x = leaf(3)
    h = x + 1
    y = h + 2
    h.mul_(5)
    (y.sum() + h.sum()).backward()
    assert x.grad.tolist() == [6.0, 6.0, 6.0]


@pytest.mark.parametrize(
    "name", ["exp_", "sin_", "sqrt_", "neg_", "abs_", "sigmoid_", "relu_", "tanh_", "log_", "square_"]
)
def test_unary_ops(name):
    check(lambda x: getattr(x * 1, name)(), leaf(3))
    check(lambda x: getattr((x * 1)[1:], name)(), leaf(3))


def test_binary_ops_with_both_gradients():
    for name in ("add_", "sub_", "mul_", "div_", "pow_"):
        check(lambda x, w, name=name: getattr(x * 1, name)(w), leaf(3), leaf(3))
        check(lambda x, w, name=name: getattr(x * 1, name)(w), leaf(2, 3), leaf(3))

    def through_view(x, w):
        h = x * 1
        h[0].mul_(w)
        h.t()[1:].pow_(w[:2])
        return h

    check(through_view, leaf(2, 3), leaf(3))


def test_writing_into_a_tensor_that_needs_no_gradient():
    def fill(x):
        h = taeda.zeros(2, 3, dtype=taeda.float64)
        h[0] = x * x
        h[1, 1:] += x[:2]
        return h * h

    check(fill, leaf(3))


def test_saved_output_of_a_write_through_a_view():
    def f(x):
        h = x * 2
        h[0].exp_()
        return h * h

    def g(x):
        h = x * 2
        h.view(-1)[1:4].tanh_()
        return h.t()

    check(f, leaf(2, 3))
    check(g, leaf(2, 3))


def test_views_of_views():
    def f(x):
        h = x * 2
        a = h.transpose(0, 1)
        b = a[1:]
        c = b.unsqueeze(0)
        c.mul_(h.sum())
        h[0].add_(a[:, 1])
        return b * c.squeeze(0), h

    check(f, leaf(2, 3))


def test_a_view_follows_its_base():
    x = leaf(4)
    h = x * 1
    view = h[1:3]
    assert view.grad_fn.name() == "SliceBackward0"
    h.mul_(3)
    assert view.grad_fn.name() == "AsStridedBackward0"
    view.sum().backward()
    assert x.grad.tolist() == [0.0, 3.0, 3.0, 0.0]


def test_a_view_made_before_its_base_had_a_gradient():
    x = leaf(4)
    h = taeda.zeros(4, dtype=taeda.float64)
    view = h[1:3]
    assert not view.requires_grad
    h.add_(x)
    assert view.requires_grad
    view.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1.0, 0.0]


def test_a_stale_view_as_the_second_operand():
    x, w = leaf(4), leaf(2)
    h = x * 1
    view = h[1:3]
    h.mul_(3)
    (w * view).sum().backward()
    assert x.grad.tolist() == pytest.approx([0.0, 3 * w[0].item(), 3 * w[1].item(), 0.0])
    assert w.grad.tolist() == pytest.approx([3 * x[1].item(), 3 * x[2].item()])


def test_several_views_of_one_op():
    def f(x):
        h = x * 1
        a, b = h.chunk(2)
        a.mul_(2)
        b.add_(a)
        first, *_ = h.unbind(0)
        first.sin_()
        return h, a, b

    check(f, leaf(4, 2))


def test_overlapping_views_after_a_write():
    def f(x):
        h = x * 1
        windows = h.unfold(0, 3, 1)
        wide = h.unsqueeze(0).expand(2, 5)
        h.mul_(taeda.arange(1.0, 6.0, dtype=taeda.float64))
        return windows * 2 + wide.sum()

    check(f, leaf(5))


def test_complex_parts():
    def f(x):
        z = taeda.complex(x, x * 2)
        taeda.view_as_real(z)[0].mul_(3)
        z.real.mul_(z.imag.clone())
        return taeda.view_as_real(z)

    check(f, leaf(3))


def test_operands_that_share_memory_are_noticed():
    x = leaf(3)
    h = x * 1
    h.mul_(h)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        h.sum().backward()
    h = x * 1
    h[:1].mul_(h[1:2])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        h.sum().backward()
    h = x * 1
    h.add_(h)
    h.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_an_op_without_derivative_forgets():
    x = leaf(3)
    h = x * 2
    h[1:].uniform_()
    h.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


def test_a_leaf_that_is_a_view_of_a_constant_is_not_written_in_place():
    for make in (lambda: taeda.ones(6).view(2, 3), lambda: taeda.ones(3, 3)[1:], lambda: taeda.ones(4, 3).chunk(2)[0]):
        for write in (
            lambda x: x.mul_(2),
            lambda x: x[0].mul_(2),
            lambda x: x.__setitem__(0, 1),
            lambda x: x.t().add_(1),
        ):
            x = make().requires_grad_()
            with pytest.raises(RuntimeError, match="a view of a leaf"):
                write(x)
            with taeda.no_grad():
                write(x)
            assert x.is_leaf
    base, weight = taeda.zeros(4), taeda.ones(2, requires_grad=True)
    part = base[:2]
    part.mul_(weight)
    part.add_(weight)
    base.sum().backward()
    assert weight.grad.tolist() == [1.0, 1.0]


def test_leaves_may_not_be_written():
    x = leaf(3)
    message = "a leaf Variable that requires grad is being used in an in-place operation"
    with pytest.raises(RuntimeError, match="^" + message):
        x.add_(1)
    with pytest.raises(RuntimeError, match="^" + message):
        x.uniform_()
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        x[0] = 1
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        x.view(3).mul_(2)
    with taeda.no_grad():
        x.add_(1)
        x[0] = 7
    assert x[0].item() == 7
    x.data.mul_(2)
    x.detach().mul_(2)
    assert x[0].item() == 28


def test_views_made_without_recording():
    x = leaf(3)
    h = x * 1
    with taeda.no_grad():
        view = h[1:]
        view.mul_(2)
    with pytest.raises(RuntimeError, match=r"created in no_grad mode and .* modified inplace with grad mode enabled"):
        view.mul_(x[1:])
    plain = taeda.zeros(3)
    with taeda.no_grad():
        view = plain[1:]
    view.add_(1)
    assert plain.tolist() == [0.0, 1.0, 1.0]


def test_detach_in_place():
    x = leaf(3)
    h = x * 2
    h.detach_()
    assert h.is_leaf
    assert not h.requires_grad
    with pytest.raises(RuntimeError, match="views"):
        (x * 2)[0:1].detach_()


def test_writes_without_recording_count_for_versions():
    x = leaf(3)
    h = x * 1
    y = (h * h).sum()
    with taeda.no_grad():
        h.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_inplace_in_a_loop_is_a_recurrence():
    x = leaf(2)

    def f(x):
        state = taeda.zeros(5, 2, dtype=taeda.float64)
        state[0] = x
        for i in range(1, 5):
            state[i] = (state[i - 1] * 1.5).sin()
        return state[-1]

    check(f, x)


@pytest.mark.parametrize("dtype", [taeda.int64, taeda.bool])
def test_whole_numbers_have_no_gradient(dtype):
    x = taeda.ones(3, requires_grad=True)
    n = taeda.zeros(3, dtype=dtype)
    n.copy_(x)
    n[1] = x[0]
    n[:] = x
    assert not n.requires_grad and n.grad_fn is None and n.tolist() == [1, 1, 1]


def test_a_view_made_before_its_base_became_a_leaf_that_requires_grad():
    b = taeda.zeros(3)
    v = b[:2]
    b.requires_grad_()
    w = taeda.ones(2, requires_grad=True)
    for write in (lambda: v.copy_(w), lambda: v.mul_(w), lambda: v.mul_(2), lambda: v.unsqueeze_(0)):
        with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
            write()
    assert b.is_leaf and b.tolist() == [0, 0, 0]
    with taeda.no_grad():
        v.copy_(w)
    assert b.is_leaf and b.tolist() == [1, 1, 0]


@pytest.mark.parametrize("name", ["square_", "cumsum_", "tril_", "sin_", "exp_", "mul_"])
def test_hooks_on_a_view_are_about_what_it_was(name):
    """They do not see the gradient of what was written, but that of what the write has read (second derivatives)."""
    x = leaf(2, 3)
    v = (x * 2)[:1]
    base, seen = v._base, []
    v.register_hook(lambda g: seen.append(g))
    getattr(v, name)(*{"cumsum_": (1,), "mul_": (3,)}.get(name, ()))
    (g,) = autograd.grad(base.sum(), x, create_graph=True)
    assert not seen
    if name == "sin_":
        g.sum().backward()
        assert len(seen) == 1


@pytest.mark.parametrize("width", [2, 3, 8, 17, 70])
def test_operands_with_holes_that_share_elements_are_read_before_the_write(width):
    whole = taeda.arange(3.0 * width).reshape(3, width)
    expected = whole[:, 1:] + whole[:, :-1]
    for write in (
        lambda y: y[:, 1:].add_(y[:, :-1]),
        lambda y: taeda.add(y[:, 1:], y[:, :-1], out=y[:, 1:]),
        lambda y: y[:, 1:].copy_(y[:, 1:] + y[:, :-1]),
    ):
        y = whole.clone()
        write(y)
        assert taeda.equal(y[:, 1:], expected) and taeda.equal(y[:, 0], whole[:, 0])
    y = whole.clone()
    y[:, :-1].copy_(y[:, 1:])
    assert taeda.equal(y[:, :-1], whole[:, 1:])
    y = whole.clone()
    y[:, ::2].mul_(y[:, 1::2][:, : y[:, ::2].shape[1]] if width % 2 == 0 else 2)  # apart: element by element
    assert taeda.equal(y[:, 1::2], whole[:, 1::2])
