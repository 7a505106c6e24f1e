"""Views and in-place writes: random programs on both frameworks, and what the two do not share."""

import pytest

torch = pytest.importorskip("torch")
hypothesis = pytest.importorskip("hypothesis")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import taeda  # noqa: E402

from .peer import compare  # noqa: E402
from .programs import check_program  # noqa: E402


@settings(max_examples=250, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1))
def test_random_programs(seed):
    check_program(seed)


def test_a_view_made_without_grad_is_not_written_with_it():
    x = taeda.ones(3, requires_grad=True)
    for base in (x, x * 1):
        with taeda.no_grad():
            view = base.view(3)
            view.mul_(1)
        with pytest.raises(RuntimeError, match="no_grad mode"):
            view.add_(1)


def test_one_of_several_views():
    x = taeda.arange(4.0, requires_grad=True)
    h = x * 1
    a, b = h.chunk(2)
    a.mul_(3)
    (h * b.sum()).sum().backward()
    y = torch.arange(4.0, requires_grad=True)
    k = torch.cat((y[:2] * 3, y[2:]))
    (k * k[2:].sum()).sum().backward()
    assert x.grad.tolist() == y.grad.tolist()
    pieces = (x * 1).unsafe_split(2)
    pieces[0].mul_(2)
    assert not pieces[0]._is_view() and pieces[0].grad_fn is not None


def test_overlaps():
    for call in (
        lambda f, x: x[1:].copy_(x[:-1]),
        lambda f, x: x.__setitem__(slice(1, None), x[:-1]),
        lambda f, x: x[1:].add_(x[:-1]),
        lambda f, x: x.expand(2, 6).add_(1),
        lambda f, x: x[:1].expand(6).scatter_(0, f.tensor([1]), 2.0),
        lambda f, x: x.view(2, 3).t().copy_(x.view(3, 2)),
        lambda f, x: f.add(x[1:], 1, out=x[:-1]),
        lambda f, x: f.cumsum(x, 0, out=x[:1].expand(6)),
    ):
        compare("overlap", call, torch.arange(6.0), raises=RuntimeError)
    for call in (
        lambda f, x: x.expand(2, 6).fill_(3),
        lambda f, x: x.expand(2, 6).zero_(),
        lambda f, x: x[:1].expand(6).index_fill_(0, f.tensor([1]), 2.0),
        lambda f, x: x.mul_(x),
        lambda f, x: x[::2].mul_(x[1::2]),
    ):
        compare("one value", call, torch.arange(6.0))


@pytest.mark.parametrize("shape", [(200, 130), (3, 150, 60), (40, 50, 16)])
def test_operands_that_run_across(shape):
    x = torch.randn(shape)
    order = list(range(len(shape)))[::-1]
    across = torch.randn(shape[::-1]).permute(order)
    for call in (
        lambda f, x, y: x + y,
        lambda f, x, y: f.where(y > 0, x, y),
        lambda f, x, y: y.clone().addcmul_(x, y),
        lambda f, x, y: f.mul(x, y, out=f.empty_like(y)),
        lambda f, x, y: (y * x.double()) + y[..., :1],
    ):
        want, got = call(torch, x, across), call(taeda, *(taeda.tensor(t.numpy().copy()) for t in (x, across)))
        compare("across", call, x, across)
        assert got.shape == tuple(want.shape)
    mine = taeda.tensor(across.permute(order).numpy().copy()).permute(order)
    ours = taeda.tensor(x.numpy().copy())
    compare("across", lambda f, x: x, x)
    assert (ours + mine).stride() == (x + across).stride() and (mine + ours).stride() == (across + x).stride()
    torch.testing.assert_close(torch.from_numpy((mine + ours).contiguous().numpy()), (across + x).contiguous())


def test_views_keep_odd_strides():
    compare(
        "view_as", lambda f, x: f.tensor(x.diagonal(0, 0, 2).view_as(x.diagonal(0, 0, 2)).stride()), torch.ones(2, 2, 3)
    )


def test_python_functions_of_elements():
    x = torch.arange(6.0).view(2, 3)
    compare("apply_", lambda f, x: x.clone().t().apply_(lambda v: v * 2 + 1), x)
    compare("map_", lambda f, x: x.clone().map_(x * 2, lambda a, b: a - b), x)
    compare("map2_", lambda f, x: x.clone().map2_(x, x[:1], lambda a, b, c: a * b + c), x)
    compare("apply_", lambda f, x: x.requires_grad_().apply_(abs), x.clone(), raises=RuntimeError)
    compare("map_", lambda f, x: x.clone().map_(x.clone().requires_grad_(), max), x.clone(), raises=RuntimeError)
    compare("map2_", lambda f, x: x.clone().map2_(x, x.clone().requires_grad_(), max), x.clone(), raises=RuntimeError)
    compare("exp_", lambda f, x: f.exp_(x) + f.zero_(x), x.clone())
