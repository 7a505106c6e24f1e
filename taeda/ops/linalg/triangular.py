"""Solving with triangular and with Cholesky-factored matrices."""

from __future__ import annotations

from ..._core import Size, Tensor
from ..._core.lapack import is_small, small_triangle
from ..._warn import warn_once
from ..creation import full
from ..matmul import matmul
from ..table import composite, primitive, result_type
from .lapack import (
    BY_KERNEL,
    SINGULAR_INVERSE,
    H,
    batch_of,
    by_columns,
    call,
    check,
    check_matrix,
    check_same_dtype,
    count_of,
    eye_like,
    raise_failed,
    readable,
)

TriangularSolve = result_type("triangular_solve", "solution", "cloned_coefficient")


@primitive(method=False, batch="leading", out="same", on_host="trsm")
def linalg_solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    """``X`` with ``A @ X = B`` for triangular ``A``; the other triangle is not read.

    Args:
        A: ``(..., n, n)``, floating point or complex.
        B: ``(..., n, k)``, or ``(..., k, n)`` where ``left`` is false; batches broadcast.
        upper: whether the upper triangle is read, rather than the lower.
        left: False for ``X @ A = B``.
        unitriangular: count the diagonal of ``A`` as ones.
    Returns:
        The sizes of ``B`` with the broadcast batch. A zero on the diagonal gives infinities or NaN.
    Raises:
        RuntimeError: the sizes or dtypes do not fit.
    Examples:
        >>> L = taeda.tensor([[2.0, 0.0], [1.0, 4.0]])
        >>> taeda.linalg.solve_triangular(L, taeda.tensor([[2.0], [9.0]]), upper=False)
        tensor([[1.],
                [2.]])
    """
    check(A, "linalg.solve_triangular", refused=BY_KERNEL)
    check_matrix(B, "linalg.solve_triangular", "B")
    B = B.to(A.dtype)
    n = A.shape[-1]
    if B.shape[-2 if left else -1] != n:
        raise RuntimeError(
            "linalg.solve_triangular: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({n}x{n} and {B.shape[-2]}x{B.shape[-1]})"
        )
    return by_columns(substitute_triangular(A, B, bool(upper), bool(left), bool(unitriangular)))


def substitute_triangular(A: Tensor, B: Tensor, upper: bool, left: bool, unitriangular: bool) -> Tensor:
    """The substitution itself. Rows of contiguous tensors are LAPACK's columns: ``A X = B`` is solved as
    ``X^T A^T = B^T``."""
    batch = () if A.dim() == B.dim() == 2 else batch_of(A, B)
    if is_small(A.shape[-1]):
        if not left:  # X A = B is A^T X^T = B^T
            transposed = substitute_triangular(A.transpose(-2, -1), B.transpose(-2, -1), not upper, True, unitriangular)
            return transposed.transpose(-2, -1)
        if tuple(B.shape[:-2]) != batch:
            B = B.expand(*batch, *B.shape[-2:])
        if tuple(A.shape[:-2]) != batch and count_of(A.shape[:-2]) != 1:
            A = A.expand(*batch, *A.shape[-2:])
        return small_triangle(A.contiguous(), B, upper, unitriangular)
    X = B.expand(*batch, *B.shape[-2:]).contiguous()
    if X.untyped_storage() is B.untyped_storage():
        X = X.clone()
    if not X.numel():
        return X
    shared = count_of(A.shape[:-2]) == 1
    if not shared and tuple(A.shape[:-2]) != batch:
        A = A.expand(*batch, *A.shape[-2:])
    A, by_rows = readable(A)
    m, n = X.shape[-2:]
    triangle = "L" if upper == by_rows else "U"  # the rows of an upper triangle are the columns of a lower one
    call(
        "trsm", X.dtype, count_of(batch), "R" if left else "L", triangle, "N" if by_rows else "T",
        "U" if unitriangular else "N", n, m, (full((1,), 1, dtype=X.dtype),), (A,) if shared else A, A.shape[-1], X, n,
    )  # fmt: skip
    return X


@linalg_solve_triangular.vjp_all("A", "B")
def _solve_triangular_backward(g, A, out, upper, left, unitriangular, needs, B_shape):
    gB = linalg_solve_triangular(H(A), g, upper=not upper, left=left, unitriangular=unitriangular)
    gA = None
    if needs[0]:
        gA = (-matmul(gB, H(out)) if left else -matmul(H(out), gB)).sum_to_size(A.shape)
        k = 1 if unitriangular else 0
        gA = gA.triu(k) if upper else gA.tril(-k)
    return gA, gB.sum_to_size(B_shape) if needs[1] else None


@composite(out="same", autocast="float32")
def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False):
    """``X`` with ``A @ X = b`` for triangular ``A``: the older form of :func:`taeda.linalg.solve_triangular`.

    Args:
        b: ``(..., n, k)``.
        A: ``(..., n, n)``.
        upper: whether the upper triangle is read, rather than the lower.
        transpose: take ``A.mT`` in place of ``A``.
        unitriangular: count the diagonal of ``A`` as ones.
    Returns:
        ``(solution, cloned_coefficient)``, named; the latter is a copy of ``A``.
    Raises:
        RuntimeError: the sizes do not fit.
    Examples:
        >>> import warnings
        >>> L = taeda.tensor([[2.0, 0.0], [1.0, 4.0]])
        >>> with warnings.catch_warnings(action="ignore"):
        ...     taeda.triangular_solve(taeda.tensor([[2.0], [9.0]]), L, upper=False).solution
        tensor([[1.],
                [2.]])
    """
    package = Size.__module__
    warn_once(
        f"{package}.triangular_solve is deprecated in favor of {package}.linalg.solve_triangular, which gives no copy "
        "of A."
    )
    for label, x in (("b", b), ("A", A)):
        if x.dim() < 2:
            raise RuntimeError(
                f"triangular_solve: Expected {label} to have at least 2 dimensions, but it has {x.dim()} "
                f"dimensions instead"
            )
    check_same_dtype("triangular_solve", A, b, "A", "b")
    coefficient = A.transpose(-2, -1) if transpose else A
    X = linalg_solve_triangular(coefficient, b, upper=upper != transpose, unitriangular=unitriangular)
    return TriangularSolve(X, A.expand(*X.shape[:-2], *A.shape[-2:]).clone())


@primitive(batch="leading", also={"input2": "L"}, autocast="float32", on_host="trsm")
def cholesky_solve(B, L, upper=False):
    """``X`` with ``A @ X = B``, for ``A = L @ L.mH`` given by its Cholesky factor ``L``.

    Args:
        B: ``(..., n, k)``.
        L: ``(..., n, n)``, of which one triangle is read; batches broadcast.
        upper: ``L`` is the upper factor.
    Returns:
        The sizes of ``B`` with the broadcast batch.
    Raises:
        RuntimeError: the sizes or dtypes do not fit.
    Examples:
        >>> L = taeda.linalg.cholesky(taeda.tensor([[4.0, 2.0], [2.0, 5.0]]))
        >>> taeda.cholesky_solve(taeda.tensor([[6.0], [7.0]]), L)
        tensor([[1.],
                [1.]])
    """
    for label, x in (("b", B), ("u", L)):
        if x.dim() < 2:
            raise RuntimeError(f"{label} should have at least 2 dimensions, but has {x.dim()} dimensions instead")
    check(L, "cholesky_solve", refused=BY_KERNEL)
    check_same_dtype("cholesky_solve", L, B)
    if B.shape[-2] != L.shape[-1]:
        raise RuntimeError(
            f"cholesky_solve: Incompatible matrix sizes: each A matrix is {L.shape[-1]} by {L.shape[-1]} but each b "
            f"matrix is {B.shape[-2]} by {B.shape[-1]}"
        )
    lower = H(L) if upper else L
    below = substitute_triangular(lower, B, False, True, False)
    return by_columns(substitute_triangular(H(lower), below, True, True, False))


@cholesky_solve.vjp_all("B", "L")
def _cholesky_solve_backward(g, L, out, upper, needs, B_shape):
    """The derivative of ``(L L^H)^-1 B`` in every element of ``L``. As in PyTorch, the unread triangle gets the
    gradient that it would get if it were read. Its elements do not affect any value.
    """
    gB = cholesky_solve(g, L, upper)
    gL = None
    if needs[1]:
        unread = L.tril(-1) if upper else L.triu(1)
        factor = L - unread.detach()
        common = matmul(gB, H(out))
        common = common + H(common)
        gL = -(matmul(factor, common) if upper else matmul(common, factor)).sum_to_size(L.shape)
    return gB.sum_to_size(B_shape) if needs[0] else None, gL


@composite(out=True, autocast="float32")
def cholesky_inverse(L, upper=False):
    """The inverse of ``A = L @ L.mH``, given by its Cholesky factor ``L``.

    Args:
        L: ``(..., n, n)``, of which one triangle is read.
        upper: ``L`` is the upper factor.
    Returns:
        ``(..., n, n)``, of the dtype of the factor.
    Raises:
        RuntimeError: the matrices are not square.
        LinAlgError: an element of a diagonal is zero, so that there is no inverse.
    Examples:
        >>> taeda.cholesky_inverse(taeda.tensor([[2.0, 0.0], [0.0, 0.5]]))
        tensor([[0.2500, 0.0000],
                [0.0000, 4.0000]])
    """
    check(L, "cholesky_inverse", refused=BY_KERNEL)
    if L.numel():
        zeros = (L.diagonal(dim1=-2, dim2=-1) == 0).int()
        first = zeros.argmax(-1)
        raise_failed(zeros.amax(-1) * (first + 1).int(), "cholesky_inverse", SINGULAR_INVERSE)
    return cholesky_solve(eye_like(L).expand(L.shape), L, upper)
