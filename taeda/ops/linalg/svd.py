"""The singular value decomposition."""

from __future__ import annotations

from ... import _core
from ..._core import Tensor
from ..matmul import matmul
from ..table import composite, primitive, result_type
from .eigen import check_phase, gaps_between
from .lapack import H, LinAlgError, call, check, columns, count_of, empty_columns, eye_like, ints, raise_failed

Svd = result_type("linalg_svd", "U", "S", "Vh")
OldSvd = result_type("svd", "U", "S", "V")

_STUCK = (
    "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated singular "
    "values (error code: {k})."
)


def _gesdd(A: Tensor, job: str) -> tuple[Tensor | None, Tensor, Tensor | None]:
    """Divide and conquer; ``job`` is LAPACK's: ``A`` full matrices, ``S`` reduced, ``N`` values alone."""
    m, n = A.shape[-2:]
    k, batch = min(m, n), A.shape[:-2]
    count = count_of(batch)
    S = _core.empty((*batch, k), A.dtype.to_real())
    U = empty_columns((*batch, m, m if job == "A" else k), A.dtype) if job != "N" else None
    Vh = empty_columns((*batch, n if job == "A" else k, n), A.dtype) if job != "N" else None
    if not A.numel():
        for whole in (U, Vh):
            if whole is not None and whole.numel():
                _core.copy_tensor(whole, eye_like(whole).expand(whole.shape))
        return U, S, Vh
    if not A.is_meta and not bool(A.isfinite().all()):
        raise LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
        )
    packed, info = columns(A), ints(*batch)
    none = (_core.empty((1,), A.dtype),)
    extra = ()
    if A.is_complex():
        size = 7 * k if job == "N" else max(5 * k * k + 5 * k, 2 * max(m, n) * k + 2 * k * k + k)
        extra = ((_core.empty((max(1, size),), S.dtype),),)
    call(
        "gesdd", A.dtype, count, job, m, n, packed, m, S, none if U is None else U, m, none if Vh is None else Vh,
        max(1, k if Vh is None else Vh.shape[-2]), ..., *extra, (ints(8 * k),), info,
    )  # fmt: skip
    raise_failed(info, "linalg.svd", _STUCK)
    return U, S, Vh


@primitive(method=False, outputs=("U", "S", "Vh"), result_type=Svd, batch="leading", on_host="gesdd")
def _svd(A, full_matrices):
    """``A = U diag(S) Vh``; see :func:`linalg_svd`."""
    return _gesdd(A, "A" if full_matrices else "S")


def _shares(S):
    """``s_j / (s_i + s_j)``, so that ``s_j / (s_j^2 - s_i^2)`` is that over the gap: squares would leave the range of
    the dtype, at 1e19 in float32."""
    half = 0.5 * S
    total = half[..., None, :] + half[..., :, None]
    return half[..., None, :] / total.masked_fill(total == 0, 1.0)


@_svd.vjp_all("A")
def _svd_backward(g, U, S, Vh):
    gU, gS, gVh = g
    k = S.shape[-1]
    U, Vh, gU, gVh = U[..., :k], Vh[..., :k, :], gU[..., :k], gVh[..., :k, :]
    m, n = U.shape[-2], Vh.shape[-1]
    s = S.to(U.dtype)
    gaps, share = gaps_between(S).to(U.dtype), _shares(S).to(U.dtype)
    V = H(Vh)
    left, right = matmul(H(U), gU), matmul(gVh, V)
    phase = None
    if U.is_complex():  # a pair of singular vectors has a common phase, on which the loss may not depend
        phase = left.diagonal(0, -2, -1)
        check_phase("svd_backward", phase - right.diagonal(0, -2, -1), left)
        phase = (phase.imag * 1j) / s
    inner = ((left - H(left)) * share + (H(right) - right) * share.mT) / gaps
    inner = inner + gS.to(U.dtype)[..., None] * eye_like(left)
    if phase is not None:
        inner = inner + phase[..., None] * eye_like(left)
    result = matmul(U, matmul(inner, Vh))
    if m > k:
        result = result + matmul((gU - matmul(U, matmul(H(U), gU))) / s[..., None, :], Vh)
    if n > k:
        result = result + matmul(U, (gVh - matmul(matmul(gVh, V), Vh)) / s[..., None])
    return (result,)


def _check_driver(name: str, driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError(
            f"{name}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


@composite(method=False, out="same", autocast="float32")
def linalg_svd(A, full_matrices=True, *, driver=None):
    """``A = U @ diag(S) @ Vh`` with orthonormal columns in ``U`` and rows in ``Vh``, and the singular values ``S``
    descending.

    Singular vectors are unique up to sign (a phase), and of equal singular values up to rotation. Gradients of vectors
    are large where singular values lie close together.

    Args:
        A: ``(..., m, n)``, floating point or complex.
        full_matrices: ``U`` of ``m`` columns and ``Vh`` of ``n`` rows, rather than ``k = min(m, n)``.
        driver: None; others are for GPUs.
    Returns:
        ``(U, S, Vh)``, named: ``(..., m, k)``, ``(..., k)``, real, and ``(..., k, n)``.
    Raises:
        RuntimeError: a ``driver`` is given.
    Examples:
        >>> A = taeda.tensor([[3.0, 0.0], [0.0, -2.0], [0.0, 0.0]])
        >>> U, S, Vh = taeda.linalg.svd(A, full_matrices=False)
        >>> S.round(decimals=4), (U * S @ Vh).round(decimals=4).abs()
        (tensor([3., 2.]), tensor([[3., 0.],
                [0., 2.],
                [0., 0.]]))
    """
    check(A, "linalg.svd", square=False)
    _check_driver("linalg.svd", driver)
    return _svd(A, bool(full_matrices))


@composite(out="same", autocast="float32")
def svd(input, some=True, compute_uv=True):
    """``input = U @ diag(S) @ V.mH``: the older form of :func:`taeda.linalg.svd`, which gives ``V``.

    Args:
        input: ``(..., m, n)``.
        some: the reduced form, rather than the full one.
        compute_uv: False gives zeros for ``U`` and ``V``.
    Returns:
        ``(U, S, V)``, named.
    Raises:
        RuntimeError: ``input`` has fewer than two dimensions, or is neither floating point nor complex.
    Examples:
        >>> taeda.svd(taeda.tensor([[3.0, 0.0], [0.0, -2.0]])).S.round(decimals=4)
        tensor([3., 2.])
    """
    check(input, "linalg.svd", square=False)
    if not compute_uv:
        m, n = input.shape[-2:]
        zeros = [input.new_zeros((*input.shape[:-2], size, size)) for size in (m, n)]
        return OldSvd(zeros[0], linalg_svdvals(input), zeros[1])
    made = linalg_svd(input, not some)
    return OldSvd(made.U, made.S, H(made.Vh))


@primitive(method=False, batch="leading", copied=("A",), on_host="gesdd")
def _svdvals(A):
    """Singular values; see :func:`linalg_svdvals`."""
    return _gesdd(A, "N")[1]


@_svdvals.vjp_all("A")
def _svdvals_backward(g, A):
    U, _, Vh = _svd(A, False)
    return (matmul(U * g.to(U.dtype)[..., None, :], Vh),)


@composite(method=False, out="same", autocast="float32")
def linalg_svdvals(A, *, driver=None):
    """The singular values, descending. Their gradients are stable, unlike those of singular vectors.

    Args:
        A: ``(..., m, n)``, floating point or complex.
        driver: None; others are for GPUs.
    Returns:
        ``(..., min(m, n))``, real.
    Raises:
        RuntimeError: a ``driver`` is given.
    Examples:
        >>> taeda.linalg.svdvals(taeda.tensor([[3.0, 0.0], [0.0, -2.0]])).round(decimals=4)
        tensor([3., 2.])
    """
    check(A, "linalg.svdvals", square=False)
    _check_driver("linalg.svdvals", driver)
    return _svdvals(A)
