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
from .lapack import BY_CHECK, H, call, check, check_tensor, columns, count_of, empty_columns, ints, raise_failed
from .norms import linalg_matrix_norm
from .solve import linalg_inv_ex
from .svd import _svd, linalg_svdvals

Lstsq = result_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")


# ---- pseudo-inverse --------------------------------------------------------------------------------------------------


def _rounding(A, dtype):
    """The distance from 0 to which rounding takes singular values of ``A``, in parts of the largest."""
    return max(A.shape[-2:], default=0) * (2.0**-23 if dtype is _core.float32 else 2.0**-52)


def _cut(A, S, atol, rtol):
    """The threshold for singular values that count as zero: ``max(atol, rtol * largest)``; ``(..., 1)``."""
    if rtol is None:
        default = _rounding(A, S.dtype)
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
    """The gradient of ``A``, whose pseudo-inverse is ``P``."""
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
    """The Moore-Penrose inverse: of all ``X`` for which ``A @ X`` is nearest to the identity, the smallest. For
    invertible ``A`` the inverse.

    Args:
        A: ``(..., m, n)``.
        rcond: an older name of ``rtol``.
        hermitian: ``A`` is Hermitian: its lower triangle is read.
        atol: singular values below ``max(atol, rtol * largest)`` count as zero: a number or a tensor ``(...)``.
            Default: 0.
        rtol: a number or a tensor ``(...)``. Default: ``max(m, n)`` times the dtype's epsilon, or 0 where ``atol`` is
            given.
    Returns:
        ``(..., n, m)``.
    Examples:
        >>> taeda.linalg.pinv(taeda.tensor([[2.0, 0.0], [0.0, 0.0]])).round(decimals=4)
        tensor([[0.5000, 0.0000],
                [0.0000, 0.0000]])
    """
    check(A, "linalg.pinv", square=hermitian, refused=BY_CHECK)
    _check_tolerances("linalg.pinv", atol, rtol, rcond)
    if A.numel() == 0:
        return A.mT.clone()
    return _pinv(A, atol, rtol if rcond is None else rcond, bool(hermitian))


@composite(names=("pinverse",), autocast="float32")
def _pinverse(input, rcond=1e-15):
    """The Moore-Penrose inverse, :func:`taeda.linalg.pinv`, with an older default of the tolerance.

    Args:
        input: ``(..., m, n)``.
        rcond: singular values below ``rcond * largest`` count as zero, and so do those that are below rounding errors.
    Returns:
        ``(..., n, m)``. The dtype is that of ``input``.
    Raises:
        RuntimeError: ``input`` has fewer than two dimensions, or is neither floating point nor complex.
    Examples:
        >>> taeda.pinverse(taeda.tensor([[2.0, 0.0], [0.0, 4.0]])).round(decimals=4)
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    return linalg_pinv(input, rtol=max(rcond, _rounding(input, input.dtype.to_real())))


pinverse = renamed(_pinverse, "pinverse")


# ---- ranks and conditions --------------------------------------------------------------------------------------------


@composite(method=False, out=True, autocast="float32")
def linalg_matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None):
    """The number of singular values that count as non-zero: those above ``max(atol, rtol * largest)``.

    Args:
        A: ``(..., m, n)``.
        tol: an older name of ``atol``.
        hermitian: ``A`` is Hermitian: its lower triangle is read, and eigenvalues are counted by their size.
        atol: a number or a tensor ``(...)``. Default: 0.
        rtol: a number or a tensor ``(...)``. Default: ``max(m, n)`` times the dtype's epsilon, or 0 where ``atol`` is
            given.
    Returns:
        ``(...)``, ``int64``.
    Examples:
        >>> taeda.linalg.matrix_rank(taeda.tensor([[1.0, 2.0], [2.0, 4.0]]))
        tensor(1)
    """
    check(A, "linalg.matrix_rank", square=hermitian, refused=BY_CHECK)
    _check_tolerances("linalg.matrix_rank", tol, atol, rtol)
    if A.numel() == 0:
        return A.new_zeros(A.shape[:-2], dtype=_core.int64)
    S = linalg_eigvalsh(A.detach()).abs() if hermitian else linalg_svdvals(A.detach())
    cut = _cut(A, S, atol if tol is None else tol, rtol if tol is None else 0.0)
    return (cut < S).sum(-1)


@composite(method=False, out=True, autocast="float32")
def linalg_cond(A, p=None):
    """The condition number: ``norm(A) * norm(inv(A))``, by how much relative errors may grow when ``A @ x = b`` is
    solved.

    Args:
        A: ``(..., n, n)``; any matrices for the spectral norm.
        p: the norm, as ``ord`` of :func:`taeda.linalg.matrix_norm`. Default: the largest singular value over the
            smallest.
    Returns:
        ``(...)``, real; very large, ``inf`` or NaN where a matrix is singular.
    Examples:
        >>> taeda.linalg.cond(taeda.tensor([[4.0, 0.0], [0.0, 0.5]])).round(decimals=3)
        tensor(8.)
    """
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
    singular = info > 0
    inverse = inverse.masked_fill(singular[..., None, None], 0)  # singular values need finite numbers
    norm = linalg_matrix_norm(A, p)
    made = (norm * linalg_matrix_norm(inverse, p)).masked_fill(singular, math.inf)
    return made.masked_fill(singular & (norm == 0), math.nan) if p == "nuc" else made  # 0 times infinity


# ---- least squares ---------------------------------------------------------------------------------------------------


def _gels(A, B, driver, rcond):
    """LAPACK's solution by ``driver``: the new content of ``B``, ranks, singular values and error codes."""
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
    method=False, outputs=("X", "residuals", "rank", "S"), differentiable=(0, 1), copied=("residuals",),
    on_host="gels gelsy gelss gelsd",
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
        "linalg.lstsq",
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
    """The least-squares solution of ``A @ X = B``: ``X`` that makes ``norm(A @ X - B)`` smallest; of several the
    smallest ``X``.

    Args:
        A: ``(..., m, n)``.
        B: ``(..., m, k)``, or vectors ``(..., m)``; batches broadcast.
        rcond: what share of the largest singular value counts as zero. Default: ``max(m, n)`` times the dtype's
            epsilon.
        driver: LAPACK's: ``"gelsy"`` (default), ``"gels"`` (full rank), ``"gelsd"`` or ``"gelss"``.
    Returns:
        A named tuple: ``solution`` ``(..., n, k)``; ``residuals`` ``(..., k)`` where ``m > n``, the rank is full and
        the driver is not gelsy; ``rank``, except from gels; ``singular_values`` from gelsd and gelss. What is not
        computed is empty.
    Raises:
        RuntimeError: the sizes or dtypes do not fit, or there is no such driver.
    Examples:
        >>> x, y = taeda.tensor([0.0, 1.0, 2.0]), taeda.tensor([1.0, 3.0, 5.0])
        >>> A = taeda.stack((x, taeda.ones(3)), 1)  # y = 2 x + 1
        >>> taeda.linalg.lstsq(A, y[:, None]).solution.round(decimals=4)
        tensor([[2.],
                [1.]])
    """
    name = "linalg.lstsq"
    check_tensor(A, name)
    check_tensor(B, name, "B")
    if A.dim() < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions, got shape {list(A.shape)}")
    if B.dim() < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension")
    check(A, name, square=False, refused=BY_CHECK)
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
