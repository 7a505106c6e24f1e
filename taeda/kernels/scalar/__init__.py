"""Scalar mathematics: functions from kernel Values to Values, vector or scalar, written once for every target.

A function that is defined for complex numbers takes a :class:`Complex` as well.
"""

# ruff: noqa: I001 - lists of names are paragraphs

from __future__ import annotations

import functools

from . import basic, complex_functions, exponential, trigonometric
from .basic import (
    any_lane, at_least, at_most, bits_of, ceil, copysign, floor, fma, fmax, fmin, frac, frexp, gcd, integer_divide,
    integer_floor_divide, integer_fmod, integer_pow, integer_remainder, isneginf, isposinf, lcm, like, maximum, minimum,
    nextafter, poly, round, shift_left, shift_right, sign, signbit, trunc,
)  # fmt: skip
from .bessel import (
    airy_ai, bessel_j0, bessel_j1, bessel_k0, bessel_k0e, bessel_k1, bessel_k1e, bessel_y0, bessel_y1,
    spherical_bessel_j0,
)  # fmt: skip
from .complex_functions import hypot, polar, truth
from .complexes import Complex
from .exponential import (
    exp_negative, exp_weight, expm1_negative, log1p_of_exponential, log_sigmoid, logaddexp2, over_one_and_exp2,
    softplus, xlog1py, xlogy,
)  # fmt: skip
from .gamma_ratios import igamma, igammac
from .orthogonal import (
    chebyshev_t, chebyshev_u, chebyshev_v, chebyshev_w, hermite_h, hermite_he, laguerre_l, legendre_p,
    shifted_chebyshev_t, shifted_chebyshev_u, shifted_chebyshev_v, shifted_chebyshev_w,
)  # fmt: skip
from .remainders import divide, floor_divide, fmod, remainder, trunc_divide
from .special import (
    digamma, erf, erfc, erfcx, erfinv, gelu, gelu_slope, i0, i0e, i1, i1e, lgamma, ndtr, ndtri, trigamma, zeta,
)  # fmt: skip
from .trigonometric import atan2


def _either(name: str, real, of_complex):
    """One function for both kinds of number, chosen by the argument's type."""

    @functools.wraps(real)
    def apply(x, *args):
        if isinstance(x, Complex) or any(isinstance(a, Complex) for a in args):
            x = x if isinstance(x, Complex) else Complex(x)
            return of_complex(x, *(x._other(a) for a in args))
        return real(x, *args)

    apply.__name__ = apply.__qualname__ = name
    return apply


def _both(module, *names: str) -> None:
    for name in names:
        globals()[name] = _either(name, getattr(module, name), getattr(complex_functions, name))


_both(exponential, "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "sigmoid")
_both(exponential, "pow", "logaddexp", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh")
_both(trigonometric, "sin", "cos", "tan", "asin", "acos", "atan")
_both(basic, "isnan", "isinf", "isfinite")
abs = _either("abs", basic.abs, complex_functions.modulus)
sgn = _either("sgn", basic.sign, complex_functions.sgn)


def _real_angle(x):
    turned = select(x < 0, like(x, 3.141592653589793), like(x, 0.0))
    return select(x != x, x, turned)


gated = _either("gated", exponential.gated, lambda y, x: y * complex_functions.sigmoid(x))
angle = _either("angle", _real_angle, complex_functions.angle)


def constant(x, value):
    """``value`` in the type and lanes of ``x``; complex if ``x`` is."""
    return x._other(value) if isinstance(x, Complex) else like(x, value)


def real(x):
    return x.re if isinstance(x, Complex) else x


def conj(x):
    """The complex conjugate; a real number is its own."""
    return x.conj() if isinstance(x, Complex) else x


def select(condition, a, b):
    if isinstance(a, Complex) or isinstance(b, Complex):
        known = a if isinstance(a, Complex) else b
        return complex_functions.choose(condition, known._other(a), known._other(b))
    return basic.select(condition, a, b)
