"""Activations written in place inside a network give PyTorch's gradients."""

import pytest

import taeda

torch = pytest.importorskip("torch")

from tests.conformance.peer import close, compare, ours  # noqa: E402

NAMES = "relu relu6 leaky_relu elu celu selu silu mish hardsigmoid hardswish hardtanh threshold rrelu dropout".split()


@pytest.mark.parametrize("name", NAMES)
def test_gradient(name):
    extra = (0.1, 0.5) if name == "threshold" else ()
    theirs = torch.linspace(-3, 3, 24, dtype=torch.float64).reshape(4, 6).requires_grad_()
    mine = ours(theirs)

    def run(T, x):
        T.manual_seed(0)
        y = x * 2
        z = getattr(T.nn.functional, name)(y, *extra, inplace=True)
        assert z is y
        (g,) = T.autograd.grad((z**2).sum(), x)
        return z, g

    close(run(taeda, mine), run(torch, theirs))


@pytest.mark.parametrize(
    "call",
    [
        lambda T, x: T.nn.functional.hardtanh_(x, 2, -2), lambda T, x: T.nn.functional.hardtanh_(x, 2, 3),
        lambda T, x: T.nn.functional.relu_(input=x), lambda T, x: T.nn.functional.threshold_(x, 1, 5),
        lambda T, x: T.nn.functional.leaky_relu_(x, 0.5), lambda T, x: T.nn.functional.hardtanh(x, 3, -1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_names_that_end_in_an_underscore(call, dtype):
    """Bounds in the wrong order are no error in place, and negative ones of unsigned numbers are."""
    compare(
        "in place", lambda T: call(T, T.tensor([0, 1, 2, 3], dtype=getattr(T, dtype))),
        may_raise=(RuntimeError, ValueError),
    )  # fmt: skip


def test_functions_in_place_are_the_ops():
    for name in ("relu_", "threshold_", "rrelu_", "celu_", "selu_"):
        assert getattr(torch.nn.functional, name) is getattr(torch, name)
        assert getattr(taeda.nn.functional, name) is getattr(taeda, name)
