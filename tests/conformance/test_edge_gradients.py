"""Gradients where an element is NaN, infinite, zero or equal to another are PyTorch's."""

import math

import pytest

import taeda

torch = pytest.importorskip("torch")

from .peer import close  # noqa: E402

NAN, INF = math.nan, math.inf
INPUTS = {
    "nan": [1.0, NAN, 3.0, 2.0],
    "two nans": [NAN, NAN, 1.0, 2.0],
    "nans": [NAN] * 4,
    "inf": [INF, 1.0, 2.0, -1.0],
    "infs": [INF, INF, 1.0, -INF],
    "ties": [2.0, 2.0, 1.0, 2.0],
    "zeros": [0.0] * 4,
    "two zeros": [1.0, 0.0, 0.0, -2.0],
    "plain": [1.0, -2.0, 3.0, 0.5],
}


def other(t):
    return t.tensor([1.0, 2.0, 0.0, 2.0])


CALLS = {
    **{
        f"{name} {q} {how}": lambda t, x, name=name, q=q, how=how: getattr(t, name)(x, q, interpolation=how)
        for name in ("quantile", "nanquantile")
        for q in (0.0, 0.3, 1.0)
        for how in ("linear", "lower", "higher", "midpoint", "nearest")
    },
    "quantile of rows": lambda t, x: t.quantile(x.reshape(2, 2), t.tensor([0.2, 0.7]), dim=1),
    "nanquantile of rows": lambda t, x: t.nanquantile(x.reshape(2, 2), t.tensor([0.2, 0.7]), dim=1, keepdim=True),
    **{
        name: lambda t, x, name=name: getattr(t, name)(x)
        for name in ("max", "min", "amax", "amin", "median", "nanmedian", "nansum", "std")
    },
    **{f"norm {p}": lambda t, x, p=p: t.linalg.vector_norm(x, p) for p in (0.5, 1, 2, 3, INF, -INF)},
    **{f"norm of rows {p}": lambda t, x, p=p: t.norm(x.reshape(2, 2), p, dim=1) for p in (1, 2, INF)},
    "clamp": lambda t, x: t.clamp(x, 0.0, 2.0),
    "clamp from": lambda t, x: t.clamp(x, min=1.0),
    "hardtanh": lambda t, x: t.nn.functional.hardtanh(x),
    "relu6": lambda t, x: t.nn.functional.relu6(x),
    "elu": lambda t, x: t.nn.functional.elu(x),
    "selu": lambda t, x: t.nn.functional.selu(x),
    "celu": lambda t, x: t.nn.functional.celu(x, 2.0),
    "hinge": lambda t, x: t.nn.functional.hinge_embedding_loss(x, other(t) - 1),
    "fmax": lambda t, x: t.fmax(x, t.tensor([NAN, 2.0, 0.0, 2.0])),
    "fmin": lambda t, x: t.fmin(t.tensor([NAN, 2.0, 0.0, 2.0]), x),
    "xlogy": lambda t, x: t.xlogy(x, other(t)),
    "xlog1py": lambda t, x: t.special.xlog1py(x, other(t)),
    "lp_pool": lambda t, x: t.nn.functional.lp_pool1d(x.reshape(1, 1, 4), INF, 2),
    "acosh": lambda t, x: t.acosh(x),
    "acosh below": lambda t, x: t.acosh(-1 - x),
    "prelu": lambda t, x: t.nn.functional.prelu(x, t.tensor([0.25])),
    "prelu of a weight": lambda t, x: t.nn.functional.prelu(t.tensor([[INF, -1.0, 2.0, -INF]]), x),
    "cummax": lambda t, x: t.cummax(x, 0)[0],
}


@pytest.mark.parametrize("label", CALLS)
def test_gradient(label):
    for name, values in INPUTS.items():
        found = []
        for t in (torch, taeda):
            x = t.tensor(values, requires_grad=True)
            out = CALLS[label](t, x)
            weights = t.arange(1.0, out.numel() + 1).reshape(out.shape)
            found.append((out.detach(), *t.autograd.grad(out, x, weights)))
        try:
            close(found[1], found[0])
        except AssertionError as error:
            raise AssertionError(f"{label} of {name}") from error


def test_logsumexp_at_infinity():
    for t in (torch, taeda):
        x = t.tensor([INF, 1.0], requires_grad=True)
        (g,) = t.autograd.grad(t.logsumexp(x, 0), x)
        assert math.isnan(g[0].item()) and g[1].item() == 0


def test_the_gradient_of_an_embedding_holds_indices_of_its_own():
    index = taeda.tensor([0, 2, 0])
    weight = taeda.ones(3, 2, requires_grad=True)
    taeda.nn.functional.embedding(index, weight, sparse=True).sum().backward()
    index.fill_(1)
    assert weight.grad._indices().tolist() == [[0, 2, 0]]


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_sparse_products_have_gradients_of_the_sparse_factor(layout):
    found = []
    for t in (torch, taeda):
        a = getattr(t.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), layout)().requires_grad_()
        b = t.arange(6.0).reshape(3, 2).requires_grad_()
        (t.sparse.mm(a, b) * t.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
        found.append((a.grad.to_dense(), b.grad))
    close(found[1], found[0])


def calls(t):
    """What raises in PyTorch, with the type."""
    yield RuntimeError, lambda: t.nn.RNN(3, 4)(t.empty(0, 2, 3))
    yield RuntimeError, lambda: t.nn.LSTM(3, 4, 2, bidirectional=True)(t.empty(0, 3))
    yield RuntimeError, lambda: t.nn.GRU(3, 4, batch_first=True)(t.empty(2, 0, 3))
    yield RuntimeError, lambda: t.rand(3).normal_(0, -1)
    yield RuntimeError, lambda: t.normal(t.rand(3), t.tensor([1.0, -1.0, 1.0]))
    yield RuntimeError, lambda: t.rand(3).log_normal_(0, -1)
    yield RuntimeError, lambda: t.device("nonsense")
    yield RuntimeError, lambda: t.device("cpu:01")
    yield RuntimeError, lambda: t.device("cpu", -2)
    yield TypeError, lambda: t.rand(3) @ 3
    yield TypeError, lambda: 3 @ t.rand(3)


@pytest.mark.parametrize("place", range(len(list(calls(torch)))))
def test_errors_of_pytorchs_types(place):
    for t in (torch, taeda):
        kind, call = list(calls(t))[place]
        with pytest.raises(kind):
            call()


def test_an_unknown_device_names_the_kinds():
    with pytest.raises(RuntimeError) as error:
        taeda.device("notadevice")
    kinds = str(error.value).split("Expected one of ")[1].split(" device type")[0].split(", ")  # array-api-compat's way
    assert {"cpu", "cuda", "meta"} <= set(kinds)


@pytest.mark.parametrize("number", [3, 2.5, 1j])
def test_a_number_is_no_factor_of_a_product_of_matrices(number):
    assert taeda.ones(3).__matmul__(number) is NotImplemented
    assert taeda.ones(3).__rmatmul__(number) is NotImplemented
