"""Division and its remainders for every type: true, truncated and floored; exact for floats, like C's fmod."""

from __future__ import annotations

from ..ir import F32, Value
from .basic import (
    SIGNED,
    Real,
    abs,
    any_lane,
    copysign,
    floor,
    fma,
    integer_divide,
    integer_floor_divide,
    integer_fmod,
    integer_remainder,
    like,
    rarely,
    round,
    select,
    trunc,
)

INF = float("inf")


def divide(a: Value, b: Real) -> Value:
    """``a / b``; integers truncate, and give 0 where ``b`` is 0."""
    return a / b if not isinstance(a, Value) or a.type.kind == "f" else integer_divide(*a._pair(b))


def fmod(a: Value, b: Real) -> Value:
    """The remainder with the sign of ``a``, exact; integers give 0 where ``b`` is 0."""
    a, b = a._pair(b)
    return _float_fmod(a, b) if a.type.kind == "f" else integer_fmod(a, b)


def _float_fmod(a: Value, b: Value) -> Value:
    """One step of :func:`_long_fmod`, which is enough for quotients that it does not round."""
    top, size = abs(a), abs(b)
    quotient = round(top / size)
    rest = fma(-quotient, size, top)
    usual = copysign(select(rest < 0, rest + size, rest), a)
    short = (quotient < (2.0**21 if a.type is F32 else 2.0**50)) & (rest == rest)
    return rarely(~short, [usual], lambda: [_long_fmod(a, b)])[0]


def _long_fmod(a: Value, b: Value) -> Value:
    """Subtract multiples of ``|b|``, exactly, until less than ``|b|`` is left.

    The product of the divisor and a quotient rounded to 22 bits (float32) or 51 (float64) leaves at most half a last
    place of it: so few bits that the fused multiply-add does not round.
    """
    t, f = a.type, a.fn
    size = abs(b)
    good = (abs(a) < INF) & (size > 0) & (size < INF)
    size = select(good, size, like(b, 1.0))
    start = select(good, abs(a), like(a, 0.0))
    dropped, far_apart = (2, 2.0**100) if t is F32 else (2, 2.0**900)
    with f.while_([start, size]) as L:
        rest, step = L.carry
        L.test(any_lane(abs(rest) >= size))
        # If they are far apart, the quotient would overflow: first use a multiple of the divisor.
        for _ in range(2):
            step = select(abs(rest) * (1 / far_apart) > step, step * far_apart, step)
        bits = round(rest / step).bits(SIGNED[t])
        cut = ((bits + (1 << (dropped - 1))) & (-1 << dropped)).bits(t)
        L.carry = (fma(-cut, step, rest), size)
    rest = L.carry[0]
    rest = select(rest < 0, rest + size, rest)
    result = copysign(rest, a)
    result = select((abs(b) == INF) & (abs(a) < INF), a, result)
    bad = (a != a) | (b != b) | (abs(a) == INF) | (b == 0)
    return select(bad, like(a, float("nan")), result)


def remainder(a: Value, b: Real) -> Value:
    """The remainder with the sign of ``b``, as Python's ``%``; integers give 0 where ``b`` is 0."""
    a, b = a._pair(b)
    if a.type.kind != "f":
        return integer_remainder(a, b)
    rest = _float_fmod(a, b)
    return select((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


def floor_divide(a: Value, b: Real) -> Value:
    """``floor(a / b)`` without double rounding, as Python's ``//``; integers give 0 where ``b`` is 0."""
    a, b = a._pair(b)
    if a.type.kind != "f":
        return integer_floor_divide(a, b)
    rest = _float_fmod(a, b)
    quotient = (a - rest) / b
    quotient = select((rest != 0) & ((rest < 0) != (b < 0)), quotient - 1.0, quotient)
    whole = floor(quotient)
    whole = select(quotient - whole > 0.5, whole + 1.0, whole)
    ints = SIGNED[a.type]
    sign = (a.bits(ints) ^ b.bits(ints)).bits(a.type)
    whole = select(quotient == 0, copysign(like(a, 0.0), sign), whole)
    return select((b == 0) & (abs(a) > 0), copysign(like(a, INF), sign), whole)  # 0 / 0 is NaN already


def trunc_divide(a: Real, b: Real) -> Value:
    """``trunc(a / b)``; integers give 0 where ``b`` is 0.

    For 16-bit floats the quotient is rounded first, as in PyTorch; a number as other operand comes as a float32.
    """
    small = next((x.type for x in (a, b) if isinstance(x, Value) and x.type.kind == "f" and x.type.bits == 16), None)
    if small is not None:
        quotient = a.to(F32) / b.to(F32)
        return trunc(quotient.to(small).to(F32)).to(small)
    a, b = a._pair(b)
    return trunc(a / b) if a.type.kind == "f" else integer_divide(a, b)
