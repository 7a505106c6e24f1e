"""Orthogonal polynomials by degree: Chebyshev's of four kinds, Hermite's of two, Laguerre's and Legendre's.

The three-term recurrences are those of DLMF 18.9. The degree is an operand like the argument. It is truncated to an
integer; if it is negative, the polynomial is 0. Lanes that have reached their degree wait for the others.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import Value
from .basic import abs, any_lane, isfinite, like, select, trunc
from .exponential import INF, NAN, in_double, sqrt
from .trigonometric import asin, cos, sin


def _odd(n: Value) -> Value:
    """Whether an integer is odd."""
    return trunc(n * 0.5) * 2.0 != n


def _recurrence(
    x: Value, n: Value, first: Value, step: Callable[[Value, Value, Value], Value], lead: Value | None = None
) -> Value:
    """The member of degree ``n`` of a family: 1, ``first``, then ``step(k, p_k, p_(k-1))`` is ``p_(k+1)``.

    A lane that has overflowed stops, as the next step would subtract infinities. It takes the sign of ``lead ** n``, by
    default of ``x ** n``.
    """
    one = like(x, 1.0)
    with x.fn.while_([one, one, select(n >= 1, first, one)]) as L:
        k, before, value = L.carry
        going = (k < n) & isfinite(value)
        L.test(any_lane(going))
        L.carry = (k + 1.0, value, select(going, step(k, value, before), value))
    value = L.carry[2]
    endless = select(((x if lead is None else lead) < 0) & _odd(n), like(x, -INF), like(x, INF))
    return select(n >= 0, select(abs(value) == INF, endless, value), like(x, 0.0))


def _chebyshev(x: Value, gap: Value, n: Value, kind: str) -> Value:
    """Chebyshev's polynomial of the first to fourth kind, ``kind`` t, u, v, w, at ``x``; ``gap`` is ``1 - |x|``.

    From degree 7 on within [-1, 1] it is the quotient of trigonometric functions that defines it (DLMF 18.5.1 to 4), of
    ``|x|``, where the angle keeps its relative precision; ``p(-x) = (-1)^n p(x)``, with v and w exchanged.
    """
    n = trunc(n)
    inside = (gap >= 0) & (n > 6.0)
    low = select(inside, like(n, 0.0), n)
    first = {"t": x, "u": x + x, "v": x + x - 1.0, "w": x + x + 1.0}[kind]
    outer = _recurrence(x, low, first, lambda k, p, q: (x + x) * p - q)
    gap = select(gap >= 0, gap, like(gap, 1.0))
    half_sine, half_cosine = sqrt(gap * 0.5), sqrt(1.0 - gap * 0.5)
    angle = asin(half_sine) * 2.0
    flat = gap == 0
    negative = x < 0
    if kind == "t":
        inner = cos(n * angle)
    elif kind == "u":
        sine = half_sine * half_cosine * 2.0
        inner = select(flat, n + 1.0, sin((n + 1.0) * angle) / sine)
    else:
        turn = (n + 0.5) * angle
        third, fourth = cos(turn) / half_cosine, select(flat, n + n + 1.0, sin(turn) / half_sine)
        inner = select(negative, fourth, third) if kind == "v" else select(negative, third, fourth)
    inner = select(negative & _odd(n), -inner, inner)
    return select(inside, inner, outer)


def _plain(kind: str, doc: str):
    @in_double
    def apply(x: Value, n: Value, middle: bool = False) -> Value:
        return _chebyshev(x, 1.0 - abs(x), n, kind)

    apply.__name__, apply.__doc__ = f"chebyshev_{kind}", doc
    return apply


def _shifted(kind: str, doc: str):
    @in_double
    def apply(x: Value, n: Value, middle: bool = False) -> Value:
        # 1 - |2 x - 1| without the rounding error of the difference
        return _chebyshev(x + x - 1.0, select(x < 0.5, x + x, (1.0 - x) * 2.0), n, kind)

    apply.__name__, apply.__doc__ = f"shifted_chebyshev_{kind}", doc
    return apply


chebyshev_t = _plain("t", "Chebyshev's polynomial of the first kind.")
chebyshev_u = _plain("u", "Chebyshev's polynomial of the second kind.")
chebyshev_v = _plain("v", "Chebyshev's polynomial of the third kind.")
chebyshev_w = _plain("w", "Chebyshev's polynomial of the fourth kind.")
shifted_chebyshev_t = _shifted("t", "Chebyshev's polynomial of the first kind at ``2 x - 1``.")
shifted_chebyshev_u = _shifted("u", "Chebyshev's polynomial of the second kind at ``2 x - 1``.")
shifted_chebyshev_v = _shifted("v", "Chebyshev's polynomial of the third kind at ``2 x - 1``.")
shifted_chebyshev_w = _shifted("w", "Chebyshev's polynomial of the fourth kind at ``2 x - 1``.")


HERMITE, HERMITE_MIDDLE = 512.0, 128.0  # beyond these degrees Hermite's polynomials are useless in the type
HIGHEST = 2.0**20  # beyond this one a recurrence would take too long to be useful


def _up_to(n: Value, highest: float) -> Value:
    """The degree, 0 beyond the highest."""
    return select(n > highest, like(n, 0.0), n)


def _limit(n: Value, highest: float, value: Value) -> Value:
    """NaN beyond the highest degree."""
    return select(n > highest, like(n, NAN), value)


@in_double
def hermite_h(x: Value, n: Value, middle: bool = False) -> Value:
    """The physicists' Hermite polynomial."""
    n = trunc(n)
    value = _recurrence(x, _up_to(n, HERMITE), x + x, lambda k, p, q: (x + x) * p - (k + k) * q)
    return _limit(n, HERMITE_MIDDLE if middle else HERMITE, value)


@in_double
def hermite_he(x: Value, n: Value, middle: bool = False) -> Value:
    """The probabilists' Hermite polynomial."""
    n = trunc(n)
    value = _recurrence(x, _up_to(n, HERMITE), x, lambda k, p, q: x * p - k * q)
    return _limit(n, HERMITE_MIDDLE if middle else HERMITE, value)


@in_double
def laguerre_l(x: Value, n: Value, middle: bool = False) -> Value:
    n, first = trunc(n), 1.0 - x
    value = _recurrence(x, _up_to(n, HIGHEST), first, lambda k, p, q: ((k + k + first) * p - k * q) / (k + 1.0), -x)
    return _limit(n, HIGHEST, value)


@in_double
def legendre_p(x: Value, n: Value, middle: bool = False) -> Value:
    n = trunc(n)
    value = _recurrence(x, _up_to(n, HIGHEST), x, lambda k, p, q: ((k + k + 1.0) * x * p - k * q) / (k + 1.0))
    return _limit(n, HIGHEST, value)
