"""Nested tensors against PyTorch."""

import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")

from . import peer  # noqa: E402

BOTH = (torch, taeda)


def parts(f):
    return f.arange(6.0).reshape(2, 3) - 2, f.arange(12.0).reshape(4, 3) / 3


def nested(f, layout="jagged"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f.nested.nested_tensor(list(parts(f)), layout=getattr(f, layout))


EITHER = {
    "parts": lambda f, n: n.unbind(),
    "padded": lambda f, n: n.to_padded_tensor(-1.0),
    "padded further": lambda f, n: f.nested.to_padded_tensor(n, 0.0, (2, 5, 3)),
    "sizes": lambda f, n: (n.dim(), n.size(0), n.size(-1), n.numel(), n.is_nested),
    "times a number": lambda f, n: (n * 2).unbind(),
    "sum of two": lambda f, n: (n + n).unbind(),
    "relu": lambda f, n: n.relu().unbind(),
    "functional gelu": lambda f, n: f.nn.functional.gelu(n).unbind(),
    "softmax": lambda f, n: f.softmax(n, -1).unbind(),
    "linear": lambda f, n: f.nn.functional.linear(n, f.ones(2, 3), f.ones(2)).unbind(),
    "layer_norm": lambda f, n: f.nn.functional.layer_norm(n, (3,), f.ones(3), f.zeros(3)).unbind(),
    "double": lambda f, n: n.to(f.float64).unbind(),
}
JAGGED = {
    "values": lambda f, n: n.values(),
    "offsets": lambda f, n: n.offsets(),
    "exp": lambda f, n: n.exp().values(),
    "asinh": lambda f, n: n.asinh().values(),
    "lerp": lambda f, n: f.lerp(n, n * 2, 0.5).values(),
    "hypot": lambda f, n: f.hypot(n, n).values(),
    "from pieces": lambda f, n: f.nested.nested_tensor_from_jagged(f.arange(6.0), f.tensor([0, 2, 6])).unbind(),
    "from lengths": lambda f, n: f.nested.nested_tensor_from_jagged(f.arange(6.0), lengths=f.tensor([2, 4])).unbind(),
    "masked_select": lambda f, n: f.nested.masked_select(
        f.ones(2, 2), f.tensor([[True, False], [True, True]])
    ).unbind(),
    "narrow": lambda f, n: f.nested.narrow(
        f.arange(10.0).reshape(2, 5), 1, f.tensor([0, 2]), f.tensor([3, 1]), layout=f.jagged
    ).unbind(),
}


@pytest.mark.parametrize("layout", ["jagged", "strided"])
@pytest.mark.parametrize("name", EITHER)
def test_value(name, layout):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want, got = (EITHER[name](f, nested(f, layout)) for f in BOTH)
    peer.close(got, want)


@pytest.mark.parametrize("name", JAGGED)
def test_value_of_a_jagged_one(name):
    if name == "from lengths":
        got = JAGGED[name](taeda, None)
        assert [x.tolist() for x in got] == [[0.0, 1.0], [2.0, 3.0, 4.0, 5.0]]
        return
    want, got = (JAGGED[name](f, nested(f)) for f in BOTH)
    peer.close(got, want)


def test_gradients_reach_the_parts():
    found = []
    for f in BOTH:
        a, b = (x.clone().requires_grad_() for x in parts(f))
        n = f.nested.as_nested_tensor([a, b], layout=f.jagged)
        (n * n).values().sum().backward()
        found.append((a.grad, b.grad))
    peer.close(found[1], found[0])


def test_it_prints_its_parts():
    assert repr(nested(taeda, "strided")) == repr(nested(torch, "strided"))


def test_errors():
    for f in BOTH:
        with pytest.raises(RuntimeError):
            f.nested.nested_tensor([f.ones(2), f.ones(2, 2)])
        with pytest.raises(RuntimeError):
            nested(f, "strided").size(1)
        with pytest.raises(RuntimeError):  # NotImplementedError among them
            nested(f, "strided").cumsum(1)
