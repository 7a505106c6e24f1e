"""Linear algebra: factorisations, solvers, spectra and norms, on LAPACK.

NumPy carries LAPACK with batched drivers, so the bodies are calls to ``numpy.linalg`` on the tensors' own memory (NumPy is
imported at the first of them); the pivoted LU, which it lacks, is taken from the same library that NumPy and SciPy build
on. Derivatives are those of Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008), extended to complex matrices, and are written in ops, so that they can be differentiated again.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections import namedtuple
from typing import Any

from .. import _core
from .._core import HELPERS, Tensor
from .matmul import matmul
from .reduction import vector_norm
from .table import composite, primitive


class LinAlgError(RuntimeError):
    """A matrix that LAPACK cannot factor, such as a singular one."""


_DTYPES = ("float32", "float64", "complex64", "complex128")


def _array(x: Tensor) -> Any:
    """The elements of ``x`` as a NumPy array (its own memory where that is contiguous)."""
    return x.detach().contiguous().numpy()


def _tensor(array: Any) -> Tensor:
    import numpy

    return HELPERS["from_numpy"](numpy.ascontiguousarray(array))


def _check(x: Any, name: str, square: bool = True) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"linalg.{name}(): argument 'A' must be Tensor, not {type(x).__name__}")
    if x.dim() < 2:
        raise RuntimeError(
            f"linalg.{name}: The input tensor A must have at least 2 dimensions, got shape {list(x.shape)}"
        )
    if square and x.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"linalg.{name}: A must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices"
        )
    if x.dtype.name not in _DTYPES:
        raise RuntimeError(
            f"linalg.{name}: Expected a floating point or complex tensor as input. Got {x.dtype}; convert it with .to(dtype)"
        )


def _H(x: Tensor) -> Tensor:
    return x.transpose(-2, -1).conj()


def _eye_like(x: Tensor) -> Tensor:
    from .creation import eye

    return eye(x.shape[-1], dtype=x.dtype)


def _singular(name: str, x: Tensor, what: str) -> LinAlgError:
    """The error for a singular matrix, naming which of a batch and the zero pivot."""
    infos = _lu(x)[2].reshape(-1).tolist()
    where = next((i for i, info in enumerate(infos) if info), 0)
    batch = f"(Batch element {where}): " if x.dim() > 2 else ""
    return LinAlgError(f"linalg.{name}: {batch}The diagonal element {infos[where] if infos else 1} is zero, {what}")


# ---- LU -----------------------------------------------------------------------------------------------------------------


@functools.cache
def _lapack() -> Any:
    """The LAPACK library, and its prefix of names."""
    import os

    import scipy_openblas32 as blas

    return ctypes.CDLL(os.path.join(blas.get_lib_dir(), blas.get_library(fullname=True)))


def _lu(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Packed LU, 1-based pivots and LAPACK's info of each matrix."""
    import numpy

    array = _array(x)
    m, n = array.shape[-2:]
    batch = array.shape[:-2]
    packed = numpy.array(numpy.swapaxes(array, -1, -2), order="C")  # column major, as LAPACK wants it
    flat = packed.reshape(-1, n, m)
    pivots = numpy.zeros((len(flat), min(m, n)), numpy.int32)
    infos = numpy.zeros(len(flat), numpy.int32)
    if flat.size:
        letter = {"f": "s", "d": "d", "F": "c", "D": "z"}[array.dtype.char]
        getrf = getattr(_lapack(), f"scipy_{letter}getrf_")
        rows, columns, lead = ctypes.c_int(m), ctypes.c_int(n), ctypes.c_int(max(m, 1))
        for i in range(len(flat)):
            getrf(
                ctypes.byref(rows),
                ctypes.byref(columns),
                ctypes.c_void_p(flat[i].ctypes.data),
                ctypes.byref(lead),
                ctypes.c_void_p(pivots[i].ctypes.data),
                ctypes.c_void_p(infos[i:].ctypes.data),
            )
    lu = _tensor(numpy.swapaxes(packed, -1, -2))
    return lu, _tensor(pivots.reshape(*batch, min(m, n))), _tensor(infos.reshape(batch))


LuFactor = namedtuple("linalg_lu_factor", ["LU", "pivots"])
LuFactorEx = namedtuple("linalg_lu_factor_ex", ["LU", "pivots", "info"])
Lu = namedtuple("linalg_lu", ["P", "L", "U"])


@primitive(
    method=False,
    name="linalg_lu_factor_ex",
    outputs=("LU", "pivots", "info"),
    differentiable=(0,),
    result_type=LuFactorEx,
)
def lu_factor_ex(A, *, pivot=True, check_errors=False):
    """``A = P L U`` packed into one matrix, with pivots and LAPACK's ``info``, which says where a pivot is zero."""
    _check(A, "lu_factor_ex", square=False)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    packed = _lu(A)
    if check_errors and packed[2].any():
        raise LinAlgError(f"linalg.lu_factor_ex: U has a zero on its diagonal (info {packed[2].tolist()})")
    return packed


def _unpack(LU):
    """The unit lower and the upper factor of a packed LU."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    L = LU[..., :k].tril(-1) + _rectangle(m, k, LU)
    return L, LU[..., :k, :].triu()


def _rectangle(m, k, like):
    from .creation import eye

    return eye(m, k, dtype=like.dtype)


def _permutation(pivots, m, like):
    """The permutation matrix of LAPACK's row exchanges."""
    from .creation import eye

    flat = pivots.reshape(-1, pivots.shape[-1]).tolist()
    rows = []
    for exchanges in flat:
        order = list(range(m))
        for i, p in enumerate(exchanges):
            order[i], order[p - 1] = order[p - 1], order[i]
        rows.append(order)
    index = HELPERS["tensor"](rows, dtype=_core.int64).reshape(*pivots.shape[:-1], m)
    return eye(m, dtype=like.dtype)[index].transpose(-2, -1).contiguous()


@lu_factor_ex.vjp_all("A")
def _lu_backward(g, LU, pivots):
    if LU.shape[-1] != LU.shape[-2]:
        raise RuntimeError("linalg.lu_factor: the derivative is defined for square matrices only")
    L, U = _unpack(LU)
    P = _permutation(pivots, LU.shape[-2], LU)
    inner = matmul(_H(L), g.tril(-1)).tril(-1) + matmul(g.triu(), _H(U)).triu()
    x = solve_triangular(_H(U), inner, upper=False, left=False)
    return (matmul(P, solve_triangular(_H(L), x, upper=True, unitriangular=True)),)


@composite(method=False, names=())
def lu_factor(A, *, pivot=True):
    """``A = P L U`` packed into one matrix, with pivots.

    Raises:
        LinAlgError: a matrix is singular.
    """
    made = lu_factor_ex(A, pivot=pivot)
    infos = made.info.reshape(-1).tolist()
    if any(infos):
        where, k = next((i, info) for i, info in enumerate(infos) if info)
        batch = f"(Batch element {where}): " if A.dim() > 2 else ""
        raise LinAlgError(
            f"torch.linalg.lu_factor: {batch}U[{k},{k}] is zero and using it on lu_solve would result in a division by zero. "
            f"To factor it all the same, use linalg.lu or linalg.lu_factor_ex."
        )
    return LuFactor(made.LU, made.pivots)


@composite(method=False)
def lu(A, *, pivot=True):
    """The factors ``P``, ``L`` and ``U`` of ``A = P L U``."""
    made = lu_factor_ex(A, pivot=pivot)
    L, U = _unpack(made.LU)
    return Lu(_permutation(made.pivots, A.shape[-2], A), L, U)


@composite(method=False)
def linalg_lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    """``X`` with ``A X = B`` for ``A`` as :func:`lu_factor` gave it."""
    if not left:
        return _H(linalg_lu_solve(LU, pivots, _H(B), left=True, adjoint=not adjoint))
    L, U = _unpack(LU)
    P = _permutation(pivots, LU.shape[-2], LU)
    if adjoint:
        y = solve_triangular(_H(U), B, upper=False)
        return matmul(P, solve_triangular(_H(L), y, upper=True, unitriangular=True))
    y = solve_triangular(L, matmul(P.transpose(-2, -1), B), upper=False, unitriangular=True)
    return solve_triangular(U, y, upper=True)


# ---- solving ------------------------------------------------------------------------------------------------------------


@primitive(method=False, name="linalg_inv")
def inv(A):
    """The inverse of square matrices ``(..., n, n)``.

    Raises:
        LinAlgError: a matrix is singular.
    """
    import numpy

    _check(A, "inv")
    try:
        return _tensor(numpy.linalg.inv(_array(A)))
    except numpy.linalg.LinAlgError:
        raise _singular(
            "inv", A, "the inversion could not be completed because the input matrix is singular."
        ) from None


inv.vjp(A=lambda g, out: -matmul(_H(out), matmul(g, _H(out))))


def _is_vector(A, B):
    """PyTorch's rule: ``B`` is a batch of vectors where it has one dimension, or exactly the batch shape of ``A``."""
    return B.dim() == 1 or (A.dim() - 1 == B.dim() and tuple(B.shape) == tuple(A.shape[:-1]))


@primitive(method=False)
def _solve(A, B):
    """``X`` with ``A X = B``, both matrices, broadcasting batches."""
    import numpy

    try:
        return _tensor(numpy.linalg.solve(_array(A), _array(B)))
    except numpy.linalg.LinAlgError:
        where = next((i for i, info in enumerate(_lu(A)[2].reshape(-1).tolist()) if info), 0)
        batch = f"(Batch element {where}): " if A.dim() > 2 else ""
        raise LinAlgError(
            f"torch.linalg.solve: {batch}The solver failed because the input matrix is singular."
        ) from None


@_solve.vjp_all("A", "B")
def _solve_backward(g, A, out, needs, B_shape):
    gB = _solve(_H(A), g)
    gA = -matmul(gB, _H(out)).sum_to_size(A.shape) if needs[0] else None
    return gA, gB.sum_to_size(B_shape) if needs[1] else None


@composite(method=False)
def solve(A, B, *, left=True, out=None):
    """``X`` with ``A X = B`` (``X A = B`` where ``left`` is false), for square ``A``.

    Args:
        A: ``(..., n, n)``. B: ``(..., n, k)``, or vectors ``(..., n)``.
    Raises:
        LinAlgError: a matrix is singular.
    """
    _check(A, "solve")
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {A.dtype} and B of type {B.dtype} instead"
        )
    vector = _is_vector(A, B)
    if vector:
        B = B.unsqueeze(-1)
    if B.dim() < 2 or B.shape[-2 if left else -1] != A.shape[-1]:
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2] if B.dim() > 1 else 1}x{B.shape[-1]})"
        )
    X = _solve(A, B) if left else _H(_solve(_H(A), _H(B)))
    X = X.squeeze(-1) if vector else X
    return X if out is None else out.copy_(X)


@primitive(method=False, name="linalg_solve_triangular")
def _triangular(A, B, upper, unitriangular):
    """``X`` with ``A X = B`` for triangular ``A``, both batches of matrices."""
    import numpy

    A = A.triu(1 if unitriangular else 0) if upper else A.tril(-1 if unitriangular else 0)
    if unitriangular:
        A = A + _eye_like(A)
    try:
        return _tensor(numpy.linalg.solve(_array(A), _array(B)))
    except numpy.linalg.LinAlgError:  # PyTorch divides by the zero
        import warnings

        warnings.warn("linalg.solve_triangular: the matrix is singular", stacklevel=3)
        return _tensor(
            numpy.full(numpy.broadcast_shapes(tuple(B.shape), (*A.shape[:-1], B.shape[-1])), numpy.inf, _array(B).dtype)
        )


@_triangular.vjp_all("A", "B")
def _triangular_backward(g, A, out, upper, unitriangular, needs, B_shape):
    gB = solve_triangular(_H(A), g, upper=not upper, unitriangular=unitriangular)
    gA = None
    if needs[0]:
        gA = -matmul(gB, _H(out)).sum_to_size(A.shape)
        k = 1 if unitriangular else 0
        gA = gA.triu(k) if upper else gA.tril(-k)
    return gA, gB.sum_to_size(B_shape) if needs[1] else None


@composite(method=False)
def solve_triangular(A, B, *, upper, left=True, unitriangular=False, out=None):
    """``X`` with ``A X = B`` for triangular ``A``; the other triangle is not read."""
    _check(A, "solve_triangular")
    if left:
        X = _triangular(A, B, bool(upper), bool(unitriangular))
    else:
        X = _triangular(A.transpose(-2, -1), B.transpose(-2, -1), not upper, bool(unitriangular)).transpose(-2, -1)
    return X if out is None else out.copy_(X)


TriangularSolve = namedtuple("triangular_solve", ["solution", "cloned_coefficient"])


@composite()
def triangular_solve(input, A, upper=True, transpose=False, unitriangular=False):
    """The older spelling of :func:`solve_triangular`."""
    coefficient = A.transpose(-2, -1) if transpose else A
    X = solve_triangular(coefficient, input, upper=upper != transpose, unitriangular=unitriangular)
    return TriangularSolve(X, A.clone())


Lstsq = namedtuple("linalg_lstsq", ["solution", "residuals", "rank", "singular_values"])


@composite(method=False)
def lstsq(A, B, *, rcond=None, driver=None):
    """The least-squares solution of ``A X = B``, of smallest norm where there are many."""
    _check(A, "lstsq", square=False)
    vector = B.dim() == A.dim() - 1
    X = matmul(pinv(A, rtol=rcond), B.unsqueeze(-1) if vector else B)
    m, n = A.shape[-2:]
    full = bool((matrix_rank(A) == n).all())
    rest = matmul(A, X) - (B.unsqueeze(-1) if vector else B)
    residuals = (rest.abs() ** 2).sum(-2) if m > n and full else A.new_empty((0,))
    return Lstsq(
        X.squeeze(-1) if vector else X,
        residuals,
        matrix_rank(A, rtol=rcond),
        svdvals(A) if driver in ("gelss", "gelsd") else A.new_empty((0,)),
    )


# ---- determinants -------------------------------------------------------------------------------------------------------


@primitive(method=False, name="linalg_det")
def det(A):
    """The determinant of square matrices."""
    import numpy

    _check(A, "det")
    return _tensor(numpy.asarray(numpy.linalg.det(_array(A))))


def _cofactors(A):
    """``det(A) inv(A)^T`` for any matrix, through the SVD: exact also where ``A`` is singular."""
    U, S, Vh = svd(A, full_matrices=False)
    n = A.shape[-1]
    ones = S.new_ones(S.shape)
    left = [S[..., :i].prod(-1) * S[..., i + 1 :].prod(-1) for i in range(n)]
    from .joining import stack

    products = stack(left, -1) if n else ones
    sign = det(U) * det(Vh)
    return sign.conj()[..., None, None] * matmul(U * products[..., None, :], Vh)


det.vjp(A=lambda g, A: g[..., None, None] * _cofactors(A))

Slogdet = namedtuple("linalg_slogdet", ["sign", "logabsdet"])


@primitive(method=False, name="linalg_slogdet", outputs=("sign", "logabsdet"), result_type=Slogdet)
def slogdet(A):
    """Sign and logarithm of the absolute value of the determinant."""
    import numpy

    _check(A, "slogdet")
    sign, logabs = numpy.linalg.slogdet(_array(A))
    return _tensor(numpy.asarray(sign)), _tensor(numpy.asarray(logabs))


@slogdet.vjp_all("A")
def _slogdet_backward(g, A, sign):
    _, g_log = g
    inverse = _H(inv(A))
    scale = g_log.to(A.dtype) if not A.is_complex() else g_log + (-1j) * (g[0] * sign.conj()).imag
    return (scale[..., None, None] * inverse,)


@composite(names=("det",))
def _det_method(input):
    """The determinant of square matrices."""
    return det(input)


@composite()
def logdet(input):
    """The logarithm of the determinant: NaN where that is negative."""
    sign, logabs = slogdet(input)
    if input.is_complex():
        return logabs + sign.log()
    return logabs + (sign.detach() - 1).clamp(max=0).masked_fill(sign < 0, math.nan)


# ---- factorisations -----------------------------------------------------------------------------------------------------


@primitive(method=False, name="linalg_cholesky")
def cholesky(A, *, upper=False):
    """The lower triangular ``L`` with ``A = L L^H`` (its adjoint where ``upper``).

    Raises:
        LinAlgError: a matrix is not positive definite.
    """
    import numpy

    _check(A, "cholesky")
    array = _array(A)
    try:
        L = numpy.linalg.cholesky(numpy.swapaxes(array, -1, -2).conj() if upper else array)
    except numpy.linalg.LinAlgError:
        raise LinAlgError(
            "linalg.cholesky: The factorization could not be completed because the input is not positive-definite "
            f"(a matrix of shape {list(A.shape)})."
        ) from None
    return _tensor(numpy.swapaxes(L, -1, -2).conj() if upper else L)


def _cholesky_backward(g, out, upper):
    L = _H(out) if upper else out
    g = _H(g) if upper else g
    inner = _symmetric(matmul(_H(L), g).tril())
    left = solve_triangular(_H(L), inner, upper=True)
    return solve_triangular(L, left, upper=False, left=False)


def _symmetric(lower):
    """Half of the Hermitian matrix whose lower triangle (real diagonal) is given."""
    strict = lower.tril(-1)
    diagonal = (lower - strict).real if lower.is_complex() else lower - strict
    return 0.5 * (strict + _H(strict) + diagonal)


cholesky.vjp(A=_cholesky_backward)
CholeskyEx = namedtuple("linalg_cholesky_ex", ["L", "info"])


@composite(method=False)
def cholesky_ex(A, *, upper=False, check_errors=False):
    """:func:`cholesky` with LAPACK's ``info`` instead of an error: 0, or the order of the minor that is not positive."""
    try:
        L = cholesky(A, upper=upper)
        return CholeskyEx(L, A.new_zeros(A.shape[:-2], dtype=_core.int32))
    except LinAlgError:
        if check_errors:
            raise
    n = A.shape[-1]
    flat = A.detach().reshape(-1, n, n)
    infos = []
    for i in range(flat.shape[0]):
        infos.append(next((k for k in range(1, n + 1) if not _positive(flat[i, :k, :k])), 0))
    info = HELPERS["tensor"](infos, dtype=_core.int32).reshape(A.shape[:-2])
    safe = [cholesky(flat[i], upper=upper) if not infos[i] else flat[i].tril() for i in range(flat.shape[0])]
    from .joining import stack

    return CholeskyEx(stack(safe).reshape(A.shape), info)


def _positive(A):
    try:
        cholesky(A)
        return True
    except LinAlgError:
        return False


@composite(names=("cholesky",))
def _cholesky_method(input, upper=False):
    """The Cholesky factor of positive definite matrices."""
    return cholesky(input, upper=upper)


@composite()
def cholesky_solve(B, L, upper=False):
    """``X`` with ``A X = B`` for the matrix ``A`` of which ``L`` is the Cholesky factor."""
    lower = _H(L) if upper else L
    return solve_triangular(_H(lower), solve_triangular(lower, B, upper=False), upper=True)


@composite()
def cholesky_inverse(L, upper=False):
    """The inverse of the matrix of which ``L`` is the Cholesky factor."""
    return cholesky_solve(_eye_like(L).expand(L.shape), L, upper)


Qr = namedtuple("qr", ["Q", "R"])


@primitive(method=False, name="linalg_qr", outputs=("Q", "R"), result_type=Qr)
def _qr(A, mode):
    """``A = Q R``; see :func:`linalg_qr`."""
    import numpy

    array = _array(A)
    if mode == "r":
        return A.new_empty((0,)), _tensor(numpy.linalg.qr(array, "r"))
    Q, R = numpy.linalg.qr(array, mode)
    return _tensor(Q), _tensor(R)


@_qr.vjp_all("A")
def _qr_backward(g, Q, R, mode):
    gQ, gR = g
    m, n = Q.shape[-2], R.shape[-1]
    if mode == "r" or (mode == "complete" and m > n) or m < n:
        raise RuntimeError(
            f"linalg.qr: the derivative is defined for mode='reduced' and matrices with at least as many rows as columns, got mode={mode!r}, {m}x{n}"
        )
    inner = matmul(R, _H(gR)) - matmul(_H(gQ), Q)
    inner = inner.tril() + _H(inner.tril(-1))
    return (_H(solve_triangular(R, _H(gQ + matmul(Q, inner)), upper=True)),)


@composite(method=False)
def linalg_qr(A, mode="reduced", *, out=None):
    """``A = Q R`` with orthonormal columns in ``Q`` and upper triangular ``R``; ``mode`` is reduced, complete or r."""
    _check(A, "qr", square=False)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    return _qr(A, mode)


@composite()
def qr(input, some=True):
    """``input = Q R``, reduced unless ``some`` is false."""
    return linalg_qr(input, "reduced" if some else "complete")


Eigh = namedtuple("linalg_eigh", ["eigenvalues", "eigenvectors"])
Eig = namedtuple("linalg_eig", ["eigenvalues", "eigenvectors"])


@primitive(method=False, name="linalg_eigh", outputs=("w", "V"), result_type=Eigh)
def eigh(A, UPLO="L"):
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which one triangle is read."""
    import numpy

    _check(A, "eigh")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    w, V = numpy.linalg.eigh(_array(A), UPLO.upper())
    return _tensor(w), _tensor(V)


@eigh.vjp_all("A")
def _eigh_backward(g, w, V):
    gw, gV = g
    gaps = w[..., None, :] - w[..., :, None]
    gaps = gaps.masked_fill(gaps == 0, math.inf)
    inner = matmul(_H(V), gV) / gaps
    inner = inner + gw.to(V.dtype)[..., None] * _eye_like(V)
    return (matmul(V, matmul(inner, _H(V))),)


@composite(method=False)
def eigvalsh(A, UPLO="L"):
    """Eigenvalues of Hermitian matrices, ascending."""
    return eigh(A, UPLO).eigenvalues


@primitive(method=False, name="linalg_eig", outputs=("w", "V"), result_type=Eig)
def eig(A):
    """Eigenvalues and right eigenvectors of square matrices, complex."""
    import numpy

    _check(A, "eig")
    array = _array(A)
    w, V = numpy.linalg.eig(array)
    kind = numpy.complex64 if array.dtype.char in "fF" else numpy.complex128
    return _tensor(w.astype(kind)), _tensor(V.astype(kind))


@eig.vjp_all("A")
def _eig_backward(g, A, w, V):
    gw, gV = g
    gaps = (w[..., None, :] - w[..., :, None]).conj()
    gaps = gaps.masked_fill(gaps == 0, math.inf)
    VhgV = matmul(_H(V), gV)
    diagonal = VhgV.diagonal(0, -2, -1).real.to(V.dtype)
    inner = (VhgV - matmul(matmul(_H(V), V), diagonal[..., None] * _eye_like(V))) / gaps
    inner = inner + gw[..., None] * _eye_like(V)
    result = _solve(_H(V), matmul(inner, _H(V)))
    return (result if A.is_complex() else result.real,)


@composite(method=False)
def eigvals(A):
    """Eigenvalues of square matrices, complex."""
    return eig(A).eigenvalues


Svd = namedtuple("linalg_svd", ["U", "S", "Vh"])
OldSvd = namedtuple("svd", ["U", "S", "V"])


@primitive(method=False, name="linalg_svd", outputs=("U", "S", "Vh"), result_type=Svd)
def _svd(A, full_matrices):
    """``A = U diag(S) Vh``; see :func:`linalg_svd`."""
    import numpy

    U, S, Vh = numpy.linalg.svd(_array(A), full_matrices)
    return _tensor(U), _tensor(S), _tensor(Vh)


@_svd.vjp_all("A")
def _svd_backward(g, U, S, Vh):
    gU, gS, gVh = g
    k = S.shape[-1]
    U, Vh, gU, gVh = U[..., :k], Vh[..., :k, :], gU[..., :k], gVh[..., :k, :]
    m, n = U.shape[-2], Vh.shape[-1]
    s = S.to(U.dtype)
    square = S[..., None, :] ** 2 - S[..., :, None] ** 2
    square = square.masked_fill(square == 0, math.inf).to(U.dtype)
    V = _H(Vh)
    left, right = matmul(_H(U), gU), matmul(gVh, V)
    left, right = (left - _H(left)) / square, (_H(right) - right) / square
    inner = left * s[..., None, :] + s[..., None] * right + gS.to(U.dtype)[..., None] * _eye_like(left)
    if U.is_complex():  # the phase of a pair of singular vectors is free
        phase = (matmul(_H(U), gU).diagonal(0, -2, -1).imag * 1j) / s
        inner = inner + phase[..., None] * _eye_like(left)
    result = matmul(U, matmul(inner, Vh))
    if m > k:
        result = result + matmul((gU - matmul(U, matmul(_H(U), gU))) / s[..., None, :], Vh)
    if n > k:
        result = result + matmul(U, (gVh - matmul(matmul(gVh, V), Vh)) / s[..., None])
    return (result,)


@composite(method=False)
def linalg_svd(A, full_matrices=True, *, driver=None):
    """``A = U diag(S) Vh`` with singular values descending."""
    _check(A, "svd", square=False)
    return _svd(A, bool(full_matrices))


def svd(A, full_matrices=True, *, driver=None):
    """``A = U diag(S) Vh`` with singular values descending."""
    return linalg_svd(A, full_matrices, driver=driver)


@composite(names=("svd",))
def _svd_method(input, some=True, compute_uv=True):
    """``input = U diag(S) V^H``; the older form, which gives ``V``."""
    made = linalg_svd(input, not some)
    return OldSvd(made.U, made.S, _H(made.Vh))


@composite(method=False)
def svdvals(A, *, driver=None):
    """Singular values, descending."""
    return linalg_svd(A, False).S


@composite(method=False)
def pinv(A, *, atol=None, rtol=None, hermitian=False, rcond=None):
    """The Moore-Penrose inverse; singular values below ``max(atol, rtol * largest)`` count as zero."""
    _check(A, "pinv", square=False)
    if A.numel() == 0:
        return A.new_empty((*A.shape[:-2], A.shape[-1], A.shape[-2]))
    U, S, Vh = linalg_svd(A, False)
    cut = _cut(A, S, atol, rtol if rcond is None else rcond)
    inverse = S.masked_fill(cut >= S, math.inf).reciprocal().to(A.dtype)
    return matmul(_H(Vh), inverse[..., None] * _H(U))


def _cut(A, S, atol, rtol):
    """Below what a singular value counts as zero."""
    eps = {"float32": 2.0**-23, "complex64": 2.0**-23}.get(A.dtype.name, 2.0**-52)
    if rtol is None:
        rtol = max(A.shape[-2:]) * eps if atol is None or (isinstance(atol, (int, float)) and atol == 0) else 0.0
    largest = S.detach().amax(-1, keepdim=True) if S.shape[-1] else S.new_zeros((*S.shape[:-1], 1))
    cut = largest * (rtol[..., None] if isinstance(rtol, Tensor) and rtol.dim() else rtol)
    if atol is None:
        return cut
    from .pointwise import maximum

    return maximum(cut, atol[..., None] if isinstance(atol, Tensor) and atol.dim() else cut.new_full((), float(atol)))


@composite(method=False)
def matrix_rank(A, tol=None, *, atol=None, rtol=None, hermitian=False):
    """How many singular values count as non-zero."""
    _check(A, "matrix_rank", square=False)
    S = svdvals(A)
    cut = _cut(A, S, atol if tol is None else tol, rtol if tol is None else 0.0)
    return (cut < S).sum(-1)


# ---- norms --------------------------------------------------------------------------------------------------------------


@composite(method=False)
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """A norm of the matrices in dimensions ``dim``: fro, nuc, 2, -2, 1, -1, inf or -inf."""
    if A.dim() < 2:
        raise RuntimeError(
            f"linalg.matrix_norm: The input tensor A must have at least 2 dimensions, got shape {list(A.shape)}"
        )
    A = A if dtype is None else A.to(dtype)
    first, second = (d % A.dim() for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({first}, {second})")
    if ord == "fro":
        return vector_norm(A, 2, (first, second), keepdim)
    if ord in ("nuc", 2, -2):
        S = svdvals(A.movedim((first, second), (-2, -1)))
        made = S.sum(-1) if ord == "nuc" else S.amax(-1) if ord == 2 else S.amin(-1)
        if keepdim:
            made = made.unsqueeze(-1).unsqueeze(-1).movedim((-2, -1), (first, second))
        return made
    if ord not in (1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    along, other = (first, second) if abs(ord) == 1 else (second, first)
    sums = A.abs().sum(along, keepdim=True)
    made = sums.amax(other, keepdim=True) if ord > 0 else sums.amin(other, keepdim=True)
    return made if keepdim else made.squeeze((first, second))


@composite(method=False)
def linalg_norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """A vector norm (one dimension, or all of them where ``ord`` is None) or a matrix norm (two dimensions)."""
    if dim is None and ord is not None:
        if A.dim() not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.dim()}D."
            )
        dim = tuple(range(A.dim()))
    if dim is not None and not isinstance(dim, int) and len(dim) == 2 and ord is not None:
        return matrix_norm(A, ord, tuple(dim), keepdim, dtype=dtype)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: order {ord!r} is for matrices")
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@composite(method=False)
def cond(A, p=None):
    """The condition number of matrices in a norm."""
    _check(A, "cond", square=False)
    if p in (None, 2, -2):
        S = svdvals(A)
        return S[..., 0] / S[..., -1] if p != -2 else S[..., -1] / S[..., 0]
    try:
        return matrix_norm(A, p) * matrix_norm(inv(A), p)
    except LinAlgError:
        return A.abs().sum((-2, -1)) * math.inf


# ---- products and functions ---------------------------------------------------------------------------------------------


@composite(method=False)
def matrix_exp(A):
    """The matrix exponential, by scaling, a Taylor polynomial of degree 18 and squaring."""
    _check(A, "matrix_exp")
    if A.numel() == 0:
        return A.clone()
    size = float(A.detach().abs().sum(-1).amax())
    squarings = max(0, math.ceil(math.log2(size / 0.5))) if size > 0.5 and math.isfinite(size) else 0
    scaled = A / 2.0**squarings
    result = _eye_like(A).expand(A.shape)
    for k in range(18, 0, -1):
        result = matmul(scaled, result) / k + _eye_like(A)
    for _ in range(squarings):
        result = matmul(result, result)
    return result


_core.install("matrix_exp", matrix_exp)
_core.install("inverse", inv)
_core.install("pinverse", lambda input, rcond=1e-15: pinv(input, rtol=rcond))


@composite()
def cross(input, other, dim=None):
    """The cross product of vectors of three elements along ``dim``."""
    if dim is None:
        dim = next((d for d in range(input.dim()) if input.shape[d] == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross(input, other, dim=dim)


@composite(method=False)
def linalg_cross(input, other, *, dim=-1):
    """The cross product of vectors of three elements along ``dim``."""
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}"
        )
    return input.roll(-1, dim) * other.roll(-2, dim) - input.roll(-2, dim) * other.roll(-1, dim)


@composite(method=False)
def vecdot(x, y, *, dim=-1):
    """Sums of ``conj(x) * y`` along ``dim``."""
    return (x.conj() * y).sum(dim)


@composite(method=False)
def multi_dot(tensors):
    """The product of several matrices, in the order that needs the fewest multiplications."""
    from .matmul import chain_matmul

    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    first, last = tensors[0], tensors[-1]
    middle = [first[None] if first.dim() == 1 else first, *tensors[1:-1], last[:, None] if last.dim() == 1 else last]
    made = chain_matmul(*middle)
    return made.reshape(made.shape[: 2 - (last.dim() == 1)][first.dim() == 1 :])


@composite(method=False)
def linalg_vander(x, *, N=None):
    """Rows of powers ``1, x, x^2, ...``."""
    from .joining import stack

    n = x.shape[-1] if N is None else N
    return stack([x**k for k in range(n)], -1)


vander = linalg_vander  # `taeda.vander`, whose powers fall, is another


@composite(method=False)
def tensorinv(A, ind=2):
    """The inverse of ``A`` under :func:`tensordot` over its last ``A.dim() - ind`` dimensions."""
    lead, rest = A.shape[:ind], A.shape[ind:]
    return inv(A.reshape(math.prod(lead), -1)).reshape(*rest, *lead)


@composite(method=False)
def tensorsolve(A, B, dims=None):
    """``X`` with ``tensordot(A, X, X.dim()) = B``."""
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(A.dim() - len(dims), A.dim())))
    shape = A.shape[B.dim() :]
    return solve(A.reshape(B.numel(), -1), B.reshape(-1)).reshape(shape)


@composite(method=False)
def householder_product(A, tau):
    """The first columns of a product of Householder reflectors, as a QR factorisation gives them."""
    m, n = A.shape[-2:]
    from .creation import eye

    Q = eye(m, dtype=A.dtype).expand(*A.shape[:-2], m, m)
    for i in range(tau.shape[-1]):
        v = _reflector(A[..., i], i)
        Q = Q - tau[..., i, None, None] * matmul(matmul(Q, v[..., None]), v[..., None, :].conj())
    return Q[..., :n]


def _reflector(column, i):
    """Zeros, then one at ``i``, then the column below it."""
    from .joining import cat

    ahead = column.new_zeros((*column.shape[:-1], i))
    return cat((ahead, column.new_ones((*column.shape[:-1], 1)), column[..., i + 1 :]), -1)


InvEx = namedtuple("linalg_inv_ex", ["inverse", "info"])
SolveEx = namedtuple("linalg_solve_ex", ["result", "info"])


@composite(method=False)
def inv_ex(A, *, check_errors=False):
    """:func:`inv` with LAPACK's ``info`` instead of an error."""
    info = _lu(A)[2]
    if not info.any():
        return InvEx(inv(A), info)
    if check_errors:
        return InvEx(inv(A), info)
    return InvEx(A.new_full(A.shape, math.nan), info)


@composite(method=False)
def solve_ex(A, B, *, left=True, check_errors=False):
    """:func:`solve` with LAPACK's ``info`` instead of an error."""
    info = _lu(A)[2]
    if not info.any() or check_errors:
        return SolveEx(solve(A, B, left=left), info)
    return SolveEx(B.new_full(B.shape, math.nan), info)
