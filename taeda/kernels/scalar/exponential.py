"""Exponentials, logarithms, powers and the hyperbolic functions, for float32 and float64 Values.

Branch-free: every lane takes the same path, special values included. Arguments are reduced with two-part constants and
fused multiply-adds; the polynomials are in ``tables.json``. Where float32 arithmetic would not stay within 2 ulp,
float64 is used with the shorter ``middle`` polynomials, whose error is far below float32's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from ..ir import F32, F64, I64, U64, Type, Value
from .basic import (
    MAGIC,
    MANTISSA,
    SIGNED,
    SMALLEST,
    Real,
    _x86,
    abs,
    at_least,
    at_most,
    copysign,
    divide_sum,
    fma,
    integer_pow,
    isfinite,
    like,
    maximum,
    nearest,
    pick,
    poly,
    power_of_two,
    scale,
    select,
    table_entries,
    to_14_bits,
    trunc,
)
from .coefficients import piece_tables, tables

INF, NAN = float("inf"), float("nan")
#: Above the first exp overflows; below the second it rounds to 0.
EXP_HIGH, EXP_LOW = {F32: 89.0, F64: 710.0}, {F32: -104.5, F64: -746.0}


def table(name: str, x: Value, middle: bool = False):
    """The coefficients for ``x``'s type; the short (``middle``) ones where float64 is only an intermediate."""
    return getattr(tables, name)["middle" if middle else x.type.name]


def in_double(function):
    """Decorator: compute float32 in float64, for functions that would lose more than 2 ulp in float32."""

    def apply(*args: Value) -> Value:
        if args[0].type is F32:
            return function(*(a.to(F64) for a in args), middle=True).to(F32)
        return function(*args)

    apply.__doc__, apply.__name__ = function.__doc__, function.__name__
    return apply


def sqrt(x: Value) -> Value:
    return x.fn.unary("sqrt", x)


def rsqrt(x: Value) -> Value:
    """``1 / sqrt(x)``, within 1.5 ulp, by a step of Newton's method: root and division would take 16 cycles a vector
    (Zen 4)."""
    y = to_14_bits("rsqrt14", x)
    if y is None:
        return 1.0 / sqrt(x)
    better = fma(y * 0.5, fma(-(x * y), y, 1.0), y)
    return select(better == better, better, y)  # 0 and infinity are exact; the step would give 0 * infinity


def reciprocal(x: Value) -> Value:
    return 1.0 / x


# ---- exponentials ----------------------------------------------------------------------------------------------------
def _reduce(x: Value) -> tuple[Value, Value, Value]:
    """``(n, k, r)`` with ``x = n ln 2 + r``, ``|r| <= ln(2) / 2``: ``n`` is an integral float, ``k`` the same as an
    integer."""
    n, k = nearest(x, tables.LOG2_E[x.type.name][0])
    return n, k, _less_octaves(x, n)


def float32(x: float) -> float:
    return struct.unpack("<f", struct.pack("<f", x))[0]


def float32_bits(x: float) -> int:
    return struct.unpack("<i", struct.pack("<f", x))[0]


#: The float32 nearest to ln 2 happens to be good to 28 bits.
_LN2 = float32(tables.LN2["float64"][0])
#: Powers of two at sixteenths of an octave from 1 on, rounded to float32.
_OCTAVE = [float32(2.0 ** (j / 16)) for j in range(16)]
_EIGHTHS = _OCTAVE[::2]


def by_sixteenths(x: Value) -> bool:
    """Whether powers of two come from a table of sixteenth octaves in a register: float32 with AVX-512."""
    return table_entries(x) == 16


def by_eighths(x: Value) -> bool:
    """Whether they come from a table of eighths: float32 with AVX2."""
    return table_entries(x) == 8


def _sixteenths(x: Value, factor: float = 1.0, parts: int = 16) -> tuple[Value, Value]:
    """``(n, j)``: ``x * factor`` rounded to a multiple of 1/16, and the index of its table entry in the low bits."""
    magic = MAGIC[F32] / parts
    moved = fma(x, factor, magic) if factor != 1.0 else x + magic
    return moved - magic, moved.bits(SIGNED[F32])


def _reduce_twice(x: Value) -> tuple[Value, Value, Value, Value]:
    """``(n, k, r, low)``: as :func:`_reduce`, with the rounding error ``low`` of ``r``."""
    n, k = nearest(x, tables.LOG2_E[x.type.name][0])
    high, low, _ = tables.LN2[x.type.name]
    top = fma(n, -high, x)
    r = fma(n, -low, top)
    return n, k, r, fma(n, -low, top - r)


def _less_octaves(x: Value, n: Value) -> Value:
    """``x - n ln 2``."""
    high, low, _ = tables.LN2[x.type.name]
    return fma(n, -low, fma(n, -high, x))


def _floored(n: Value) -> Value:
    """``n`` for :func:`scale`; AVX-512's instruction takes the floor itself."""
    return n if n.lanes in (4, 8, 16) else n.fn.unary("floor", n)


def _exp_by_sixteenths(x: Value, factor: float = 1.0, rough: bool = False) -> tuple[Value, Value]:
    """:func:`_exp_parts` of ``factor * exp(x)`` by the table: ``x = n ln 2 + r`` with ``|r| <= ln(2) / 32``.

    ``rough``: one operation less, with an additional relative error of up to ``3e-9 |x|``.
    """
    n, j = _sixteenths(x, tables.LOG2_E["float32"][0])
    r = fma(n, -_LN2, x) if rough else _less_octaves(x, n)
    root = pick([c * factor for c in _OCTAVE], j)
    q = fma(r * r, poly(r, tables.EXP_SIXTEENTH["float32"]), r)
    return fma(root, q, root), _floored(n)


#: The relative rounding error of :data:`_OCTAVE`.
_OCTAVE_REST = [2.0 ** (j / 16) / x - 1.0 for j, x in enumerate(_OCTAVE)]


def _octave_rests(x: Value) -> list[float]:
    """:data:`_OCTAVE_REST` of the parts of an octave that a table in a register has."""
    return _OCTAVE_REST[:: 16 // table_entries(x)]


def _octave_below(j: Value, exponent: int) -> Value:
    """``2 ** (j / 16 + exponent)`` (AVX2: ``j / 8``) in the range of the normal numbers, from the octave's table.

    The integer ``j`` is shifted so that its sixteenths are below the exponent field, and added to a table entry from
    which they were subtracted: two one-cycle instructions in all, where ``scalef`` alone takes two cycles.
    """
    table, shift = (_OCTAVE, 19) if j.fn.vector_bytes >= 64 else (_EIGHTHS, 20)
    bits = [float32_bits(x) + (exponent << 23) - (i << shift) for i, x in enumerate(table)]
    entries = [struct.unpack("<f", struct.pack("<i", x))[0] for x in bits]
    return (pick(entries, j).bits(SIGNED[F32]) + (j << shift)).bits(F32)


def _by_table(x: Value, rough: bool = False) -> tuple[Value, Value]:
    """``(j, q)`` with ``exp(x) = 2 ** (j / parts) * (1 + q)``, by the octave table of this target; ``rough`` as in
    :func:`_exp_by_sixteenths`."""
    parts = table_entries(x)
    n, j = _sixteenths(x, tables.LOG2_E["float32"][0], parts)
    r = fma(n, -_LN2, x) if rough else _less_octaves(x, n)
    return j, fma(r * r, poly(r, tables.EXP_EIGHTH["float32"] if parts == 8 else tables.EXP_SIXTEENTH["float32"]), r)


def _exp_normal(x: Value, octaves: int = 0, rough: bool = False, middle: bool = False) -> Value:
    """``exp(x) * 2 ** octaves`` where that is a normal number, for float32 on x86 by the table: eleven instructions,
    one less if ``rough``."""
    if not (by_eighths(x) or by_sixteenths(x)):
        _, k, r = _reduce(x)
        return poly(r, (1.0, 1.0, *table("EXP", x, middle))) * power_of_two(k, x.type, octaves)
    j, q = _by_table(x, rough)
    s = _octave_below(j, octaves)
    return fma(s, q, s)


def _expm1_by_sixteenths(x: Value, negative: bool) -> Value:
    """``exp(x) - 1`` of ``negative`` numbers, else half of it, as ``s - 1 + s q`` with ``s`` a multiple of a sixteenth
    octave.

    -0.0 loses its sign.
    """
    n, j = _sixteenths(x, tables.LOG2_E["float32"][0])
    if negative:  # the result is less than 1, so an error relative to x does not matter
        r, one = fma(n, -_LN2, x), 1.0
    else:  # half of 2^n, which would overflow just below the largest result
        r, one = _less_octaves(x, n), 0.5
    s = _octave_below(j, 0 if negative else -1)
    q = fma(r * r, poly(r, tables.EXPM1_SIXTEENTH["float32"]), r) + pick(_OCTAVE_REST, j)
    return fma(s, q, s - one)


def half_exp2_rough(h: Value) -> Value:
    """``2 ** (h - 1)`` in float32 for ``h`` in [-120, 0], to 1.5 ulp."""
    if not by_sixteenths(h):
        n, k = nearest(h)
        return poly(h - n, (1.0, *tables.EXP2["float32"])) * power_of_two(k, F32, -1)
    n, j = _sixteenths(h)
    return scale(_exp2_of_rest(pick([x / 2 for x in _OCTAVE], j), h - n), _floored(n))


def _exp2_of_rest(root: Value, r: Value) -> Value:
    """``root * 2 ** r`` for ``|r| <= 1 / 32``."""
    ln2, (second, third) = sum(tables.LN2["float32"]), tables.EXP_SIXTEENTH["float32"]
    return fma(root, r * poly(r, (ln2, second * ln2**2, third * ln2**3)), root)


def _exp_parts(x: Value) -> tuple[Value, Value]:
    """``(p, n)`` with ``exp(x) = p * 2 ** floor(n)`` for :func:`scale`; ``n`` is a float, ``p`` in [0.7, 2]."""
    if by_sixteenths(x):
        return _exp_by_sixteenths(x)
    n, _, r = _reduce(x)
    return poly(r, (1.0, 1.0, *table("EXP", x))), n


def _down_to(low: float, x: Value, parts: Callable[[Value], tuple[Value, Value]]) -> Value:
    """``parts(x)`` for :func:`scale`, but 0 where ``x < low``, so that no result must be rounded to 0.

    Intel's processors take 150 cycles for a vector with such a result: softmax of a masked row took nine times as long.
    """
    below = x < low
    if x.fn.vector_bytes >= 64:  # the instruction takes the mask
        return select(below, like(x, 0.0), scale(*parts(x)))
    p, n = parts(at_least(x, low))
    return scale(select(below, like(p, 0.0), p), n)


def exp(x: Value, middle: bool = False) -> Value:
    """``e ** x``, within 1 ulp."""
    if _has_rare_path(x):
        x.fn.rare.append(abs(x) > 87.0)
        return _exp_normal(x)
    return exp_negative(at_most(x, EXP_HIGH[x.type]), middle)


def _has_rare_path(x: Value) -> bool:
    """Whether the schedule recomputes vectors where a condition in ``Function.rare`` holds: float32 on x86."""
    return (by_eighths(x) or by_sixteenths(x)) and x.fn.rare is not None


def exp_negative(x: Value, middle: bool = False) -> Value:
    """:func:`exp` of numbers that do not overflow, such as negative ones; one operation less.

    Results that are not normal take twice as many operations; where the schedule can, only if there are any.
    """
    if _has_rare_path(x):
        x.fn.rare.append(x < -87.0)
        return _exp_normal(x)
    if middle:  # smaller results are 0 in float32 anyway
        return _exp_normal(at_least(x, -708.0), middle=True)
    low = EXP_LOW[x.type]
    if by_eighths(x):
        j, q = _by_table(at_least(x, low))
        root = pick(_EIGHTHS, j)
        k = (j - float32_bits(MAGIC[F32] / 8)) >> 3
        return _scaled_down(select(x < low, like(x, 0.0), fma(root, q, root)), k)
    if by_sixteenths(x) and x.fn.again:
        p, n = _exp_by_sixteenths(at_least(x, low))
        small = n < -125.0
        y = scale(select(x < low, like(x, 0.0), p), n + select(small, like(x, 149.0), like(x, 0.0)))
        return _as_subnormal(small, y)
    return _down_to(low, x, _exp_parts)


def _as_subnormal(small: Value, y: Value) -> Value:
    """``y``; where it is ``small``, as a multiple of the least subnormal.

    A subnormal product takes 150 cycles. Its bits are the integer nearest to its value times 2^149, and so are those of
    the first normal numbers.
    """
    return select(small & (y == y), y.fn.unary("rint", y).to(SIGNED[F32]).bits(F32), y)


def _scaled_down(p: Value, k: Value) -> Value:
    """``p * 2 ** k`` of float32 for ``p`` of 0 or from 0.9 to 2, as :func:`ldexp_int`."""
    small, first = k < -125, k >> 1
    y = p * power_of_two(first, F32) * power_of_two(k - first + select(small, like(k, 149), like(k, 0)), F32)
    return _as_subnormal(small, y)


def exp_difference(x: Value) -> Value:
    """:func:`exp_negative` of a difference. It saves an operation; the difference's own rounding changes the result
    by more."""
    if not by_sixteenths(x):
        return exp_negative(x)
    return _down_to(EXP_LOW[F32], x, lambda y: _exp_by_sixteenths(y, rough=True))


def exp_weight(x: Value, hidden: bool = True) -> Value:
    """:func:`exp_negative` for terms of a sum with a 1, such as softmax weights. Without AVX-512, results that would
    be subnormal are 0, or, unless some may be ``hidden``, the smallest normal number."""
    if x.fn.vector_bytes >= 64:
        return exp_difference(x)
    low = {F32: -87.0, F64: -708.0}[x.type]
    least = _exp_normal(at_least(x, low), rough=True)
    return select(x < low, like(x, 0.0), least) if hidden else least


def exp2(x: Value) -> Value:
    """``2 ** x``, within 1 ulp."""
    low, high = (-151.0, 129.0) if x.type is F32 else (-1076.0, 1025.0)

    def parts(y: Value) -> tuple[Value, Value]:
        n, _ = nearest(y)
        return poly(y - n, (1.0, *table("EXP2", y))), n

    return _down_to(low, at_most(x, high), parts)


def _exp_pair(x: Value) -> tuple[Value, Value, Value]:
    """``(p, low, n)`` with ``exp(x) = (p + low) * 2 ** floor(n)`` for :func:`scale`: round the sum once."""
    if by_sixteenths(x):
        n, j = _sixteenths(x, tables.LOG2_E["float32"][0])
        r = _less_octaves(x, n)
        root = pick(_OCTAVE, j)
        return (
            root,
            root * (fma(r * r, poly(r, tables.EXP_SIXTEENTH["float32"]), r) + pick(_OCTAVE_REST, j)),
            _floored(n),
        )
    n, _, r, low = _reduce_twice(x)
    p, error = _fast_two_sum(1.0, r)
    return p, error + fma(r * r, poly(r, table("EXP", x)), low), n


def _expm1_pair(x: Value, halvings: int) -> tuple[Value, Value]:
    """``(e ** x - 1) / 2 ** halvings`` as a sum of two, for ``x`` in the range of the normal powers of two."""
    _, k, r, low = _reduce_twice(x)
    s = power_of_two(k, x.type, -halvings)
    whole = s - 2.0**-halvings
    y = fma(s, r, whole)
    rest = fma(s, r, whole - y)
    return y, fma(s, fma(r * r, poly(r, table("EXP", x)), low), rest)


def expm1(x: Value) -> Value:
    """``e ** x - 1``, within 1 ulp (float32 by table: 2)."""
    t = x.type
    y = at_least(at_most(x, EXP_HIGH[t]), -40.0)
    if by_sixteenths(x):
        half = _expm1_by_sixteenths(y, False)
        return copysign(half + half, x)
    high, low = _expm1_pair(y, 1)  # half of 2^n, which would overflow just below the largest result
    half = high + low
    return select(abs(x) < 2.0 ** -(MANTISSA[t] + 2), x, half + half)


def expm1_negative(x: Value) -> Value:
    """:func:`expm1` of ``x <= 0``, three operations less; for ``x > 0`` the result is unspecified."""
    if not by_sixteenths(x):
        return expm1(x)
    return copysign(_expm1_by_sixteenths(at_least(x, -40.0), True), x)


#: The least argument whose sigmoid is a normal number.
_SIGMOID_LOW = float32(-87.33654)


def sigmoid(x: Value) -> Value:
    """``1 / (1 + exp(-x))``, within 3 ulp (float32; PyTorch has 2.4) or 2, also where it is small."""
    if x.type is F32:  # below -88.7 exp(-x) would be infinite
        rarely = by_sixteenths(x) and x.fn.rare is not None
        if rarely:  # a subnormal quotient is as slow as such a product; with AVX2 the test costs a tenth
            x.fn.rare.append(x < _SIGMOID_LOW)
        again = by_sixteenths(x) and x.fn.again  # there it is exp(x)
        usual = _over_one_and_exp(2.0**-64, x, 2.0**-64, _SIGMOID_LOW if rarely or again else -200.0)
        return select(x < _SIGMOID_LOW, exp_negative(x), usual) if again else usual
    z = exp_negative(-abs(x))
    return divide_sum(select(x < 0, z, like(x, 1.0)), z, 1.0)


def gated(y: Value, x: Value) -> Value:
    return _over_one_and_exp(y, x, 1.0) if x.type is F32 else y * sigmoid(x)


def over_one_and_exp2(y: Value, w: Value) -> Value:
    """``y / (1 + 2 ** w)``, with the relative error that ``w`` has as absolute one: :func:`gated` of an argument
    that is a product anyway."""
    if not by_sixteenths(w):
        return gated(y, w * -tables.LN2["float64"][0])
    w = at_least(at_most(w, 150.0), -150.0)
    n, j = _sixteenths(w)
    p = _exp2_of_rest(pick(_OCTAVE, j), w - n)
    return y / (scale(p, _floored(n)) + 1.0)


def _over_one_and_exp(y: Value | float, x: Value, one: float, low: float = -200.0) -> Value:
    """``y / (one + one * exp(-x))``; with AVX-512 ``x`` is clamped to at least ``low``. The divider works in
    parallel with the other units."""
    if by_sixteenths(x):
        # Far below 0 the divisor is infinite and the quotient 0.
        return y / (scale(*_exp_by_sixteenths(-at_least(at_most(x, 40.0), low), one)) + one)
    e = _exp_normal(-at_least(at_most(x, 40.0), -104.0), -64)  # above 40 it is y; less 64 octaves the exponent fits
    return y / (fma(e, 2.0**64, 1.0) if one == 1.0 else e + one)


def log1p_of_exponential(a: Value) -> Value:
    """``log(1 + exp(-a))`` for ``a >= 0``."""
    z = exp_negative(-a)
    if by_sixteenths(a) and not a.fn.again:
        return _log1p_by_fifteenths(z)
    least = 2.0**-60  # below that the result is its argument, and the square would be subnormal and slow
    return select(z < least, z, (_log1p_by_fifteenths if by_sixteenths(a) else log1p)(at_least(z, least)))


def softplus(x: Value) -> Value:
    """``log(1 + exp(x))`` with no overflow."""
    return at_least(x, 0.0) + log1p_of_exponential(abs(x))


def log_sigmoid(x: Value) -> Value:
    """``log(sigmoid(x))`` with no overflow."""
    return at_most(x, 0.0) - log1p_of_exponential(abs(x))


# ---- logarithms ------------------------------------------------------------------------------------------------------
def _split(x: Value, middle: bool = False) -> tuple[Value, Value, bool]:
    """``(e, m, special)`` with ``x = m * 2 ** e``, ``m`` in [0.75, 1.5), ``e`` an integral float; ``middle``: ``x``
    is not subnormal.

    With ``special``, ``e * c + log(m)`` is also correct for zero, infinity, NaN and negative ``x``, or the schedule
    recomputes these.
    """
    f, t = x.fn, x.type
    width = x.lanes * t.bytes
    if f.vector_bytes >= 64 and (width in (16, 32, 64) or x.lanes == 1):
        y = x if x.lanes > 1 else f.splat(x, 16 // t.bytes)
        width = y.lanes * t.bytes
        suffix = f"p{'s' if t is F32 else 'd'}.{8 * width}"
        # Mantissa in [0.75, 1.5); NaN for negative numbers, 1 for both zeros and infinity.
        m = _x86(f"llvm.x86.avx512.mask.getmant.{suffix}", y, [y, y], width, immediate=3 | 3 << 2)
        name = f"llvm.x86.avx512.mask.getexp.{suffix}"
        e = _x86(name, y, [y, y], width) - _x86(name, m, [m, m], width)
        return (e, m, True) if x.lanes > 1 else (e.lane(0), m.lane(0), True)
    ints, shift = SIGNED[t], MANTISSA[t] + 2
    if by_eighths(x) and f.rare is not None:
        f.rare.append(_is_not_normal(x))
        return *_octave_and_rest(x.bits(ints), t), True
    if middle:
        return *_octave_and_rest(x.bits(ints), t), False
    small = x < SMALLEST[t]
    bits = select(small, x * 2.0**shift, x).bits(ints)
    e, m = _octave_and_rest(bits, t)
    return e - select(small, like(e, shift), like(e, 0)), m, False


def _octave_and_rest(bits: Value, t: Type) -> tuple[Value, Value]:
    """``(e, m)`` of a normal number from its bits.

    Relative to the bits of 0.75, the exponent field steps where the mantissa does. AVX2 has neither arithmetic shifts
    nor conversions of 64 bits, so there ``e`` is shifted as a positive number, below the exponent of 2^52.
    """
    if t is F32:
        e = (bits - 0x3F400000) >> 23
        return e.to(F32), (bits - (e << 23)).bits(F32)
    more = 1024 << 52
    e = (bits + (more - 0x3FE8000000000000)).bits(U64) >> 52
    return (e | 0x4330000000000000).bits(F64) - (2.0**52 + 1024.0), (bits + more - (e.bits(I64) << 52)).bits(F64)


def _is_not_normal(x: Value) -> Value:
    """Whether a float32 is 0, negative, subnormal, infinite or NaN. One comparison of its bits decides, moved so that
    positive normal numbers become the least integers.
    """
    return x.bits(SIGNED[F32]) + (0x80000000 - 0x00800000) > 0x7EFFFFFF - 0x80000000


def _special(x: Value, result: Value) -> Value:
    """``result`` for finite positive ``x``; -inf at 0, inf at inf, NaN below 0 and for NaN."""
    edge = select(x == 0, like(x, -INF), like(x, NAN))
    return select(x > 0, select(x == INF, x, result), edge)


def _log_by_sixteenths(x: Value) -> Value:
    """``log(x)``: the mantissa times the inverse of its sixteenth, from a table: ``|r| <= 1/16``.

    Tables of points whose logarithms are nearly float32 (Gal 1986) leave 1.1 ulp. 9.2 cycles a vector (Zen 4); the
    polynomial took 13.7.
    """
    e, m, special = _split(x)
    inverses, logarithms = piece_tables.LOG
    j = m.bits(SIGNED[F32]) >> 19
    r = fma(m, pick(inverses, j), -1.0)
    tail = fma(r * r, poly(r, tables.LOG_SIXTEENTH["float32"]), r)
    result = fma(e, _LN2, tail + pick(logarithms, j))
    return result if special else _special(x, result)


def _log1p_by_fifteenths(z: Value) -> Value:
    """``log(1 + z)`` for ``z`` in [0, 1], within 2 ulp."""
    inverses, logarithms = piece_tables.LOG1P
    j = fma(z, 15.0, MAGIC[F32]).bits(SIGNED[F32])
    r = fma(z, pick(inverses, j), pick([float32(c) - 1.0 for c in inverses], j))
    square = select(z > 2.0**-60, r * r, like(r, 0.0))  # the instruction takes the mask: one subnormal takes 150 cycles
    tail = fma(square, poly(r, tables.LOG1P_FIFTEENTH["float32"]), r)
    return tail + pick(logarithms, j)


def _log_reduced(r: Value, middle: bool = False) -> Value:
    """``log(1 + r)`` for ``r`` in [-0.25, 0.5]."""
    return fma(r * r, poly(r, table("LOG", r, middle)), r)


def _log_reduced_pair(r: Value) -> tuple[Value, Value]:
    """:func:`_log_reduced` as a sum of two."""
    first, *others = table("LOG", r)
    square = r * r
    y, low = _fast_two_sum(r, square * -0.5)
    return y, low + fma(square, poly(r, (first + 0.5, *others)), fma(r, r, -square) * -0.5)


def log(x: Value, middle: bool = False) -> Value:
    """The natural logarithm, within 1.1 ulp (float32) and 1.5 ulp (float64)."""
    if by_sixteenths(x):
        return _log_by_sixteenths(x)
    e, m, special = _split(x, middle)
    result = _log_reduced(m - 1.0, middle)
    if x.type is F32 or middle:
        result = fma(e, tables.LN2["float64"][0] if middle else _LN2, result)
    else:
        high, low, _ = tables.LN2[x.type.name]
        result = fma(e, high, fma(e, low, result))
    return result if special else _special(x, result)


def log2(x: Value) -> Value:
    """The logarithm to base 2, within 1 ulp.

    ``log(1 + r)`` is a sum of two floats: where it is near 1 and the exponent is -1, adding them loses a digit.
    """
    e, m, special = _split(x)
    high, low = tables.LOG2_E[x.type.name]
    y, y_low = _log_reduced_pair(m - 1.0)
    product, missed = _two_product(y, high)
    total, rest = _fast_two_sum(e, product)
    result = total + (rest + fma(y_low, high, fma(y, low, missed)))
    return select(abs(e) == INF, e, result) if special else _special(x, result)


def log10(x: Value) -> Value:
    """The logarithm to base 10, within 2 ulp."""
    e, m, special = _split(x)
    high, low = tables.LOG10_E[x.type.name]
    e_high, e_low = tables.LOG10_2[x.type.name]
    r = m - 1.0
    tail = (r * r) * poly(r, table("LOG", x))
    result = fma(e, e_high, fma(r, high, fma(tail, high, fma(e, e_low, r * low))))
    return result if special else _special(x, result)


def log1p(x: Value, middle: bool = False) -> Value:
    """``log(1 + x)``, within 1 ulp.

    With ``1 / s`` the scale of ``1 + x``, the reduced argument ``(1 + x) s - 1`` is ``x s + (s - 1)``, rounded once.
    """
    t = x.type
    u = x + 1.0
    e, m, _ = _split(u, middle)
    s = power_of_two((MAGIC[t] - e).bits(SIGNED[t]), t)
    r = select(x > 2.0 ** (MANTISSA[t] + 2), m - 1.0, fma(x, s, s - 1.0))
    high, low, _ = tables.LN2[t.name]
    if middle or t is F32:
        result = fma(e, high, fma(e, low, _log_reduced(r, middle)))
    else:
        y, y_low = _log_reduced_pair(r)
        product, missed = _two_product(e, high)
        total, rest = _fast_two_sum(product, y)
        result = total + (rest + (fma(e, low, missed) + y_low))
    return copysign(_special(u, result), x)


def logaddexp(a: Value, b: Value) -> Value:
    """``log(exp(a) + exp(b))`` with no overflow."""
    top = maximum(a, b)
    return select((a == b) & (abs(a) == INF), a, top + log1p_of_exponential(abs(a - b)))


def logaddexp2(a: Value, b: Value) -> Value:
    """``log2(2 ** a + 2 ** b)`` with no overflow."""
    top = maximum(a, b)
    tail = log1p(exp2(-abs(a - b))) * tables.LOG2_E[a.type.name][0]
    return select((a == b) & (abs(a) == INF), a, top + tail)


def xlogy(x: Value, y: Value) -> Value:
    """``x * log(y)``, 0 where ``x`` is 0, unless ``y`` is NaN."""
    return select((x == 0) & (y == y), like(x, 0.0), x * log(y))


def xlog1py(x: Value, y: Value) -> Value:
    """``x * log1p(y)``, 0 where ``x`` is 0, unless ``y`` is NaN."""
    return select((x == 0) & (y == y), like(x, 0.0), x * log1p(y))


# ---- powers ----------------------------------------------------------------------------------------------------------
def pow(x: Value, y: Real) -> Value:
    """``x ** y`` with C's special values, within 1 ulp (float32, through float64) and 2 ulp (float64).

    Integers wrap; a negative exponent gives 0, unless the base is 1 or -1.
    """
    x, y = x._pair(y)
    if x.type.kind != "f":
        return integer_pow(x, y) if x.type.kind != "b" else x | ~y
    magnitude = _pow_single(abs(x), y) if x.type is F32 else _pow_double(abs(x), y)
    whole = trunc(y) == y
    odd = whole & (trunc(y * 0.5) * 2.0 != y)
    signed = select(odd & (x.bits(SIGNED[x.type]) < 0), -magnitude, magnitude)
    signed = select((x < 0) & isfinite(x) & ~whole, like(x, NAN), signed)
    one = (x == 1) | (y == 0) | ((x == -1) & (abs(y) == INF))
    return select(one, like(x, 1.0), select((x != x) | (y != y), x + y, signed))


def _pow_single(x: Value, y: Value) -> Value:
    wide = x.to(F64)
    e, m, special = _split(wide, True)
    r = m - 1.0
    log_2 = fma(_log_reduced(r, True), tables.LOG2_E["float64"][0], e)
    if not special:
        log_2 = _special(wide, log_2)
    t = at_least(at_most(y.to(F64) * log_2, 200.0), -200.0)  # far beyond float32's range
    n, k = nearest(t)
    p = poly(t - n, (1.0, *table("EXP2", t, True)))
    return (p * power_of_two(k, F64)).to(F32)


def _two_product(a: Value, b: Value | float) -> tuple[Value, Value]:
    """``a * b`` exactly, as a sum."""
    p = a * b
    return p, fma(a, b, -p)


def _fast_two_sum(a: Value | float, b: Value) -> tuple[Value, Value]:
    """``a + b`` exactly, as a sum, for ``|a| >= |b|``."""
    s = a + b
    return s, b - (s - a)


def _two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """``a + b`` exactly, as a sum, whichever is larger (Knuth)."""
    s = a + b
    back = s - a
    return s, (a - (s - back)) + (b - back)


def _log_double(x: Value) -> tuple[Value, Value]:
    """``log(x)`` of positive finite float64 as a sum of two, to about 68 bits: ``log(m) = 2 atanh((m-1) / (m+1))``."""
    e, m, _ = _split(x)
    top, (bottom, rest) = m - 1.0, _fast_two_sum(1.0, m)
    # |m| may exceed 1, but the sum above is exact anyway: both have exponents 0 or -1.
    s = top / bottom
    s_low = (fma(-s, bottom, top) - s * rest) / bottom
    s2, s2_low = _two_product(s, s)
    s2_low = fma(s * 2.0, s_low, s2_low)
    # c = 1/3 + s^2 p(s^2)
    c, c_low = _fast_two_sum(1 / 3, s2 * poly(s2, table("ATANH", x)))
    c_low = c_low + 1.850371707708594e-17  # 1/3 minus its nearest double
    s3, s3_low = _two_product(s2, s)
    s3_low = fma(s2, s_low, fma(s2_low, s, s3_low))
    t, t_low = _two_product(s3, c)
    t_low = fma(s3, c_low, fma(s3_low, c, t_low))
    a, a_low = _fast_two_sum(s, t)
    a_low = a_low + (s_low + t_low)
    high, low, _ = tables.LN2["float64"]
    h, h_low = _two_product(e, high)
    h_low = fma(e, low, h_low)
    # h is 0 or larger than 2 a
    total, total_low = _fast_two_sum(h, a + a)
    zero = e == 0
    total_low = select(zero, like(x, 0.0), total_low)
    total = select(zero, a + a, total)
    return _fast_two_sum(total, total_low + (h_low + (a_low + a_low)))


def _pow_double(x: Value, y: Value) -> Value:
    high, low = _log_double(x)
    edge = (x == 0) | (x == INF)
    high = select(edge, select(x == 0, like(x, -INF), x), high)
    low = select(edge, like(x, 0.0), low)
    p, p_low = _two_product(high, y)
    p_low = fma(low, y, p_low)
    clamped = at_least(at_most(p, EXP_HIGH[F64]), EXP_LOW[F64])
    n, _, r = _reduce(clamped)
    r = r + select(clamped == p, p_low, like(x, 0.0))
    return scale(poly(r, (1.0, 1.0, *table("EXP", x))), n)


# ---- hyperbolic functions --------------------------------------------------------------------------------------------
def _tanh_by_quarter_octaves(x: Value) -> Value:
    """``tanh(m + d) = T + (1 - T T) t / (1 + T t)`` with ``T = tanh(m)`` from a table of 16 and ``t = tanh(d)`` a
    polynomial.

    There are four points ``m`` an octave, found by the number's own bits. The term that is added to ``T`` is at most an
    eighth of it, and so are its errors. Below the first piece both are 0. 15.2 cycles a vector (Zen 4); polynomials
    over 32 pieces took 18.5.
    """
    begin, middles, values = piece_tables.TANH
    a = at_most(abs(x), 9.1)  # the result rounds to 1 from here on; the last piece ends at 9.12
    j = (a.bits(SIGNED[F32]) - (float32_bits(begin) & ((1 << 21) - 1))) >> 21
    near, zero = a < begin, like(a, 0.0)
    m, top = (select(near, zero, pick(row, j)) for row in (middles, values))
    d = a - m
    u = d * d
    t = fma(d * u, poly(u, table("TANH", x)), d)
    return copysign(fma(-top, top, 1.0) * t / fma(top, t, 1.0) + top, x)


def tanh(x: Value) -> Value:
    """The hyperbolic tangent, within 2.1 ulp (float32; 0.8 with AVX-512) and 3 ulp (float64): ``E / (E + 2)`` with
    ``E = expm1(2 |x|)``."""
    if by_sixteenths(x):
        return _tanh_by_quarter_octaves(x)
    a = at_most(abs(x), 10.0 if x.type is F32 else 20.0)
    high, low = _expm1_pair(a + a, 0)
    e, low = _fast_two_sum(high, low)
    return copysign(divide_sum(e, e, 2.0, low), x)


def _quarter_exp(a: Value) -> tuple[Value, Value, Value]:
    """``exp(a) / 4`` for ``a >= 0`` as a sum of two, and ``exp(-a) / 4``."""
    p, low, n = _exp_pair(at_most(a, 90.0 if a.type is F32 else 711.0))
    p, low = scale(p, n - 2.0), scale(low, n - 2.0)
    return p, low, 0.0625 / (p + low)


def cosh(x: Value) -> Value:
    """The hyperbolic cosine, within 1 ulp."""
    quarter, low, inverse = _quarter_exp(abs(x))
    half = quarter + (low + inverse)
    return half + half


def sinh(x: Value) -> Value:
    """The hyperbolic sine, within 1 ulp."""
    a = abs(x)
    quarter, low, inverse = _quarter_exp(a)
    half = quarter + (low - inverse)
    a2 = a * a
    small = fma(a * a2, poly(a2, table("SINH", x)), a)
    return copysign(select(a < 1.0, small, half + half), x)


@in_double
def asinh(x: Value, middle: bool = False) -> Value:
    """The inverse hyperbolic sine, within 1 ulp (float32, through float64) and 4 ulp (float64)."""
    a = abs(x)
    big = a > 1e10
    a2 = a * a
    inner = log1p(a + a2 / (sqrt(a2 + 1.0) + 1.0), middle)
    return copysign(select(big, log(a, middle) + tables.LN2["float64"][0], inner), x)


@in_double
def acosh(x: Value, middle: bool = False) -> Value:
    """The inverse hyperbolic cosine, within 1 ulp (float32, through float64) and 4 ulp (float64)."""
    big = x > 1e10
    t = x - 1.0
    inner = log1p(t + sqrt(fma(t, t, t + t)), middle)
    return select(x < 1.0, like(x, NAN), select(big, log(x, middle) + tables.LN2["float64"][0], inner))


def atanh(x: Value) -> Value:
    """The inverse hyperbolic tangent, within 1.4 ulp: half of ``log1p(2 a / (1 - a))``, plus its slope times the
    error of the quotient."""
    a = abs(x)
    gap, twice = 1.0 - a, a + a
    ratio = twice / gap
    rest = fma(-ratio, gap, twice) - ratio * ((1.0 - gap) - a)
    result = log1p(ratio)
    result = select(a < 1.0, result + rest / (1.0 + a), result)
    return copysign(result * 0.5, x)
