"""Tensors that get another form or other memory between the forward and the backward pass."""

import pytest

import taeda
from taeda import nn
from taeda.nn import functional as F
from taeda.utils.checkpoint import checkpoint

FORMS = {
    "t_": lambda v: v.t_(),
    "transpose_": lambda v: v.transpose_(0, 1),
    "swapaxes_": lambda v: v.swapaxes_(0, 1),
    "unsqueeze_": lambda v: v.unsqueeze_(0),
    "squeeze_": lambda v: v.squeeze_(),
    "as_strided_": lambda v: v.as_strided_((2, 2), (1, 2)),
    "set_": lambda v: v.set_(taeda.zeros(2, 2)),
    "set_ to nothing": lambda v: v.set_(),
}


def saved():
    """A leaf, a tensor that its derivative needs, and the result."""
    x = taeda.ones(2, 2, requires_grad=True)
    v = taeda.arange(4.0).view(2, 2) * 1.0
    return x, v, (x * v)[0].sum()


@pytest.mark.parametrize("name", FORMS)
def test_a_change_of_form_is_a_write(name):
    x, v, y = saved()
    version = v._version
    FORMS[name](v)
    assert v._version == version + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    assert x.grad is None


@pytest.mark.parametrize("name", FORMS)
def test_a_change_of_form_is_not_for_leaves(name):
    x = taeda.ones(2, 2, requires_grad=True)
    for t in (x, x[:]):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            FORMS[name](t)
    with taeda.no_grad():
        FORMS[name](x)
    assert x._version == 1


def test_resizing_is_a_write():
    _x, v, y = saved()
    v.resize_(2, 2)
    assert v._version == 0
    v.resize_(5)
    assert v._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_indices_of_an_embedding():
    w, i = taeda.ones(3, 2, requires_grad=True), taeda.tensor([0, 0, 2, 0])
    y = F.embedding(i, w).sum()
    i.unsqueeze_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("other", [taeda.ones(2, 2) * 5, taeda.ones(7), taeda.ones(2, 2, dtype=taeda.float64)])
def test_other_data_leaves_what_was_saved(other):
    x, v, y = saved()
    v.data = other
    assert v._version == 0
    v.add_(1)
    y.backward()
    assert x.grad.tolist() == [[0, 1], [0, 0]]


def test_other_data_hides_no_write():
    _, v, y = saved()
    v.add_(1)
    v.data = taeda.ones(2, 2)
    assert v._version == 1
    with pytest.raises(RuntimeError, match="at version 1; expected version 0"):
        y.backward()


def test_data_that_comes_back():
    x, v, y = saved()
    before = v.detach()
    v.data = taeda.zeros(3)
    v.data = before.t()
    z = (x * v)[0].sum()
    v.data = taeda.zeros(1)
    z.backward()
    assert x.grad.tolist() == [[0, 2], [0, 0]]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):  # only the last form is known
        y.backward()


def test_a_module_that_becomes_double():
    m = nn.Linear(3, 2)
    x = taeda.ones(3, requires_grad=True)
    y, weight = m(x).sigmoid().sum(), m.weight.detach().clone()
    g = (m(x.detach()).sigmoid() * (1 - m(x.detach()).sigmoid())) @ weight
    m.double()
    y.backward()
    assert taeda.allclose(x.grad, g)
    assert m.weight.grad.dtype is m.bias.grad.dtype is taeda.float32  # that of the forward pass, as in PyTorch


def test_second_derivatives_lead_to_a_leaf_of_other_data():
    x = taeda.tensor([3.0], requires_grad=True)
    y = x**3
    x.data = taeda.tensor([5.0])
    (g,) = taeda.autograd.grad(y, x, create_graph=True)
    assert g.tolist() == [27]
    assert taeda.autograd.grad(g, x)[0].tolist() == [18]


def test_a_leaf_of_other_sizes():
    w = taeda.ones(3, requires_grad=True)
    y = (w * 2).sum()
    w.data = taeda.ones(5)
    y.backward()
    assert w.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("sizes", [(1, 3), (1,), (), (3,)])
def test_a_leaf_of_sizes_that_broadcast(sizes):
    w = taeda.ones(2, 3, requires_grad=True)
    y = (w * 2).sum()
    w.data = taeda.ones(sizes)
    y.backward()
    assert w.grad.tolist() == [[2, 2, 2], [2, 2, 2]]


def test_a_saved_leaf_of_other_data_requires_grad():
    class Product(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            assert a.requires_grad and b.requires_grad
            return g * b, g * a

    for function in (Product.apply, lambda *args: checkpoint(taeda.mul, *args, use_reentrant=True)):
        x, w = taeda.ones(2, requires_grad=True), taeda.ones(2, requires_grad=True)
        y = function(x, w).sum()
        w.data = taeda.ones(2) * 3
        y.backward()
        assert x.grad.tolist() == w.grad.tolist() == [1, 1]


def test_views_of_a_base_of_other_data():
    x = taeda.ones(3, requires_grad=True)
    y = x * 1
    v = y[1:]
    y.data = taeda.ones(3) * 7
    v.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [1, 2, 2]
    assert v.tolist() == [2, 2]


def test_a_set_tensor_has_no_derivative():
    x = taeda.ones(3, requires_grad=True)
    z = x * 2
    z.set_(taeda.ones(3))
    assert z.requires_grad and z.grad_fn.name() == "NotImplemented"
    with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
        z.sum().backward()


def test_a_saved_tensor_that_was_detached():
    x = taeda.ones(3, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    y.detach_()
    with pytest.raises(RuntimeError, match="detached in-place"):
        z.backward()
