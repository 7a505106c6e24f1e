"""Factorisations and what is solved with them at extreme scales: ``f(s A) = s^k f(A)``, and so ``s^(k-1)`` times the
gradient, for every power of two ``s`` that leaves result and gradient within the range of the dtype."""

import math

import pytest

import taeda
from taeda import linalg


def _symmetric(A):
    return A + A.mT


def _svd(A):
    U, S, Vh = linalg.svd(A, full_matrices=False)
    return (U * S) @ Vh


def _complex_svd(A):
    U, S, Vh = linalg.svd(taeda.complex(A, A.mT))
    return taeda.view_as_real((U * S.to(U.dtype)) @ Vh)


def _eigh(A):
    w, V = linalg.eigh(_symmetric(A))
    return (V * w) @ V.mT


def _ones(A):
    return taeda.ones(A.shape[0], 1, dtype=A.dtype)


#: Functions with their degree ``k``.
CASES = {
    "singular values by svd": (lambda A: linalg.svd(A)[1], 1),
    "svdvals": (linalg.svdvals, 1),
    "U S V": (_svd, 1),
    "U S V of a wide matrix": (lambda A: _svd(A[:2]), 1),
    "U S V of a tall matrix": (lambda A: _svd(A[:, :2]), 1),
    "U S V of a complex matrix": (_complex_svd, 1),
    "sizes of U": (lambda A: linalg.svd(A)[0].abs(), 0),
    "V S V of eigh": (_eigh, 1),
    "eigvalsh": (lambda A: linalg.eigvalsh(_symmetric(A)), 1),
    "sizes of eigenvectors": (lambda A: linalg.eigh(_symmetric(A))[1].abs(), 0),
    "eig": (lambda A: linalg.eig(A)[0].abs(), 1),
    "eigvals": (lambda A: linalg.eigvals(A).abs(), 1),
    "Q": (lambda A: linalg.qr(A)[0], 0),
    "R": (lambda A: linalg.qr(A)[1], 1),
    "cholesky": (
        lambda A: linalg.cholesky(A @ (A.mT.detach() / A.detach().abs().max()) + 9 * A.diagonal().diag()),
        0.5,
    ),
    "inv": (linalg.inv, -1),
    "pinv": (linalg.pinv, -1),
    "pinv of a wide matrix": (lambda A: linalg.pinv(A[:2]), -1),
    "solve": (lambda A: linalg.solve(A, _ones(A)), -1),
    "triangular": (lambda A: linalg.solve_triangular(A, _ones(A), upper=True), -1),
    "lstsq": (lambda A: linalg.lstsq(A[:, :2], _ones(A))[0], -1),
    "lu": (lambda A: linalg.lu(A)[2], 1),
    "nuclear norm": (lambda A: linalg.matrix_norm(A, "nuc"), 1),
    "spectral norm": (lambda A: linalg.matrix_norm(A, 2), 1),
    "largest size": (lambda A: linalg.vector_norm(A, math.inf), 1),
    "condition": (lambda A: linalg.cond(A), 0),
    "hypot": (lambda A: taeda.hypot(A, 2 * A), 1),
    "size of complex numbers": (lambda A: taeda.complex(A, 2 * A).abs(), 1),
    "atan2": (lambda A: taeda.atan2(A, 2 * A + A.detach().abs()), 0),
    "angle": (lambda A: taeda.complex(A, 2 * A).angle(), 0),
}
LIMIT = {"float32": 120, "float64": 1000}
POWERS = {"float32": (64, 100, -84, -120), "float64": (532, 900, -530, -900)}


def _at(f, dtype, power):
    A = taeda.tensor([[4.0, 1, 0.5], [-1, 3, 0.3], [0.2, -0.7, 1]], dtype=getattr(taeda, dtype)) * 2.0**power
    y = f(A.requires_grad_())
    weights = taeda.arange(1.0, y.numel() + 1, dtype=y.dtype).reshape(y.shape) / y.numel()
    (g,) = taeda.autograd.grad((y * weights).sum(), A)
    return y.detach(), g


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", list(CASES))
def test_gradients_scale(name, dtype):
    f, k = CASES[name]
    y, g = _at(f, dtype, 0)
    tolerance = 1e-3 if dtype == "float32" else 1e-9
    for power in POWERS[dtype]:
        if abs(power * (k - 1)) > LIMIT[dtype] or abs(power * k) > LIMIT[dtype]:
            continue
        at_scale, gradient = _at(f, dtype, power)
        assert (at_scale / 2.0 ** (power * k) - y).abs().max() <= tolerance * y.abs().max(), power
        assert (gradient / 2.0 ** (power * (k - 1)) - g).abs().max() <= tolerance * g.abs().max(), power


def test_the_gradient_of_singular_values_is_the_identity():
    for dtype, scale in ((taeda.float32, 1e19), (taeda.float64, 1e160), (taeda.float32, 1e-25)):
        A = (taeda.diag(taeda.tensor([1.0, 2.0], dtype=dtype)) * scale).requires_grad_()
        linalg.svd(A)[1].sum().backward()
        assert A.grad.tolist() == [[1, 0], [0, 1]]


def test_equal_and_zero_singular_values_have_finite_gradients():
    A = taeda.zeros(3, 3, requires_grad=True)
    (g,) = taeda.autograd.grad(linalg.svd(A)[1].sum(), A)
    assert g.isfinite().all()
    A = taeda.eye(3, requires_grad=True)
    (g,) = taeda.autograd.grad(_svd(A).sum(), A)
    assert g.isfinite().all()
