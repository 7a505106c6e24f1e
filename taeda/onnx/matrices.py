"""Factors, solutions and eigenvalues of matrices, in ops that ONNX has, as loops over columns.

They replace ops that call LAPACK when a program is written as ONNX. Factors of LU, Cholesky and QR are those of LAPACK,
signs and pivots included (Golub and Van Loan, "Matrix computations", 2013, chapters 3 to 5). Singular values and
eigenvalues come of Jacobi's method by one-sided rotations (Hestenes 1958), in float64, pairs of columns in the order of
a round-robin tournament (Brent and Luk 1985). What is complex stays as it is.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from taeda.func.control_flow import scan, while_loop
from taeda.ops.linalg import old_cholesky
from taeda.ops.linalg.functions import _LARGEST, _pade
from taeda.ops.linalg.leastsquares import _lstsq, _pinv
from taeda.ops.linalg.lu import _permutation
from taeda.ops.linalg.qr import _qr
from taeda.ops.linalg.solve import _solve, _solve_ex
from taeda.ops.linalg.svd import _svd, _svdvals
from taeda.ops.table import OPS, trait

from .._core import float64, int32, int64
from .._typed import Tensor
from ..ops import views
from ..ops.creation import arange, eye, zeros
from ..ops.indexing import where
from ..ops.joining import cat

_T = functools.partial(views.transpose, dim0=-2, dim1=-1)
_where: Any = where  # also of numbers


def _along(count: Any, body: Callable, *state: Tensor, reverse: bool = False) -> tuple:
    """``state`` after ``state = body(k, *state)`` for ``k`` from 0 to ``count - 1``, or back."""
    if count == 0:
        return state
    return scan(lambda xs, k: (body(k, *xs), ()), state, arange(count), reverse=reverse)[0]


def _column(A: Tensor, k: Tensor) -> Tensor:
    """Column ``k``, ``(..., m)``."""
    return A.index_select(-1, k.reshape(1)).squeeze(-1)


def _row(A: Tensor, k: Tensor) -> Tensor:
    return A.index_select(-2, k.reshape(1)).squeeze(-2)


def _batch(A: Tensor, B: Tensor) -> tuple[Tensor, Tensor]:
    """Matrices with the batch that they have in common."""
    batch = (A[..., :1, :1] + B[..., :1, :1]).shape[:-2]
    return A.expand(*batch, *A.shape[-2:]), B.expand(*batch, *B.shape[-2:])


def _zeros(A: Tensor, *sizes: Any, dtype: Any = None) -> Tensor:
    return A.new_zeros((*A.shape[:-2], *sizes), dtype=dtype)


def _eye(A: Tensor, m: Any, n: Any) -> Tensor:
    return eye(m, n, dtype=A.dtype).expand(*A.shape[:-2], m, n)


# ---- LU --------------------------------------------------------------------------------------------------------------


def _swapped(order: Tensor, k: Tensor, p: Tensor) -> Tensor:
    """The places ``order`` with ``k`` and ``p`` ``(..., 1)`` exchanged."""
    return _where(order == k, p, _where(order == p, k, order))


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple:
    m, n = A.shape[-2:]
    least = n if m > n else m
    rows, columns, places = arange(m), arange(n), arange(least)

    def step(k: Tensor, A: Tensor, pivots: Tensor, info: Tensor) -> tuple:
        p = _where(rows >= k, _column(A, k).abs(), -1.0).argmax(-1, keepdim=True)
        order = _swapped(rows.expand(A.shape[:-1]), k, p)
        A = A.gather(-2, order.unsqueeze(-1).expand(A.shape))
        column, row = _column(A, k), _row(A, k)
        corner = _column(row, k).unsqueeze(-1)
        factor = _where(rows > k, column / _where(corner == 0, 1.0, corner), 0.0)
        below = A - factor.unsqueeze(-1) * _where(columns > k, row, 0.0).unsqueeze(-2)
        here = (columns == k) & (rows > k).unsqueeze(-1)
        A = _where(here, factor.unsqueeze(-1), below)
        pivots = _where(places == k, (p + 1).int(), pivots)
        failed = (info == 0) & (corner.squeeze(-1) == 0)
        return A, pivots, _where(failed, (k + 1).int(), info)

    start = A, _zeros(A, least, dtype=int32), _zeros(A, dtype=int32)
    return _along(least, step, *start)


def _order(pivots: Tensor, m: Any) -> Tensor:
    """The former places of the rows of a factored matrix, ``(..., m)``."""
    start = arange(m).expand(*pivots.shape[:-1], m)

    def step(k: Tensor, order: Tensor) -> tuple:
        exchanged = _swapped(arange(m).expand(order.shape), k, _column(pivots, k).long().unsqueeze(-1) - 1)
        return (order.gather(-1, exchanged),)

    return _along(pivots.shape[-1], step, start)[0]


def permutation(pivots: Tensor, m: Any, dtype: Any) -> Tensor:
    return _T(_order(pivots, m).unsqueeze(-1) == arange(m)).to(dtype)


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    if not left:  # X A = B is A^T X^T = B^T
        return _T(lu_solve(LU, pivots, _T(B), adjoint=not adjoint))
    P = permutation(pivots, LU.shape[-2], LU.dtype)
    if adjoint:
        X = solve_triangular(_T(LU), B, upper=False)
        return P @ solve_triangular(_T(LU), X, upper=True, unitriangular=True)
    X = solve_triangular(LU, _T(P) @ B, upper=False, unitriangular=True)
    return solve_triangular(LU, X, upper=True)


def solve_ex(A: Tensor, B: Tensor, left: bool) -> tuple:
    LU, pivots, info = lu_factor_ex(A)
    return lu_solve(LU, pivots, B, left=left), LU, pivots, info


def inv_ex(A: Tensor, *, check_errors: bool = False) -> tuple:
    made = solve_ex(A, _eye(A, A.shape[-1], A.shape[-1]), True)
    return made[0], made[3]


# ---- triangles -------------------------------------------------------------------------------------------------------


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    if not left:
        return _T(solve_triangular(_T(A), _T(B), upper=not upper, unitriangular=unitriangular))
    A, B = _batch(A, B)
    rows = arange(A.shape[-1])

    def step(k: Tensor, X: Tensor) -> tuple:
        column, row = _column(A, k), _row(X, k)
        if not unitriangular:
            row = row / _column(_row(A, k), k).unsqueeze(-1)
        rest = _where(rows < k if upper else rows > k, column, 0.0).unsqueeze(-1)
        return (_where((rows == k).unsqueeze(-1), row.unsqueeze(-2), X - rest * row.unsqueeze(-2)),)

    return _along(A.shape[-1], step, B, reverse=upper)[0]


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple:
    if upper:
        L, info = cholesky_ex(_T(A))
        return _T(L), info
    n = A.shape[-1]
    places = arange(n)

    def step(k: Tensor, rest: Tensor, L: Tensor, info: Tensor) -> tuple:
        column = _column(rest, k)
        square = _column(column, k).unsqueeze(-1)
        column = _where(places >= k, column / square.sqrt(), 0.0)
        L = _where(places == k, column.unsqueeze(-1), L)
        failed = (info == 0) & ~(square.squeeze(-1) > 0)
        return rest - column.unsqueeze(-1) * column.unsqueeze(-2), L, _where(failed, (k + 1).int(), info)

    return _along(n, step, A, _zeros(A, n, n), _zeros(A, dtype=int32))[1:]


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    L = _T(L) if upper else L
    return solve_triangular(_T(L), solve_triangular(L, B, upper=False), upper=True)


# ---- reflectors ------------------------------------------------------------------------------------------------------


def _reflector(packed: Tensor, k: Tensor) -> Tensor:
    """The vector of reflector ``k``, ``(..., m, 1)``: zeros, a one, and the numbers below the diagonal."""
    rows = arange(packed.shape[-2])
    return _where(rows > k, _column(packed, k), (rows == k).to(packed.dtype)).unsqueeze(-1)


def geqrf(input: Tensor) -> tuple:
    m, n = input.shape[-2:]
    least = n if m > n else m
    rows, columns, places = arange(m), arange(n), arange(least)

    def step(k: Tensor, A: Tensor, tau: Tensor) -> tuple:
        column = _column(A, k).unsqueeze(-1)
        alpha = _row(column, k).unsqueeze(-2)
        rest = _where((rows > k).unsqueeze(-1), column, 0.0)
        norm = (rest * rest).sum(-2, keepdim=True)
        beta = (alpha * alpha + norm).sqrt()
        beta = _where(norm == 0, alpha, _where(alpha > 0, -beta, beta))
        divisor = _where(norm == 0, 1.0, alpha - beta)
        scale = _where(norm == 0, 0.0, -divisor / _where(beta == 0, 1.0, beta))
        v = rest / divisor
        full = v + (rows == k).to(A.dtype).unsqueeze(-1)
        made = A - scale * full @ (_T(full) @ A)
        below = _where((rows < k).unsqueeze(-1), column, _where((rows == k).unsqueeze(-1), beta, v))
        made = _where(columns == k, below, _where(columns < k, A, made))
        return made, _where(places == k, scale.squeeze(-1), tau)

    return _along(least, step, input, _zeros(input, least))


def _reflected(packed: Tensor, tau: Tensor, X: Tensor, transpose: bool = False) -> Tensor:
    """``Q X``, where ``Q`` is the product of the reflectors, or its transpose by ``X``."""

    def step(k: Tensor, X: Tensor) -> tuple:
        v = _reflector(packed, k)
        return (X - _column(tau, k)[..., None, None] * v @ (_T(v) @ X),)

    return _along(tau.shape[-1], step, X, reverse=not transpose)[0]


def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    return _reflected(A, tau, _eye(A, *A.shape[-2:]))


def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    if not left:
        return _T(_reflected(input, tau, _T(other), not transpose))
    return _reflected(input, tau, other, transpose)


def qr_factors(A: Tensor, mode: str) -> tuple:
    m, n = A.shape[-2:]
    width = m if mode == "complete" or m < n else n
    packed, tau = geqrf(A)
    R = packed[..., :width, :].triu()
    return (A.new_zeros(0) if mode == "r" else _reflected(packed, tau, _eye(A, m, width))), R


# ---- eigenvalues and singular values ---------------------------------------------------------------------------------


def _orthogonal(G: Tensor) -> tuple[Tensor, Tensor]:
    """``G V`` with orthogonal columns, of which the first is the longest, and the rotation ``V``; float64."""
    n = G.shape[-1]
    half = (n + 1) // 2  # an odd number of columns gets one of zeros
    G = cat((G, _zeros(G, G.shape[-2], 2 * half - n)), -1)
    V = _eye(G, 2 * half, 2 * half)
    first, last = arange(half), arange(half, 2 * half)
    order = cat((first[:1], last[:1], first[1:-1], last[1:], first[-1:])) if n > 2 else arange(2 * half)

    def step(count: Tensor, idle: Tensor, G: Tensor, V: Tensor) -> tuple:
        x, y = G[..., :half], G[..., half:]
        a, b, c = (x * x).sum(-2), (y * y).sum(-2), (x * y).sum(-2)
        angle = c.abs() / (a * b).sqrt().clamp(min=1e-300)
        turned = angle > 1e-15
        zeta = (b - a) / (2 * _where(turned, c, 1.0))
        t = _where(zeta < 0, -1.0, 1.0) / (zeta.abs() + (1 + zeta * zeta).sqrt())
        t = _where(turned, t, 0.0)
        cosine = 1 / (1 + t * t).sqrt()
        cosine, sine = cosine.unsqueeze(-2), (cosine * t).unsqueeze(-2)
        made = []
        for M in (G, V):
            x, y = M[..., :half], M[..., half:]
            turn = cat((cosine * x - sine * y, sine * x + cosine * y), -1)
            made.append(turn.index_select(-1, order))
        moved = (angle > 1e-13).any() if angle.numel() else turned.any()
        return count + 1, _where(moved, 0, idle + 1), *made

    start = zeros((), dtype=int64), zeros((), dtype=int64), G, V
    _, _, G, V = while_loop(lambda count, idle, G, V: (idle < 2 * half) & (count < 80 * half), step, start)
    longest = (G * G).sum(-2).argsort(-1, descending=True)[..., :n].unsqueeze(-2)
    return tuple(M.gather(-1, longest.expand(*M.shape[:-1], n)) for M in (G, V[..., :n, :]))  # type: ignore[return-value]


def singular(A: Tensor, full_matrices: bool) -> tuple:
    if A.shape[-2] < A.shape[-1]:
        U, S, Vh = singular(_T(A), full_matrices)
        return _T(Vh), S, _T(U)
    G, V = _orthogonal(A.double())
    Q, R = qr_factors(G, "complete" if full_matrices else "reduced")  # columns are orthogonal: R is diagonal
    size = R.diagonal(0, -2, -1)
    sign = _where(size < 0, -1.0, 1.0).to(G.dtype).unsqueeze(-2)
    n = A.shape[-1]
    U = cat((Q[..., :n] * sign, Q[..., n:]), -1) if full_matrices else Q * sign
    return U.to(A.dtype), size.abs().to(A.dtype), _T(V).to(A.dtype)


def singular_values(A: Tensor) -> Tensor:
    A = _T(A) if A.shape[-2] < A.shape[-1] else A
    G = _orthogonal(A.double())[0]
    return (G * G).sum(-2).sqrt().to(A.dtype)


def eigen_hermitian(A: Tensor, UPLO: str = "L") -> tuple:
    n = A.shape[-1]
    triangle = A.double().tril() if UPLO.upper() == "L" else _T(A.double().triu())
    G = triangle + _T(triangle.tril(-1))
    shift = (G * G).sum((-2, -1), keepdim=True).sqrt()  # no eigenvalue is larger, so those of the sum are not negative
    made, V = _orthogonal(G + shift * _eye(G, n, n))
    w = (made * made).sum(-2).sqrt() - shift.squeeze(-1)
    return w.flip(-1).to(A.dtype), V.flip(-1).to(A.dtype)


def eigenvalues_hermitian(A: Tensor, UPLO: str = "L") -> Tensor:
    return eigen_hermitian(A, UPLO)[0]


def least_squares(A: Tensor, B: Tensor, rcond: float, driver: str) -> Any:
    m, n = A.shape[-2:]
    if m > n and driver in ("gelsd", "gelss"):
        return NotImplemented  # the shape of the residuals depends on values
    U, S, Vh = singular(A, False)
    kept = rcond * S.amax(-1, keepdim=True) < S
    X = _T(Vh) @ ((_T(U) @ B) * _where(kept, 1 / S, 0.0).unsqueeze(-1))
    none = A.new_zeros(0)
    residuals = ((A @ X - B) ** 2).sum(-2) if driver == "gels" and m > n else none
    rank = A.new_zeros(0, dtype=int64) if driver == "gels" else kept.sum(-1)
    return X, residuals, rank, none if driver in ("gels", "gelsy") else S


def exponential(input: Tensor) -> Tensor:
    norm = input.double().abs().sum(-2).amax((-1,), keepdim=True).unsqueeze(-1)
    times = (norm / _LARGEST).log2().ceil().clamp(min=0)
    start = _pade(input.double() * (-times).exp2(), 13), zeros((), dtype=float64)
    most = times.amax()
    squared = while_loop(
        lambda X, k: k < most, lambda X, k: (_where(times > k, X @ X, X), k + 1), start
    )  # fmt: skip
    return squared[0].to(input.dtype)


def _real(op: Any, rule: Callable, *args: Any, **kwargs: Any) -> Any:
    if any(isinstance(x, Tensor) and x.is_complex() for x in (*args, *kwargs.values())):
        return NotImplemented
    made, named = rule(*args, **kwargs), trait(op, "result_type")
    return made if named is None or made is NotImplemented else named(*made)


@functools.cache
def rules() -> dict[Any, Callable]:
    """A table from ops to their forms in a program for ONNX."""
    found = {
        OPS["linalg_lu_factor_ex"]: lu_factor_ex, _permutation: permutation, OPS["linalg_lu_solve"]: lu_solve,
        _solve_ex: solve_ex, OPS["linalg_inv_ex"]: inv_ex, OPS["linalg_solve_triangular"]: solve_triangular,
        OPS["linalg_cholesky_ex"]: cholesky_ex, OPS["cholesky_solve"]: cholesky_solve, OPS["geqrf"]: geqrf,
        OPS["linalg_householder_product"]: householder_product, OPS["ormqr"]: ormqr, _qr: qr_factors,
        _svd: singular, _svdvals: singular_values, OPS["linalg_eigh"]: eigen_hermitian,
        OPS["linalg_eigvalsh"]: eigenvalues_hermitian, _lstsq: least_squares,
        _pinv: inspect.unwrap(_pinv), OPS["matrix_exp"]: exponential,
        # Ops that raise an error for a singular matrix return the computed values instead.
        OPS["linalg_inv"]: lambda A: inv_ex(A)[0], OPS["linalg_lu_factor"]: lambda A, *,
        pivot=True: lu_factor_ex(A)[:2],
        OPS["linalg_cholesky"]: lambda A, *, upper=False: cholesky_ex(A, upper=upper)[0],
        old_cholesky: lambda input, upper=False: cholesky_ex(input, upper=upper)[0],
        OPS["linalg_solve"]: lambda A, B, *, left=True: _solve(A, B, left)[0],
    }  # fmt: skip
    return {op: functools.partial(_real, op, rule) for op, rule in found.items()}
