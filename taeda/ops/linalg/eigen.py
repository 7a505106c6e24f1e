"""Eigenvalues and eigenvectors. Derivatives: Giles 2008, and Boeddeker et al. 2017 for complex matrices."""

from __future__ import annotations

import math

from ... import _core
from ..elementary import complex as complex_of
from ..indexing import where
from ..matmul import matmul
from ..shape import roll
from ..table import primitive, result_type
from .lapack import (
    BY_KERNEL,
    H,
    LinAlgError,
    by_columns,
    call,
    check,
    columns,
    count_of,
    empty_columns,
    eye_like,
    ints,
    raise_failed,
)
from .solve import linalg_solve_ex

Eigh = result_type("linalg_eigh", "eigenvalues", "eigenvectors")
Eig = result_type("linalg_eig", "eigenvalues", "eigenvectors")

_STUCK = (
    "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues "
    "(error code: {k})."
)


def check_phase(name, diagonal, scale):
    """A loss may not depend on the phase of a complex vector, which no factorisation determines."""
    if not diagonal.numel() or diagonal.is_meta:
        return
    tolerance = 1e-2 if scale.dtype.name in ("complex64", "float32") else 1e-5
    size = max(1.0, float(scale.detach().abs().amax()))
    if float(diagonal.detach().imag.abs().amax()) > tolerance * size:
        raise RuntimeError(
            f"{name}: complex vectors are specified up to multiplication by e^(i phi); the loss depends on this phase, "
            "so that its derivative is ill-defined. Use a loss that does not, such as one of v v^H or of absolute "
            "values."
        )


def gaps_between(w):
    """Differences ``w_j - w_i``, infinite where two are equal: the derivative leaves out changes among the vectors of a
    multiple eigenvalue.
    """
    gaps = w[..., None, :] - w[..., :, None]
    return gaps.masked_fill(gaps == 0, math.inf)


# ---- Hermitian -------------------------------------------------------------------------------------------------------


def _check_hermitian(A, UPLO, name):
    check(A, name, refused=BY_KERNEL)
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"{name}: Expected UPLO argument to be 'L' or 'U', but got {UPLO}")


def _syevd(A, UPLO, vectors, name):
    """Values and, over a copy of ``A``, vectors."""
    n, batch = A.shape[-1], A.shape[:-2]
    V = columns(A)
    w = _core.empty((*batch, n), A.dtype.to_real())
    if V.numel():
        info = ints(*batch)
        read = A.tril() if UPLO.upper() == "L" else A.triu()
        if not A.is_meta and not bool(read.isfinite().all()):  # LAPACK may give numbers for it
            raise LinAlgError(
                f"{name}: The algorithm failed to converge because the input matrix contained non-finite values."
            )
        complex_ = A.is_complex()
        rwork = 1 + 5 * n + 2 * n * n if vectors else max(1, n)
        extra = ((_core.empty((rwork,), w.dtype),), rwork) if complex_ else ()
        iwork = 3 + 5 * n if vectors else 1
        call(
            "syevd", A.dtype, count_of(batch), "V" if vectors else "N", UPLO.upper(), n, V, n, w, ..., *extra,
            (ints(iwork),), iwork, info,
        )  # fmt: skip
        raise_failed(info, name, _STUCK)
    return w, V


@primitive(
    method=False, outputs=("w", "V"), result_type=Eigh, batch="leading", out="same", autocast="float32", on_host="syevd"
)
def linalg_eigh(A, UPLO="L"):
    """Eigenvalues and eigenvectors of Hermitian matrices: ``A @ v[:, i] = w[i] * v[:, i]``, with orthonormal ``v``.

    Eigenvectors are unique up to sign (a phase), and of equal eigenvalues up to rotation. Gradients of vectors are
    large where eigenvalues lie close together.

    Args:
        A: Hermitian (or symmetric) matrices ``(..., n, n)``.
        UPLO: which triangle is read, ``"L"`` or ``"U"``.
    Returns:
        ``(eigenvalues, eigenvectors)``, named: ``(..., n)``, real, ascending; and columns of ``(..., n, n)``.
    Raises:
        RuntimeError: the matrices are not square.
        LinAlgError: an element that is read is not finite.
    Examples:
        >>> w, v = taeda.linalg.eigh(taeda.tensor([[2.0, 1.0], [1.0, 2.0]]))
        >>> w.round(decimals=4)
        tensor([1., 3.])
    """
    _check_hermitian(A, UPLO, "linalg.eigh")
    return _syevd(A, UPLO, True, "linalg.eigh")


@linalg_eigh.vjp_all("A")
def _eigh_backward(g, w, V):
    gw, gV = g
    inner = matmul(H(V), gV)
    if V.is_complex():
        check_phase("linalg_eigh_backward", inner.diagonal(0, -2, -1), inner)
    inner = 0.5 * (inner - H(inner)) / gaps_between(w) + gw.to(V.dtype)[..., None] * eye_like(V)
    return (matmul(V, matmul(inner, H(V))),)


@primitive(method=False, name="linalg_eigvalsh", batch="leading", autocast="float32", copied=("A",), on_host="syevd")
def linalg_eigvalsh(A, UPLO="L"):
    """The eigenvalues of Hermitian matrices, ascending. Their gradients are stable, unlike those of eigenvectors.

    Args:
        A: Hermitian (or symmetric) matrices ``(..., n, n)``.
        UPLO: which triangle is read, ``"L"`` or ``"U"``.
    Returns:
        ``(..., n)``, real.
    Raises:
        RuntimeError: the matrices are not square.
        LinAlgError: an element that is read is not finite.
    Examples:
        >>> taeda.linalg.eigvalsh(taeda.tensor([[2.0, 1.0], [1.0, 2.0]])).round(decimals=4)
        tensor([1., 3.])
    """
    _check_hermitian(A, UPLO, "linalg.eigvalsh")
    return _syevd(A, UPLO, False, "linalg.eigvalsh")[0]


@linalg_eigvalsh.vjp_all("A")
def _eigvalsh_backward(g, A, UPLO):
    V = linalg_eigh(A, UPLO).eigenvectors
    return (matmul(V * g.to(V.dtype)[..., None, :], H(V)),)


# ---- general ---------------------------------------------------------------------------------------------------------


def _geev(A, vectors, name):
    n, batch = A.shape[-1], A.shape[:-2]
    count = count_of(batch)
    kind = A.dtype if A.is_complex() else A.dtype.to_complex()
    if not A.numel():
        return _core.empty((*batch, n), kind), _core.empty((*batch, n, n), kind)
    if not A.is_meta and not bool(A.isfinite().all()):
        raise RuntimeError(f"{name}: input tensor should not contain infs or NaNs.")
    packed, info = columns(A), ints(*batch)
    right = empty_columns((*batch, n, n) if vectors else (1, 1), A.dtype)
    right = right if vectors else (right,)
    job, lead, left = "V" if vectors else "N", n if vectors else 1, (_core.empty((1,), A.dtype),)
    if A.is_complex():
        w = _core.empty((*batch, n), kind)
        rwork = (_core.empty((2 * n,), A.dtype.to_real()),)
        call("geev", A.dtype, count, "N", job, n, packed, n, w, left, 1, right, lead, ..., rwork, info)
        raise_failed(info, name, _STUCK)
        return w, right
    wr, wi = _core.empty((*batch, n), A.dtype), _core.empty((*batch, n), A.dtype)
    call("geev", A.dtype, count, "N", job, n, packed, n, wr, wi, left, 1, right, lead, ..., info)
    raise_failed(info, name, _STUCK)
    w = complex_of(wr, wi)
    return w, by_columns(_paired(right, wi)) if vectors else None


def _paired(V, wi):
    """Complex vectors from LAPACK's real ones, where columns ``j, j + 1`` are real and imaginary part of a pair."""
    first, second = (wi > 0)[..., None, :], (wi < 0)[..., None, :]
    real = where(second, roll(V, 1, -1), V)
    imaginary = where(first, roll(V, -1, -1), where(second, -V, V.new_zeros(())))
    return complex_of(real, imaginary)


@primitive(method=False, outputs=("w", "V"), result_type=Eig, batch="leading", autocast="float32", on_host="geev")
def linalg_eig(A):
    """Eigenvalues and right eigenvectors of square matrices: ``A @ v[:, i] = w[i] * v[:, i]``. For Hermitian ones use
    :func:`taeda.linalg.eigh`.

    Args:
        A: square matrices ``(..., n, n)``.
    Returns:
        ``(eigenvalues, eigenvectors)``, named, complex: ``(..., n)``, and columns of ``(..., n, n)`` of length 1.
    Raises:
        RuntimeError: the matrices are not square, or an element is not finite.
    Examples:
        >>> rotation = taeda.tensor([[0.0, -1.0], [1.0, 0.0]])
        >>> w, v = taeda.linalg.eig(rotation)
        >>> w.imag.sort().values.round(decimals=4)  # a quarter turn has eigenvalues i and -i
        tensor([-1.,  1.])
    """
    check(A, "linalg.eig")
    return _geev(A, True, "linalg.eig")


@linalg_eig.vjp_all("A")
def _eig_backward(g, A, w, V):
    gw, gV = g
    VhgV = matmul(H(V), gV)
    diagonal = VhgV.diagonal(0, -2, -1)
    check_phase("linalg_eig_backward", diagonal, VhgV)
    inner = (VhgV - matmul(H(V), V) * diagonal.real.to(V.dtype)[..., None, :]) / gaps_between(w).conj_physical()
    inner = inner + gw[..., None] * eye_like(V)
    result = linalg_solve_ex(H(V), matmul(inner, H(V))).result
    return (result if A.is_complex() else result.real,)


@primitive(method=False, batch="leading", autocast="float32", copied=("A",), on_host="geev")
def linalg_eigvals(A):
    """The eigenvalues of square matrices, complex.

    Args:
        A: square matrices ``(..., n, n)``.
    Returns:
        ``(..., n)``.
    Raises:
        RuntimeError: the matrices are not square, or an element is not finite.
    Examples:
        >>> taeda.linalg.eigvals(taeda.tensor([[0.0, -1.0], [1.0, 0.0]])).imag.sort().values.round(decimals=4)
        tensor([-1.,  1.])
    """
    check(A, "linalg.eigvals")
    return _geev(A, False, "linalg.eigvals")[0]


@linalg_eigvals.vjp_all("A")
def _eigvals_backward(g, A):
    V = linalg_eig(A).eigenvectors
    result = linalg_solve_ex(H(V), g[..., None] * H(V)).result
    return (result if A.is_complex() else result.real,)
