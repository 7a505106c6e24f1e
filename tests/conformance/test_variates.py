"""Binomial, gamma and Dirichlet samples against PyTorch's streams, and their derivatives against mpmath."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

from . import peer  # noqa: E402


@pytest.fixture(autouse=True)
def seeded():
    taeda.manual_seed(7)
    torch.manual_seed(7)


def same_state():
    assert taeda.get_rng_state().numpy().tobytes() == torch.get_rng_state().numpy().tobytes()


def shapes(dtype):
    drawn = torch.tensor(np.random.RandomState(0).gamma(1, 3, 500)).to(dtype)
    drawn[:3] = torch.tensor([0.0, 1e-3, 1e5])
    return drawn


# float32: PyTorch rounds 1 / shape to it before a power that may be 1e-20
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.float64, 1e-13)])
def test_streams(dtype, tolerance):
    a = shapes(dtype)
    peer.close(taeda._standard_gamma(peer.ours(a)), torch._standard_gamma(a), rtol=tolerance, atol=0)
    rows = a[5:].reshape(-1, 5)
    peer.close(taeda._sample_dirichlet(peer.ours(rows)), torch._sample_dirichlet(rows), rtol=tolerance, atol=0)
    corners = torch.full((50, 2), 0.01, dtype=dtype)  # samples that round to 1
    drawn = taeda._sample_dirichlet(peer.ours(corners))
    peer.close(drawn, torch._sample_dirichlet(corners), rtol=10 * tolerance, atol=0)
    assert drawn.max() < 1
    n, p = torch.arange(-3, 600).to(dtype), torch.linspace(-0.1, 1.1, 603, dtype=dtype)
    peer.close(taeda.binomial(peer.ours(n), peer.ours(p)), torch.binomial(n, p), rtol=0, atol=0)
    same_state()


def test_second_derivatives_of_gamma():
    """Along a sample, whose derivative is a function of the shape and of the sample."""
    a = taeda.tensor([0.05, 0.3, 1.0, 1.0, 2.5, 30.0], dtype=taeda.float64, requires_grad=True)
    taeda.manual_seed(3)
    x = taeda._standard_gamma(a)
    (slope,) = taeda.autograd.grad(x.sum(), a, create_graph=True)
    (second,) = taeda.autograd.grad(slope.sum(), a)
    a, x, slope, h = a.detach(), x.detach(), slope.detach(), 1e-5 * a.detach()
    ahead, behind = (taeda._standard_gamma_grad(a + s * h, x + s * h * slope) for s in (1, -1))
    taeda.testing.assert_close(second, (ahead - behind) / (2 * h), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_derivatives_at_the_ends_of_the_range(dtype):
    """Rounding puts samples there."""
    a, b = (x.flatten().to(dtype) for x in torch.meshgrid(*[torch.tensor([0.1, 1.0, 10.0])] * 2, indexing="ij"))
    for x in (0.0, 1.0):
        arguments = torch.full_like(a, x), a, a + b
        got = taeda._dirichlet_grad(*map(peer.ours, arguments))
        peer.close(got, torch._dirichlet_grad(*arguments), rtol=5e-3, atol=1e-30)
    zeros = torch.zeros_like(a)
    peer.close(taeda._standard_gamma_grad(peer.ours(a), peer.ours(zeros)), zeros, rtol=0, atol=1e-30)


def test_what_has_no_derivative():
    x = taeda.full((3,), 0.5, requires_grad=True)
    with pytest.raises(NotImplementedError, match="'binomial: prob' is not implemented"):
        taeda.binomial(taeda.ones(3), x).sum().backward()
    with pytest.raises(NotImplementedError, match="'binomial: count' is not implemented"):
        taeda.binomial(x, taeda.ones(3)).sum().backward()


def test_derivatives_agree_with_pytorch():
    a = shapes(torch.float64)[4:]
    x = torch._standard_gamma(a)
    # PyTorch's are a fit of 4 digits in the middle of the range
    peer.close(taeda._standard_gamma_grad(*peer.ours((a, x))), torch._standard_gamma_grad(a, x), rtol=1e-3, atol=0)
    rows = a[:495].reshape(-1, 5)
    x, total = torch._sample_dirichlet(rows), rows.sum(-1, True).expand(-1, 5).contiguous()
    want = torch._dirichlet_grad(x, rows, total)
    peer.close(taeda._dirichlet_grad(*peer.ours((x, rows.contiguous(), total))), want, rtol=3e-3, atol=0)


def test_gradients_of_samples():
    values = torch.tensor([[0.3, 2.0, 7.0], [1.0, 30.0, 4.0]], dtype=torch.float64)
    weights = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    for theirs, ours in (
        (torch._standard_gamma, taeda._standard_gamma),
        (lambda a: torch.distributions.Dirichlet(a).rsample(), taeda._sample_dirichlet),
    ):
        a = values.clone().requires_grad_()
        (theirs(a) * weights).sum().backward()
        b = peer.ours(values).requires_grad_()
        (ours(b) * peer.ours(weights)).sum().backward()
        peer.close(b.grad, a.grad, rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize(
    "a, x", [(0.01, 1e-5), (0.5, 0.1), (0.5, 5), (3, 3), (3, 20), (100, 90), (1000, 1010), (1e-3, 1e-10), (2, 1e-6)]
)
def test_gamma_derivative(a, x):
    mp = pytest.importorskip("mpmath")
    with mp.workdps(40):
        a_, x_ = mp.mpf(a), mp.mpf(x)
        density = x_ ** (a_ - 1) * mp.exp(-x_) / mp.gamma(a_)
        want = float(-mp.diff(lambda s: mp.gammainc(s, 0, x_, regularized=True), a_) / density)
    exact = taeda._standard_gamma_grad(*(taeda.tensor(float(v), dtype=taeda.float64) for v in (a, x)))
    assert abs(exact.item() / want - 1) < 5e-8


@pytest.mark.parametrize(
    "x, a, b", [(0.5, 0.5, 0.5), (0.1, 3, 4), (0.999, 5, 0.1), (0.3, 100, 200), (0.01, 0.01, 0.01)]
)
def test_dirichlet_derivative(x, a, b):
    mp = pytest.importorskip("mpmath")
    with mp.workdps(40):
        x_, a_, b_ = mp.mpf(x), mp.mpf(a), mp.mpf(b)
        density = x_ ** (a_ - 1) * (1 - x_) ** (b_ - 1) / mp.beta(a_, b_)
        want = float(-mp.diff(lambda s: mp.betainc(s, b_, 0, x_, regularized=True), a_) / density / (1 - x_))
    got = taeda._dirichlet_grad(*(taeda.tensor(float(v), dtype=taeda.float64) for v in (x, a, a + b)))
    assert abs(got.item() / want - 1) < 1e-7


def test_errors():
    with pytest.raises(NotImplementedError, match="float16"):
        taeda._standard_gamma(taeda.ones(2, dtype=taeda.float16))
    with pytest.raises(RuntimeError, match="dtype of count"):
        taeda.binomial(taeda.ones(2), taeda.ones(2, dtype=taeda.float64))
