"""Orthogonal polynomials by degree. Both operands broadcast; either may be a number.

The degree is truncated to a whole number, and a polynomial of negative degree is 0. Whole numbers give the default
floating-point dtype. As in PyTorch none of them is differentiable.
"""

from __future__ import annotations

from ..kernels import scalar as s
from .table import pointwise

OPTIONS = {
    "promote": "float", "dtypes": ("float",), "method": False, "inplace": False, "domain": ((-0.9, 0.9), (0, 9)),
    "public": "special",
}  # fmt: skip


@pointwise(**OPTIONS)
def chebyshev_polynomial_t(x, n):
    """Chebyshev's polynomial of the first kind and degree ``n``: ``cos(n a)`` at ``x = cos(a)``.

    By recurrence ``T_0 = 1``, ``T_1 = x``, ``T_{k+1} = 2 x T_k - T_{k-1}``.

    Examples:
        >>> taeda.special.chebyshev_polynomial_t(taeda.tensor([0.5]), 2)  # 2 x ** 2 - 1
        tensor([-0.5000])
    """
    return s.chebyshev_t(x, n)


@pointwise(**OPTIONS)
def chebyshev_polynomial_u(x, n):
    """Chebyshev's polynomial of the second kind and degree ``n``: ``sin((n + 1) a) / sin(a)`` at ``x = cos(a)``.

    By recurrence ``U_0 = 1``, ``U_1 = 2 x``, ``U_{k+1} = 2 x U_k - U_{k-1}``.

    Examples:
        >>> taeda.special.chebyshev_polynomial_u(taeda.tensor([0.25]), 2)  # 4 x ** 2 - 1
        tensor([-0.7500])
    """
    return s.chebyshev_u(x, n)


@pointwise(**OPTIONS)
def chebyshev_polynomial_v(x, n):
    """Chebyshev's polynomial of the third kind and degree ``n``: ``cos((n + 1/2) a) / cos(a / 2)`` at ``x = cos(a)``.

    By recurrence ``V_0 = 1``, ``V_1 = 2 x - 1``, ``V_{k+1} = 2 x V_k - V_{k-1}``.

    Examples:
        >>> taeda.special.chebyshev_polynomial_v(taeda.tensor([0.25]), 1)
        tensor([-0.5000])
    """
    return s.chebyshev_v(x, n)


@pointwise(**OPTIONS)
def chebyshev_polynomial_w(x, n):
    """Chebyshev's polynomial of the fourth kind and degree ``n``: ``sin((n + 1/2) a) / sin(a / 2)`` at ``x = cos(a)``.

    By recurrence ``W_0 = 1``, ``W_1 = 2 x + 1``, ``W_{k+1} = 2 x W_k - W_{k-1}``.

    Examples:
        >>> taeda.special.chebyshev_polynomial_w(taeda.tensor([0.25]), 1)
        tensor([1.5000])
    """
    return s.chebyshev_w(x, n)


@pointwise(**OPTIONS)
def shifted_chebyshev_polynomial_t(x, n):
    """:func:`chebyshev_polynomial_t` at ``2 * x - 1``, for ``x`` in [0, 1].

    Examples:
        >>> taeda.special.shifted_chebyshev_polynomial_t(taeda.tensor([0.25]), 1)
        tensor([-0.5000])
    """
    return s.shifted_chebyshev_t(x, n)


@pointwise(**OPTIONS)
def shifted_chebyshev_polynomial_u(x, n):
    """:func:`chebyshev_polynomial_u` at ``2 * x - 1``, for ``x`` in [0, 1].

    Examples:
        >>> taeda.special.shifted_chebyshev_polynomial_u(taeda.tensor([0.125]), 1)
        tensor([-1.5000])
    """
    return s.shifted_chebyshev_u(x, n)


@pointwise(**OPTIONS)
def shifted_chebyshev_polynomial_v(x, n):
    """:func:`chebyshev_polynomial_v` at ``2 * x - 1``, for ``x`` in [0, 1].

    Examples:
        >>> taeda.special.shifted_chebyshev_polynomial_v(taeda.tensor([0.125]), 1)
        tensor([-2.5000])
    """
    return s.shifted_chebyshev_v(x, n)


@pointwise(**OPTIONS)
def shifted_chebyshev_polynomial_w(x, n):
    """:func:`chebyshev_polynomial_w` at ``2 * x - 1``, for ``x`` in [0, 1].

    Examples:
        >>> taeda.special.shifted_chebyshev_polynomial_w(taeda.tensor([0.125]), 1)
        tensor([-0.5000])
    """
    return s.shifted_chebyshev_w(x, n)


@pointwise(**OPTIONS)
def hermite_polynomial_h(x, n):
    """The physicists' Hermite polynomial of degree ``n``; NaN above degree 128 (``float32``) or 512 (``float64``).

    By recurrence ``H_0 = 1``, ``H_1 = 2 x``, ``H_{k+1} = 2 x H_k - 2 k H_{k-1}``.

    Examples:
        >>> taeda.special.hermite_polynomial_h(taeda.tensor([0.25]), 2)  # 4 x ** 2 - 2
        tensor([-1.7500])
    """
    return s.hermite_h(x, n)


@pointwise(**OPTIONS)
def hermite_polynomial_he(x, n):
    """The probabilists' Hermite polynomial of degree ``n``; NaN above degree 128 (``float32``) or 512 (``float64``).

    By recurrence ``He_0 = 1``, ``He_1 = x``, ``He_{k+1} = x He_k - k He_{k-1}``.

    Examples:
        >>> taeda.special.hermite_polynomial_he(taeda.tensor([0.5]), 2)  # x ** 2 - 1
        tensor([-0.7500])
    """
    return s.hermite_he(x, n)


@pointwise(**OPTIONS)
def laguerre_polynomial_l(x, n):
    """Laguerre's polynomial of degree ``n``.

    By recurrence ``L_0 = 1``, ``L_1 = 1 - x``, ``(k + 1) L_{k+1} = (2 k + 1 - x) L_k - k L_{k-1}``.

    Examples:
        >>> taeda.special.laguerre_polynomial_l(taeda.tensor([0.5]), 2)  # x ** 2 / 2 - 2 x + 1
        tensor([0.1250])
    """
    return s.laguerre_l(x, n)


@pointwise(**OPTIONS)
def legendre_polynomial_p(x, n):
    """Legendre's polynomial of degree ``n``.

    By recurrence ``P_0 = 1``, ``P_1 = x``, ``(k + 1) P_{k+1} = (2 k + 1) x P_k - k P_{k-1}``.

    Examples:
        >>> taeda.special.legendre_polynomial_p(taeda.tensor([0.5]), 2)  # (3 x ** 2 - 1) / 2
        tensor([-0.1250])
    """
    return s.legendre_p(x, n)
