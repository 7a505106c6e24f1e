"""The QR factorisation and the products of Householder reflectors it is made of."""

from __future__ import annotations

from ... import _core
from ..._core import Size, Tensor
from ..._core.lapack import SMALL, small_qr
from ..._warn import warn_once
from ..creation import eye
from ..joining import cat, stack
from ..matmul import matmul
from ..table import alias, composite, no_derivative, primitive, result_type
from .lapack import BY_KERNEL, H, by_columns, call, check, check_same_dtype, columns, count_of, empty_columns, ints
from .triangular import linalg_solve_triangular

Qr = result_type("linalg_qr", "Q", "R")
OldQr = result_type("qr", "Q", "R")
Geqrf = result_type("geqrf", "a", "tau")


def _factor(A: Tensor) -> tuple[Tensor, Tensor]:
    """Reflectors below the diagonal and ``R`` on and above it, and the reflectors' scales."""
    m, n = A.shape[-2:]
    batch = A.shape[:-2]
    packed, tau = columns(A), _core.empty((*batch, min(m, n)), A.dtype)
    if packed.numel():
        call("geqrf", A.dtype, count_of(batch), m, n, packed, m, tau, ..., (ints(),))
    return packed, tau


def _product(packed: Tensor, tau: Tensor, rows: int, width: int) -> Tensor:
    """The first ``width`` columns of the product of the reflectors."""
    batch, k = packed.shape[:-2], tau.shape[-1]
    Q = empty_columns((*batch, rows, width), packed.dtype)
    if not k:
        return _core.copy_tensor(Q, eye(rows, width, dtype=packed.dtype).expand(Q.shape)) or Q if Q.numel() else Q
    if Q.numel():
        _core.copy_tensor(Q[..., :k], packed[..., :k])
        call("orgqr", packed.dtype, count_of(batch), rows, width, k, Q, rows, tau.contiguous(), ..., (ints(),))
    return Q


@primitive(method=False, outputs=("Q", "R"), result_type=Qr, batch="leading", on_host="geqrf orgqr")
def _qr(A, mode):
    """``A = Q R``; see :func:`linalg_qr`."""
    m, n = A.shape[-2:]
    k = min(m, n)
    if max(m, n) <= SMALL and (made := small_qr(A, mode == "complete", mode != "r")) is not None:
        Q, R = made
        return _core.empty((0,), A.dtype) if Q is None else Q, R
    packed, tau = _factor(A)
    R = by_columns(packed[..., : m if mode == "complete" else k, :].triu())
    if mode == "r":
        return _core.empty((0,), A.dtype), R
    return _product(packed, tau, m, m if mode == "complete" else k), R


@_qr.vjp_all("A")
def _qr_backward(g, Q, R, mode):
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Use mode='reduced'."
        )
    gQ, gR = g
    m, n = Q.shape[-2], R.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError(
            f"The QR decomposition is not differentiable when mode='complete' and nrows > ncols, got {m} x {n}. Use "
            f"mode='reduced'."
        )
    if m >= n:
        return (_square_gradient(gQ, gR, Q, R),)
    # A = [A1 A2], Q R1 = A1, R2 = Q^H A2
    g2 = gR[..., m:]
    g1 = _square_gradient(gQ + matmul(matmul(Q, R[..., m:]), H(g2)), gR[..., :m], Q, R[..., :m])
    return (cat((g1, matmul(Q, g2)), -1),)


def _square_gradient(gQ, gR, Q, R):
    """For as many rows as columns, or more (Walter & Lehmann, "Algorithmic differentiation of linear algebra
    functions", 2010)."""
    inner = (matmul(R, H(gR)) - matmul(H(gQ), Q)).tril()
    strict = inner.tril(-1)
    diagonal = (inner - strict).real if inner.is_complex() else inner - strict
    return H(linalg_solve_triangular(R, H(gQ + matmul(Q, strict + H(strict) + diagonal)), upper=True))


@composite(method=False, out="same", autocast="float32")
def linalg_qr(A, mode="reduced"):
    """``A = Q @ R`` with orthonormal columns in ``Q`` and an upper triangle ``R``.

    Args:
        A: ``(..., m, n)``, floating point or complex.
        mode: ``"reduced"`` (``Q`` has ``k = min(m, n)`` columns), ``"complete"`` (``m``), or ``"r"`` (``Q`` is empty).
    Returns:
        ``(Q, R)``, named: ``(..., m, k)`` and ``(..., k, n)``.
    Raises:
        RuntimeError: ``mode`` is another.
    Examples:
        >>> Q, R = taeda.linalg.qr(taeda.tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> (Q @ R).round(decimals=4)
        tensor([[3., 1.],
                [4., 2.]])
        >>> (Q.mT @ Q).round(decimals=4).abs()
        tensor([[1., 0.],
                [0., 1.]])
    """
    check(A, "linalg.qr", square=False)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    return _qr(A, mode)


@composite(out="same", autocast="float32")
def qr(input, some=True):
    """``input = Q @ R``: :func:`taeda.linalg.qr`, which is preferred.

    Args:
        input: ``(..., m, n)``.
        some: the reduced form, rather than the complete one.
    Returns:
        ``(Q, R)``, named.
    Raises:
        RuntimeError: ``input`` has fewer than two dimensions, or is neither floating point nor complex.
    Examples:
        >>> Q, R = taeda.qr(taeda.tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> (Q @ R).round(decimals=4)
        tensor([[3., 1.],
                [4., 2.]])
    """
    package = Size.__module__
    warn_once(f"{package}.qr is deprecated in favor of {package}.linalg.qr.")
    return OldQr(*linalg_qr(input, "reduced" if some else "complete"))


# ---- reflectors ------------------------------------------------------------------------------------------------------


@primitive(outputs=("a", "tau"), result_type=Geqrf, batch="leading", autocast="float32", on_host="geqrf")
def geqrf(input):
    """The QR factorisation as LAPACK packs it: ``R`` and, below its diagonal, Householder vectors with scales ``tau``.
    :func:`taeda.linalg.qr` gives ``Q`` and ``R``.

    Args:
        input: ``(..., m, n)``.
    Returns:
        ``(a, tau)``, named: ``(..., m, n)`` and ``(..., min(m, n))``.
    Examples:
        >>> a, tau = taeda.geqrf(taeda.tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> taeda.linalg.householder_product(a, tau).shape
        taeda.Size([2, 2])
    """
    check(input, "geqrf", square=False, label="input", refused=BY_KERNEL)
    return _factor(input)


geqrf.vjp(input=no_derivative("geqrf", "input"))


def _check_reflectors(name: str, A: Tensor, tau: Tensor) -> None:
    check(A, name, square=False, label="input", refused=BY_KERNEL)
    check_same_dtype(name, A, tau, "input", "tau")
    if tau.dim() != A.dim() - 1 or tuple(tau.shape[:-1]) != tuple(A.shape[:-2]):
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input and its batch dimensions, got tau.shape "
            f"{list(tau.shape)} and input.shape {list(A.shape)}"
        )


@primitive(method=False, batch="leading", autocast="float32", on_host="orgqr")
def linalg_householder_product(A, tau):
    """The first columns of ``H_1 @ H_2 @ ... @ H_k`` with ``H_i = 1 - tau_i v_i v_i^H``: the ``Q`` of :func:`geqrf`.

    Args:
        A: ``(..., m, n)`` with ``m >= n``; ``v_i`` is below the diagonal of column ``i``, with a one on it.
        tau: ``(..., k)`` with ``k <= n``.
    Returns:
        ``(..., m, n)``.
    Raises:
        RuntimeError: the sizes do not fit.
    Examples:
        >>> A = taeda.tensor([[3.0, 1.0], [4.0, 2.0]])
        >>> Q = taeda.linalg.householder_product(*taeda.geqrf(A))
        >>> (Q.mT @ Q).round(decimals=4).abs()
        tensor([[1., 0.],
                [0., 1.]])
    """
    name = "linalg.householder_product"
    check(A, name, square=False, label="input", refused=BY_KERNEL)
    m, n = A.shape[-2:]
    if m < n:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1], got {m} x {n}")
    if tau.dim() and tau.shape[-1] > n:
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1], got {n} and {tau.shape[-1]}"
        )
    _check_reflectors(name, A, tau)
    return _product(A, tau, m, n)


def _reflector(column, i):
    """Zeros, then one at ``i``, then the column below it; as a matrix of one column."""
    ahead = column.new_zeros((*column.shape[:-1], i))
    return cat((ahead, column.new_ones((*column.shape[:-1], 1)), column[..., i + 1 :]), -1)[..., None]


def _reflector_gradients(g, A, tau, width):
    """Gradients of the reflectors and their scales where ``g`` is that of the product's first ``width`` columns.

    With ``Q = L_i H_i R_i`` for each reflector, the gradient of ``H_i = I - tau v v^H`` is ``L_i^H g R_i^H``.
    """
    m, n = A.shape[-2:]
    k = tau.shape[-1]
    if k == 0:
        return A.new_zeros(A.shape), tau.new_zeros(tau.shape)
    v = [_reflector(A[..., i], i) for i in range(k)]
    scale = [tau[..., i, None, None] for i in range(k)]
    rest = [eye(m, width, dtype=A.dtype).expand(*A.shape[:-2], m, width)]
    for i in range(k - 1, 0, -1):
        rest.append(rest[-1] - scale[i] * matmul(v[i], matmul(H(v[i]), rest[-1])))
    gA, gtau = [], []
    for i in range(k):
        R = rest.pop()
        vK, vR = matmul(H(v[i]), g), matmul(H(v[i]), R)  # 1 x width
        gtau.append(-matmul(vK, H(vR))[..., 0, 0])
        gv = -scale[i].conj_physical() * matmul(g, H(vR)) - scale[i] * matmul(R, H(vK))
        gA.append(cat((gv.new_zeros((*gv.shape[:-2], i + 1)), gv[..., i + 1 :, 0]), -1))
        g = g - scale[i].conj_physical() * matmul(v[i], vK)
    gA += [A.new_zeros(A.shape[:-1])] * (n - k)
    return stack(gA, -1), stack(gtau, -1)


@linalg_householder_product.vjp_all("A", "tau")
def _householder_product_backward(g, A, tau):
    return _reflector_gradients(g, A, tau, A.shape[-1])


@composite(out=True, also={"input2": "tau"}, autocast="float32")
def orgqr(input, tau):
    """:func:`taeda.linalg.householder_product` under LAPACK's name.

    Args:
        input: ``(..., m, n)``, as :func:`geqrf` gives it.
        tau: ``(..., k)``.
    Returns:
        ``(..., m, n)``.
    Raises:
        RuntimeError: there are fewer rows than columns.
    Examples:
        >>> taeda.orgqr(*taeda.geqrf(taeda.ones(3, 2))).shape
        taeda.Size([3, 2])
    """
    return linalg_householder_product(input, tau)


@primitive(out="same", batch="leading", also={"input2": "tau", "input3": "other"}, autocast="float32", on_host="ormqr")
def ormqr(input, tau, other, left=True, transpose=False):
    """``Q @ other`` for the product ``Q`` of Householder reflectors, without making ``Q``.

    Args:
        input: ``(..., m, k)``, as :func:`geqrf` gives it.
        tau: ``(..., k)``.
        other: ``(..., m, n)``, or ``(..., n, m)`` where ``left`` is false.
        left: False for ``other @ Q``.
        transpose: take ``Q.mH`` in place of ``Q``.
    Returns:
        The sizes of ``other``.
    Raises:
        RuntimeError: the sizes do not fit.
    Examples:
        >>> A = taeda.tensor([[3.0, 1.0], [4.0, 2.0]])
        >>> a, tau = taeda.geqrf(A)
        >>> taeda.ormqr(a, tau, A, transpose=True).round(decimals=4).abs()  # R, up to signs
        tensor([[5.0000, 2.2000],
                [0.0000, 0.4000]])
    """
    check(input, "ormqr", square=False, label="input", refused=BY_KERNEL)
    if other.dim() < 2:
        raise RuntimeError(f"ormqr: other must have at least 2 dimensions, got {other.dim()}")
    side = -2 if left else -1
    m, k = input.shape[-2], tau.shape[-1] if tau.dim() else 0
    if other.shape[side] < k:
        raise RuntimeError(
            f"ormqr: other.shape[{side}] must be greater than or equal to tau.shape[-1], got {other.shape[side]} "
            f"and {k}"
        )
    if other.shape[side] != m:
        raise RuntimeError(
            f"ormqr: other.shape[{side}] must be equal to input.shape[-2], got {other.shape[side]} and {m}"
        )
    if input.shape[-1] < k or k > m:
        raise RuntimeError(
            f"ormqr: tau.shape[-1] must be less than or equal to min(input.shape[-2], input.shape[-1]), got {k}, "
            f"{m} and {input.shape[-1]}"
        )
    _check_reflectors("ormqr", input, tau)
    check_same_dtype("ormqr", input, other, "input", "other")
    batch = input.shape[:-2]
    if tuple(other.shape[:-2]) != tuple(batch):
        raise RuntimeError(
            "ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], but got "
            f"{list(other.shape[:-2])} and {list(batch)}"
        )
    made = columns(other)
    if made.numel() and k:
        call(
            "ormqr", made.dtype, count_of(batch), "L" if left else "R",
            "N" if not transpose else "C" if made.is_complex() else "T", made.shape[-2], made.shape[-1], k,
            columns(input), m, tau.contiguous(), made, made.shape[-2], ..., (ints(),),
        )  # fmt: skip
    return made


@ormqr.vjp_all("input", "tau", "other")
def _ormqr_backward(g, input, tau, other, left, transpose, needs):
    gother = ormqr(input, tau, g, left, not transpose) if needs[2] else None
    if not (needs[0] or needs[1]):
        return None, None, gother
    if left:
        gQ = matmul(other, H(g)) if transpose else matmul(g, H(other))
    else:
        gQ = matmul(H(g), other) if transpose else matmul(H(other), g)
    return *_reflector_gradients(gQ, input, tau, input.shape[-2]), gother


alias(linalg_householder_product, "householder_product", method=False)
