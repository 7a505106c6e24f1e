"""The LU factorisation with pivots: factors, unpacking, solving.

Derivatives follow from ``P^T A = L U`` block by block (Giles 2008, extended to complex and to rectangular matrices).
"""

from __future__ import annotations

from ... import _core
from ..._core import Size, Tensor
from ..._core.lapack import SMALL, is_small, small_lu, small_substitution
from ..._warn import warn_once
from ..creation import eye
from ..joining import cat
from ..matmul import matmul
from ..table import composite, primitive, result_type
from .lapack import (
    BY_KERNEL,
    LAPACK_DTYPES,
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
    readable,
)
from .triangular import linalg_solve_triangular

LuFactor = result_type("linalg_lu_factor", "LU", "pivots")
LuFactorEx = result_type("linalg_lu_factor_ex", "LU", "pivots", "info")
Lu = result_type("linalg_lu", "P", "L", "U")
LuUnpack = result_type("lu_unpack", "P", "L", "U")

SINGULAR = (
    "U[{k},{k}] is zero and using it on lu_solve would result in a division by zero. To factor it all the same, use "
    "linalg.lu or linalg.lu_factor_ex."
)


def factor(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Packed LU, 1-based pivots and LAPACK's info of each matrix."""
    m, n = A.shape[-2:]
    if max(m, n) <= SMALL and (made := small_lu(A)) is not None:
        return made
    batch = A.shape[:-2]
    LU, pivots, info = columns(A), ints(*batch, min(m, n)), ints(*batch)
    if LU.numel():
        call("getrf", A.dtype, count_of(batch), m, n, LU, m, pivots, info)
    return LU, pivots, info


@primitive(
    method=False, name="linalg_lu_factor_ex", outputs=("LU", "pivots", "info"), differentiable=(0,),
    result_type=LuFactorEx, batch="leading", out="same", on_host="getrf",
)  # fmt: skip
def linalg_lu_factor_ex(A, *, pivot=True, check_errors=False):
    """``A = P @ L @ U`` packed into one matrix, with LAPACK's ``info`` in place of an error.

    Args:
        A: ``(..., m, n)``, floating point or complex.
        pivot: exchange rows; False is for GPUs in PyTorch, and an error here.
    Returns:
        ``(LU, pivots, info)``, named: ``(..., m, n)``, ``(..., min(m, n))`` and ``(...)``, the latter two ``int32``.
        ``info`` is 0, or says which pivot is zero.
    Raises:
        RuntimeError: ``pivot`` is false.
    Examples:
        >>> taeda.linalg.lu_factor_ex(taeda.tensor([[1.0, 2.0], [2.0, 4.0]])).info
        tensor(2, dtype=taeda.int32)
    """
    check(A, "linalg.lu_factor_ex", square=False, refused=BY_KERNEL)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU; use pivot=True")
    LU, pivots, info = factor(A)
    if check_errors:
        raise_failed(info, "linalg.lu_factor_ex", SINGULAR)
    return by_columns(LU), pivots, info


def triangles(LU: Tensor) -> tuple[Tensor, Tensor]:
    """The unit lower and the upper factor of a packed LU."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    L = LU[..., :k].tril(-1) + eye(m, k, dtype=LU.dtype)
    return L, LU[..., :k, :].triu()


def check_pivots(name: str, pivots: Tensor, n: int) -> None:
    """Refuse row exchanges with rows that there are not: LAPACK would touch memory beyond the matrix."""
    if pivots.numel() and not pivots.is_meta and not (int(pivots.min()) >= 1 and int(pivots.max()) <= n):
        raise RuntimeError(
            f"{name}: expected pivots between 1 and {n}, the rows of LU, but got {int(pivots.min())} to "
            f"{int(pivots.max())}. Did you properly pass the result of lu_factor?"
        )


@primitive(method=False, batch="leading", name="_lu_permutation", on_host="laswp")
def _permutation(pivots, m, dtype):
    """The permutation matrices ``P`` of LAPACK's row exchanges: ``A = P L U``."""
    k = pivots.shape[-1]
    batch = pivots.shape[:-1]
    check_pivots("lu_unpack", pivots, m)
    if dtype.name not in LAPACK_DTYPES:
        return _permutation(pivots, m, _core.float32).to(dtype)
    P = columns(eye(m, dtype=dtype), batch)
    if P.numel():
        call("laswp", dtype, count_of(batch), m, P, m, 1, k, pivots.contiguous(), -1)
    return P.contiguous()


@linalg_lu_factor_ex.vjp_all("A")
def _lu_backward(g, LU, pivots):
    m, n = LU.shape[-2:]
    k = min(m, n)
    if k == 0:
        return (g,)
    L, U = triangles(LU)
    P = _permutation(pivots, m, LU.dtype)
    gL, gU = g[..., :k].tril(-1), g[..., :k, :].triu()
    L1, U1, gL1, gU1 = L[..., :k, :], U[..., :k], gL[..., :k, :], gU[..., :k]
    lower, upper = matmul(H(L1), gL1), matmul(gU1, H(U1))
    if m > n:  # L2 = A2 U^-1
        gL2 = gL[..., k:, :]
        upper = upper - matmul(H(L[..., k:, :]), gL2)
        below = linalg_solve_triangular(H(U1), gL2, upper=False, left=False)
    if n > m:  # U2 = L^-1 P^T A2
        gU2 = gU[..., k:]
        lower = lower - matmul(gU2, H(U[..., k:]))
        beside = linalg_solve_triangular(H(L1), gU2, upper=True, unitriangular=True)
    x = linalg_solve_triangular(H(U1), lower.tril(-1) + upper.triu(), upper=False, left=False)
    x = linalg_solve_triangular(H(L1), x, upper=True, unitriangular=True)
    if m != n:
        x = cat((x, below), -2) if m > n else cat((x, beside), -1)
    return (matmul(P, x),)


@composite(method=False, out="same")
def linalg_lu_factor(A, *, pivot=True):
    """``A = P @ L @ U`` packed into one matrix: factor once, then solve for many right-hand sides.

    Args:
        A: ``(..., m, n)``, floating point or complex.
        pivot: exchange rows; False is for GPUs in PyTorch, and an error here.
    Returns:
        ``(LU, pivots)``, named: ``(..., m, n)`` and ``(..., min(m, n))``, ``int32``.
    Raises:
        LinAlgError: a matrix is singular.
        RuntimeError: ``pivot`` is false.
    Examples:
        >>> LU, pivots = taeda.linalg.lu_factor(taeda.tensor([[2.0, 1.0], [4.0, 4.0]]))
        >>> taeda.linalg.lu_solve(LU, pivots, taeda.tensor([[4.0], [12.0]]))
        tensor([[1.],
                [2.]])
    """
    made = linalg_lu_factor_ex(A, pivot=pivot)
    raise_failed(made.info, "linalg.lu_factor", SINGULAR)
    return LuFactor(made.LU, made.pivots)


@composite(method=False, out="same")
def linalg_lu(A, *, pivot=True):
    """The factors of ``A = P @ L @ U``: a permutation, a lower triangle with ones on its diagonal, an upper triangle.

    Args:
        A: ``(..., m, n)``, floating point or complex.
        pivot: exchange rows; False is for GPUs in PyTorch, and an error here.
    Returns:
        ``(P, L, U)``, named: ``(..., m, m)``, ``(..., m, k)`` and ``(..., k, n)`` with ``k = min(m, n)``.
    Raises:
        RuntimeError: ``pivot`` is false.
    Examples:
        >>> P, L, U = taeda.linalg.lu(taeda.tensor([[2.0, 1.0], [4.0, 4.0]]))
        >>> L, U
        (tensor([[1.0000, 0.0000],
                [0.5000, 1.0000]]), tensor([[ 4.,  4.],
                [ 0., -1.]]))
    """
    check(A, "linalg.lu", square=False, refused=BY_KERNEL)
    made = linalg_lu_factor_ex(A, pivot=pivot)
    L, U = triangles(made.LU)
    return Lu(_permutation(made.pivots, A.shape[-2], A.dtype), L, U)


@composite(method=False, out="same")
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    """``P``, ``L`` and ``U`` of a packed LU factorisation.

    Args:
        LU_data: ``(..., m, n)``, as :func:`taeda.linalg.lu_factor` gives it.
        LU_pivots: ``(..., min(m, n))``, ``int32``.
        unpack_data: give ``L`` and ``U``; otherwise they are empty.
        unpack_pivots: give ``P``; otherwise it is empty.
    Returns:
        ``(P, L, U)``, named.
    Examples:
        >>> LU, pivots = taeda.linalg.lu_factor(taeda.tensor([[2.0, 1.0], [4.0, 4.0]]))
        >>> taeda.lu_unpack(LU, pivots).U
        tensor([[ 4.,  4.],
                [ 0., -1.]])
    """
    if LU_pivots.dtype is not _core.int32:
        raise RuntimeError(
            f"lu_unpack: LU_pivots is expected to be a contiguous tensor of int32 dtype, got {LU_pivots.dtype}"
        )
    if LU_pivots.dim() == 0 or LU_data.dim() < 2:
        raise RuntimeError(
            f"lu_unpack: expected LU_data (*, m, n) and LU_pivots (*, min(m, n)), got shapes {list(LU_data.shape)} and "
            f"{list(LU_pivots.shape)}"
        )
    empty = LU_data.new_empty((0,))
    L, U = triangles(LU_data) if unpack_data else (empty, empty)
    P = _permutation(LU_pivots, LU_data.shape[-2], LU_data.dtype) if unpack_pivots else empty
    return LuUnpack(P, L, U)


@composite(out=True, autocast="float32")
def lu(A, pivot=True, get_infos=False):
    """The older form of :func:`taeda.linalg.lu_factor`.

    Args:
        A: ``(..., m, n)``, floating point or complex.
        pivot: exchange rows.
        get_infos: also give ``info``: the number of the first pivot that is 0, or 0.
    Returns:
        ``(LU, pivots)``, with ``info`` where ``get_infos``. A singular matrix is no error.
    Raises:
        RuntimeError: ``input`` has fewer than two dimensions.
        NotImplementedError: ``input`` is neither floating point nor complex.
    Examples:
        >>> LU, pivots = taeda.lu(taeda.tensor([[2.0, 1.0], [4.0, 4.0]]))
        >>> pivots
        tensor([2, 2], dtype=taeda.int32)
    """
    package = Size.__module__
    warn_once(f"{package}.lu is deprecated in favor of {package}.linalg.lu_factor.")
    made = linalg_lu_factor_ex(A, pivot=pivot)
    return tuple(made) if get_infos else tuple(made[:2])


@primitive(method=False, out="same", batch="leading", on_host="getrs")
def linalg_lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    """``X`` with ``A @ X = B``, for ``A`` as :func:`taeda.linalg.lu_factor` gave it.

    Args:
        LU: ``(..., n, n)``.
        pivots: ``(..., n)``, ``int32``.
        B: ``(..., n, k)``, or ``(..., k, n)`` where ``left`` is false.
        left: False for ``X @ A = B``.
        adjoint: take ``A.mH`` in place of ``A``.
    Returns:
        The sizes of ``B`` with the broadcast batch.
    Raises:
        RuntimeError: the sizes or the dtypes do not fit.
    Examples:
        >>> LU, pivots = taeda.linalg.lu_factor(taeda.tensor([[2.0, 1.0], [4.0, 4.0]]))
        >>> taeda.linalg.lu_solve(LU, pivots, taeda.tensor([[4.0], [12.0]]))
        tensor([[1.],
                [2.]])
    """
    check(LU, "linalg.lu_solve", label="LU")
    check_same_dtype("linalg.lu_solve", LU, B, "LU")
    if pivots.dtype is not _core.int32:
        raise RuntimeError(f"linalg.lu_solve: pivots should be a Tensor of scalar type int32, got {pivots.dtype}")
    n = LU.shape[-1]
    if B.dim() < 2 or B.shape[-2 if left else -1] != n:
        raise RuntimeError(
            f"linalg.lu_solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({LU.shape[-2]}x{n} and {list(B.shape)})"
        )
    if tuple(pivots.shape) != tuple(LU.shape[:-1]):
        raise RuntimeError(
            "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix: got pivots of "
            f"shape {list(pivots.shape)} for LU of shape {list(LU.shape)}"
        )
    check_pivots("linalg.lu_solve", pivots, n)
    return substitute(LU, pivots, B, left, adjoint)


def substitute(LU: Tensor, pivots: Tensor, B: Tensor, left: bool = True, adjoint: bool = False) -> Tensor:
    """The substitutions of :func:`linalg_lu_solve`."""
    n = LU.shape[-1]
    batch = batch_of(LU, B)
    count = count_of(batch)
    transposed = (lambda x: x) if left else H if adjoint else (lambda x: x.transpose(-2, -1))
    # X A = B is A^T X^T = B^T, and X A^H = B is A X^H = B^H.
    form = "N" if left != adjoint else "T" if not left or not LU.is_complex() else "C"
    B = transposed(B)
    shared = count_of(LU.shape[:-2]) == 1
    if not shared and tuple(LU.shape[:-2]) != batch:
        LU, pivots = LU.expand(*batch, n, n), pivots.expand(*batch, n)
    if is_small(n):
        B = B if tuple(B.shape[:-2]) == batch else B.expand(*batch, *B.shape[-2:])
        X = small_substitution(LU.contiguous(), pivots.contiguous(), B, "NTC".index(form))
        return transposed(by_columns(X))
    X = columns(B, batch)
    if X.numel():
        LU, by_rows = readable(LU)
        if by_rows:
            LU = columns(LU)
        pivots = pivots.contiguous()
        info = ints()
        factors = ((LU,), n, (pivots,)) if shared else (LU, n, pivots)
        call("getrs", X.dtype, count, form, n, X.shape[-1], *factors, X, n, (info,))
    return transposed(X)


@linalg_lu_solve.vjp_all("LU", "B")
def _lu_solve_backward(g, LU, pivots, out, left, adjoint, needs, B_shape):
    gB = linalg_lu_solve(LU, pivots, g, left=left, adjoint=not adjoint)
    gLU = None
    if needs[0]:
        if left:
            gA = -matmul(out, H(gB)) if adjoint else -matmul(gB, H(out))
        else:
            gA = -matmul(H(gB), out) if adjoint else -matmul(H(out), gB)
        L, U = triangles(LU)
        inner = matmul(_permutation(pivots, LU.shape[-2], LU.dtype).transpose(-2, -1), gA)
        gLU = matmul(inner, H(U)).tril(-1) + matmul(H(L), inner).triu()
        gLU = gLU.sum_to_size(LU.shape)
    return gLU, gB.sum_to_size(B_shape) if needs[1] else None


@composite(out="same", autocast="float32")
def lu_solve(b, LU_data, LU_pivots):
    """``X`` with ``A @ X = b``: :func:`taeda.linalg.lu_solve` with its arguments in an older order.

    Args:
        b: ``(..., n, k)``.
        LU_data: ``(..., n, n)``, as :func:`taeda.linalg.lu_factor` gives it.
        LU_pivots: ``(..., n)``, ``int32``.
    Returns:
        ``(..., n, k)``.
    Raises:
        RuntimeError: the sizes or the dtypes do not fit.
    Examples:
        >>> LU, pivots = taeda.linalg.lu_factor(taeda.tensor([[2.0, 1.0], [4.0, 4.0]]))
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     taeda.lu_solve(taeda.tensor([[4.0], [12.0]]), LU, pivots)
        tensor([[1.],
                [2.]])
    """
    package = Size.__module__
    warn_once(
        f"{package}.lu_solve is deprecated in favor of {package}.linalg.lu_solve, which has its arguments reversed: "
        f"X = {package}.linalg.lu_solve(LU, pivots, B)."
    )
    return linalg_lu_solve(LU_data, LU_pivots, b)
