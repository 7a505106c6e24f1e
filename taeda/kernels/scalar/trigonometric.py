"""Sine, cosine, tangent and their inverses, for float32 and float64 Values.

Arguments are reduced to an eighth of a turn with pi / 2 in three parts and fused multiply-adds. ``x - n * part_1`` is
then exact, because it is below 1 and a multiple of the last place of ``part_1``. The rest is a sum of two floats, and
only the last addition of each function rounds. If a vector has a lane beyond the limit of that method, Payne and
Hanek's (1983) is used: multiply by the bits of 1/pi that matter, in integers.
"""

from __future__ import annotations

from ..ir import F32, F64, I64, U64, Type, Value
from .basic import BIAS, MAGIC, MANTISSA, SIGNED, SMALLEST, abs, at_most, copysign, fma, like, poly, rarely, select
from .coefficients import tables
from .exponential import _fast_two_sum, _two_product, in_double, sqrt, table

PI = 3.141592653589793
#: Limit of the three-part reduction: n is exact, and a fourth part would not matter.
LIMIT = {F32: 32768.0, F64: 2.0**30}
U128 = Type("uint128", "i128", 128, "u")


def _reduce(x: Value) -> tuple[Value, ...]:
    """``(r, low, k)`` with ``x = k * pi / 2 + r + low``: ``k`` valid in its low bits, ``low`` the rounding error of
    ``r``."""
    t = x.type
    first, second, third = (p / 2 for p in tables.PI[t.name][:3])
    turns = fma(x, 2 / PI, MAGIC[t])
    n = turns - MAGIC[t]
    top = fma(n, -first, x)
    r = top - n * second
    low = fma(
        n, -third, fma(n, -second, top - r)
    )  # that difference is exact: `top` is a multiple of the product's last place
    return tuple(rarely(abs(x) > LIMIT[t], (r, low, turns.bits(SIGNED[t])), lambda: _reduce_big(x)))


def quarter_turns(x: Value) -> tuple[Value, Value]:
    """``(r, k)`` with ``x = k * pi / 2 + r`` of float64, where the rounding error of ``r`` does not matter."""
    first, second = (p / 2 for p in tables.PI["float64"][:2])
    turns = fma(x, 2 / PI, MAGIC[F64])
    n = turns - MAGIC[F64]
    r = fma(n, -second, fma(n, -first, x))
    usual = r, turns.bits(I64)
    return tuple(rarely(abs(x) > LIMIT[F64], usual, lambda: _reduce_big(x)[::2]))


def half_turns(x: Value) -> tuple[Value, Value]:
    """``(r, k)`` with ``x = k * pi + r``, for sums with other angles, where the rounding error of ``r`` does not
    matter."""
    r, low, k = _reduce(x)
    odd, negative = (k & 1) != 0, r < 0
    aside = select(negative, like(r, PI / 2), like(r, -PI / 2))
    k = (k + select(odd & ~negative, like(k, 1), like(k, 0))) >> 1
    return r + select(odd, aside + low, low), k


def _reduce_big(x: Value) -> tuple[Value, Value, Value]:
    """As :func:`_reduce`, for large ``x``, in fixed point: the top bit is the parity of ``x / pi``, 63 its fraction."""
    t = x.type
    ints = SIGNED[t]
    bits = abs(x).bits(ints)
    exponent = (bits >> MANTISSA[t]) - BIAS[t]
    mantissa = ((bits & ((1 << MANTISSA[t]) - 1)) | (1 << MANTISSA[t])).to(I64).bits(U64)
    high, rest = (_product_single if t is F32 else _product_double)(mantissa, exponent.to(I64))
    k = (high + (1 << 61)) >> 62
    signed = (high - (k << 62)).bits(I64)
    fraction = signed.to(F64)
    beside = (signed - fraction.to(I64)).to(F64)
    if rest is not None:
        beside = fma(rest.to(F64), 2.0**-64, beside)
    r, low = _two_product(fraction, PI * 2.0**-63)
    low = low + fma(fraction, tables.PI["float64"][1] * 2.0**-63, beside * (PI * 2.0**-63))
    if t is F32:
        single = r.to(F32)
        r, low = single, (r - single.to(F64)).to(F32)
    else:
        r, low = _fast_two_sum(r, low)
    k = k.to(ints)
    r = r + (x - x)  # NaN for infinity
    negative = x < 0
    return select(negative, -r, r), select(negative, -low, low), select(negative, -k, k)


def _words(words: tuple[int, ...], index: Value, count: int) -> list[Value]:
    """``count`` consecutive entries of a small table of constants, by a chain of selects: no memory, on any target."""
    found = [index.fn.const(U64, w, index.lanes) for w in words[:count]]
    for i in range(1, len(words) - count + 1):
        here = index == i
        found = [select(here, index.fn.const(U64, words[i + j], index.lanes), found[j]) for j in range(count)]
    return found


def _product_single(mantissa: Value, exponent: Value) -> tuple[Value, None]:
    """``x / pi`` modulo 2 in units of 2^-63, for a 24-bit mantissa: a window of 96 bits of 1/pi."""
    start = exponent + 8  # in bits from 2^32
    words = _words((0, *tables.INVERSE_PI_32), start >> 5, 4)
    shift = (start & 31).bits(U64)
    window = [((words[i] << 32 | words[i + 1]) << shift) >> 32 & 0xFFFFFFFF for i in range(3)]
    return (mantissa * window[0] << 32) + mantissa * window[1] + (mantissa * window[2] >> 32), None


def _product_double(mantissa: Value, exponent: Value) -> tuple[Value, Value]:
    """``x / pi`` modulo 2 in units of 2^-63 and 2^-127, for a 53-bit mantissa: a window of 192 bits of 1/pi."""
    start = exponent + 11
    words = _words((0, *tables.INVERSE_PI_64), start >> 6, 4)
    shift = (start & 63).bits(U64)
    back = select(shift == 0, like(shift, 63), like(shift, 64) - shift)
    window = [select(shift == 0, words[i], (words[i] << shift) | (words[i + 1] >> back)) for i in range(3)]

    def upper(a: Value, b: Value) -> Value:
        return (a.to(U128) * b.to(U128) >> 64).to(U64)

    low, carried = mantissa * window[1], upper(mantissa, window[2])
    total = low + carried
    carry = select(total < low, like(low, 1), like(low, 0))
    return mantissa * window[0] + upper(mantissa, window[1]) + carry, total


def _flip(x: Value, k: Value) -> Value:
    """``x`` with its sign flipped where ``k`` is odd."""
    ints = SIGNED[x.type]
    return (x.bits(ints) ^ (k << (x.type.bits - 1))).bits(x.type)


def _sine(r: Value, low: Value) -> tuple[Value, Value]:
    """The sine of ``r + low`` for ``|r| <= pi / 4``, as a number and its error: round the sum once."""
    r2 = r * r
    return r, fma(r * r2, poly(r2, table("SIN_SHORT", r)), low)


def _cosine(r: Value, low: Value) -> tuple[Value, Value]:
    """The cosine of ``r + low`` likewise."""
    r2 = r * r
    near = fma(r2, -0.5, 1.0)
    missed = fma(r2, -0.5, 1.0 - near)
    return near, fma(r2 * r2, poly(r2, table("COS_SHORT", r)), fma(-r, low, missed))


def _middle_sine(r: Value) -> Value:
    """The sine of ``|r| <= pi / 4`` of float64, good enough for a result of float32; keeps the sign of 0."""
    r2 = r * r
    return r * fma(r2, poly(r2, table("SIN_SHORT", r, True)), 1.0)


def _middle_cosine(r: Value) -> Value:
    """The cosine likewise."""
    return poly(r * r, (1.0, -0.5, *table("COS_SHORT", r, True)))


def _either(odd: Value, a: tuple[Value, Value], b: tuple[Value, Value]) -> Value:
    return select(odd, a[0], b[0]) + select(odd, a[1], b[1])


def sin(x: Value) -> Value:
    """The sine of any argument, within 0.8 ulp."""
    r, low, k = _reduce(x)
    y = _either((k & 1) != 0, _cosine(r, low), _sine(r, low))
    return select(x == 0, x, _flip(y, k >> 1))


def cos(x: Value) -> Value:
    """The cosine of any argument, within 0.8 ulp."""
    r, low, k = _reduce(x)
    return _flip(_either((k & 1) != 0, _sine(r, low), _cosine(r, low)), (k + 1) >> 1)


@in_double
def tan(x: Value, middle: bool = False) -> Value:
    """The tangent of any argument, within 1 ulp (float32 through float64)."""
    if middle:
        r, k = quarter_turns(x)
        odd = (k & 1) != 0
        s, c = _middle_sine(r), _middle_cosine(r)
        return select(odd, -c, s) / select(odd, s, c)
    r, low, k = _reduce(x)
    odd = (k & 1) != 0
    (s, s_low), (c, c_low) = _sine(r, low), _cosine(r, low)
    s, s_low = _fast_two_sum(s, s_low)
    c, c_low = _fast_two_sum(c, c_low)
    top, top_low = select(odd, -c, s), select(odd, -c_low, s_low)
    bottom, bottom_low = select(odd, s, c), select(odd, s_low, c_low)
    inverse = 1.0 / bottom
    quotient = top * inverse
    rest = fma(-quotient, bottom, top) + fma(-quotient, bottom_low, top_low)
    return select(x == 0, x, fma(rest, inverse, quotient))


# ---- inverses --------------------------------------------------------------------------------------------------------
def _half_pi(x: Value) -> tuple[float, float]:
    high, low, *_ = tables.PI[x.type.name]
    return high / 2, low / 2


def _arc(top: Value, bottom: Value) -> tuple[Value, Value]:
    """The arc tangent of ``top / bottom`` in [0, 1] as a sum of two.

    From a sixteenth of a turn on it is an eighth plus ``atan((top - bottom) / (top + bottom))``. The rounding errors of
    those sums and of the quotient are corrected.
    """
    far = top > bottom * 0.41421356
    difference, total = top - bottom, top + bottom
    a, b = select(far, difference, top), select(far, total, bottom)
    inverse = 1.0 / b
    z = a * inverse
    beside = fma(-z, top - (total - bottom), top - (difference + bottom))
    missed = fma(-z, b, a) + select(far, beside, like(top, 0.0))
    low = select(
        top > SMALLEST[top.type] * 2.0**54, missed * inverse, like(top, 0.0)
    )  # smaller ones are lost to underflow anyway
    z2 = z * z
    tail = fma(z * z2, poly(z2, table("ATAN", z)), low)
    high, rest = (c / 2 for c in _half_pi(top))
    start = select(far, like(top, high), like(top, 0.0))
    angle, error = _fast_two_sum(start, z)
    near = select(far, angle, z)
    return near, select(far, (error + rest) + tail, tail)


def _less(constant: tuple[float, float], a: Value, low: Value) -> tuple[Value, Value]:
    """A two-part constant minus ``a + low``, again as a sum of two."""
    difference, error = _fast_two_sum(like(a, constant[0]), -a)
    return difference, error + (constant[1] - low)


def atan(x: Value) -> Value:
    """The arc tangent, within 1 ulp."""
    a, one = at_most(abs(x), 2.0**100), like(x, 1.0)  # beyond it the result rounds to a quarter of a turn
    steep = a > 1.0
    angle, low = _arc(select(steep, one, a), select(steep, a, one))
    turned = _less(_half_pi(x), angle, low)
    return copysign(select(steep, turned[0], angle) + select(steep, turned[1], low), x)


def atan2(y: Value, x: Value) -> Value:
    """The angle of the point ``(x, y)``, within 1.2 ulp."""
    y, x = y._pair(x)
    a, b = abs(y), abs(x)
    steep = a > b
    top, bottom = select(steep, b, a), select(steep, a, b)
    # sums must not overflow, nor products of large numbers by the inverses of small ones; inf / inf is a diagonal
    extreme = {F32: 2.0**100, F64: 2.0**1000}[x.type]
    factor = select(bottom > extreme, like(x, 2.0**-4), select(bottom < 1 / extreme, like(x, 2.0**64), like(x, 1.0)))
    top, bottom = top * factor, bottom * factor
    same = top == bottom  # also 0 / 0, which is on the axis
    zero = (top == 0) | ((bottom == float("inf")) & ~same)
    angle, low = _arc(select(same, like(x, 1.0), top), select(same | zero, like(x, 1.0), bottom))
    angle, low = (select(zero, like(x, 0.0), v) for v in (angle, low))
    high, rest = _half_pi(x)
    turned = _less((high, rest), angle, low)
    angle, low = select(steep, turned[0], angle), select(steep, turned[1], low)
    turned = _less((2 * high, 2 * rest), angle, low)
    back = x.bits(SIGNED[x.type]) < 0
    angle = select(back, turned[0], angle) + select(back, turned[1], low)
    return select((x != x) | (y != y), x + y, copysign(angle, y))


def _arc_sine(a: Value, inner: Value) -> tuple[Value, Value, Value]:
    """``(big, root, t)`` with ``root + t`` the arc sine of ``inner``, or, where ``a`` is ``big``, of
    ``sqrt((1 - a) / 2)``."""
    big = a > 0.55  # then the doubled result is below a half, so its error counts once
    z = (1.0 - a) * 0.5
    square = select(big, z, a * a)
    root = select(big, sqrt(z), inner)
    return big, root, root * square * poly(square, table("ASIN", a))


def asin(x: Value) -> Value:
    """The arc sine, within 1.2 ulp."""
    a = abs(x)
    big, root, t = _arc_sine(a, a)
    turned, low = _less(_half_pi(x), root + root, t + t)
    return copysign(select(big, turned, root) + select(big, low, t), x)


def acos(x: Value) -> Value:
    """The arc cosine, within 1.3 ulp."""
    a = abs(x)
    big, root, t = _arc_sine(a, x)
    high, low = _half_pi(x)
    y = root + t
    twice = y + y
    outer = select(x < 0, 2 * high - (twice - 2 * low), twice)
    turned, rest = _less((high, low), root, t)
    return select(big, outer, turned + rest)
