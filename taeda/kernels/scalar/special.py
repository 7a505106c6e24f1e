"""The error function and its kin, and the gamma function's logarithm and derivative, for float32 and float64 Values."""

from __future__ import annotations

from ..ir import F32, F64, Value
from . import tables
from .basic import (
    SIGNED,
    abs,
    at_least,
    at_most,
    copysign,
    floor,
    fma,
    like,
    poly,
    power_of_two,
    round,
    select,
)
from .exponential import EXP_LOW, INF, NAN, _reduce, exp, in_double, ldexp_int, log, log1p, sqrt, table
from .trigonometric import PI, tan

TWO_OVER_ROOT_PI = 1.1283791670955126
LOG_ROOT_TWO_PI = 0.9189385332046728


# ---- error functions -------------------------------------------------------------------------------------------------
def erf(x: Value) -> Value:
    """The error function, within 2 ulp (float32) and 2 ulp (float64)."""
    return _erf_single(x) if x.type is F32 else _erf_double(x)


def _erf_single(x: Value) -> Value:
    """``1 - 2 ** h`` with ``h = log2(1 - erf(|x|))`` a polynomial: one path for all, no division."""
    a = at_most(abs(x), 3.95)  # from 3.92 on it rounds to 1
    h = poly(a, [-c for c in table("ERF_LOG", x)]) * a
    n = round(h)
    r = h - n
    s = power_of_two(n.to(SIGNED[F32]), F32)
    return copysign(fma(s, r * -poly(r, table("EXP2", x)), 1.0 - s), x)


def _erf_double(x: Value) -> Value:
    a = abs(x)
    small = x * poly(x * x, table("ERF", x))
    return select(a < 1.0, small, copysign(1.0 - _erfc_positive(a), x))


def _exp_minus_square(a: Value) -> Value:
    """``exp(-a * a)`` within 2 ulp: the rounding error of the square is put back as a factor."""
    square = a * a
    rest = fma(a, a, -square)
    t = a.type
    n, r = _reduce(at_least(-square, EXP_LOW[t]))
    p = poly(r, (1.0, 1.0, *table("EXP", a)))
    return ldexp_int(fma(p, select(square < -EXP_LOW[t], -rest, like(a, 0.0)), p), n.to(SIGNED[t]))


def _erfcx_positive(a: Value) -> Value:
    """``exp(a * a) * erfc(a)`` for ``a >= 0``: ``p((a - 4) / (a + 4)) / (1 + 2 a)``."""
    q = select(a < INF, (a - 4.0) / (a + 4.0), like(a, 1.0))
    return poly(q, table("ERFCX", a)) / fma(a, 2.0, 1.0)


def _erfc_positive(a: Value) -> Value:
    return _exp_minus_square(a) * _erfcx_positive(a)


def erfc(x: Value) -> Value:
    """``1 - erf(x)``, within 4 ulp: relative accuracy in the tail."""
    a = abs(x)
    y = _erfc_positive(a)
    return select(x < 0, 2.0 - y, y)


def erfcx(x: Value) -> Value:
    """``exp(x * x) * erfc(x)``."""
    a = abs(x)
    y = _erfcx_positive(a)
    square = a * a
    rest = fma(a, a, -square)
    growth = exp(square)
    growth = fma(growth, select(growth < INF, rest, like(a, 0.0)), growth)
    return select(x < 0, growth + growth - y, y)


def erfinv(x: Value) -> Value:
    """The inverse error function, within 2 ulp (float32, through float64) and 4 ulp (float64)."""
    return _erfinv_double(x.to(F64), x.type is F32).to(F32) if x.type is F32 else _erfinv_double(x, False)


def _erfinv_double(x: Value, middle: bool) -> Value:
    """A polynomial in ``w = -log(1 - x^2)`` or its root, good to 1e-9 (Giles 2010), then one step of Halley's method."""
    a = abs(x)
    gap = 1.0 - a
    w = -log(gap * (1.0 + a), middle)
    outer = w > 5.0
    near = poly(w - 2.5, tables.ERFINV_NEAR["float64"])
    far = poly(at_most(sqrt(w), 6.2) - 4.2, tables.ERFINV_FAR["float64"])
    y = select(outer, far, near) * a
    if not middle:
        # With erfc in the tail the difference is taken between numbers of its own size.
        value = select(a < 0.5, _erf_double(y) - a, gap - _erfc_positive(y))
        step = value / (_exp_minus_square(y) * TWO_OVER_ROOT_PI)
        y = y - step / fma(y, step, 1.0)
    y = select(a < 1.0, y, select(a == 1.0, like(x, INF), like(x, NAN)))
    return copysign(y, x)


def ndtr(x: Value) -> Value:
    """The cumulative distribution of the standard normal, with relative accuracy in the lower tail."""
    return erfc(x * -0.7071067811865476) * 0.5
