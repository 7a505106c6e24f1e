"""Deferred ops with reductions and row-wise ops: prologues and epilogues."""

import pytest

import taeda
from taeda import nn
from taeda._core import fusion
from taeda.ops.softmax import _softmax_grad

from .fusing import check, draw

F = nn.functional
pytestmark = pytest.mark.usefixtures("everything")


@pytest.mark.parametrize("shape", [(3,), (70, 130), (5, 4, 3, 2), (300000,), (1, 90000), (90000, 1), (2, 3, 4000)])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "prod", "argmax", "logsumexp", "var", "norm"])
def test_reductions_compute_what_they_reduce(shape, name, kernels):
    x, y = draw(*shape), draw(*shape, seed=1)
    reduce = {"logsumexp": lambda t, d: t.logsumexp(d if d is not None else tuple(range(t.dim()))),
              "norm": lambda t, d: taeda.linalg.vector_norm(t, 2, d)}.get(
        name, lambda t, d: getattr(t, name)() if d is None else getattr(t, name)(d))  # fmt: skip
    for dim in (None, 0, -1):
        check(lambda x, y, dim=dim: reduce(x * y + 0.25, dim), x, y)
        assert "mul" not in {n for names in kernels for n in names} or len(shape) > 3 or name == "norm"
    x = draw(*shape[::-1]).permute(*range(len(shape))[::-1])
    check(lambda x: reduce(x.exp() * 2, 0), x)
    check(lambda x: reduce((x > 0) & (x < 1), None), x) if name == "sum" else None


@pytest.mark.parametrize("rows", [(6,), (3, 40), (2, 3, 5)])
@pytest.mark.parametrize("width", [1, 7, 64, 1500, 70000])
def test_reductions_of_what_is_the_same_for_rows_or_columns(rows, width, kernels):
    if width == 70000 and len(rows) > 1:
        rows = rows[:1]
    x, along, across = draw(*rows, width), draw(width, seed=1), draw(rows[-1], 1, seed=2)
    for dim in (-1, tuple(range(len(rows))), 0):
        check(lambda x, a, b, dim=dim: ((x * a + b).sum(dim), (x * b).amax(dim), (x - a).var(dim)), x, along, across)
        check(lambda x, a, b, dim=dim: (x.double() * a).sum(dim) + (b > 0).sum(), x, along, across)
    assert ["mul", "add"] not in kernels or len(rows) > 1 or width == 1


@pytest.fixture
def seen():
    """The names of the ops of all kernels, also of those that compute what another kernel reads."""
    found = []
    fusion.watch(lambda names, *rest: found.append(names))
    yield found
    fusion.watch(None)


def test_a_total_that_nobody_asks_for_is_not_computed(seen):
    x, w = draw(40, 30, requires_grad=True), draw(40, 30, seed=1)

    def function(x):
        return taeda.autograd.grad((x.tanh() * w).sum(), x)

    check(function, x)
    assert sum("tanh" in names for names in seen) <= 1
    del seen[:]
    check(lambda x: (*function(x), (x.detach().tanh() * w).sum()), x)  # and one that is asked for
    assert sum("tanh" in names for names in seen) == 2


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "var", "prod", "any", "argmax"])
def test_totals_are_of_what_was_there(name):
    def total(t, **options):
        return getattr(t, name)(**options)

    def written_over(x, y):
        first = total(x * y)
        z = x * 2
        second = total(z)
        x.add_(1)
        z.mul_(y)
        third = total(z[:2] * 1)
        z[0] = 5.0
        y.copy_(x)
        return first, second, third, total(z), x, y, z

    check(written_over, draw(4, 30), draw(4, 30, seed=1))
    check(lambda x: total(x.t() * x.t() - 1), draw(4, 30))
    check(lambda x: total(taeda.softmax(x * 2, -1)), draw(4, 30))
    check(lambda x: (taeda.softmax(x, -1) * 3, total(taeda.softmax(x, -1) * 3)), draw(4, 30))
    check(lambda x: x * total((x > 0) * x), draw(4, 30))
    check(lambda x: taeda.stack([total(x * i) for i in range(4)]), draw(4, 30))
    check(lambda x: total((x * 2)[1:3]) + total((x * 2).double()), draw(4, 30))


def test_totals_that_are_kept_hold_nothing_back():
    kept = []

    def function(x):
        for i in range(3):
            kept.append((x * i).sum())
            assert [fusion.is_computed(t) for t in kept] == [True] * i + [False]
        raise KeyError

    with pytest.raises(KeyError):
        taeda.compile(function)(draw(50))
    assert all(fusion.is_computed(t) for t in kept) and fusion.count_deferred() == 0
    assert [t.item() for t in kept] == [(draw(50) * i).sum().item() for i in range(3)]


def test_a_total_waits_for_no_other_one():
    def function(x):
        for _ in range(20000):
            x = (x * 0.5 + 1).sum()
        return x

    check(function, draw(3))


def test_rows_are_stored_with_what_goes_on_with_them_where_another_asks(kernels):
    w = draw(20, 90, seed=1)

    def function(x):
        y = taeda.softmax(x * 0.5, -1) * w
        return y, *taeda.autograd.grad(y.sum(), x)

    check(function, draw(20, 90, requires_grad=True))
    assert [names for names in kernels if "softmax" in names] == [["mul", "softmax", "mul"]]


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(3, 5), (2, 4, 90), (3, 2, 5, 300), (2, 7, 1100), (1, 70000), (40, 30, 256)])
def test_rows_compute_what_they_read(name, shape, kernels):
    x = draw(*shape, requires_grad=True)
    mask = draw(*shape[-2:], seed=1) if len(shape) < 4 else draw(shape[0], 1, 1, shape[3], seed=1)
    weight = draw(shape[-1], seed=2)

    def function(x, mask, weight):
        y = getattr(taeda, name)(x * 0.125 + mask, -1)
        (y * weight).sum().backward()
        return y

    check(function, x, mask, weight)
    assert ["mul", "add"] not in kernels
    check(lambda x, mask, weight: getattr(taeda, name)(x.double() * mask, -1, dtype=taeda.float64), x, mask, weight)
    check(lambda x, mask, weight: getattr(taeda, name)(x * mask, 0), x, mask, weight)
    check(lambda x, mask, weight: getattr(taeda, name)((x + mask).transpose(0, -1), -1), x, mask, weight)


@pytest.mark.parametrize("shape", [(3, 5), (2, 4, 90), (1, 1500), (6, 1), (40, 30, 256), (9, 128)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_rows_go_on_where_they_are_stored(name, shape, kernels):
    rows = getattr(taeda, name)
    x, w, b = draw(*shape), draw(*shape, seed=1), draw(shape[-1], seed=2)
    check(lambda x, w, b: rows(x * 2, -1) * w + b, x, w, b)
    assert shape[-1] == 1 or kernels == [["mul", name, "mul", "add"]]
    kernels.clear()
    check(lambda x, w: (y := rows(x, -1), y * w, y * w + 1, (y - w).exp()), x, w)  # the result is held, and read again
    check(lambda x, w: rows(x, -1) * (x + w), x, w)
    check(lambda x, w: rows(x, -1) - rows(w, -1), x, w)  # only one of two goes on
    check(lambda x: rows(rows(x * 3, -1) + 1, -1) * 2, x)
    check(lambda x, w: (rows(x, -1) > w).to(x.dtype) + (rows(x, -1) * w).sum(-1, keepdim=True), x, w)
    check(lambda x, w: (rows(x, -1) * w).sum(), x, w)
    check(lambda x, w, b: taeda.cat([rows(x, -1) * w, rows(w, -1)], 0)[1:] * b, x, w, b)
    check(lambda x, w: (rows(x, -1)[..., :1] * 2, (rows(x, -1) * w)[1:] + 1), x, w)
    check(lambda x, w: rows(x.double() * w, -1) * 0.5, x, w)


def test_rows_that_are_written_to_before_they_are_computed():
    def own(x, w):
        y = taeda.softmax(x, -1)
        y.mul_(2)
        return y + w

    def source(x, w):
        y = taeda.softmax(x * 2, -1) * w
        z = x * 2
        u = taeda.log_softmax(z, -1)
        x.add_(1)
        z.mul_(x)
        return y, z, u * w, x

    def going_on(x, w):
        y = taeda.softmax(x, -1)
        z = y * w
        w.zero_()
        y[0] = 3
        return z, w.mul_(y), y

    def gradients(x, w):
        y = taeda.softmax(x * 0.5, -1)
        (y * w + y.log()).sum().backward()
        return x.grad * 2

    for function in (own, source, going_on, gradients):
        check(function, draw(7, 90, requires_grad=function is gradients), draw(7, 90, seed=1))


def test_rows_of_operands_of_several_dtypes():
    """They are no one kernel with what computes the first: each is read as what it is."""
    y = taeda.softmax(draw(4, 90).double(), -1)
    for also in (y, y.half()):
        check(lambda g, y: _softmax_grad(g * 2, -1, (y,)), draw(4, 90, seed=1), also)


def test_rows_that_read_more_than_a_kernel_can():
    """What computes the operand writes something along that was to be written with the result."""

    def function(x, *w):
        held = taeda.tanh(x * w[0]) * w[1]
        y = taeda.softmax(held * w[2] * w[3] * w[4] * w[5] * w[6], -1)
        return y * held * w[7] * w[8] * w[9] * w[10], held

    check(function, *(draw(5, 33, seed=i) for i in range(12)))


@pytest.mark.parametrize("activation", [nn.ReLU, nn.ReLU6, nn.Identity])
def test_norms_that_compute_and_store_past_the_cache(activation, monkeypatch):
    """Images that no cache holds: batch norm reads what its kernel computes, plane after plane."""
    for module in (taeda.ops.normalization, taeda.ops._channels):
        monkeypatch.setattr(module, "stream_bytes", lambda: 0)

    def losses(compile):
        taeda.manual_seed(0)
        norm = lambda: nn.BatchNorm2d(8)  # noqa: E731
        model = nn.Sequential(nn.Conv2d(3, 8, 1), norm(), activation(), norm(), nn.Conv2d(8, 8, 1), nn.GroupNorm(2, 8))
        x, optimizer = taeda.randn(4, 3, 32, 32), taeda.optim.SGD(model.parameters(), 0.1)

        def step():
            optimizer.zero_grad()
            loss = (x.mean(1, keepdim=True) * model(x)).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        step = taeda.compile(step) if compile else step
        return [step().item() for _ in range(5)]

    assert losses(True) == losses(False)
