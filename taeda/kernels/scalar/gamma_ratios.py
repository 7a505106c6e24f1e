"""The regularized incomplete gamma functions P and Q, for float32 and float64 Values.

Four methods, each where it converges without cancellation (after DiDonato & Morris 1986, and Gil, Segura & Temme 2012):

- the power series of P, DLMF 8.7.1, for ``x <= a``;
- Legendre's continued fraction of Q, DLMF 8.9.2, for ``x > a``;
- the power series of Q without its first terms, which cancel, for ``x`` and ``a`` of order 1 or less;
- Temme's uniform expansion, DLMF 8.12.3 to 7, for ``a`` of 64 or more and ``x`` near it.

The first two loop for the lanes that need them; the others run only where some lane does. float32 is computed in
float64.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import BOOL, Value
from .basic import abs, any_lane, at_least, at_most, copysign, fma, like, poly, select
from .coefficients import bessel_tables
from .exponential import INF, NAN, exp, expm1, in_double, log, pow, sqrt, table
from .special import erfc, lgamma
from .trigonometric import PI

#: From here on Temme's expansion is used; its last row is below the last place.
LARGE = 64.0
#: Where a sum ends, relative to it; the second where float64 is only an intermediate.
EPSILON, EPSILON_MIDDLE = 2.0**-54, 2.0**-30
#: No loop runs longer; the slowest, the series at ``x = a = 64``, takes about 80 steps.
MOST_STEPS = 2000.0


def _log_rest(x: Value, a: Value, middle: bool) -> Value:
    """``r - log(1 + r)`` for ``1 + r = x / a > 0``, with full relative precision."""
    r = (x - a) / a
    near = (r > -0.35) & (r < 0.5)
    s = select(near, r, like(r, 0.0))
    inner = -(s * s) * poly(s, bessel_tables.LOG1P_REST["middle" if middle else "float64"])
    return select(near, inner, r - log(x / a, middle))


def _lgamma1p(a: Value, middle: bool) -> Value:
    """``lgamma(1 + a)`` for ``0 <= a <= 1.5``, with full relative precision."""
    return a * (a - 1.0) * poly(a - 0.75, table("LGAMMA", a, middle))


def _density(a: Value, x: Value, middle: bool) -> Value:
    """``x^a exp(-x) / gamma(a)``: from ``a = 10`` on by the distance of ``x`` from ``a``, whose terms do not cancel."""
    small = a < 10.0
    b = select(small, a, like(a, 1.0))
    y = at_most(x, 800.0)  # it has underflowed beyond
    if middle:
        near = exp(b * log(y, middle) - y - lgamma(b, middle), middle)
    else:
        near = pow(y, b) * exp(-y - lgamma(b))
    near = select(x > 800.0, like(x, 0.0), near)
    b = select(small, like(a, 10.0), a)
    inverse = 1.0 / b
    rest = inverse * poly(inverse * inverse, table("STIRLING", b, middle))
    far = sqrt(b * (0.5 / PI)) * exp(-(b * _log_rest(x, b, middle)) - rest, middle)
    return select(small, near, far)


def _series(a: Value, x: Value, wanted: Value, epsilon: float) -> Value:
    """``1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ...``: P is that times the density over ``a``."""
    one = like(x, 1.0)
    with x.fn.while_([one, one, one]) as L:
        k, term, total = L.carry
        going = wanted & (term > total * epsilon) & (k < MOST_STEPS)
        L.test(any_lane(going))
        after = term * x / (a + k)
        L.carry = (k + 1.0, after, select(going, total + after, total))
    return L.carry[2]


def _fraction(a: Value, x: Value, wanted: Value, epsilon: float) -> Value:
    """Q over the density: ``1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...))``, by Lentz's method as modified by
    Thompson and Barnett (1986)."""
    b = select(wanted, x + 1.0 - a, like(x, 1.0))
    d = 1.0 / b
    with x.fn.while_([like(x, 1.0), b, like(x, 1e300), d, d, like(x, 2.0)]) as L:
        k, b, c, d, total, factor = L.carry
        going = wanted & (abs(factor - 1.0) > epsilon * 4.0) & (k < MOST_STEPS)
        L.test(any_lane(going))
        numerator = k * (a - k)
        b = b + 2.0
        c, d = b + numerator / c, 1.0 / fma(numerator, d, b)
        factor = c * d
        L.carry = (k + 1.0, b, c, d, select(going, total * factor, total), select(going, factor, like(x, 1.0)))
    return L.carry[4]


def _small_q(a: Value, x: Value, wanted: Value, middle: bool) -> Value:
    """``Q = -(x^a / gamma(1 + a) - 1) - x^a / gamma(a) sum (-x)^n / (n! (a + n))`` over n from 1."""
    a, x = select(wanted, a, like(a, 0.5)), select(wanted, x, like(x, 0.5))
    with x.fn.while_([like(x, 1.0), -x, -x / (a + 1.0)]) as L:
        k, term, total = L.carry
        going = (abs(term) > abs(total) * EPSILON) & (k < 60.0)
        L.test(any_lane(going))
        after = term * -x / (k + 1.0)
        L.carry = (k + 1.0, after, select(going, total + after / (a + k + 1.0), total))
    total = L.carry[2]
    exponent = a * log(x, middle) - _lgamma1p(a, middle)
    rest = expm1(exponent)
    return -rest - (rest + 1.0) * a * total


def _uniform(a: Value, x: Value, upper: bool, middle: bool) -> Value:
    """P, or Q where ``upper``, by the expansion in ``1 / a`` that holds for every ``x``, here for ``|eta| <= 1``."""
    half = at_most(_log_rest(x, a, middle), 0.75)  # eta^2 / 2
    eta = copysign(sqrt(half + half), x - a)
    inverse = 1.0 / a
    rows = bessel_tables.TEMME[: 4 if middle else None]
    total = like(a, 0.0)
    for row in reversed(rows):
        total = fma(total, inverse, poly(eta, row[: 16 if middle else None]))
    rest = exp(-(a * half), middle) * total / sqrt(a * (2 * PI))
    argument = eta * sqrt(a * 0.5)
    return erfc(argument) * 0.5 + rest if upper else erfc(-argument) * 0.5 - rest


def _where_wanted(wanted: Value, value: Value, function: Callable[[], Value]) -> Value:
    """``function()`` in the lanes of ``wanted``, ``value`` in the others; not computed if there are no such lanes."""
    f = value.fn
    with f.while_([any_lane(wanted), value]) as L:  # at most once
        again, value = L.carry
        L.test(again)
        L.carry = (f.const(BOOL, False), select(wanted, function(), value))
    return L.carry[1]


def _incomplete(a: Value, x: Value, upper: bool, middle: bool) -> Value:
    valid = (a > 0) & (x > 0) & (a < INF) & (x < INF)
    b, y = select(valid, a, like(a, 1.0)), select(valid, x, like(x, 1.0))
    r = (y - b) / b
    near = (b >= LARGE) & (r > -0.65) & (r < 1.25)  # |eta| < 1 there
    fraction = ~near & (y > 1.1) & (y > b)
    series = ~(near | fraction)
    density = _density(b, y, middle)
    epsilon = EPSILON_MIDDLE if middle else EPSILON
    p = density * _series(b, y, series, epsilon) / b
    q = density * _fraction(b, y, fraction, epsilon)
    if upper:
        # Where P is above a half its complement has lost a digit; but P is small where x^a is far from 1.
        border = select(y <= 0.5, -0.4 / log(at_most(y, 0.5), middle), y * 1.1)
        tiny = (y <= 1.1) & (b <= border)
        value = _where_wanted(tiny, select(series, 1.0 - p, q), lambda: _small_q(b, y, tiny, middle))
    else:
        value = select(series, p, 1.0 - q)
    large, close = select(near, b, like(b, LARGE)), select(near, y, like(y, LARGE))
    value = _where_wanted(near, value, lambda: _uniform(large, close, upper, middle))
    value = at_least(at_most(value, 1.0), 0.0)
    # at the edges: nothing is below 0, everything is below infinity, and all of gamma(0, .) is at 0
    none, all_ = like(x, 1.0 if upper else 0.0), like(x, 0.0 if upper else 1.0)
    edge = select((x == INF) | (a == 0), all_, none)
    undefined = (a < 0) | (x < 0) | (a != a) | (x != x) | ((a == 0) & (x == 0)) | ((a == INF) & (x == INF))
    return select(undefined, like(x, NAN), select(valid, value, edge))


@in_double
def igamma(a: Value, x: Value, middle: bool = False) -> Value:
    """``P(a, x)``, the integral of ``t^(a-1) exp(-t)`` from 0 to ``x`` over ``gamma(a)``; NaN for negative
    arguments."""
    return _incomplete(a, x, False, middle)


@in_double
def igammac(a: Value, x: Value, middle: bool = False) -> Value:
    """``Q(a, x) = 1 - P(a, x)``, accurate where it is small."""
    return _incomplete(a, x, True, middle)
