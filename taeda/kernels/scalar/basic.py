"""Basic scalar functions: selection, signs, rounding, comparison with NaN, bits and polynomials."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence

from ..ir import BOOL, F32, F64, I16, I32, I64, U8, U16, U32, U64, Type, Value

#: Bits of the mantissa without the leading one, exponent bias, and the integers of the same width, by type.
MANTISSA = {F32: 23, F64: 52}
BIAS = {F32: 127, F64: 1023}
SIGNED = {F32: I32, F64: I64}
UNSIGNED = {F32: U32, F64: U64}
#: 1.5 * 2^mantissa: adding it rounds to the nearest integer, which is then in the low bits.
MAGIC = {F32: 12582912.0, F64: 6755399441055744.0}
_MAGIC_BITS = 0x4338000000000000  # the bits of the second
#: The largest finite and the smallest normal value.
MAX = {F32: 3.4028234663852886e38, F64: 1.7976931348623157e308}
SMALLEST = {F32: 2.0**-126, F64: 2.0**-1022}

Real = Value | int | float


def like(x: Value, value: float | int) -> Value:
    """A constant of the type and lanes of ``x``."""
    return x.fn.const(x.type, value, x.lanes)


def select(condition: Value, a: Real, b: Real) -> Value:
    return condition.fn.select(condition, a, b)


def fma(a: Value, b: Real, c: Real) -> Value:
    """``a * b + c`` rounded once; for integers, a product and a sum."""
    return a.fn.fma(a, b, c) if a.type.kind == "f" else a * b + c


def poly(x: Value, coefficients: Sequence[float]) -> Value:
    """``c0 + c1 x + c2 x^2 + ...`` by Horner's rule: independent vectors hide the latency, so fewest operations win.

    With AVX2 a vector is half as long, and too few vectors are in flight: there the even and the odd powers are
    separate chains, which halves the latency for one more operation. Not in float64, where log would lose its 1.5 ulp.
    """
    if x.type is F32 and x.fn.vector_bytes == 32 and len(coefficients) > 7:
        first, *others = coefficients
        square = x * x
        return fma(fma(_horner(square, others[1::2]), x, _horner(square, others[::2])), x, first)
    return _horner(x, coefficients)


def _horner(x: Value, coefficients: Sequence[float]) -> Value:
    result = like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = fma(result, x, c)
    return result


def any_lane(condition: Value) -> Value:
    """Whether any lane of a bool holds, as a scalar."""
    if condition.lanes == 1:
        return condition
    mask = Type(f"mask{condition.lanes}", f"i{condition.lanes}", condition.lanes, "u")
    return condition.fn.emit(f"bitcast {condition.typed} to {mask.llvm}", mask) != 0


def rarely(condition: Value, usual: Sequence[Value], other: Callable[[], Sequence[Value]]) -> Sequence[Value]:
    """``other()`` where ``condition`` holds, else ``usual``. ``other()`` is computed only if a lane needs it: in
    vectors that the schedule recomputes, or in a branch.
    """
    f = condition.fn
    if f.rare is not None:
        f.rare.append(condition)
        return usual
    with f.while_([any_lane(condition), *usual]) as L:  # at most once
        L.test(L.carry[0])
        found = [select(condition, a, b) for a, b in zip(other(), usual, strict=True)]
        L.carry = (f.const(BOOL, False), *found)
    return L.carry[1:]


# ---- signs and absolute values ---------------------------------------------------------------------------------------
def abs(x: Value) -> Value:
    """Absolute value; the most negative integer stays as it is."""
    if x.type.kind == "f":
        return x.fn.unary("fabs", x)
    return select(x < 0, -x, x) if x.type.kind == "i" else x


def copysign(x: Value, y: Real) -> Value:
    """``x`` with the sign bit of ``y``.

    In integers: LLVM moves a conversion to float16 into its own ``copysign``, and then needs a library function for the
    other operand, which may be a double.
    """
    y = y if isinstance(y, Value) else like(x, y)
    ints, top = SIGNED[x.type], -1 << (x.type.bits - 1)
    return ((x.bits(ints) & ~top) | (y.bits(ints) & top)).bits(x.type)


def signbit(x: Value) -> Value:
    """Whether the sign bit is set: true of -0.0 and of a negative NaN."""
    if x.type.kind == "f":
        return copysign(like(x, 1.0), x) < 0  # LLVM 22 fails an assertion on the integer comparison of the bits
    return x < 0 if x.type.kind == "i" else x.fn.const(BOOL, False, x.lanes)


def sign(x: Value) -> Value:
    """-1, 0 or 1; NaN gives 0, as in PyTorch's CPU kernels."""
    if x.type.kind in "bu":
        return x if x.type is BOOL else select(x > 0, like(x, 1), like(x, 0))
    return select(x > 0, like(x, 1), select(x < 0, like(x, -1), like(x, 0)))


# ---- rounding --------------------------------------------------------------------------------------------------------
def _rounding(name: str, doc: str):
    def apply(x: Value) -> Value:
        return x.fn.unary(name, x) if x.type.kind == "f" else x

    apply.__doc__ = doc
    return apply


floor = _rounding("floor", "The largest integer not above.")
ceil = _rounding("ceil", "The smallest integer not below.")
trunc = _rounding("trunc", "Toward zero.")
round = _rounding("roundeven", "To the nearest integer, halves to the even one.")


def frac(x: Value) -> Value:
    return x - trunc(x)


# ---- tests -----------------------------------------------------------------------------------------------------------
def isnan(x: Value) -> Value:
    return x != x if x.type.kind == "f" else x.fn.const(BOOL, False, x.lanes)


def isinf(x: Value) -> Value:
    return abs(x) == float("inf") if x.type.kind == "f" else x.fn.const(BOOL, False, x.lanes)


def isfinite(x: Value) -> Value:
    return abs(x) < float("inf") if x.type.kind == "f" else x.fn.const(BOOL, True, x.lanes)


def isposinf(x: Value) -> Value:
    return x == float("inf") if x.type.kind == "f" else x.fn.const(BOOL, False, x.lanes)


def isneginf(x: Value) -> Value:
    return x == float("-inf") if x.type.kind == "f" else x.fn.const(BOOL, False, x.lanes)


# ---- extrema ---------------------------------------------------------------------------------------------------------
def maximum(a: Value, b: Real) -> Value:
    """The larger; NaN if either is NaN."""
    a, b = a._pair(b)
    if a.type is BOOL:
        return a | b
    larger = select(a > b, a, b)
    return select(a != a, a, larger) if a.type.kind == "f" else larger


def minimum(a: Value, b: Real) -> Value:
    """The smaller; NaN if either is NaN."""
    a, b = a._pair(b)
    if a.type is BOOL:
        return a & b
    smaller = select(a < b, a, b)
    return select(a != a, a, smaller) if a.type.kind == "f" else smaller


def fmax(a: Value, b: Real) -> Value:
    """The larger; a NaN loses against a number."""
    a, b = a._pair(b)
    larger = maximum(b, a) if a.type.kind != "f" else select(a > b, a, b)
    return select(b != b, a, larger) if a.type.kind == "f" else larger


def fmin(a: Value, b: Real) -> Value:
    """The smaller; a NaN loses against a number."""
    a, b = a._pair(b)
    smaller = minimum(b, a) if a.type.kind != "f" else select(a < b, a, b)
    return select(b != b, a, smaller) if a.type.kind == "f" else smaller


def at_most(x: Value, limit: Real) -> Value:
    """``min(x, limit)`` that keeps a NaN of ``x``, in one instruction."""
    x, limit = x._pair(limit)
    return select(x > limit, limit, x) if x.type is not BOOL else x & limit


def at_least(x: Value, limit: Real) -> Value:
    """``max(x, limit)`` that keeps a NaN of ``x``, in one instruction."""
    x, limit = x._pair(limit)
    return select(x < limit, limit, x) if x.type is not BOOL else x | limit


# ---- bits of floats --------------------------------------------------------------------------------------------------
def ldexp_int(x: Value, n: Value) -> Value:
    """``x * 2 ** n`` for an integer ``n`` of the same width, correct down to subnormals and up to infinity."""
    f = x.fn
    if f.vector_bytes >= 64:  # one VSCALEF
        v = "" if x.lanes == 1 else f"v{x.lanes}"
        name = f"llvm.ldexp.{v}f{x.type.bits}.{v}i32"
        return f.intrinsic(name, x.type, x.lanes, x, n.to(I32))
    first = n >> 1  # in two halves: the exponent of one factor would not fit
    return x * power_of_two(first, x.type) * power_of_two(n - first, x.type)


def scale(x: Value, n: Value) -> Value:
    """:func:`ldexp_int` for an integral float ``n``, the operand of AVX-512's instruction."""
    width = x.lanes * x.type.bytes
    if x.fn.vector_bytes >= 64 and width in (16, 32, 64):
        suffix = f"p{'s' if x.type is F32 else 'd'}.{8 * width}"
        return _x86(f"llvm.x86.avx512.mask.scalef.{suffix}", x, [x, n, x], width)
    return ldexp_int(x, n.to(SIGNED[x.type]))


def frexp(x: Value) -> tuple[Value, Value]:
    """``(m, e)`` with ``x = m * 2 ** e``, ``m`` in [0.5, 1), ``e`` an int32; 0 for ``e`` at 0, infinity and NaN."""
    t, shift = x.type, MANTISSA[x.type] + 2
    small = abs(x) < SMALLEST[t]
    y = select(small, x * 2.0**shift, x)
    bits = y.bits(SIGNED[t])
    field = (bits >> MANTISSA[t]) & (2 * BIAS[t] + 1)
    e = field - (BIAS[t] - 1) - select(small, like(bits, shift), like(bits, 0))
    m = (bits & ~((2 * BIAS[t] + 1) << MANTISSA[t]) | ((BIAS[t] - 1) << MANTISSA[t])).bits(t)
    plain = (x == 0) | (abs(x) == float("inf")) | (x != x)
    return select(plain, x, m), select(plain, like(e, 0), e).to(I32)


def bits_of(x: Value) -> Value:
    """The bits of a float as a signed integer."""
    return x.bits(SIGNED[x.type])


def power_of_two(n: Value, t: Type, more: int = 0) -> Value:
    """``2.0 ** (n + more)`` for an integer sum in the range of the normal exponents; only the low bits of ``n``
    count."""
    return ((n << MANTISSA[t]) + ((BIAS[t] + more) << MANTISSA[t])).bits(t)


def nearest(x: Value, factor: float = 1.0) -> tuple[Value, Value]:
    """``x * factor`` rounded to an integer, as a float and as an integer valid in its low bits, for moderate ``x``.

    Adding a large constant does both, and is cheaper than rounding and converting.
    """
    magic = MAGIC[x.type]
    moved = fma(x, factor, magic) if factor != 1.0 else x + magic
    return moved - magic, moved.bits(SIGNED[x.type])


def _x86(name: str, x: Value, args: list[Value], width: int, immediate: int | None = None) -> Value:
    """An AVX-512 intrinsic of the masked family on a vector of ``width`` bytes."""
    f = x.fn
    mask = f"i{max(x.lanes, 8)}"
    operands = [(a.llvm, a.llvm, a.text) for a in args]
    if immediate is not None:
        operands.insert(1, ("i32 immarg", "i32", str(immediate)))
    operands.append((mask, mask, "-1"))
    if width == 64:  # current rounding mode
        operands.append(("i32 immarg", "i32", "4"))
    f.declarations[name] = f"declare {x.llvm} @{name}({', '.join(d for d, _, _ in operands)})"
    return f.emit(f"call {x.llvm} @{name}({', '.join(f'{t} {v}' for _, t, v in operands)})", x.type, x.lanes)


def table_entries(x: Value) -> int:
    """Entries of a lookup table in a register for ``x``: 16 for float32 with AVX-512, 8 with AVX2; else 0."""
    entries = x.fn.vector_bytes // 4 if x.type is F32 and x.fn.vector_bytes >= 32 else 0
    return entries if x.lanes <= entries else 0


def pick(items: Sequence[float], index: Value) -> Value:
    """``items[index % n]`` of ``n`` float32 numbers in one register, with AVX-512 also in two; ``index`` is an
    int32."""
    f, lanes = index.fn, index.lanes
    wide = f.vector_bytes // 4
    if lanes == 1:
        index = f.splat(index, wide)
    elif lanes < wide:
        index = index.shuffle([i if i < lanes else -1 for i in range(wide)])
    if len(items) == wide:
        name = "llvm.x86.avx512.permvar.sf.512" if wide == 16 else "llvm.x86.avx2.permps"
        found = f.intrinsic(name, F32, wide, f.vector(F32, items), index)
    else:
        low, high = f.vector(F32, items[:16]), f.vector(F32, items[16:])
        found = f.intrinsic("llvm.x86.avx512.vpermi2var.ps.512", F32, 16, low, index, high)
    return found if lanes == wide else found.slice(0, lanes)


def to_14_bits(name: str, x: Value) -> Value | None:
    """``1 / x`` (``rcp14``) or ``1 / sqrt(x)`` (``rsqrt14``) by AVX-512's instruction; None if this type has no such
    instruction.
    """
    f = x.fn
    if x.type is not F32 or f.vector_bytes < 64 or x.lanes not in (1, 4, 8, 16):
        return None
    wide = x if x.lanes > 1 else f.splat(x, 4)
    name, mask = f"llvm.x86.avx512.{name}.ps.{32 * wide.lanes}", f"i{max(wide.lanes, 8)}"
    f.declarations[name] = f"declare {wide.llvm} @{name}({wide.llvm}, {wide.llvm}, {mask})"
    guess = f.emit(f"call {wide.llvm} @{name}({wide.typed}, {wide.typed}, {mask} -1)", F32, wide.lanes)
    return guess if x.lanes > 1 else guess.lane(0)


def divide_sum(a: Value, b: Value, c: float, low: Value | None = None) -> Value:
    """``a / (b + c)`` within 0.6 ulp for ``|b| <= c`` and a quotient well inside the normal range (or ``a`` is 0).

    The remainder of the division corrects the rounding of the sum. A first inverse of 14 bits is enough, because the
    remainder squares its error. ``low``: the rounding error of both ``a`` and ``b``.
    """
    total = b + c
    rest = b - (total - c)
    inverse = to_14_bits("rcp14", total)
    if inverse is None:
        inverse = 1.0 / total
    quotient = a * inverse
    missed = fma(-quotient, rest, fma(-total, quotient, a))
    if low is not None:
        missed = missed + fma(-quotient, low, low)
    return fma(missed, inverse, quotient)


def nextafter(x: Value, y: Value) -> Value:
    """The next float from ``x`` toward ``y``, computed in integers, whose order is that of the floats' magnitudes."""
    t, ints = x.type, {16: I16, 32: I32, 64: I64}[x.type.bits]
    top = -1 << (t.bits - 1)
    infinity = like(x, float("inf")).bits(ints)

    def order(v: Value) -> tuple[Value, Value]:
        size = v.bits(ints) & ~top
        return size, select(v.bits(ints) < 0, -size, size)

    (x_size, x_rank), (y_size, y_rank) = order(x), order(y)
    rank = x_rank + select(y_rank > x_rank, like(x_rank, 1), like(x_rank, -1))
    negative = (rank < 0) | ((rank == 0) & (x_rank < 0))
    moved = select(negative, -rank | top, rank)
    result = select(x_rank == y_rank, y.bits(ints), moved)
    result = select(y_size > infinity, y.bits(ints), result)
    return select(x_size > infinity, x.bits(ints), result).bits(t)


# ---- integers --------------------------------------------------------------------------------------------------------
def shift_left(a: Value, b: Value) -> Value:
    """``a << b``; 0 where ``b`` is negative or not below the width."""
    inside = _unsigned(b) < a.type.bits
    return select(inside, a << select(inside, b, like(b, 0)), like(a, 0))


def shift_right(a: Value, b: Value) -> Value:
    """``a >> b``, arithmetic for signed types; a shift out of range gives the same as shifting all bits out."""
    last = a.type.bits - 1
    inside = _unsigned(b) <= last
    shifted = a >> select(inside, b, like(b, last))
    return shifted if a.type.kind == "i" else select(inside, shifted, like(a, 0))


def _unsigned(x: Value) -> Value:
    return x.bits({8: U8, 16: U16, 32: U32, 64: U64}[x.type.bits])


def integer_divide(a: Value, b: Value) -> Value:
    """``a / b`` toward zero. Division by 0 gives 0, so that no lane traps; the op reports it."""
    return _quotient(*a._pair(b), trunc)


def integer_floor_divide(a: Value, b: Value) -> Value:
    """``a // b`` as in Python; 0 where ``b`` is 0."""
    return _quotient(*a._pair(b), floor)


def integer_remainder(a: Value, b: Value) -> Value:
    """``a % b`` as in Python: the sign of ``b``; 0 where ``b`` is 0."""
    return _rest(*a._pair(b), floor)


def integer_fmod(a: Value, b: Value) -> Value:
    """C's ``a % b``: the sign of ``a``; 0 where ``b`` is 0."""
    return _rest(*a._pair(b), trunc)


def _quotient(a: Value, b: Value, rounding: Callable[[Value], Value]) -> Value:
    """``rounding(a / b)``; 0 where ``b`` is 0.

    Integers divide as floats, which, unlike integer division, has vector instructions. Unless ``a / b`` is an integer,
    it is further than ``1 / |b|`` from any, so the quotient's rounding does not reach one.
    """
    t, zero = a.type, b == 0
    if t.bits == 64:
        usual = [select(zero, like(a, 0), whole_number(rounding(whole_double(a) / whole_double(b)), t))]
        return rarely(beyond_doubles(a, b), usual, lambda: [_exact_quotient(a, b, rounding)])[0]
    wide = F32 if t.bits <= 16 else F64
    quotient = rounding(a.to(wide) / select(zero, like(b, 1), b).to(wide))
    # int32: -2^31 / -1 = 2^31 wraps
    return select(zero, like(a, 0), (whole_number(quotient, I64) if t.bits == 32 else quotient.to(I32)).to(t))


def _rest(a: Value, b: Value, rounding: Callable[[Value], Value]) -> Value:
    """``a - rounding(a / b) * b``; 0 where ``b`` is 0."""
    zero = b == 0
    if a.type.bits < 64:
        return select(zero, like(a, 0), a - _quotient(a, b, rounding) * b)
    x, y = whole_double(a), whole_double(b)

    def exact() -> list[Value]:
        return [select(zero, like(a, 0), a - _exact_quotient(a, b, rounding) * b)]

    usual = select(zero, like(a, 0), whole_number(fma(-rounding(x / y), y, x), a.type))
    return rarely(beyond_doubles(a, b), [usual], exact)[0]


def whole_double(x: Value) -> Value:
    """An integer of 64 bits below 2^51 in magnitude as float64: AVX2 has no such conversion."""
    return (x + _MAGIC_BITS).bits(F64) - MAGIC[F64]


def whole_number(x: Value, t: Type) -> Value:
    """The inverse of :func:`whole_double`."""
    return (x + MAGIC[F64]).bits(t) - _MAGIC_BITS


def beyond_doubles(*xs: Value) -> Value:
    """Whether :func:`whole_double` is wrong for any of ``xs``."""
    least = -(1 << 51) if xs[0].type.kind == "i" else 0
    return functools.reduce(operator.or_, [(x - least).bits(U64) for x in xs]) >= (1 << 51) - least


def _exact_quotient(a: Value, b: Value, rounding: Callable[[Value], Value]) -> Value:
    """:func:`_quotient` of any integers of 64 bits, by the processor's division, lane by lane."""
    zero = b == 0
    if a.type.kind == "u":
        return select(zero, like(a, 0), a / select(zero, like(b, 1), b))
    negate = b == -1  # -2^63 / -1 traps
    quotient = select(negate, -a, a / select(zero | negate, like(b, 1), b))
    if rounding is floor:
        rest = a - quotient * b
        quotient = select((rest != 0) & ((rest ^ b) < 0), quotient - 1, quotient)
    return select(zero, like(a, 0), quotient)


def integer_pow(a: Value, b: Value) -> Value:
    """``a ** b`` with wrap-around; a negative exponent gives 0 except for bases 1 and -1."""
    f, t = a.fn, a.type
    a, b = a._pair(b)
    one = like(a, 1)
    with f.while_([one, a, b]) as L:
        result, square, rest = L.carry
        L.test(any_lane(rest > 0))
        odd = ((rest & 1) != 0) & (rest > 0)
        L.carry = (select(odd, result * square, result), square * square, rest >> 1)
    result = L.carry[0]
    if t.kind != "i":
        return result
    unit = select((b & 1) != 0, a, one)
    return select(b < 0, select((a == 1) | (a == -1), unit, like(a, 0)), result)


def _low_zeros(x: Value) -> Value:
    """The number of trailing zero bits; 0 for 0, so that the result is a valid shift."""
    count = x.fn.unary("cttz", x, x.fn.const(BOOL, False))
    return select(x == 0, like(x, 0), count)


def gcd(a: Value, b: Value) -> Value:
    """The greatest common divisor, never negative (except of the most negative integer with 0).

    Stein's binary algorithm (1967): halving and subtraction have vector instructions, division has none.
    """
    f = a.fn
    u = {t.bits: t for t in (U8, U16, U32, U64)}[a.type.bits]
    x, y = abs(a).bits(u), abs(b).bits(u)
    twos = _low_zeros(x | y)
    x, y = select(x == 0, y, x), select(x == 0, like(x, 0), y)
    with f.while_([x >> _low_zeros(x), y]) as L:
        x, y = L.carry
        L.test(any_lane(y != 0))
        odd = y >> _low_zeros(y)
        done = y == 0
        small, large = f.unary("umin", x, odd), f.unary("umax", x, odd)
        L.carry = (select(done, x, small), select(done, y, large - small))
    return (L.carry[0] << twos).bits(a.type)


def lcm(a: Value, b: Value) -> Value:
    """The least common multiple; 0 where either is 0."""
    quotient = integer_divide(a, gcd(a, b))
    if a.type.bits < 32:  # C's arithmetic: narrow integers are multiplied as int
        return abs(quotient.to(I32) * b.to(I32)).to(a.type)
    return abs(quotient * b)
