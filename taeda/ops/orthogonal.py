"""Orthogonal polynomials by degree. Both operands broadcast; either may be a number.

The degree is truncated to a whole number, and a polynomial of negative degree is 0. Whole numbers give the default
floating-point dtype. As in PyTorch none of them is differentiable.
"""

from __future__ import annotations

from ..kernels import scalar as s
from .table import pointwise

OPTIONS = {"promote": "float", "dtypes": ("float",), "method": False, "inplace": False, "domain": ((-0.9, 0.9), (0, 9))}


@pointwise(**OPTIONS)
def chebyshev_polynomial_t(x, n):
    """Chebyshev's polynomial of the first kind and degree ``n``: ``cos(n a)`` at ``x = cos(a)``."""
    return s.chebyshev_t(x, n)


@pointwise(**OPTIONS)
def chebyshev_polynomial_u(x, n):
    """Chebyshev's polynomial of the second kind and degree ``n``: ``sin((n + 1) a) / sin(a)`` at ``x = cos(a)``."""
    return s.chebyshev_u(x, n)


@pointwise(**OPTIONS)
def chebyshev_polynomial_v(x, n):
    """Chebyshev's polynomial of the third kind and degree ``n``: ``cos((n + 1/2) a) / cos(a / 2)`` at
    ``x = cos(a)``."""
    return s.chebyshev_v(x, n)


@pointwise(**OPTIONS)
def chebyshev_polynomial_w(x, n):
    """Chebyshev's polynomial of the fourth kind and degree ``n``: ``sin((n + 1/2) a) / sin(a / 2)`` at
    ``x = cos(a)``."""
    return s.chebyshev_w(x, n)


@pointwise(**OPTIONS)
def shifted_chebyshev_polynomial_t(x, n):
    """:func:`chebyshev_polynomial_t` at ``2 * x - 1``."""
    return s.shifted_chebyshev_t(x, n)


@pointwise(**OPTIONS)
def shifted_chebyshev_polynomial_u(x, n):
    """:func:`chebyshev_polynomial_u` at ``2 * x - 1``."""
    return s.shifted_chebyshev_u(x, n)


@pointwise(**OPTIONS)
def shifted_chebyshev_polynomial_v(x, n):
    """:func:`chebyshev_polynomial_v` at ``2 * x - 1``."""
    return s.shifted_chebyshev_v(x, n)


@pointwise(**OPTIONS)
def shifted_chebyshev_polynomial_w(x, n):
    """:func:`chebyshev_polynomial_w` at ``2 * x - 1``."""
    return s.shifted_chebyshev_w(x, n)


@pointwise(**OPTIONS)
def hermite_polynomial_h(x, n):
    """The physicists' Hermite polynomial of degree ``n``; NaN above degree 128 (float32) or 512 (float64)."""
    return s.hermite_h(x, n)


@pointwise(**OPTIONS)
def hermite_polynomial_he(x, n):
    """The probabilists' Hermite polynomial of degree ``n``; NaN above degree 128 (float32) or 512 (float64)."""
    return s.hermite_he(x, n)


@pointwise(**OPTIONS)
def laguerre_polynomial_l(x, n):
    """Laguerre's polynomial of degree ``n``."""
    return s.laguerre_l(x, n)


@pointwise(**OPTIONS)
def legendre_polynomial_p(x, n):
    """Legendre's polynomial of degree ``n``."""
    return s.legendre_p(x, n)
