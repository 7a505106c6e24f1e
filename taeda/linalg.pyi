"""Types of taeda.linalg. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from . import Number, Size, Tensor, _device, _dtype, return_types
class LinAlgError(builtins.RuntimeError): ...
_diagonal: Any
_name_within: Any

def cholesky(A: Tensor, *, upper: builtins.bool = False, out: Any = None) -> Tensor:
    r"""The lower triangular ``L`` with ``A = L @ L.mH``, for positive definite ``A``."""
def cholesky_ex(
    A: Tensor, *, upper: builtins.bool = False, check_errors: builtins.bool = False, out: Any = None
) -> return_types.linalg_cholesky_ex:
    r""":func:`taeda.linalg.cholesky` with LAPACK's ``info`` in place of an error."""
def cond(A: Tensor, p: Any = None, *, out: Any = None) -> Tensor:
    r"""The condition number: ``norm(A) * norm(inv(A))``, by how much relative errors may grow when ``A ..."""
def cross(input: Tensor, other: Tensor | Number, *, dim: builtins.int = -1, out: Any = None) -> Tensor:
    r"""The cross product of vectors of three elements, at right angles to both: ``(a2 b3 - a3 b2, a3 b1 ..."""
def det(A: Tensor, *, out: Any = None) -> Tensor:
    r"""The determinant: how much a matrix scales volumes."""
def diagonal(A: Tensor, *, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> Tensor:
    r"""The diagonals of matrices, as the last dimension: :func:`diagonal` of the last two dimensions by ..."""
def eig(A: Tensor, *, out: Any = None) -> return_types.linalg_eig:
    r"""Eigenvalues and right eigenvectors of square matrices: ``A @ v[:, i] = w[i] * v[:, i]``"""
def eigh(A: Tensor, UPLO: builtins.str = 'L', *, out: Any = None) -> return_types.linalg_eigh:
    r"""Eigenvalues and eigenvectors of Hermitian matrices: ``A @ v[:, i] = w[i] * v[:, i]``, with ..."""
def eigvals(A: Tensor, *, out: Any = None) -> Tensor:
    r"""The eigenvalues of square matrices, complex."""
def eigvalsh(A: Tensor, UPLO: builtins.str = 'L', *, out: Any = None) -> Tensor:
    r"""The eigenvalues of Hermitian matrices, ascending"""
def householder_product(A: Tensor, tau: Any, *, out: Any = None) -> Tensor:
    r"""The first columns of ``H_1 @ H_2 @ .."""
def inv(A: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse: ``A @ inv(A)`` is the identity"""
def inv_ex(A: Tensor, *, check_errors: builtins.bool = False, out: Any = None) -> return_types.linalg_inv_ex:
    r"""The inverse with LAPACK's ``info`` in place of an error."""
def ldl_factor(A: Tensor, *, hermitian: builtins.bool = False, out: Any = None) -> return_types.linalg_ldl_factor:
    r""":func:`taeda.linalg.ldl_factor_ex` without ``info``: for :func:`taeda.linalg.ldl_solve`."""
def ldl_factor_ex(
    A: Tensor, *, hermitian: builtins.bool = False, check_errors: builtins.bool = False, out: Any = None
) -> return_types.linalg_ldl_factor_ex:
    r"""``A = L D L^T`` (``L D L^H`` where ``hermitian``) for matrices that need not be positive ..."""
def ldl_solve(LD: Tensor, pivots: Any, B: Tensor, *, hermitian: builtins.bool = False, out: Any = None) -> Tensor:
    r"""``X`` with ``A @ X = B``, for ``A`` as :func:`taeda.linalg.ldl_factor` gave it."""
def lstsq(
    A: Tensor, B: Tensor, rcond: Any = None, *, driver: builtins.str | None = None, out: Any = None
) -> return_types.linalg_lstsq:
    r"""The least-squares solution of ``A @ X = B``: ``X`` that makes ``norm(A @ X - B)`` smallest; of ..."""
def lu(A: Tensor, *, pivot: builtins.bool = True, out: Any = None) -> Any:
    r"""The factors of ``A = P @ L @ U``: a permutation, a lower triangle with ones on its diagonal, an ..."""
def lu_factor(A: Tensor, *, pivot: builtins.bool = True, out: Any = None) -> return_types.linalg_lu_factor:
    r"""``A = P @ L @ U`` packed into one matrix: factor once, then solve for many right-hand sides."""
def lu_factor_ex(
    A: Tensor, *, pivot: builtins.bool = True, check_errors: builtins.bool = False, out: Any = None
) -> return_types.linalg_lu_factor_ex:
    r"""``A = P @ L @ U`` packed into one matrix, with LAPACK's ``info`` in place of an error."""
def lu_solve(
    LU: Tensor, pivots: Any, B: Tensor, *, left: builtins.bool = True, adjoint: builtins.bool = False, out: Any = None
) -> Tensor:
    r"""``X`` with ``A @ X = B``, for ``A`` as :func:`taeda.linalg.lu_factor` gave it."""
def matmul(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The matrix product ``input @ other``: ``out[..., i, j]`` is the sum of ``input[..., i, k] * ..."""
def matrix_exp(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The exponential of matrices, ``sum(input^k / k!)``: the solution at time 1 of ``x' = input @ x``"""
def matrix_norm(
    A: Tensor, ord: builtins.str = 'fro', dim: builtins.int | Sequence[builtins.int] | None = ..., keepdim:
    builtins.bool = False, *, dtype: _dtype | None = None, out: Any = None
) -> Tensor:
    r"""A norm of the matrices in two dimensions."""
def matrix_power(input: Tensor, n: builtins.int, *, out: Any = None) -> Tensor:
    r"""``input @ input @ ...``, ``n`` times, by repeated squaring."""
def matrix_rank(
    A: Tensor, tol: Any = None, hermitian: builtins.bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None
) -> Tensor:
    r"""The number of singular values that count as non-zero: those above ``max(atol, rtol * largest)``."""
def multi_dot(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    r"""The product of several matrices, in the order that needs the fewest multiplications."""
def norm(
    A: Tensor, ord: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool =
    False, *, dtype: _dtype | None = None, out: Any = None
) -> Tensor:
    r"""A vector norm or a matrix norm, by the number of dimensions"""
def pinv(
    A: Tensor, rcond: Any = None, hermitian: builtins.bool = False, *, atol: Any = None, rtol: Any = None, out: Any =
    None
) -> Tensor:
    r"""The Moore-Penrose inverse: of all ``X`` for which ``A @ X`` is nearest to the identity, the smallest"""
def qr(A: Tensor, mode: builtins.str = 'reduced', *, out: Any = None) -> return_types.linalg_qr:
    r"""``A = Q @ R`` with orthonormal columns in ``Q`` and an upper triangle ``R``."""
def slogdet(A: Tensor, *, out: Any = None) -> return_types.linalg_slogdet:
    r"""The sign of the determinant and the logarithm of its absolute value, for determinants that are ..."""
def solve(A: Tensor, B: Tensor, *, left: builtins.bool = True, out: Any = None) -> Tensor:
    r"""``X`` with ``A @ X = B``, for square ``A``, by LU factorisation."""
def solve_ex(
    A: Tensor, B: Tensor, *, left: builtins.bool = True, check_errors: builtins.bool = False, out: Any = None
) -> return_types.linalg_solve_ex:
    r""":func:`taeda.linalg.solve` with LAPACK's ``info`` in place of an error."""
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: Any, left: builtins.bool = True, unitriangular: builtins.bool = False, out: Any =
    None
) -> Tensor:
    r"""``X`` with ``A @ X = B`` for triangular ``A``; the other triangle is not read."""
def svd(
    A: Tensor, full_matrices: builtins.bool = True, *, driver: builtins.str | None = None, out: Any = None
) -> return_types.linalg_svd:
    r"""``A = U @ diag(S) @ Vh`` with orthonormal columns in ``U`` and rows in ``Vh``, and the singular ..."""
def svdvals(A: Tensor, *, driver: builtins.str | None = None, out: Any = None) -> Tensor:
    r"""The singular values, descending. Their gradients are stable, unlike those of singular vectors."""
def tensorinv(A: Tensor, ind: builtins.int = 2, *, out: Any = None) -> Tensor:
    r"""The inverse of ``A`` under :func:`tensordot`: ``tensordot(tensorinv(A), A, ind)`` is an identity."""
def tensorsolve(
    A: Tensor, B: Tensor, dims: Sequence[builtins.int] | builtins.int | None = None, *, out: Any = None
) -> Tensor:
    r"""``X`` with ``tensordot(A, X, X.dim()) = B``."""
def vander(x: Any, *, N: builtins.int | None = None) -> Tensor:
    r"""Rows of powers: ``out[..., i, j] = x[..., i] ** j``."""
def vecdot(x: Any, y: Any, *, dim: builtins.int = -1, out: Any = None) -> Tensor:
    r"""Inner products along ``dim``: sums of ``conj(x) * y``."""
def vector_norm(
    x: Tensor, ord: Number = 2, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool =
    False, *, dtype: _dtype | None = None, out: Any = None
) -> Tensor:
    r"""``sum(|x| ** ord) ** (1 / ord)`` over ``dim``: the length of vectors, for ``ord`` 2."""
