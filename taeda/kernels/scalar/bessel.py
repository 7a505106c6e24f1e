"""Bessel functions of the first and second kind, Macdonald's and Airy's, of real argument, for float32 and float64
Values.

Up to 8, J is its first two factors times a polynomial with positive coefficients, so its two roots there are exact to
the last place. Beyond, J and Y are the two projections of one modulus and phase (Abramowitz and Stegun 9.2.17, 9.2.28
to 31), and so are Ai and Bi left of -4.5 (10.4.67 and following). The polynomials are in ``bessel_tables.json``.
float32 is computed in float64.
"""

from __future__ import annotations

from math import factorial

from ..ir import Value
from .basic import abs, at_least, at_most, fma, like, poly, rarely, select
from .coefficients import bessel_tables as tables
from .exponential import INF, NAN, exp_negative, in_double, log, sqrt
from .special import _bessel_i
from .trigonometric import PI, _flip, cos, half_turns, sin

TWO_OVER_PI = 2 / PI


def _table(name: str, middle: bool):
    return getattr(tables, name)["middle" if middle else "float64"]


def _factor(x: Value, root: tuple[float, float]) -> Value:
    """``x - root`` for a root given as a sum of two floats."""
    return (x - root[0]) - root[1]


# ---- first and second kind -------------------------------------------------------------------------------------------
def _inner_j(a: Value, order: int, middle: bool) -> Value:
    """``J(a)`` for ``0 <= a <= 8``; float64 up to 1 by its power series, whose first term is exact."""
    y = poly((8.0 - a) * (8.0 + a), _table(f"J{order}", middle))
    for root in getattr(tables, f"J{order}_ROOTS"):
        y = y * _factor(a, root) * (a + root[0])
    if middle:
        return y * a if order else y
    series = poly(a * a, [(-0.25) ** k / (factorial(k) * factorial(k + order)) for k in range(10)])
    return select(a < 1.0, series * (a * 0.5), y * a) if order else select(a < 1.0, series, y)


def _outer(a: Value, order: int, kind, middle: bool) -> Value:
    """``J(a)`` (``kind`` cos) or ``Y(a)`` (``kind`` sin) for ``a >= 8``; 0 at infinity."""
    a = at_least(a, 8.0)
    inverse = 1.0 / a
    y = inverse * inverse
    r, k = half_turns(select(a < INF, a, like(a, 8.0)))
    turn = fma(inverse, poly(y, _table(f"PHASE{order}", middle)), r - (0.25 + 0.5 * order) * PI)
    return _flip(kind(turn), k) * (poly(y, _table(f"MODULUS{order}", middle)) * sqrt(inverse))


def _bessel_j(x: Value, order: int, middle: bool) -> Value:
    a = abs(x)
    (y,) = rarely(a >= 8.0, [_inner_j(a, order, middle)], lambda: [_outer(a, order, cos, middle)])
    return select(x < 0, -y, y) if order else y


def _bessel_y(x: Value, order: int, middle: bool) -> Value:
    a = at_most(x, 8.0)
    rest = poly(fma(a * a, 1 / 32, -1.0), _table(f"Y{order}", middle))
    inner = (log(a, middle) * _inner_j(a, order, middle) - (1.0 / a if order else 0.0)) * TWO_OVER_PI
    inner = fma(a, rest, inner) if order else inner + rest
    (y,) = rarely(x >= 8.0, [inner], lambda: [_outer(x, order, sin, middle)])
    return select(x > 0, y, select(x == 0, like(x, -INF), like(x, NAN)))


@in_double
def bessel_j0(x: Value, middle: bool = False) -> Value:
    """The Bessel function of the first kind of order 0, within 4e-16 of its amplitude; 0 at infinity."""
    return _bessel_j(x, 0, middle)


@in_double
def bessel_j1(x: Value, middle: bool = False) -> Value:
    """The Bessel function of the first kind of order 1, within 4e-16 of its amplitude; 0 at infinity."""
    return _bessel_j(x, 1, middle)


@in_double
def bessel_y0(x: Value, middle: bool = False) -> Value:
    """The Bessel function of the second kind of order 0; minus infinity at 0, NaN below."""
    return _bessel_y(x, 0, middle)


@in_double
def bessel_y1(x: Value, middle: bool = False) -> Value:
    """The Bessel function of the second kind of order 1; minus infinity at 0, NaN below."""
    return _bessel_y(x, 1, middle)


@in_double
def spherical_bessel_j0(x: Value, middle: bool = False) -> Value:
    """``sin(x) / x``: 1 at 0, 0 at infinity."""
    y = sin(x) / x
    return select(x == 0, like(x, 1.0), select(abs(x) == INF, like(x, 0.0), y))


# ---- Macdonald's functions -------------------------------------------------------------------------------------------
def _bessel_k(x: Value, order: int, scaled: bool, middle: bool) -> Value:
    """``K0`` or ``K1``, times ``exp(x)`` where ``scaled``: Abramowitz and Stegun 9.6.11 to 13 up to 2, 9.7.2 beyond."""
    near = at_most(x, 2.0)
    rest = poly(near * near, _table(f"K{order}", middle))
    logarithm = log(near * 0.5, middle) * _bessel_i(near, order, False, middle)
    near_value = rest / near + logarithm if order else rest - logarithm
    far = at_least(x, 2.0)
    inverse = 1.0 / far
    far_value = poly(fma(inverse, 4.0, -1.0), _table(f"K{order}_FAR", middle)) * sqrt(inverse)
    decay = exp_negative(-select(x <= 2.0, near, far), middle)
    if scaled:
        near_value = near_value / decay
    else:  # the root last: so the product does not become subnormal too early
        far_value = far_value * decay
    y = select(x <= 2.0, near_value, far_value)
    if order:  # where the reciprocal would overflow
        y = select(x < 5e-309, like(x, INF), y)
    return select(x > 0, select(x == INF, like(x, 0.0), y), select(x == 0, like(x, INF), like(x, NAN)))


@in_double
def bessel_k0(x: Value, middle: bool = False) -> Value:
    """The modified Bessel function of the second kind of order 0; infinite at 0, NaN below."""
    return _bessel_k(x, 0, False, middle)


@in_double
def bessel_k1(x: Value, middle: bool = False) -> Value:
    """The modified Bessel function of the second kind of order 1; infinite at 0, NaN below."""
    return _bessel_k(x, 1, False, middle)


@in_double
def bessel_k0e(x: Value, middle: bool = False) -> Value:
    """:func:`bessel_k0` times ``exp(x)``."""
    return _bessel_k(x, 0, True, middle)


@in_double
def bessel_k1e(x: Value, middle: bool = False) -> Value:
    """:func:`bessel_k1` times ``exp(x)``."""
    return _bessel_k(x, 1, True, middle)


# ---- Airy's function -------------------------------------------------------------------------------------------------
def _zeta(a: Value) -> tuple[Value, Value]:
    """``2/3 a^(3/2)`` as a sum of two floats: its sine and exponential need more digits than one float has."""
    root = sqrt(a)
    root_rest = fma(-root, root, a) / (root + root)
    product = a * root
    rest = fma(a, root, -product) + a * root_rest
    high = product * (2 / 3)
    low = fma(product, 2 / 3, -high) + product * 3.700743415417188e-17 + rest * (2 / 3)  # 2/3 minus its nearest double
    return high, low


@in_double
def airy_ai(x: Value, middle: bool = False) -> Value:
    """Airy's function of the first kind; 0 at both infinities."""
    left = x < 0
    near = at_least(at_most(x, 4.0), -4.5)
    right_value = poly(4.0 - near, _table("AIRY_RIGHT", middle))
    left_value = poly(near + 2.0, _table("AIRY_LEFT", middle))
    for root in tables.AIRY_ROOTS:
        left_value = left_value * _factor(near, root)
    inner = select(left, left_value, right_value)
    # The exponential underflows beyond 110, where the amplitude does not; the phase has no correct digit at 1e11.
    a = select(left, at_least(-x, 4.5), at_most(at_least(x, 4.0), 110.0))
    a = select(a < INF, a, like(x, 4.5))
    zeta, low = _zeta(a)
    inverse = 1.0 / zeta
    fourth = sqrt(sqrt(a))
    decay = exp_negative(-select(left, like(x, 8.0), zeta), middle)
    decay = fma(decay, -low, decay)
    outer_right = poly(inverse, _table("AIRY_FAR", middle)) * decay * (0.5 / PI**0.5) / fourth
    y = inverse * inverse
    r, k = half_turns(zeta)
    turn = r + (0.25 * PI + fma(inverse, poly(y, _table("AIRY_PHASE", middle)), low))
    outer_left = _flip(sin(turn), k) * poly(y, _table("AIRY_MODULUS", middle)) / fourth
    outer = select(left, outer_left, outer_right)
    result = select((x < 4.0) & (x > -4.5), inner, outer)
    return select(x != x, x, select(abs(x) == INF, like(x, 0.0), result))
