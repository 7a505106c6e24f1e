"""Determinants and their logarithms, from the LU factorisation."""

from __future__ import annotations

import math

from ..._core import Tensor, renamed
from ..._core.lapack import determinant
from ..creation import arange
from ..indexing import where
from ..joining import stack
from ..matmul import matmul
from ..table import alias, composite, primitive, result_type
from . import lu
from .lapack import BY_CHECK, check, eye_like
from .solve import solve_adjoint
from .svd import linalg_svd

Slogdet = result_type("linalg_slogdet", "sign", "logabsdet")
OldSlogdet = result_type("slogdet", "sign", "logabsdet")


def _parity(pivots: Tensor) -> Tensor:
    """1 or -1 by the number of row exchanges."""
    exchanged = (pivots != arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype)).sum(-1)
    return 1 - 2 * (exchanged % 2)


@primitive(
    method=False,
    outputs=("out", "LU", "pivots"),
    differentiable=(0,),
    batch="leading",
    node="LinalgDet",
    on_host="getrf",
)
def _det(A):
    LU, pivots, _ = lu.factor(A)
    out = determinant(LU, pivots)
    return LU.diagonal(0, -2, -1).prod(-1) * _parity(pivots) if out is None else out, LU, pivots


_det.traits["native_call"] = lambda A: ("_linalg_det.default", (A,))


@_det.vjp_all("A")
def _det_backward(g, A, out, LU, pivots):
    return (g[..., None, None] * _cofactors(A, LU, pivots, out),)


def _cofactors_of_any(A, LU, pivots, det):
    if det.is_meta or bool((det != 0).all()):
        return solve_adjoint(A, det.conj_physical()[..., None, None] * eye_like(A), LU, pivots, True)
    return _svd_cofactors(A)


@primitive(method=False, out=False, batch="leading", decomposition=_cofactors_of_any, on_host="getrs")
def _cofactors(A, LU, pivots, det):
    """``conj(det(A)) inv(A)^H``: by the factorisation where no matrix is singular, else by the SVD."""
    return _cofactors_of_any(A, LU, pivots, det)


def _svd_cofactors(A):
    """The same for any matrix, products of singular values taking the place of quotients."""
    U, S, Vh = linalg_svd(A, full_matrices=False)
    n = A.shape[-1]
    left = [S[..., :i].prod(-1) * S[..., i + 1 :].prod(-1) for i in range(n)]
    products = stack(left, -1) if n else S
    sign = linalg_det(U) * linalg_det(Vh)
    return sign.conj_physical()[..., None, None] * matmul(U * products[..., None, :], Vh)


@composite(method=False, out="same")
def linalg_det(A):
    """The determinant: how much a matrix scales volumes.

    Args:
        A: square matrices ``(..., n, n)``, floating point or complex.
    Returns:
        ``(...)``.
    Raises:
        RuntimeError: the matrices are not square.
    Examples:
        >>> taeda.linalg.det(taeda.tensor([[2.0, 0.0], [1.0, 4.0]]))
        tensor(8.)
    """
    check(A, "linalg.det")
    return _det(A)[0]


det = renamed(linalg_det, "det")


alias(linalg_det, "det")


@primitive(
    method=False, outputs=("sign", "logabsdet", "LU", "pivots"), differentiable=(0, 1), batch="leading", on_host="getrf"
)
def _slogdet(A):
    LU, pivots, _ = lu.factor(A)
    diagonal = LU.diagonal(0, -2, -1)
    return diagonal.sgn().prod(-1) * _parity(pivots), diagonal.abs().log().sum(-1), LU, pivots


_slogdet.traits["native_call"] = lambda A: ("_linalg_slogdet.default", (A,))


@_slogdet.vjp_all("A")
def _slogdet_backward(g, A, sign, LU, pivots):
    scale = g[1].to(A.dtype)
    if A.is_complex():
        scale = g[1] + 1j * (g[0] * sign.conj_physical()).imag
    scale = scale[..., None, None] * eye_like(A)
    return (solve_adjoint(A, scale, LU, pivots, True),)


@composite(method=False, out="same")
def linalg_slogdet(A):
    """The sign of the determinant and the logarithm of its absolute value, for determinants that are too large or too
    small for the dtype.

    Args:
        A: square matrices ``(..., n, n)``, floating point or complex.
    Returns:
        ``(sign, logabsdet)``, named, each ``(...)``; of a singular matrix 0 and ``-inf``.
    Raises:
        RuntimeError: the matrices are not square.
    Examples:
        >>> sign, logabsdet = taeda.linalg.slogdet(1e-10 * taeda.eye(10))
        >>> sign, (logabsdet / math.log(10)).round()  # the determinant itself would be 0 in float32
        (tensor(1.), tensor(-100.))
    """
    check(A, "linalg.slogdet", refused=BY_CHECK)
    return Slogdet(*_slogdet(A)[:2])


@composite(names=("slogdet",), out="same")
def _old_slogdet(input):
    """The sign of the determinant and the logarithm of its absolute value: :func:`taeda.linalg.slogdet`.

    Args:
        input: square matrices ``(..., n, n)``, floating point or complex.
    Returns:
        ``(sign, logabsdet)``, named, each ``(...)``.
    Raises:
        RuntimeError: the matrices are not square.
    Examples:
        >>> taeda.slogdet(-taeda.eye(3)).sign
        tensor(-1.)
    """
    return OldSlogdet(*linalg_slogdet(input))


slogdet = renamed(_old_slogdet, "slogdet")


@composite()
def logdet(input):
    """The logarithm of the determinant: NaN where that is negative, ``-inf`` where it is 0.

    Args:
        input: square matrices ``(..., n, n)``, floating point or complex.
    Returns:
        ``(...)``.
    Raises:
        RuntimeError: the matrices are not square.
    Examples:
        >>> taeda.logdet(taeda.tensor([[2.0, 0.0], [0.0, 3.0]]))
        tensor(1.7918)
    """
    check(input, "logdet", refused=BY_CHECK)
    sign, logabs = linalg_slogdet(input)
    if input.is_complex():
        return logabs + sign.log()
    return where(sign == -1.0, math.nan, logabs)
