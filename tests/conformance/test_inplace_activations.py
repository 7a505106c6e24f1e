"""Activations written in place inside a network give PyTorch's gradients."""

import pytest

import taeda

torch = pytest.importorskip("torch")

from tests.conformance.peer import close, ours  # noqa: E402

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
