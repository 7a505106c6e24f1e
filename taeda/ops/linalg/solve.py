"""Inverses and solutions of square systems."""

from __future__ import annotations

import math

from ..._core import Tensor, renamed
from ..._core.lapack import is_small, small_substitution
from ..matmul import matmul
from ..table import alias, composite, primitive, result_type
from . import lu
from .lapack import (
    BY_CHECK,
    SINGULAR_INVERSE,
    H,
    by_columns,
    call,
    check,
    check_same_dtype,
    check_tensor,
    count_of,
    eye_like,
    raise_failed,
)

InvEx = result_type("linalg_inv_ex", "inverse", "info")
SolveEx = result_type("linalg_solve_ex", "result", "info")

_SINGULAR = "The solver failed because the input matrix is singular."


# ---- inverse ---------------------------------------------------------------------------------------------------------


@primitive(
    method=False, outputs=("inverse", "info"), differentiable=(0,), result_type=InvEx, batch="leading",
    out="same", autocast="float32", on_host="getrf getri",
)  # fmt: skip
def linalg_inv_ex(A, *, check_errors=False):
    """The inverse with LAPACK's ``info`` in place of an error.

    Args:
        A: square matrices ``(..., n, n)``.
    Returns:
        ``(inverse, info)``, named: ``(..., n, n)`` and ``(...)``, ``int32``: 0, or which pivot is zero.
    Raises:
        RuntimeError: the matrices are not square.
    Examples:
        >>> taeda.linalg.inv_ex(taeda.tensor([[1.0, 2.0], [2.0, 4.0]])).info
        tensor(2, dtype=taeda.int32)
    """
    check(A, "linalg.inv", refused=BY_CHECK)
    inverse, pivots, info = lu.factor(A)
    n = A.shape[-1]
    if is_small(n):
        inverse = by_columns(small_substitution(inverse, pivots, eye_like(A).expand(A.shape), 0))
    elif inverse.numel():
        call("getri", A.dtype, count_of(A.shape[:-2]), n, inverse, n, pivots, ..., info)
    if check_errors:
        raise_failed(info, "linalg.inv_ex", SINGULAR_INVERSE)
    return inverse, info


linalg_inv_ex.vjp(A=lambda g, inverse: -matmul(H(inverse), matmul(g, H(inverse))))


@composite(method=False, out="same", autocast="float32")
def linalg_inv(A):
    """The inverse: ``A @ inv(A)`` is the identity. To solve equations use :func:`taeda.linalg.solve`, which is faster
    and more exact.

    Args:
        A: square matrices ``(..., n, n)``, floating point or complex.
    Returns:
        ``(..., n, n)``.
    Raises:
        LinAlgError: a matrix is singular.
        RuntimeError: the matrices are not square.
    Examples:
        >>> taeda.linalg.inv(taeda.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    made = linalg_inv_ex(A)
    raise_failed(made.info, "linalg.inv", SINGULAR_INVERSE)
    return made.inverse


inverse = renamed(linalg_inv, "inverse")


alias(linalg_inv, "inverse")


# ---- systems ---------------------------------------------------------------------------------------------------------


def is_vector(A: Tensor, B: Tensor) -> bool:
    """PyTorch's rule: ``B`` is a batch of vectors where it has one dimension, or exactly the batch shape of ``A``."""
    return B.dim() == 1 or (A.dim() - 1 == B.dim() and tuple(B.shape) == tuple(A.shape[:-1]))


@primitive(
    method=False, outputs=("out", "LU", "pivots", "info"), differentiable=(0,), batch="leading", on_host="getrf getrs"
)
def _solve_ex(A, B, left):
    """``X`` with ``A X = B``, both matrices, broadcasting batches; the factorisation stays for the derivative."""
    LU, pivots, info = lu.factor(A)
    return lu.substitute(LU, pivots, B, left), LU, pivots, info


@primitive(
    method=False,
    out=False,
    batch="leading",
    decomposition=lambda A, B, left: _solve_ex(H(A), B, left)[0],
    on_host="getrs",
)
def solve_adjoint(A, B, LU, pivots, left):
    """``X`` with ``A^H X = B`` (``X A^H = B``), by a factorisation of ``A``."""
    return lu.substitute(LU, pivots, B, left, True)


_solve_ex.traits["native_call"] = lambda A, B, left: (
    "_linalg_solve_ex.default",
    (A, B),
    {} if left else {"left": False},
)


@_solve_ex.vjp_all("A", "B")
def _solve_backward(g, A, out, LU, pivots, left, needs, B_shape):
    gB = solve_adjoint(A, g, LU, pivots, left)
    gA = None
    if needs[0]:
        gA = (-matmul(gB, H(out)) if left else -matmul(H(out), gB)).sum_to_size(A.shape)
    return gA, gB.sum_to_size(B_shape) if needs[1] else None


def _solve(A, B, left):
    check(A, "linalg.solve")
    check_tensor(B, "linalg.solve", "B")
    check_same_dtype("linalg.solve", A, B)
    vector = is_vector(A, B)
    if vector:
        if not left:
            raise RuntimeError(
                "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this "
                f"case linalg.solve is equivalent to B / A.squeeze(-1); got A of shape {list(A.shape)}, B of shape "
                f"{list(B.shape)}"
            )
        B = B.unsqueeze(-1)
    if B.dim() < 2 or B.shape[-2 if left else -1] != A.shape[-1]:
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2] if B.dim() > 1 else 1}x{B.shape[-1] if B.dim() else 1})"
        )
    made = _solve_ex(A, B, left)
    return made[0].squeeze(-1) if vector else made[0], made[3]


@composite(method=False, out="same")
def linalg_solve_ex(A, B, *, left=True, check_errors=False):
    """:func:`taeda.linalg.solve` with LAPACK's ``info`` in place of an error.

    Args:
        A: square matrices ``(..., n, n)``.
        B: ``(..., n, k)``, or vectors ``(..., n)``.
        left: False for ``X @ A = B``.
    Returns:
        ``(result, info)``, named; ``info`` ``(...)`` is 0, or says which pivot is zero.
    Raises:
        RuntimeError: the sizes do not fit.
    Examples:
        >>> taeda.linalg.solve_ex(taeda.eye(2), taeda.tensor([1.0, 2.0])).result
        tensor([1., 2.])
    """
    result, info = _solve(A, B, left)
    if check_errors:
        raise_failed(info, "linalg.solve_ex", _SINGULAR)
    return SolveEx(result, info)


@composite(method=False, out="same", autocast="float32")
def linalg_solve(A, B, *, left=True):
    """``X`` with ``A @ X = B``, for square ``A``, by LU factorisation.

    Args:
        A: square matrices ``(..., n, n)``.
        B: ``(..., n, k)``, or vectors ``(..., n)``; batches broadcast.
        left: False for ``X @ A = B``.
    Returns:
        The sizes of ``B`` with the broadcast batch.
    Raises:
        LinAlgError: a matrix is singular.
        RuntimeError: the sizes or dtypes do not fit.
    Examples:
        >>> A, b = taeda.tensor([[2.0, 1.0], [4.0, 4.0]]), taeda.tensor([4.0, 12.0])
        >>> taeda.linalg.solve(A, b)
        tensor([1., 2.])
    """
    result, info = _solve(A, B, left)
    raise_failed(info, "linalg.solve", _SINGULAR)
    return result


# ---- higher ranks ----------------------------------------------------------------------------------------------------


@composite(method=False, out=True, autocast="float32")
def linalg_tensorinv(A, ind=2):
    """The inverse of ``A`` under :func:`tensordot`: ``tensordot(tensorinv(A), A, ind)`` is an identity.

    Args:
        A: a tensor whose first ``ind`` sizes and whose other sizes have the same product.
        ind: how many dimensions come first in ``A``, and last in the result.
    Returns:
        The last sizes of ``A``, then the first ``ind``.
    Raises:
        RuntimeError: the products differ.
        LinAlgError: ``A``, taken as a matrix, is singular.
    Examples:
        >>> taeda.linalg.tensorinv(taeda.eye(6).reshape(6, 2, 3), ind=1).shape
        taeda.Size([2, 3, 6])
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', got {ind}")
    lead, rest = A.shape[:ind], A.shape[ind:]
    rows, columns_ = math.prod(lead), math.prod(rest)
    if rows != columns_:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns_} != {rows}"
        )
    return linalg_inv(A.reshape(rows, columns_)).reshape(*rest, *lead)


@composite(method=False, out=True, also={"other": "B"}, autocast="float32")
def linalg_tensorsolve(A, B, dims=None):
    """``X`` with ``tensordot(A, X, X.dim()) = B``.

    Args:
        A: a tensor whose first sizes are those of ``B`` and whose other sizes have the same product.
        B: the right-hand side.
        dims: dimensions of ``A`` that are moved to its end first.
    Returns:
        The other sizes of ``A``.
    Raises:
        RuntimeError: the sizes do not fit.
        LinAlgError: ``A``, taken as a matrix, is singular.
    Examples:
        >>> taeda.linalg.tensorsolve(2 * taeda.eye(6).reshape(2, 3, 6), taeda.ones(2, 3))
        tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000])
    """
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(A.dim() - len(dims), A.dim())))
    shape = A.shape[B.dim() :]
    rows, columns_ = math.prod(A.shape[: B.dim()]), math.prod(shape)
    if columns_ != rows or rows != B.numel():
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {columns_} != {rows}"
        )
    return linalg_solve(A.reshape(rows, columns_), B.reshape(-1)).reshape(shape)
