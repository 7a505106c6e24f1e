"""Types of taeda.linalg. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from . import Number, Size, Tensor, _device, _dtype, return_types
class LinAlgError(builtins.RuntimeError): ...
_diagonal: Any
_name_within: Any

def cholesky(A: Any, *, upper: builtins.bool = False, out: Any = None) -> Tensor:
    r"""The lower triangular ``L`` with ``A = L L^H`` (its adjoint where ``upper``), of which one triangle is read."""
def cholesky_ex(
    A: Any, *, upper: builtins.bool = False, check_errors: builtins.bool = False, out: Any = None
) -> return_types.linalg_cholesky_ex:
    r""":func:`linalg_cholesky` with LAPACK's ``info`` instead of an error: 0, or the order of the minor that is not"""
def cond(A: Any, p: Any = None, *, out: Any = None) -> Tensor:
    r"""The condition number ``(...)`` of matrices in the norm ``p``, by default the spectral one."""
def cross(input: Tensor, other: Tensor | Number, *, dim: builtins.int = -1, out: Any = None) -> Tensor:
    r"""The cross product of vectors of three elements along ``dim``; the other dimensions broadcast."""
def det(A: Any, *, out: Any = None) -> Tensor:
    r"""The determinant ``(...)`` of square matrices ``(..., n, n)``."""
def diagonal(A: Any, *, offset: Number = 0, dim1: builtins.int = -2, dim2: Number = -1) -> Tensor:
    r"""A view of the diagonals of matrices."""
def eig(A: Any, *, out: Any = None) -> return_types.linalg_eig:
    r"""Eigenvalues ``(..., n)`` and right eigenvectors ``(..., n, n)`` (columns) of square matrices, complex."""
def eigh(A: Any, UPLO: builtins.str = 'L', *, out: Any = None) -> return_types.linalg_eigh:
    r"""Eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which one triangle is read."""
def eigvals(A: Any, *, out: Any = None) -> Tensor:
    r"""Eigenvalues ``(..., n)`` of square matrices, complex."""
def eigvalsh(A: Any, UPLO: builtins.str = 'L', *, out: Any = None) -> Tensor:
    r"""Eigenvalues of Hermitian matrices, ascending."""
def householder_product(A: Any, tau: Any, *, out: Any = None) -> Tensor:
    r"""The first columns of a product of Householder reflectors, as :func:`geqrf` packs them."""
def inv(A: Any, *, out: Any = None) -> Tensor:
    r"""The inverse of square matrices ``(..., n, n)``."""
def inv_ex(A: Any, *, check_errors: builtins.bool = False, out: Any = None) -> return_types.linalg_inv_ex:
    r"""The inverse ``(..., n, n)`` with LAPACK's ``info`` instead of an error: which pivot is zero, or 0."""
def ldl_factor(A: Any, *, hermitian: builtins.bool = False, out: Any = None) -> return_types.linalg_ldl_factor:
    r""":func:`linalg_ldl_factor_ex` without ``info``."""
def ldl_factor_ex(
    A: Any, *, hermitian: builtins.bool = False, check_errors: builtins.bool = False, out: Any = None
) -> return_types.linalg_ldl_factor_ex:
    r"""``A = L D L^T`` (``L D L^H`` where ``hermitian``) by Bunch and Kaufman's pivoting, packed as LAPACK packs it."""
def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: builtins.bool = False, out: Any = None) -> Tensor:
    r"""``X`` with ``A X = B`` for ``A`` as :func:`linalg_ldl_factor` gave it."""
def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: Any = None, out: Any = None) -> return_types.linalg_lstsq:
    r"""The least-squares solution of ``A X = B``, of smallest norm where there are many."""
def lu(A: Any, *, pivot: builtins.bool = True, out: Any = None) -> Any:
    r"""The factors of ``A = P L U``: ``P`` ``(..., m, m)``, ``L`` ``(..., m, k)``, ``U`` ``(..., k, n)``,"""
def lu_factor(A: Any, *, pivot: builtins.bool = True, out: Any = None) -> return_types.linalg_lu_factor:
    r"""``A = P L U`` packed into one matrix ``(..., m, n)``, with pivots ``(..., min(m, n))``."""
def lu_factor_ex(
    A: Any, *, pivot: builtins.bool = True, check_errors: builtins.bool = False, out: Any = None
) -> return_types.linalg_lu_factor_ex:
    r"""``A = P L U`` packed into one matrix, with pivots and LAPACK's ``info``, which says where a pivot is zero."""
def lu_solve(
    LU: Any, pivots: Any, B: Any, *, left: builtins.bool = True, adjoint: builtins.bool = False, out: Any = None
) -> Tensor:
    r"""``X`` with ``A X = B`` for ``A`` as :func:`linalg_lu_factor` gave it."""
def matmul(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Matrix product by the rank of the operands."""
def matrix_exp(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The exponential ``(..., n, n)`` of square matrices, by Pade approximants, scaling and squaring (Higham 2005)."""
def matrix_norm(
    A: Any, ord: builtins.str = 'fro', dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim: builtins.bool =
    False, *, dtype: _dtype | None = None, out: Any = None
) -> Tensor:
    r"""A norm of the matrices in dimensions ``dim``."""
def matrix_power(input: Tensor, n: Any, *, out: Any = None) -> Tensor:
    r"""``input @ input @ ...``, ``n`` times, by squaring; ``n`` may not be negative."""
def matrix_rank(
    A: Any, tol: Any = None, hermitian: builtins.bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None
) -> Tensor:
    r"""How many singular values count as non-zero, ``(...)`` int64: those above ``max(atol, rtol * largest)``."""
def multi_dot(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    r"""The product of several matrices, in the order that needs the fewest multiplications."""
def norm(
    A: Any, ord: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False,
    *, dtype: _dtype | None = None, out: Any = None
) -> Tensor:
    r"""A vector norm (one dimension, or all of them where ``ord`` is None) or a matrix norm (two dimensions)."""
def pinv(
    A: Any, rcond: Any = None, hermitian: builtins.bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None
) -> Tensor:
    r"""The Moore-Penrose inverse ``(..., n, m)``; singular values below ``max(atol, rtol * largest)`` count as zero."""
def qr(A: Any, mode: builtins.str = 'reduced', *, out: Any = None) -> return_types.linalg_qr:
    r"""``A = Q R`` with orthonormal columns in ``Q`` and upper triangular ``R``."""
def slogdet(A: Any, *, out: Any = None) -> return_types.linalg_slogdet:
    r"""Sign and logarithm of the absolute value of the determinant; a singular matrix has sign 0 and ``-inf``."""
def solve(A: Any, B: Any, *, left: builtins.bool = True, out: Any = None) -> Tensor:
    r"""``X`` with ``A X = B`` (``X A = B`` where ``left`` is false), for square ``A``."""
def solve_ex(
    A: Any, B: Any, *, left: builtins.bool = True, check_errors: builtins.bool = False, out: Any = None
) -> return_types.linalg_solve_ex:
    r""":func:`linalg_solve` with LAPACK's ``info`` instead of an error."""
def solve_triangular(
    A: Any, B: Any, *, upper: Any, left: builtins.bool = True, unitriangular: builtins.bool = False, out: Any = None
) -> Tensor:
    r"""``X`` with ``A X = B`` (``X A = B`` where ``left`` is false) for triangular ``A``; the other triangle is not"""
def svd(A: Any, full_matrices: builtins.bool = True, *, driver: Any = None, out: Any = None) -> return_types.linalg_svd:
    r"""``A = U diag(S) Vh`` with singular values descending."""
def svdvals(A: Any, *, driver: Any = None, out: Any = None) -> Tensor:
    r"""Singular values ``(..., min(m, n))``, descending."""
def tensorinv(A: Any, ind: Number = 2, *, out: Any = None) -> Tensor:
    r"""The inverse of ``A`` under :func:`tensordot` over its last ``A.dim() - ind`` dimensions."""
def tensorsolve(
    A: Any, B: Any, dims: Sequence[builtins.int] | builtins.int | None = None, *, out: Any = None
) -> Tensor:
    r"""``X`` with ``tensordot(A, X, X.dim()) = B``."""
def vander(x: Any, *, N: Any = None) -> Tensor:
    r"""Rows of powers ``1, x, x^2, ...``: ``(..., n)`` gives ``(..., n, N)``."""
def vecdot(x: Any, y: Any, *, dim: builtins.int = -1, out: Any = None) -> Tensor:
    r"""Sums of ``conj(x) * y`` along ``dim``."""
def vector_norm(
    x: Any, ord: Number = 2, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False,
    *, dtype: _dtype | None = None, out: Any = None
) -> Tensor:
    r"""``sum(|x| ** ord) ** (1 / ord)`` over ``dim`` (all dimensions by default), of any shape."""
