"""Sine, cosine, tangent and their inverses, for float32 and float64 Values.

Arguments are reduced to half a turn with three parts of pi and fused multiply-adds: ``x - n * pi_1`` is then exact,
because it is below 2 and a multiple of the last place of ``pi_1``. Where a vector holds a lane beyond the limit of that
method, Payne and Hanek's (1983): multiply by the bits of 1/pi that matter, in integers.
"""

from __future__ import annotations

from ..ir import BOOL, F32, F64, I64, U64, Type, Value
from . import tables
from .basic import BIAS, MAGIC, MANTISSA, SIGNED, abs, any_lane, copysign, fma, like, poly, select
from .exponential import in_double, sqrt, table

PI = 3.141592653589793
#: Up to here the three-part reduction holds: n is exact, and the fourth part would not show.
LIMIT = {F32: 32768.0, F64: 2.0**30}
U128 = Type("uint128", "i128", 128, "u")


def _reduce(x: Value, step: int, half: bool) -> tuple[Value, ...]:
    """``(r, k)`` with ``x = (k + half / 2) * pi / step + r``: ``step`` 1 or 2, ``k`` good in its low bits."""
    f, t = x.fn, x.type
    parts = [-p / step for p in tables.PI[t.name][:3]]
    turns = fma(x, step / PI, -0.5) + MAGIC[t] if half else fma(x, step / PI, MAGIC[t])
    n = turns - MAGIC[t]
    if half:
        n = n + 0.5
    r = fma(n, parts[2], fma(n, parts[1], fma(n, parts[0], x)))
    k = turns.bits(SIGNED[t])
    big = abs(x) > LIMIT[t]
    with f.while_([any_lane(big), r, k]) as L:  # at most once
        again, r, k = L.carry
        L.test(again)
        r2, k2 = _reduce_big(x, step, half)
        L.carry = (f.const(BOOL, False), select(big, r2, r), select(big, k2, k))
    return L.carry[1:]


def _reduce_big(x: Value, step: int, half: bool) -> tuple[Value, Value]:
    """As :func:`_reduce`, for large ``x``, in fixed point: the top bit is the parity of ``x / pi``, 63 its fraction."""
    t = x.type
    ints = SIGNED[t]
    bits = abs(x).bits(ints)
    exponent = (bits >> MANTISSA[t]) - BIAS[t]
    mantissa = ((bits & ((1 << MANTISSA[t]) - 1)) | (1 << MANTISSA[t])).to(I64).bits(U64)
    high, low = (_product_single if t is F32 else _product_double)(mantissa, exponent.to(I64))
    if half:
        high = high - (1 << 62)
    shift = 63 if step == 1 else 62
    k = (high + (1 << (shift - 1))) >> shift
    signed = (high - (k << shift)).bits(I64)
    fraction = signed.to(F64) if low is None else fma(low.to(F64), 2.0**-64, signed.to(F64))
    r = (fraction * (PI * 2.0**-63)).to(t) + (x - x)  # NaN for infinity
    k = k.to(ints)
    if half:  # x was taken as positive: even functions do not mind
        return r, k
    return select(x < 0, -r, r), select(x < 0, -k, k)


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


def _odd_poly(r: Value, name: str, middle: bool = False) -> Value:
    """``r + r^3 p(r^2)``."""
    r2 = r * r
    return fma(r * r2, poly(r2, table(name, r, middle)), r)


def _flip(x: Value, k: Value) -> Value:
    """``x`` with its sign turned where ``k`` is odd."""
    ints = SIGNED[x.type]
    return (x.bits(ints) ^ (k << (x.type.bits - 1))).bits(x.type)


def sin(x: Value) -> Value:
    """The sine of any argument, within 2 ulp."""
    r, k = _reduce(x, 1, False)
    return select(x == 0, x, _flip(_odd_poly(r, "SIN"), k))


def cos(x: Value) -> Value:
    """The cosine of any argument, within 2 ulp."""
    r, k = _reduce(x, 1, True)
    return _flip(_odd_poly(r, "SIN"), k + 1)  # cos(x) = -sin(x - pi / 2)


@in_double
def tan(x: Value, middle: bool = False) -> Value:
    """The tangent of any argument, within 1 ulp (float32, through float64) and 4 ulp (float64)."""
    r, k = _reduce(x, 2, False)
    r2 = r * r
    s = fma(r * r2, poly(r2, table("SIN_SHORT", r, middle)), r)
    c = fma(r2 * r2, poly(r2, table("COS_SHORT", r, middle)), fma(r2, -0.5, 1.0))
    odd = (k & 1) != 0
    return select(x == 0, x, select(odd, -c, s) / select(odd, s, c))


# ---- inverses --------------------------------------------------------------------------------------------------------
def _half_pi(x: Value) -> tuple[float, float]:
    high, low, *_ = tables.PI[x.type.name]
    return high / 2, low / 2


def atan(x: Value) -> Value:
    """The arc tangent, within 2 ulp."""
    a = abs(x)
    big = a > 1.0
    z = select(big, 1.0 / a, a)
    y = _odd_poly(z, "ATAN")
    high, low = _half_pi(x)
    return copysign(select(big, high - (y - low), y), x)


def atan2(y: Value, x: Value) -> Value:
    """The angle of the point ``(x, y)``, within 3 ulp."""
    y, x = y._pair(x)
    a, b = abs(y), abs(x)
    steep = a > b
    top, bottom = select(steep, b, a), select(steep, a, b)
    # 0 / 0 and inf / inf are the axes and the diagonals
    ratio = select(top == bottom, like(x, 1.0), top / bottom)
    z = select(top == 0, like(x, 0.0), ratio)
    angle = _odd_poly(z, "ATAN")
    high, low = _half_pi(x)
    angle = select(steep, high - (angle - low), angle)
    angle = select(x.bits(SIGNED[x.type]) < 0, 2 * high - (angle - 2 * low), angle)
    return select((x != x) | (y != y), x + y, copysign(angle, y))


def asin(x: Value) -> Value:
    """The arc sine, within 2 ulp."""
    a = abs(x)
    big = a > 0.55  # where y below is under a half, so that its error counts once
    z = (1.0 - a) * 0.5
    root = select(big, sqrt(z), a)
    y = fma(root * select(big, z, a * a), poly(select(big, z, a * a), table("ASIN", x)), root)
    high, low = _half_pi(x)
    return copysign(select(big, high - (y + y - low), y), x)


def acos(x: Value) -> Value:
    """The arc cosine, within 2 ulp."""
    a = abs(x)
    big = a > 0.55
    z = (1.0 - a) * 0.5
    t = select(big, z, a * a)
    root = select(big, sqrt(z), x)
    y = fma(root * t, poly(t, table("ASIN", x)), root)
    high, low = _half_pi(x)
    outer = select(x < 0, 2 * high - (y + y - 2 * low), y + y)
    return select(big, outer, high - (y - low))
