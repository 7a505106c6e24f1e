"""Factorisations of Hermitian matrices: Cholesky's, and LDL of those that are not definite."""

from __future__ import annotations

from itertools import groupby

from ... import _core
from ..._core import Size, Tensor
from ..._core.lapack import SMALL, small_cholesky
from ..._warn import warn_once
from ..matmul import matmul
from ..table import composite, no_derivative, primitive, result_type
from .lapack import (
    BY_KERNEL,
    H,
    batch_of,
    by_columns,
    call,
    check,
    check_same_dtype,
    columns,
    count_of,
    ints,
    raise_failed,
)
from .lu import check_pivots
from .triangular import linalg_solve_triangular

CholeskyEx = result_type("linalg_cholesky_ex", "L", "info")
LdlFactor = result_type("linalg_ldl_factor", "LD", "pivots")
LdlFactorEx = result_type("linalg_ldl_factor_ex", "LD", "pivots", "info")

_NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
    "{k} is not positive-definite)."
)


@primitive(
    method=False, outputs=("L", "info"), differentiable=(0,), result_type=CholeskyEx, batch="leading",
    out="same", autocast="float32", on_host="potrf",
)  # fmt: skip
def linalg_cholesky_ex(A, *, upper=False, check_errors=False):
    """:func:`taeda.linalg.cholesky` with LAPACK's ``info`` in place of an error.

    Args:
        A: Hermitian matrices ``(..., n, n)``, of which one triangle is read.
        upper: give the upper factor.
    Returns:
        ``(L, info)``, named. ``info`` ``(...)`` is ``int32``: 0, or the order of the leading minor that is not
        positive.
    Raises:
        RuntimeError: the matrices are not square.
    Examples:
        >>> taeda.linalg.cholesky_ex(taeda.tensor([[1.0, 2.0], [2.0, 1.0]])).info  # not positive definite
        tensor(2, dtype=taeda.int32)
    """
    check(A, "linalg.cholesky")
    n, batch = A.shape[-1], A.shape[:-2]
    # A is Hermitian by assumption: only the triangle that LAPACK reads counts.
    if n <= SMALL and (made := small_cholesky(H(A) if upper else A)) is not None:
        L, info = made
        if check_errors:
            raise_failed(info, "linalg.cholesky_ex", _NOT_POSITIVE)
        return by_columns(H(L) if upper else L), info
    L, info = columns(A.triu() if upper else A.tril()), ints(*batch)
    if n:
        call("potrf", A.dtype, count_of(batch), "U" if upper else "L", n, L, n, info)
    if check_errors:
        raise_failed(info, "linalg.cholesky_ex", _NOT_POSITIVE)
    return L, info


@linalg_cholesky_ex.vjp_all("A")
def _cholesky_backward(g, L, upper):
    if upper:
        L, g = H(L), H(g)
    lower = matmul(H(L), g).tril()
    inner = 0.5 * (lower + H(lower.tril(-1)))
    left = linalg_solve_triangular(H(L), inner, upper=True)
    return (linalg_solve_triangular(L, left, upper=False, left=False),)


@composite(method=False, out="same", autocast="float32")
def linalg_cholesky(A, *, upper=False):
    """The lower triangular ``L`` with ``A = L @ L.mH``, for positive definite ``A``.

    Args:
        A: Hermitian matrices ``(..., n, n)``, of which one triangle is read: the lower, or the upper where ``upper``.
        upper: give the upper triangular ``U = L.mH`` with ``A = U.mH @ U``.
    Returns:
        ``(..., n, n)``, the other triangle zero.
    Raises:
        LinAlgError: a matrix is not positive definite.
        RuntimeError: the matrices are not square.
    Examples:
        >>> taeda.linalg.cholesky(taeda.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])
    """
    made = linalg_cholesky_ex(A, upper=upper)
    raise_failed(made.info, "linalg.cholesky", _NOT_POSITIVE)
    return made.L


@composite(out=True, autocast="float32")
def cholesky(input, upper=False):
    """The Cholesky factor of positive definite matrices: :func:`taeda.linalg.cholesky`, which is preferred.

    Args:
        input: Hermitian matrices ``(..., n, n)``, of which one triangle is read.
        upper: give the upper factor.
    Returns:
        ``(..., n, n)``, the other triangle zero. The dtype is that of ``input``.
    Raises:
        LinAlgError: a matrix is not positive definite.
    Examples:
        >>> taeda.cholesky(taeda.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])
    """
    package = Size.__module__
    warn_once(f"{package}.cholesky is deprecated in favor of {package}.linalg.cholesky.")
    check(input, "cholesky", refused=BY_KERNEL)
    made = linalg_cholesky_ex(input, upper=upper)
    raise_failed(made.info, "cholesky", _NOT_POSITIVE)
    return made.L


# ---- LDL -------------------------------------------------------------------------------------------------------------


@primitive(
    method=False, outputs=("LD", "pivots", "info"), differentiable=(), result_type=LdlFactorEx, batch="leading",
    out="same", on_host="sytrf hetrf",
)  # fmt: skip
def linalg_ldl_factor_ex(A, *, hermitian=False, check_errors=False):
    """``A = L D L^T`` (``L D L^H`` where ``hermitian``) for matrices that need not be positive definite, by Bunch and
    Kaufman's pivoting (1977), with LAPACK's ``info`` in place of an error.

    Args:
        A: symmetric or Hermitian matrices ``(..., n, n)``; the lower triangle is read.
        hermitian: whether ``A`` is Hermitian, rather than symmetric; for complex matrices.
    Returns:
        ``(LD, pivots, info)``, named: ``LD`` ``(..., n, n)`` as LAPACK packs it, ``pivots`` ``(..., n)`` and ``info``
        ``(...)``, ``int32``.
    Raises:
        RuntimeError: the matrices are not square.
    Examples:
        >>> LD, pivots, info = taeda.linalg.ldl_factor_ex(taeda.tensor([[2.0, 1.0], [1.0, 2.0]]))
        >>> info
        tensor(0, dtype=taeda.int32)
    """
    check(A, "linalg.ldl_factor_ex")
    n, batch = A.shape[-1], A.shape[:-2]
    LD, pivots, info = columns(A.tril()), ints(*batch, n), ints(*batch)
    name = "hetrf" if hermitian and A.is_complex() else "sytrf"
    if n:
        call(name, A.dtype, count_of(batch), "L", n, LD, n, pivots, ..., info)
    if check_errors:
        raise_failed(info, "linalg.ldl_factor_ex", "D[{k},{k}] is zero: using it in ldl_solve would divide by zero.")
    return LD, pivots, info


linalg_ldl_factor_ex.vjp(A=no_derivative("linalg_ldl_factor_ex", "A"))


@composite(method=False, out="same")
def linalg_ldl_factor(A, *, hermitian=False):
    """:func:`taeda.linalg.ldl_factor_ex` without ``info``: for :func:`taeda.linalg.ldl_solve`.

    Args:
        A: symmetric or Hermitian matrices ``(..., n, n)``; the lower triangle is read.
        hermitian: whether ``A`` is Hermitian, rather than symmetric; for complex matrices.
    Returns:
        ``(LD, pivots)``, named.
    Raises:
        LinAlgError: ``D`` is singular.
    Examples:
        >>> A, B = taeda.tensor([[0.0, 1.0], [1.0, 0.0]]), taeda.tensor([[3.0], [5.0]])
        >>> LD, pivots = taeda.linalg.ldl_factor(A)
        >>> taeda.linalg.ldl_solve(LD, pivots, B)
        tensor([[5.],
                [3.]])
    """
    made = linalg_ldl_factor_ex(A, hermitian=hermitian)
    raise_failed(made.info, "linalg.ldl_factor", "D[{k},{k}] is zero: using it in ldl_solve would divide by zero.")
    return LdlFactor(made.LD, made.pivots)


def _check_exchanges(pivots: Tensor, n: int) -> None:
    """Refuse pivots that are none of LAPACK's: rows from 1 to ``n``, negative ones, of 2 x 2 blocks, in pairs."""
    if pivots.numel() == 0 or pivots.is_meta:
        return
    check_pivots("linalg.ldl_solve", pivots.abs(), n)
    if int(pivots.min()) < 0:
        for row in pivots.reshape(-1, n).tolist():
            if any(len(list(run)) % 2 for negative, run in groupby(row, lambda p: p < 0) if negative):
                raise RuntimeError(
                    f"linalg.ldl_solve: negative pivots come in pairs, one for each 2 x 2 block, got {row}"
                )


@primitive(method=False, out="same", batch="leading", on_host="sytrs hetrs")
def linalg_ldl_solve(LD, pivots, B, *, hermitian=False):
    """``X`` with ``A @ X = B``, for ``A`` as :func:`taeda.linalg.ldl_factor` gave it.

    Args:
        LD: ``(..., n, n)``.
        pivots: ``(..., n)``, integers.
        B: ``(..., n, k)``.
        hermitian: as in the factorisation.
    Returns:
        ``(..., n, k)``.
    Raises:
        RuntimeError: the sizes or the dtypes do not fit.
    Examples:
        >>> LD, pivots = taeda.linalg.ldl_factor(taeda.tensor([[0.0, 1.0], [1.0, 0.0]]))
        >>> taeda.linalg.ldl_solve(LD, pivots, taeda.tensor([[3.0], [5.0]]))
        tensor([[5.],
                [3.]])
    """
    check(LD, "linalg.ldl_solve", label="LD")
    check_same_dtype("linalg.ldl_solve", LD, B, "LD")
    if B.dim() < 2:
        raise RuntimeError(
            f"linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has {B.dim()} dimensions"
        )
    n = LD.shape[-1]
    if tuple(pivots.shape) != tuple(LD.shape[:-1]):
        raise RuntimeError(
            "linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with "
            f"shape {list(pivots.shape)} for LD with shape {list(LD.shape)}"
        )
    if pivots.dtype.is_floating_point or pivots.dtype.is_complex or pivots.dtype is _core.bool_:
        raise RuntimeError(f"linalg.ldl_solve: Expected pivots to be integers. Got {pivots.dtype}")
    if B.shape[-2] != n:
        raise RuntimeError(
            f"linalg.ldl_solve: Incompatible shapes of LD {list(LD.shape)} and B {list(B.shape)}: B must have {n} rows"
        )
    _check_exchanges(pivots, n)
    batch = batch_of(LD, B)
    X = columns(B, batch)
    if X.numel():
        factors, exchanges = columns(LD, batch), pivots.to(_core.int32).expand(*batch, n).contiguous()
        name = "hetrs" if hermitian and LD.is_complex() else "sytrs"
        call(name, X.dtype, count_of(batch), "L", n, X.shape[-1], factors, n, exchanges, X, n, (ints(),))
    return X


def _ldl_solve_backward(g, LD, pivots, hermitian, B_shape):
    if LD.is_complex() and not hermitian:  # A^H = conj(A)
        return linalg_ldl_solve(LD.conj_physical(), pivots, g).sum_to_size(B_shape)
    return linalg_ldl_solve(LD, pivots, g, hermitian=hermitian).sum_to_size(B_shape)


linalg_ldl_solve.vjp(LD=no_derivative("linalg_ldl_solve", "LD"), B=_ldl_solve_backward)
