"""Approximations of low rank from random projections: Halko, Martinsson & Tropp, "Finding structure with randomness"
(2009)."""

from __future__ import annotations

from ..._core import Tensor
from ..creation import ones
from ..matmul import matmul
from ..random import randn
from ..table import composite
from .lapack import H
from .qr import linalg_qr
from .svd import linalg_svd


def _check_matrix(name: str, A: Tensor) -> None:
    if A.dim() < 2:
        raise ValueError(f"{name}: the input tensor A must have at least 2 dimensions, got shape {tuple(A.shape)}")
    if not (A.is_floating_point() or A.is_complex()):
        raise RuntimeError(f"{name}: expected a floating-point or complex tensor, got {A.dtype}; convert it first")


def _range(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """An orthonormal basis ``(..., m, q)`` that nearly spans the columns of ``A - M`` (their algorithm 4.4)."""

    def apply(x, transposed):
        y = matmul(H(A) if transposed else A, x)
        return y if M is None else y - matmul(H(M) if transposed else M, x)

    start = randn(A.shape[-1], q, dtype=A.dtype)
    Q = linalg_qr(apply(start, False)).Q
    for _ in range(niter):
        Q = linalg_qr(apply(Q, True)).Q
        Q = linalg_qr(apply(Q, False)).Q
    return Q


@composite(method=False, random="noise")
def svd_lowrank(A, q=6, niter=2, M=None):
    """``A - M ~= U @ diag(S) @ V.mH`` of rank ``q``, by a random projection and ``niter`` power iterations (Halko,
    Martinsson and Tropp 2011). Faster than :func:`taeda.linalg.svd` where ``q`` is small.

    Args:
        A: ``(..., m, n)``.
        q: the rank. Default: 6, or the smaller side.
        niter: how many power iterations.
        M: what to subtract; broadcasts to ``A``.
    Returns:
        ``U`` ``(..., m, q)``, ``S`` ``(..., q)`` and ``V`` ``(..., n, q)``, of the dtype of ``A``; ``S`` is real.
    Raises:
        ValueError: ``A`` has fewer than two dimensions.
        RuntimeError: ``A`` is neither floating point nor complex.
    Examples:
        >>> generator = taeda.manual_seed(0)
        >>> A = taeda.outer(taeda.arange(1.0, 5.0), taeda.ones(3))  # rank 1
        >>> U, S, V = taeda.svd_lowrank(A, q=1)
        >>> taeda.allclose(S * U @ V.mT, A, atol=1e-4)
        True
    """
    q = 6 if q is None else q
    niter = 2 if niter is None else niter
    _check_matrix("svd_lowrank", A)
    m, n = A.shape[-2:]
    if M is not None:
        M = M.broadcast_to(A.shape)
    wide = m < n  # the basis is of the shorter side
    if wide:
        A, M = H(A), None if M is None else H(M)
    Q = _range(A, q, niter, M)
    B = matmul(H(Q), A)
    if M is not None:
        B = B - matmul(H(Q), M)
    U, S, Vh = linalg_svd(B, full_matrices=False)
    U, V = matmul(Q, U), H(Vh)
    return (V, S, U) if wide else (U, S, V)


@composite(method=False, random="noise")
def pca_lowrank(A, q=None, center=True, niter=2):
    """Principal components: :func:`svd_lowrank` of ``A`` less the mean of its columns.

    Args:
        A: ``(..., m, n)``: an observation in each row.
        q: how many components, or a few more. Default: 6, or the smaller side.
        center: subtract the mean.
        niter: how many power iterations.
    Returns:
        ``U`` ``(..., m, q)``, ``S`` ``(..., q)`` and ``V`` ``(..., n, q)``, whose columns are the directions;
        ``A @ V`` are the coordinates. The dtype is that of ``A``.
    Raises:
        ValueError: ``A`` has fewer than two dimensions, or ``q`` is negative or larger than a side.
        RuntimeError: ``A`` is neither floating point nor complex.
    Examples:
        >>> generator = taeda.manual_seed(0)
        >>> A = taeda.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
        >>> U, S, V = taeda.pca_lowrank(A, q=1)
        >>> V.abs().round(decimals=4)  # along the diagonal
        tensor([[0.7071],
                [0.7071]])
    """
    _check_matrix("pca_lowrank", A)
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not center:
        return svd_lowrank(A, q, niter)
    if A.is_sparse:  # the difference would be dense
        return svd_lowrank(A, q, niter, matmul(ones(1, m, dtype=A.dtype), A) / m)
    return svd_lowrank(A - A.mean(-2, keepdim=True), q, niter)
