"""Random numbers: the Mersenne Twister a vector at a time, and the transformations of its words into distributions.

Matsumoto & Nishimura, "Mersenne Twister", ACM TOMACS 8 (1998). A distribution's kernel reads the words that ``twist``
wrote, tempers them and writes a contiguous output. How many words an element takes, and how they become a number, is as
in PyTorch, so that equal seeds give equal numbers. A "wide" value is 64 bits with the first word in the upper half. A
uniform float64 is its low 53 bits; a uniform float32 is the low 24 bits of one word.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

from . import scalar as s
from .build import kernel
from .ir import BOOL, F32, F64, I64, PTR, TYPES, U16, U32, U64, Function, Helper, Type, Value, llvm_type
from .scalar.basic import whole_number
from .scalar.coefficients import tables

STATE = 624
MIDDLE = 397
_TURN = 2 * math.pi


# ---- the generator ---------------------------------------------------------------------------------------------------
def _mix(f: Function, low: Value, high: Value, far: Value) -> Value:
    y = (low & 0x80000000) | (high & 0x7FFFFFFF)
    return far ^ (y >> 1) ^ f.select((high & 1) != 0, f.const(U32, 0x9908B0DF, y.lanes), 0)


@kernel
def twist(f: Function) -> None:
    """``ptr = [words]``: the words 624 + ``[begin, end)`` of a sequence from those before; the range counts blocks of
    624.

    The twister is usually written as a ring of 624 words. In a linear sequence every word depends on the same three
    earlier ones, the last of them 227 back; vectors, whose lanes divide 624, need no special case at the end of the
    ring.
    """
    _twist(f, f.data(0), f.begin, f.end)


def _twist(f: Function, words: Value, begin: Value | int, end: Value | int) -> None:
    """Each word is loaded once, in aligned vectors; words that span two vectors are joined in registers."""
    lanes = f.lanes(U32)
    aside = MIDDLE % lanes
    first = f.offset(words, begin * 4)
    carried = [f.load(f.offset(first, 4 * i), U32, lanes) for i in (0, MIDDLE - aside)]
    with f.loop(begin, end, lanes, carried) as L:
        at = f.offset(words, L.index * 4)
        low, before = L.carry
        after, behind = (f.load(f.offset(at, 4 * (i + lanes)), U32, lanes) for i in (0, MIDDLE - aside))
        high = low.shuffle(range(1, lanes + 1), after) if lanes > 1 else after
        far = before.shuffle(range(aside, aside + lanes), behind) if aside else before
        f.store(f.offset(at, 4 * STATE), _mix(f, low, high, far))
        L.carry = (after, behind)


# ---- jumping ahead ---------------------------------------------------------------------------------------------------
#: Words from which a later state is made: the polynomial's degree and a state, in whole blocks.
SPAN = 33 * STATE


@functools.cache
def characteristic() -> tuple[int, ...]:
    """The exponents of the polynomial that annihilates the sequence from its second word on (Matsumoto & Nishimura
    1998, A)."""

    def times(p: int, q: int) -> int:
        return functools.reduce(operator.xor, (p << i for i in range(q.bit_length()) if q >> i & 1), 0)

    whole, less = (1 << STATE) | (1 << MIDDLE), (1 << (STATE - 1)) | (1 << (MIDDLE - 1))
    powers = [1]  # powers of `less` up to 31; each is multiplied by `whole`
    for _ in range(31):
        powers.append(times(powers[-1], less))
    total = powers[31]
    for i in range(31):
        total ^= powers[30 - i] if 0x9908B0DF >> i & 1 else 0
    total = times(total, whole) ^ (0x9908B0DF >> 31)
    return tuple(i for i in range(total.bit_length()) if total >> i & 1)


@kernel
def jump(f: Function) -> None:
    """A later state of the sequence (Haramoto et al. 2008): ``ptr = [out, words, places, starts]``.

    The ``SPAN`` words of the sequence satisfy every recurrence given by ``t ** distance`` modulo the characteristic
    polynomial: ``out`` is the sum of the states at the places of its terms. Places are in units of 16 words, grouped by
    remainder (a step of the range) from ``starts[remainder]`` on, so no load crosses a cache line. ``out`` is initially
    zero.
    """
    out, words, places, starts = (f.data(i) for i in range(4))
    lanes = f.lanes(U32)
    count = 20 if f.vector_bytes >= 64 else 10  # number of sums in registers
    size, room = 4 * lanes * count, 4 * (STATE + 16)
    sums = f.scratch(room)
    with f.loop(f.begin, f.end) as R:
        here = f.offset(starts, R.index * 8)
        first, last = f.load(here, I64), f.load(f.offset(here, 8), I64)
        with f.loop(0, room, size) as P:
            base, zero = f.offset(words, P.index), f.const(U32, 0, lanes)
            with f.loop(first, last, 1, [zero] * count) as L:
                at = f.offset(base, f.load(f.offset(places, L.index * 2), U16).to(I64) * 64)
                L.carry = [x ^ f.load(f.offset(at, 4 * lanes * i), U32, lanes) for i, x in enumerate(L.carry)]
            for i, x in enumerate(L.carry):
                f.store(f.offset(sums, P.index + 4 * lanes * i), x)
        with f.loop(0, STATE, lanes) as K:
            to, more = f.offset(out, K.index * 4), f.offset(sums, (K.index + R.index) * 4)
            f.store(to, f.load(to, U32, lanes) ^ f.load(more, U32, lanes))


def _temper(y: Value) -> Value:
    y = y ^ (y >> 11)
    y = y ^ ((y << 7) & 0x9D2C5680)
    y = y ^ ((y << 15) & 0xEFC60000)
    return y ^ (y >> 18)


def _draw(f: Function, words: Value, source: Type, width: int) -> Value:
    """``width`` words of the stream, or pairs of them (``source`` U64), from the sequence at ``words``.

    They are tempered here, not where the sequence is made: only one thread makes it.
    """
    drawn = _temper(f.load(words, U32, width * (source.bytes // 4)))
    return drawn if source is U32 else f.emit(f"bitcast {drawn.typed} to {llvm_type(source, width)}", source, width)


@kernel
def temper(f: Function) -> None:
    """``ptr = [out, words]``: tempered words of the sequence."""
    out, words, lanes = f.data(0), f.data(1), f.lanes(U32)
    for i, width in f.groups(f.begin, f.end, lanes):
        f.store(f.offset(out, i * 4), _draw(f, f.offset(words, i * 4), U32, width))


class _Window:
    """Blocks of the sequence on the stack, for kernels that make it themselves: one block and the next ``BLOCKS``."""

    BLOCKS = 4

    def __init__(self, f: Function, state: Value, kernel: Function):
        self.f = f
        self.words = f.scratch(4 * (STATE * (self.BLOCKS + 1) + f.lanes(U32)))
        self.helper = kernel.helper("advance", PTR)
        (words,) = self.helper.params
        self._copy(self.helper, words, self._block(self.helper, words, self.BLOCKS))
        _twist(self.helper, words, 0, self.BLOCKS * STATE)
        self._copy(f, self._block(f, self.words, self.BLOCKS), state)
        f.call(self.helper, self.words)

    @staticmethod
    def _block(f: Function, words: Value, i: Value | int) -> Value:
        return f.offset(words, i * (4 * STATE))

    @staticmethod
    def _copy(f: Function, to: Value, block: Value) -> None:
        lanes = f.lanes(U32)
        with f.loop(0, STATE, lanes) as L:
            f.store(f.offset(to, L.index * 4), f.load(f.offset(block, L.index * 4), U32, lanes))

    def advance(self, times: Value) -> Value:
        """Make the last block the first, so many times; return the number of blocks advanced."""
        with self.f.loop(0, times):
            self.f.call(self.helper, self.words)
        return times * self.BLOCKS

    def copy(self, to: Value, i: Value) -> None:
        """Copy block ``i`` of the window."""
        self._copy(self.f, to, self._block(self.f, self.words, i))


@kernel
def checkpoints(f: Function) -> None:
    """States from which parts of the stream can be drawn again: ``ptr = [out, state]``, one state a step of the range.

    ``arg = [position, inner, inner words, outer words, words]``: part ``i`` begins
    ``i / inner * outer words + i % inner * inner words`` after the position, at word ``(position + that) % 624`` of its
    state. At the end ``state`` is the one that contains the last of all ``words``. Each state is made from earlier
    ones, so the range is for one thread.
    """
    out, state, window = f.data(0), f.data(1), _Window(f, f.data(1), f)
    position, inner, inner_words, outer_words, words = (f.size(i) for i in range(5))

    def save(to: Value, word: Value, first: Value) -> Value:
        """Copy the block of a word, given the first block of the window; return the first block of the window
        afterwards."""
        block = word / STATE
        first = first + window.advance((block - first - 1) / window.BLOCKS)
        window.copy(to, block - first)
        return first

    with f.loop(f.begin, f.end, carry=[f.i64(0)]) as T:
        word = position + T.index / inner * outer_words + T.index % inner * inner_words
        T.carry = [save(f.offset(out, T.index * (4 * STATE)), word, T.carry[0])]
    save(state, position + words - 1, T.carry[0])


# ---- words to numbers ------------------------------------------------------------------------------------------------
def _wide(words: Value) -> Value:
    """Wide values from as many loaded pairs: in memory the first word is the low half, so swap the halves."""
    return (words << 32) | (words >> 32)


def _unit64(words: Value) -> Value:
    """A uniform float64 in [0, 1) from a pair of words."""
    return (_wide(words) & ((1 << 53) - 1)).bits(I64).to(F64) * 2.0**-53


def _unit32(words: Value) -> Value:
    """A uniform float32 in [0, 1) from a word."""
    return (words & 0xFFFFFF).bits(TYPES["int32"]).to(F32) * 2.0**-24


def _stored(x: Value, t: Type) -> Value:
    """``x`` as it is stored."""
    return x != 0 if t.kind == "b" else x.to(t)


def _words_of(f: Function, source: Type) -> Callable[[Value, int], Value]:
    """A function that gives the words of elements from ``i`` on: from the sequence, or from the prologue that draws
    them.
    """
    made: Any = f.prologue
    if made is not None:
        return lambda i, width: made(i, source, width)
    words = f.data(1)
    return lambda i, width: _draw(f, f.offset(words, i * source.bytes), source, width)


def _each(f: Function, source: Type, t: Type, body) -> None:
    """``out[i] = body(words of i)`` over the range; ``source`` is U32 for one word an element and U64 for two."""
    out, words = f.data(0), _words_of(f, source)
    lanes = f.lanes(U64 if U64 in (source, t) or t.bytes == 8 else source)
    for i, width in f.groups(f.begin, f.end, lanes):
        loaded = words(i, width)
        f.store(f.offset(out, i * t.bytes), _stored(body(loaded), t))


@kernel
def uniform(f: Function, dtype: str) -> None:
    """``arg = [low, high]`` (floats): uniform in [low, high); what rounds up to ``high`` becomes ``low``."""
    t = TYPES[dtype]
    compute = F64 if t is F64 else F32
    low, high = f.scalar(0, compute), f.scalar(1, compute)
    span = high - low
    low_stored, high_stored = low.to(t).to(compute), high.to(t).to(compute)

    def body(words: Value) -> Value:
        unit = _unit64(words) if t is F64 else _unit32(words)
        x = f.fma(unit, span, low).to(t).to(compute)
        return f.select(x == high_stored, f.splat(low_stored, x.lanes), x)

    _each(f, U64 if t is F64 else U32, t, body)


@kernel
def integers(f: Function, dtype: str) -> None:
    """``arg = [base, range]``: ``base + word % range`` for a range below 2**32, by a float64 reciprocal.

    The quotient from a 32-bit word and the rounded reciprocal is off by at most one; the remainder shows it.
    """
    t = TYPES[dtype]
    base, modulus = f.size(0), f.size(1)
    inverse, divisor, start = 1.0 / modulus.to(F64), modulus.to(F64), base.to(F64)

    def body(words: Value, exact: bool = True) -> Value:
        x = (words.to(U64) | 0x4330000000000000).bits(F64) - 2.0**52  # AVX2 has no conversions of 64 bits
        quotient = f.unary("floor", x * inverse)
        rest = f.fma(-quotient, divisor, x)
        rest = f.select(rest < 0.0, rest + divisor, rest)
        rest = f.select(rest >= divisor, rest - divisor, rest)
        return rest + start if not exact else whole_number(rest, I64) + base

    if t.kind != "f":
        _each(f, U32, t, body)
        return
    with f.branch((base > -(1 << 51)) & (base < 1 << 51)) as B:
        _each(f, U32, t, lambda words: body(words, False))
        B.otherwise()
        _each(f, U32, t, body)


@kernel
def wide_integers(f: Function, dtype: str) -> None:
    """``arg = [base, range]``: ``base + wide % range`` (unsigned; the sum wraps); a range of 0 is 2**64."""
    t = TYPES[dtype]
    base, modulus = f.size(0).bits(U64), f.size(1).bits(U64)
    all_bits = modulus == 0
    divisor = f.select(all_bits, 1, modulus)
    out, words = f.data(0), _words_of(f, U64)
    with f.loop(f.begin, f.end) as L:  # there is no vector instruction for it
        x = _wide(words(L.index, 1))
        x = f.select(all_bits, x, x % divisor) + base
        f.store(f.offset(out, L.index * t.bytes), _stored(x.bits(I64), t))


def _from_unit64(f: Function, dtype: str, body) -> None:
    _each(f, U64, TYPES[dtype], lambda words: body(_unit64(words)))


def _chosen(f: Function, words: Value, chance: Value, lanes: int) -> Value:
    """Whether uniform float64 numbers from ``words`` are below ``chance``, compared as 53-bit integers.

    The first word of a pair, which has the upper 21 of the 53 bits, nearly always decides. The second is tempered only
    where a lane needs it (1M numbers: 440 to 378 us).
    """
    limit = f.unary("ceil", chance * 2.0**53).to(I64)
    high, low = ((limit >> shift).bits(U64).to(U32) for shift in (32, 0))
    pairs = f.load(words, U32, 2 * lanes)
    first, second = (pairs.lane(i) if lanes == 1 else pairs.shuffle(range(i, 2 * lanes, 2)) for i in (0, 1))
    upper = _temper(first) & ((1 << 21) - 1)
    below, level = upper < f.splat(high, lanes), upper == f.splat(high, lanes)
    with f.while_(
        [s.any_lane(level), below, second]
    ) as L:  # at most once; `second` is carried so that LLVM does not compute it before the test
        again, _, second = L.carry
        L.test(again)
        second = _temper(second)
        L.carry = (f.const(BOOL, False), below | (level & (second < f.splat(low, lanes))), second)
    return L.carry[1]


@kernel
def bernoulli(f: Function, dtype: str) -> None:
    """``arg = [p, value]``: ``value`` (1 unless the dtype is float) where a uniform float64 is below ``p``; else 0."""
    p = f.scalar(0, F64)
    t = TYPES[dtype]
    one = f.scalar(1, F64).to(t) if t.kind == "f" else f.const(TYPES["uint8"] if t.bytes == 1 else t, 1)
    if t in (TYPES["float16"], TYPES["bfloat16"]):
        one = one.to(F32)
    out, words, lanes = f.data(0), f.data(1), f.lanes(U64 if t.bytes == 8 else F32)
    for i, width in f.groups(f.begin, f.end, lanes):
        chosen = _chosen(f, f.offset(words, i * 8), p, width)
        x = f.select(chosen, f.splat(one, width), f.const(one.type, 0, width))
        f.store(f.offset(out, i * t.bytes), _stored(x, t))


@kernel
def dropout(f: Function, dtype: str, stream: bool) -> None:
    """``ptr = [out, words, mask, x]``, ``arg = [p, value]``: ``x * value`` with probability ``p``, else ``x * 0``; the
    choice goes to a bool mask.

    ``stream``: ``out`` is stored past the cache; run :func:`fence` after that.
    """
    t = TYPES[dtype]
    work = F64 if t is F64 else F32
    p, value = f.scalar(0, F64), f.scalar(1, F64).to(t).to(work)
    out, words, mask, source = (f.data(i) for i in range(4))
    lanes = f.lanes(work)
    for i, width in f.groups(f.begin, f.end, lanes):
        x = f.load(f.offset(source, i * t.bytes), t, width).to(work)
        chosen = _chosen(f, f.offset(words, i * 8), p, width)
        factor = f.select(chosen, f.splat(value, width), f.const(work, 0, width))
        f.store(f.offset(out, i * t.bytes), (x * factor).to(t), nontemporal=stream and width > 1)
        f.store(f.offset(mask, i), chosen)


@kernel
def fence(f: Function) -> None:
    """Make stores past the cache visible to other threads."""
    f.fence()


def chosen_rows(f: Function) -> Helper:
    """``rows(out, pitch, state, position, chance, rows, columns, upto, more)``: Bernoulli draws, repeated from a saved
    state.

    A byte is not 0 where its element's uniform float64 is below ``chance`` (the bits of a double), as in
    :func:`bernoulli`. There are ``rows`` of ``columns`` elements, ``pitch`` bytes apart (a vector more than the
    columns). Row ``i`` gets the first ``upto + i * more`` of them, none past ``columns``; the words of the others are
    skipped.
    """
    h = f.helper("chosen_rows", PTR, I64, PTR, I64, I64, I64, I64, I64, I64)
    out, pitch, state, position, chance, rows, columns, upto, more = h.params
    window, lanes, p = _Window(h, state, f), h.lanes(F32), chance.bits(F64)
    whole = window.BLOCKS * STATE

    def advanced(position: Value) -> Value:
        """Advance the window until the position is before its last block, so that no pair ends beyond the window."""
        times = position / whole
        window.advance(times)
        return position - times * whole

    with h.loop(0, rows, carry=[position]) as R:
        row, upto_here = h.offset(out, R.index * pitch), upto + R.index * more
        end = h.select(upto_here < columns, upto_here, columns)
        with h.while_([h.i64(0), R.carry[0]]) as C:
            done, at = C.carry
            C.test(done < end)
            at = advanced(at)
            left, there = end - done, (whole + STATE - at) / 2
            count = h.select(left < there, left, there)
            words, to = h.offset(window.words, at * 4), h.offset(row, done)
            with h.loop(0, count, lanes) as L:
                h.store(h.offset(to, L.index), _chosen(h, h.offset(words, L.index * 8), p, lanes))
            C.carry = (done + count, at + count * 2)
        R.carry = [advanced(C.carry[1] + (columns - end) * 2)]
    return h


@kernel
def bernoulli_each(f: Function, dtype: str, probability: str) -> None:
    """``ptr = [out, words, p]``: 1 where a uniform of the probability's precision is below ``p[i]``."""
    t, pt = TYPES[dtype], TYPES[probability]
    source = U64 if pt is F64 else U32
    out, words, chances = f.data(0), f.data(1), f.data(2)
    with f.loop(f.begin, f.end) as L:
        loaded = _draw(f, f.offset(words, L.index * source.bytes), source, 1)
        unit = _unit64(loaded) if pt is F64 else _unit32(loaded)
        p = f.load(f.offset(chances, L.index * pt.bytes), pt).to(unit.type)
        yes = (unit < p).to(TYPES["int32"])
        f.store(f.offset(out, L.index * t.bytes), _stored(yes, t))


@kernel
def exponential(f: Function, dtype: str) -> None:
    """``arg = [rate]``: ``-log(1 - u) / rate``; the difference is exact."""
    scale = 1.0 / f.scalar(0, F64)
    _from_unit64(f, dtype, lambda unit: (0.0 - s.log(1.0 - unit)) * scale)


@kernel
def geometric(f: Function, dtype: str) -> None:
    """``arg = [log(1 - p)]``: ``ceil(log(u) / log(1 - p))``."""
    denominator = f.scalar(0, F64)
    _from_unit64(f, dtype, lambda unit: f.unary("ceil", s.log(unit) / denominator))


@kernel
def cauchy(f: Function, dtype: str) -> None:
    """``arg = [median, sigma]``: ``median + sigma * tan(pi * (u - 1/2))``."""
    median, sigma = f.scalar(0, F64), f.scalar(1, F64)

    def body(unit: Value) -> Value:
        sine, cosine = _sine_cosine(f, (unit - 0.5) * math.pi)
        return f.splat(median, unit.lanes) + sine / cosine * sigma

    _from_unit64(f, dtype, body)


# ---- normal ----------------------------------------------------------------------------------------------------------
def _sine_cosine(f: Function, angle: Value) -> tuple[Value, Value]:
    """Sine and cosine of an angle of at most a few turns: the general functions spend most time on larger ones."""
    t = angle.type
    name = t.name
    quarter = f.unary("roundeven", angle * (2 / math.pi))
    rest = angle
    for part in _HALF_PI[name]:
        rest = f.fma(quarter, -part, rest)
    square = rest * rest

    def poly(coefficients) -> Value:
        result = f.const(t, coefficients[-1], angle.lanes)
        for c in reversed(coefficients[:-1]):
            result = f.fma(result, square, c)
        return result

    sine = f.fma(rest * square, poly(tables.SIN_SHORT[name]), rest)
    cosine = f.fma(square * square, poly(tables.COS_SHORT[name]), f.fma(square, -0.5, 1.0))
    q = quarter.to(TYPES["int32"] if t is F32 else I64)
    swap = (q & 1) != 0
    a, b = f.select(swap, cosine, sine), f.select(swap, sine, cosine)
    return f.select((q & 2) != 0, -a, a), f.select(((q + 1) & 2) != 0, -b, b)


#: pi / 2 as a sum of floats, the largest first.
_HALF_PI = {
    "float32": (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    "float64": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}


@kernel
def normal(f: Function, dtype: str) -> None:
    """``arg = [mean, std]``: blocks of 16 normal numbers from 16 uniforms, one a step of the range (Box & Muller 1958).

    Number ``j`` of a block comes from the uniforms ``j`` and ``j + 8`` and is a cosine, number ``j + 8`` the sine.
    """
    t = TYPES[dtype]
    compute = F64 if t is F64 else F32
    source = U64 if t is F64 else U32
    out, words = f.data(0), f.data(1)
    mean, std = f.scalar(0, compute), f.scalar(1, compute)
    blocks = max(f.lanes(compute) // 8, 1)

    def step(index: Value, count: int) -> None:
        at = index * 16
        lanes = 8 * count
        unit = _unit64 if t is F64 else _unit32
        pairs = [_draw(f, f.offset(words, (at + 16 * i) * source.bytes), source, 16) for i in range(count)]
        first, second = (pairs[0].slice(8 * i, 8) for i in range(2))
        for more in pairs[1:]:
            first, second = (old.shuffle(range(16), more.slice(8 * i, 8)) for i, old in enumerate((first, second)))
        radius = f.unary("sqrt", s.log(1.0 - unit(first)) * -2.0)
        sine, cosine = _sine_cosine(f, unit(second) * f.const(compute, _TURN))
        low = f.fma(radius * cosine, f.splat(std, lanes), mean).to(t)
        high = f.fma(radius * sine, f.splat(std, lanes), mean).to(t)
        for i in range(count):
            picks = [*range(8 * i, 8 * i + 8), *range(lanes + 8 * i, lanes + 8 * i + 8)]
            f.store(f.offset(out, (at + 16 * i) * t.bytes), low.shuffle(picks, high))

    for index, count in f.groups(f.begin, f.end, blocks):
        step(index, count)


@kernel
def normal_pairs(f: Function, dtype: str, exponent: bool) -> None:
    """``arg = [mean, std]``: pairs of normal numbers, one a step of the range, computed in float64 from two uniforms.

    ``exponent``: their exponentials, which are log-normal.
    """
    t = TYPES[dtype]
    out, words = f.data(0), f.data(1)
    mean, std = f.scalar(0, F64), f.scalar(1, F64)
    lanes = f.lanes(F64)

    def step(index: Value, count: int) -> None:
        loaded = _draw(f, f.offset(words, index * 16), U64, 2 * count)
        halves = [loaded.lane(i) if count == 1 else loaded.shuffle(range(i, 2 * count, 2)) for i in range(2)]
        first, second = (_unit64(half) for half in halves)
        radius = f.unary("sqrt", s.log(1.0 - second) * -2.0)
        sine, cosine = _sine_cosine(f, first * _TURN)
        x, y = ((radius * v) * f.splat(std, count) + f.splat(mean, count) for v in (cosine, sine))
        if exponent:
            x, y = s.exp(x), s.exp(y)
        at = f.offset(out, index * (2 * t.bytes))
        if count == 1:
            f.store(at, x.to(t))
            f.store(f.offset(at, t.bytes), y.to(t))
        else:
            mixed = [i // 2 + (i % 2) * count for i in range(2 * count)]
            f.store(at, x.to(t).shuffle(mixed, y.to(t)))

    for index, count in f.groups(f.begin, f.end, lanes):
        step(index, count)


def distribution(name: str, dtype: str) -> int:
    """The kernel of a distribution, by its name in ``_core/random.pyx``."""
    if name.endswith("normal_pairs"):
        return normal_pairs(dtype, name == "log_normal_pairs")
    return globals()[name](dtype)
