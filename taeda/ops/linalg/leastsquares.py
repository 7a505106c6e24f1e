"""Pseudo-inverses, ranks, condition numbers and least squares: all use singular values.

The derivative of the pseudo-inverse is that of Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear
least squares problems whose variables separate" (1973).
"""

from __future__ import annotations

import math

from ... import _core
from ..._core import Tensor, renamed
from ..extrema import maximum
from ..indexing import where
from ..matmul import matmul
from ..table import composite, primitive, result_type
from ..views import broadcast_shapes
from .eigen import linalg_eigh, linalg_eigvalsh
from .lapack import H, call, check, check_tensor, columns, count_of, empty_columns, ints, raise_failed
from .norms import linalg_matrix_norm
from .solve import linalg_inv_ex
from .svd import _svd, linalg_svdvals

Lstsq = result_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")


# ---- pseudo-inverse --------------------------------------------------------------------------------------------------


def _cut(A, S, atol, rtol):
    """Below what a singular value counts as zero: ``max(atol, rtol * largest)``; ``(..., 1)``."""
    if rtol is None:
        eps = 2.0**-23 if S.dtype is _core.float32 else 2.0**-52
        default = max(A.shape[-2:]) * eps
        if isinstance(atol, Tensor):
            rtol = where(atol > 0, 0.0, default)
        else:
            rtol = 0.0 if atol is not None and atol > 0 else default
    largest = S.detach().amax(-1, keepdim=True) if S.shape[-1] else S.new_zeros((*S.shape[:-1], 1))
    cut = largest * (rtol[..., None].to(S.dtype) if isinstance(rtol, Tensor) else rtol)
    if atol is None:
        return cut
    return maximum(cut, atol[..., None].to(S.dtype) if isinstance(atol, Tensor) else cut.new_full((), float(atol)))


def _check_tolerances(name, *tolerances):
    for tolerance in tolerances:
        if isinstance(tolerance, Tensor) and tolerance.is_complex():
            raise RuntimeError(f"{name}: tolerances must be real, got a tensor of {tolerance.dtype}")


@primitive(method=False, batch="leading")
def _pinv(A, atol, rtol, hermitian):
    """The Moore-Penrose inverse; see :func:`linalg_pinv`."""
    if hermitian:
        w, U = linalg_eigh(A)
        S = w.abs()
        inverse = w.masked_fill(_cut(A, S, atol, rtol) >= S, math.inf).reciprocal()
        return matmul(U * inverse.to(A.dtype)[..., None, :], H(U))
    U, S, Vh = _svd(A, False)
    inverse = S.masked_fill(_cut(A, S, atol, rtol) >= S, math.inf).reciprocal()
    return matmul(H(Vh) * inverse.to(A.dtype)[..., None, :], H(U))


def _pinv_gradient(g, P, A):
    """Where ``P`` is the pseudo-inverse of ``A``."""
    PH, gH = H(P), H(g)
    PA, AP = matmul(P, A), matmul(A, P)
    outside = matmul(gH, matmul(P, PH))  # through the columns that A does not reach
    inside = matmul(matmul(PH, P), gH)  # through the rows that it does not read
    return outside - matmul(AP, outside) + inside - matmul(inside, PA) - matmul(PH, matmul(g, PH))


@_pinv.vjp_all("A")
def _pinv_backward(g, A, out):
    return (_pinv_gradient(g, out, A),)


@composite(method=False, out=True)
def linalg_pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    """The Moore-Penrose inverse ``(..., n, m)``; singular values below ``max(atol, rtol * largest)`` count as zero.

    Args:
        A: ``(..., m, n)``. atol, rtol: numbers or tensors ``(...)``; ``rtol`` is by default ``max(m, n)`` times the
            dtype's epsilon, or 0 where ``atol`` is given. rcond: an older name of ``rtol``.
        hermitian: ``A`` is Hermitian: its lower triangle is read.
    """
    check(A, "linalg.pinv", square=hermitian)
    _check_tolerances("linalg.pinv", atol, rtol, rcond)
    if A.numel() == 0:
        return A.mT.clone()
    return _pinv(A, atol, rtol if rcond is None else rcond, bool(hermitian))


@composite(names=("pinverse",), autocast="float32")
def _pinverse(input, rcond=1e-15):
    """:func:`linalg_pinv` with the older default of the tolerance."""
    return linalg_pinv(input, rtol=rcond)


pinverse = renamed(_pinverse, "pinverse")


# ---- ranks and conditions --------------------------------------------------------------------------------------------


@composite(method=False, out=True, autocast="float32")
def linalg_matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None):
    """How many singular values count as non-zero, ``(...)`` int64: those above ``max(atol, rtol * largest)``.

    Args:
        tol: an older name of ``atol``.
    """
    check(A, "linalg.matrix_rank", square=hermitian)
    _check_tolerances("torch.linalg.matrix_rank", tol, atol, rtol)
    if A.numel() == 0:
        return A.new_zeros(A.shape[:-2], dtype=_core.int64)
    S = linalg_eigvalsh(A.detach()).abs() if hermitian else linalg_svdvals(A.detach())
    cut = _cut(A, S, atol if tol is None else tol, rtol if tol is None else 0.0)
    return (cut < S).sum(-1)


@composite(method=False, out=True, autocast="float32")
def linalg_cond(A, p=None):
    """The condition number ``(...)`` of matrices in the norm ``p``, by default the spectral one."""
    check(A, "linalg.cond", square=False)
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if not isinstance(p, str) and p not in (None, 2, -2, 1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if p in (None, 2, -2):
        S = linalg_svdvals(A)
        if not A.numel():
            return S.new_zeros(S.shape[:-1])
        return S[..., 0] / S[..., -1] if p != -2 else S[..., -1] / S[..., 0]
    check(A, f"linalg.cond({p!r})")
    if not A.numel():
        return A.new_zeros(A.shape[:-2]).abs()
    inverse, info = linalg_inv_ex(A)
    made = linalg_matrix_norm(A, p) * linalg_matrix_norm(inverse, p)
    return made.masked_fill(info > 0, math.inf)


# ---- least squares ---------------------------------------------------------------------------------------------------


def _gels(A, B, driver, rcond):
    """LAPACK's solution by ``driver``: what it leaves in ``B``, ranks, singular values and error codes."""
    m, n = A.shape[-2:]
    batch, k, rows = A.shape[:-2], B.shape[-1], max(A.shape[-2:])
    count = count_of(batch)
    real = A.dtype.to_real() if A.is_complex() else A.dtype
    packed, info = columns(A), ints(*batch)
    X = empty_columns((*batch, rows, k), A.dtype)
    X.zero_()
    _core.copy_tensor(X[..., :m, :], B)
    rank, S = ints(*batch), _core.empty((*batch, min(m, n)), real)
    if driver == "gels":
        call("gels", A.dtype, count, "N", m, n, k, packed, m, X, rows, ..., info)
        return X, rank, S, info
    cut = (A.new_full((1,), rcond, dtype=real),)
    complex_ = A.is_complex()
    if driver == "gelsy":
        extra = ((_core.empty((2 * n,), real),),) if complex_ else ()
        pivots = ints(*batch, n)
        call("gelsy", A.dtype, count, m, n, k, packed, m, X, rows, pivots, cut, rank, ..., *extra, info)
        return X, rank, S, info
    extra = ()
    if driver == "gelss":
        extra = ((_core.empty((5 * min(m, n),), real),),) if complex_ else ()
    else:
        least = min(m, n)
        levels = max(0, int(math.log2(max(1, least) / 26)) + 1) + 1
        iwork = (ints(max(1, 3 * least * levels + 11 * least) + 64 * rows),)
        rwork = 10 * rows + 2 * rows * 25 + 8 * rows * levels + 3 * 25 * k + max(26**2, rows * (1 + k) + 2 * k)
        extra = ((_core.empty((rwork + 64,), real),), iwork) if complex_ else (iwork,)
    call(driver, A.dtype, count, m, n, k, packed, m, X, rows, S, cut, rank, ..., *extra, info)
    return X, rank, S, info


@primitive(
    method=False, outputs=("X", "residuals", "rank", "S"), differentiable=(0, 1), copied=("residuals",), on_host=True,
)  # fmt: skip
def _lstsq(A, B, rcond, driver):
    """``A`` and ``B`` matrices of one batch shape; see :func:`linalg_lstsq`."""
    m, n = A.shape[-2:]
    batch, k = A.shape[:-2], B.shape[-1]
    none = _core.empty((0,), A.dtype)
    if not A.numel() or not B.numel():
        rank = _core.empty((0,), _core.int64) if driver == "gels" else ints(*batch).to(_core.int64)
        S = none if driver in ("gels", "gelsy") else _core.empty((*batch, min(m, n)), A.dtype.to_real())
        residuals = (B.abs() ** 2).sum(-2) if m > n and n == 0 and driver != "gelsy" else none
        return B.new_zeros((*batch, n, k)), residuals, rank, S
    X, rank, S, info = _gels(A, B, driver, rcond)
    raise_failed(
        info,
        "torch.linalg.lstsq",
        "The least squares solution could not be computed because the input matrix does not have full rank (error "
        "code: {k}).",
    )
    residuals = none.real if none.is_complex() else none
    if m > n and (driver == "gels" or (driver != "gelsy" and bool((rank == n).all()))):
        residuals = (X[..., n:, :].abs() ** 2).sum(-2)
    rank = _core.empty((0,), _core.int64) if driver == "gels" else rank.to(_core.int64)
    return X[..., :n, :], residuals, rank, S if driver in ("gelsd", "gelss") else S.new_empty((0,))


@_lstsq.vjp_all("A", "B")
def _lstsq_backward(g, A, B, X, residuals, needs):
    gX, gr = g[0], g[1]
    P = linalg_pinv(A)
    gA = _pinv_gradient(matmul(gX, H(B)), P, A) if needs[0] else None
    gB = matmul(H(P), gX) if needs[1] else None
    if residuals.numel():
        rest = 2 * (matmul(A, X) - B) * gr[..., None, :]
        gA = gA + matmul(rest, H(X)) if gA is not None else None
        gB = gB - rest if gB is not None else None
    return gA, gB


@composite(method=False, out=True, also={"b": "B"}, autocast="float32")
def linalg_lstsq(A, B, rcond=None, *, driver=None):
    """The least-squares solution of ``A X = B``, of smallest norm where there are many.

    Args:
        A: ``(..., m, n)``. B: ``(..., m, k)``, or vectors ``(..., m)``; batches broadcast.
        rcond: what share of the largest singular value counts as zero.
        driver: LAPACK's: ``"gelsy"`` (default), ``"gels"`` (full rank), ``"gelsd"``, ``"gelss"``.
    Returns:
        ``solution`` ``(..., n, k)``; ``residuals`` ``(..., k)`` where ``m > n``, the rank is full and the driver is not
        gelsy; ``rank``, except from gels; ``singular_values`` from gelsd and gelss. What is not computed is empty.
    """
    name = "torch.linalg.lstsq"
    check_tensor(A, name)
    check_tensor(B, name, "B")
    if A.dim() < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions, got shape {list(A.shape)}")
    if B.dim() < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension")
    check(A, name, square=False)
    if A.dtype is not B.dtype:
        raise RuntimeError(f"{name}: Expected input and other to have the same dtype, but got {A.dtype} and {B.dtype}")
    if driver is not None and driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got {driver!r}")
    apart = A.dim() - B.dim()
    if apart not in (0, 1):
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1, got "
            f"{A.dim()} and {B.dim()}"
        )
    vector = apart == 1 and tuple(B.shape) == tuple(A.shape[:-1])
    B = B.unsqueeze(-1) if vector or B.dim() == 1 else B
    if A.shape[-2] != B.shape[-2]:
        where = "input.size(-2) should match other.size(-1)" if vector else "input.size(-2) should match other.size(-2)"
        raise RuntimeError(f"{name}: {where}, got shapes {list(A.shape)} and {list(B.shape)}")
    if tuple(A.shape[:-2]) != tuple(B.shape[:-2]):
        batch = broadcast_shapes(A.shape[:-2], B.shape[:-2])
        A, B = A.expand(*batch, *A.shape[-2:]), B.expand(*batch, *B.shape[-2:])
    if rcond is None:
        rcond = (2.0**-23 if A.dtype.name in ("float32", "complex64") else 2.0**-52) * max(A.shape[-2:])
    X, residuals, rank, S = _lstsq(A, B, float(rcond), driver or "gelsy")
    return Lstsq(X.squeeze(-1) if vector else X, residuals, rank, S)
