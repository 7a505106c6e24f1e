"""Sorting rows, the k largest or smallest of a row, the k-th, and what follows from sorted order.

Everything works on unsigned *keys* in the order of the values: the bits of an integer with its sign flipped; the bits
of a float changed so that they count upwards. Both zeros share a key, and so do all NaN, which are the largest. A key
of up to 32 bits is in one word with its original position (``key << 32 | position``); a 64-bit key and its position are
in two arrays. All orders are stable: of equal items the earlier comes first, so results depend on the input alone.
"""

from __future__ import annotations

from collections.abc import Callable

from .build import kernel
from .copy import copy_item
from .indexing import BLOCK
from .ir import BOOL, F16, F32, I64, PTR, TYPES, U8, U64, Function, Helper, Type, Value

RANK_LIMIT = 64  # rows up to this length are sorted by counting, for each item, the items before it
KTH_LIMIT = 128  # the same, for rows of which the item of one rank is needed
BINS = 256
WORK = {8: TYPES["uint8"], 16: TYPES["uint16"], 32: TYPES["uint32"], 64: U64}


def key_bits(dtype: str) -> int:
    """Bits of a key of ``dtype``."""
    return max(TYPES[dtype].bits, 8)


def words(dtype: str) -> int:
    """Arrays of 8-byte words for a run of keys with positions: 1, or 2 for 64-bit keys."""
    return 2 if key_bits(dtype) == 64 else 1


def key(f: Function, x: Value, descending: bool) -> Value:
    """The key of ``x``, as an unsigned value of its width."""
    t = x.type
    if t is BOOL:
        k = x.to(U8)
    elif t.kind == "u":
        k = x
    elif t.kind == "i":
        k = x.bits(WORK[t.bits]) ^ (1 << (t.bits - 1))
    else:
        u = WORK[t.bits]
        sign, ones = 1 << (t.bits - 1), (1 << t.bits) - 1
        bits = x.bits(u)
        zero = (bits & (sign - 1)) == 0
        infinity = {16: 0x7C00 if t is F16 else 0x7F80, 32: 0x7F800000, 64: 0x7FF0000000000000}[t.bits]
        nan = (bits & (sign - 1)) > infinity
        ordered = f.select((bits & sign) != 0, ~bits, bits | sign)
        k = f.select(nan, f.const(u, ones, x.lanes), f.select(zero, f.const(u, sign, x.lanes), ordered))
    return ~k if descending else k


class Run:
    """A run of keys with positions in memory: ``bases`` are the addresses of its one or two arrays of words."""

    def __init__(self, f: Function, *bases: Value):
        self.f, self.bases = f, bases

    def store(self, i: Value, k: Value, position: Value, mask: Value | None = None) -> None:
        """Store keys (any width) and their positions (int64) from ``i`` on."""
        for base, word in zip(self.bases, self.words(k, position), strict=True):
            self.f.store(self.f.offset(base, i * 8), word, mask)

    def words(self, k: Value, position: Value) -> list[Value]:
        """The words that hold ``k`` and ``position``."""
        if len(self.bases) == 2:
            return [k, position.to(U64)]
        return [(k.to(U64) << 32) | position.to(U64)]

    def load(self, i: Value) -> list[Value]:
        """The words at ``i``."""
        return [self.f.load(self.f.offset(base, i * 8), U64) for base in self.bases]

    def keys(self, i: Value, lanes: int = 1, mask: Value | None = None) -> Value:
        """The keys from ``i`` on, as 64-bit words in the same order."""
        k = self.f.load(self.f.offset(self.bases[0], i * 8), U64, lanes, mask)
        return k if len(self.bases) == 2 else k >> 32

    def position(self, i: Value) -> Value:
        """The original position of the item at ``i``."""
        p = self.f.load(self.f.offset(self.bases[-1], i * 8), U64)
        return (p if len(self.bases) == 2 else p & 0xFFFFFFFF).to(I64)


def _zero(f: Function, where: Value, nbytes: int) -> None:
    wide = f.lanes(U64)
    with f.loop(0, nbytes, wide * 8) as L:
        f.store(f.offset(where, L.index), f.const(U64, 0, wide))


def count_digits(f: Function, counts: Value, word: Value, bits: int, shift: int) -> None:
    """Count every 8-bit digit of a key in a table of its own."""
    for d in range(bits // 8):
        digit = ((word >> (shift + 8 * d)) & (BINS - 1)).to(I64)
        slot = f.offset(counts, digit * 8 + d * BINS * 8)
        f.store(slot, f.load(slot, I64) + 1)


def radix(f: Function, a: Run, b: Run, n: Value, bits: int, counts: Value) -> Run:
    """Sort ``a`` by its keys, least significant digit first, with ``b`` as the other buffer; return the run that holds
    the result.

    ``counts`` holds the tables that :func:`count_digits` filled. A digit that is the same everywhere is skipped.
    """
    shift = 0 if len(a.bases) == 2 else 32
    width = len(a.bases)
    with f.loop(0, bits // 8, carry=[*a.bases, *b.bases]) as D:
        src, dst = Run(f, *D.carry[:width]), Run(f, *D.carry[width:])
        table = f.offset(counts, D.index * (BINS * 8))
        amount = f.splat((D.index * 8 + shift).to(U64), 1)

        def slot_of(word: Value) -> Value:
            return f.offset(table, ((word >> amount) & (BINS - 1)).to(I64) * 8)

        same = f.load(slot_of(src.load(f.i64(0))[0]), I64) == n
        with f.when(~same):
            with f.loop(0, BINS * 8, 8, carry=[f.i64(0)]) as L:
                slot = f.offset(table, L.index)
                count = f.load(slot, I64)
                f.store(slot, L.carry[0])
                L.carry = (L.carry[0] + count,)
            with f.loop(0, n) as L:
                record = src.load(L.index)
                slot = slot_of(record[0])
                to = f.load(slot, I64)
                f.store(slot, to + 1)
                for base, word in zip(dst.bases, record, strict=True):
                    f.store(f.offset(base, to * 8), word)
        D.carry = tuple(
            f.select(same, x, y) for x, y in zip((*src.bases, *dst.bases), (*dst.bases, *src.bases), strict=True)
        )
    return Run(f, *D.carry[:width])


def _keys(f: Function, to: Value, x: Value, n: Value, t: Type, descending: bool) -> None:
    """The keys of the ``n`` items at ``x``, contiguous at ``to``, where there is room for whole vectors."""
    u = WORK[max(t.bits, 8)]
    lanes = f.lanes(u)

    def some(i: Value, count: int, mask: Value | None = None) -> None:
        item = f.load(f.offset(x, i * t.bytes), t, count, mask)
        f.store(f.offset(to, i * u.bytes), key(f, item, descending))

    whole = n & f.i64(-lanes)
    with f.loop(0, whole, lanes) as L:
        some(L.index, lanes)
    if t.bytes >= 4:
        with f.when(whole < n):
            some(whole, lanes, f.first(n - whole, lanes))
    else:  # not every target masks such loads
        with f.when(whole < n):
            f.store(f.offset(to, whole * u.bytes), f.const(u, 0, lanes))  # the vector is read whole
        with f.loop(whole, n) as L:
            some(L.index, 1)


def _ranks(
    f: Function, keys: Value, u: Type, n: Value, take: Callable[[Value, Value, Value], None], distinct: bool = False
) -> None:
    """Call ``take(first, ranks, count)`` for each vector of a short run of keys of type ``u``.

    An item's rank is the number of items before it: of smaller ones, and of earlier equal ones. Where keys are
    ``distinct`` one comparison is enough. The vector is read whole; ``count`` is how much of it belongs to the run.
    """
    lanes = f.lanes(u)
    unroll = 4

    def tally(lo: Value, hi: Value, before: Callable[[Value, Value], Value], total: Value) -> Value:
        """``total`` plus one for each item of ``[lo, hi)`` that is ``before(item, its position)``."""

        def some(i: Value, count: int, total: Value) -> Value:
            for k in range(count):
                item = f.splat(f.load(f.offset(keys, (i + k) * u.bytes), u), lanes)
                total = total + f.select(before(item, i + k), f.const(u, 1, lanes), 0)
            return total

        with f.loop(lo, hi - (unroll - 1), unroll, carry=[total]) as J:
            J.carry = (some(J.index, unroll, J.carry[0]),)
        with f.loop(lo + ((hi - lo) & f.i64(-unroll)), hi, carry=J.carry) as J:
            J.carry = (some(J.index, 1, J.carry[0]),)
        return J.carry[0]

    with f.loop(0, n, lanes) as L:
        first, behind = L.index, L.index + lanes
        stop = f.select(behind < n, behind, n)
        mine = f.load(f.offset(keys, first * u.bytes), u, lanes)
        none = f.const(u, 0, lanes)
        if distinct:
            ranks = tally(f.i64(0), n, lambda item, _: item < mine, none)
        else:
            places = f.iota(u, lanes)

            def earlier(item: Value, i: Value) -> Value:
                return (item < mine) | ((item == mine) & (f.splat((i - first).to(u), lanes) < places))

            ranks = tally(f.i64(0), first, lambda item, _: item <= mine, none)
            ranks = tally(first, stop, earlier, ranks)
            ranks = tally(stop, n, lambda item, _: item < mine, ranks)
        take(first, ranks, stop - first)


def _rank_sort(
    f: Function, keys: Value, u: Type, n: Value, emit: Callable[[Value, Value], None], distinct: bool = False
) -> None:
    """Call ``emit(place, position)`` for every item of a short run of keys."""
    places = f.scratch(max(f.vector_bytes, 8))

    def take(first: Value, ranks: Value, count: Value) -> None:
        f.store(places, ranks)
        with f.loop(0, count) as J:
            emit(f.load(f.offset(places, J.index * u.bytes), u).to(I64), first + J.index)

    _ranks(f, keys, u, n, take, distinct)


@kernel
def sort_rows(f: Function, dtype: str, descending: bool, short: bool) -> None:
    """Sort rows: ``ptr = [values, positions, x, buffer]``, ``arg = [n, grain, k]``, ``[begin, end)`` are rows, all
    contiguous.

    ``short`` is for n up to ``RANK_LIMIT``; it keeps the first ``k``. ``positions`` (int64) and, for 64-bit keys,
    ``values`` are the first buffer; ``buffer`` is the other, ``words(dtype) * n`` words for each piece of ``grain``
    rows (not used by ``short``).
    """
    t, bits, width = TYPES[dtype], key_bits(dtype), words(dtype)
    values, positions, source, spare = (f.data(i) for i in range(4))
    n = f.size(0)
    counts = f.scratch(bits // 8 * BINS * 8) if not short else None
    keys = f.scratch(RANK_LIMIT * bits // 8) if short else None
    kept = f.size(2) if short else n
    with f.loop(f.begin, f.end) as R:
        x = f.offset(source, R.index * n * t.bytes)
        to = f.offset(values, R.index * kept * t.bytes)
        index = f.offset(positions, R.index * kept * 8)
        if short:
            _keys(f, keys, x, n, t, descending)

            def emit(place: Value, position: Value) -> None:
                with f.when(place < kept):
                    copy_item(f, f.offset(to, place * t.bytes), f.offset(x, position * t.bytes), t.bytes)
                    f.store(f.offset(index, place * 8), position)

            _rank_sort(f, keys, WORK[bits], n, emit)
        else:
            other = f.offset(spare, f.begin / f.size(1) * n * (8 * width))
            a = Run(f, to, index) if width == 2 else Run(f, index)
            b = Run(f, other, f.offset(other, n * 8)) if width == 2 else Run(f, other)
            _zero(f, counts, bits // 8 * BINS * 8)
            with f.loop(0, n) as L:
                k = key(f, f.load(f.offset(x, L.index * t.bytes), t), descending)
                count_digits(f, counts, k.to(U64), bits, 0)
                a.store(L.index, k, L.index)
            done = radix(f, a, b, n, bits, counts)
            with f.loop(0, n) as L:
                p = done.position(L.index)
                f.store(f.offset(index, L.index * 8), p)
                copy_item(f, f.offset(to, L.index * t.bytes), f.offset(x, p * t.bytes), t.bytes)


# ---- selection ------------------------------------------------------------------------------------------------------
def top_room(k: int) -> int:
    """Items that the buffer of :func:`top_rows` holds for ``k``; a full buffer is sorted."""
    return max(2 * k, k + 256)


@kernel
def top_rows(f: Function, dtype: str, largest: bool) -> None:
    """The first k of each row in sorted order: ``ptr = [values, positions, x, buffer]``, ``arg = [n, k, room, grain]``.

    Items that beat the k-th best so far are collected. Once there are ``room`` of them (``top_room(k)``) they are
    sorted and cut to k. The buffer has ``2 * words(dtype) * (room + 64)`` words for each piece of ``grain`` rows.
    ``[begin, end)`` are rows.
    """
    t, bits, width = TYPES[dtype], key_bits(dtype), words(dtype)
    values, positions, source, buffer = (f.data(i) for i in range(4))
    n, k, room = (f.size(i) for i in range(3))
    lanes = max(f.vector_bytes // max(t.bytes, 2), 1)
    u = WORK[bits]

    order = f.helper("order", *[PTR] * (2 * width), I64)
    _order(order, width, bits)
    count, limit = f.scratch(8), f.scratch(8)
    spill, flags = f.scratch(lanes * u.bytes), f.scratch(lanes)

    with f.loop(f.begin, f.end) as R:
        x = f.offset(source, R.index * n * t.bytes)
        span = (room + 64) * 8
        base = f.offset(buffer, f.begin / f.size(3) * span * (2 * width))
        bases = [f.offset(base, span * i) for i in range(2 * width)]
        run = Run(f, *bases[:width])
        f.store(count, f.i64(0))
        f.store(limit, f.const(u, (1 << bits) - 1))
        groups = top_groups(f, bits)
        short = n < 4 * groups  # of short rows only as many groups are compared as k asks for
        with f.branch(short & (k <= groups // 8) & (n >= groups // 2)) as few:
            _guess_limit(f, x, n, k, limit, t, largest, 1)
            few.otherwise()
            with f.branch(short & (k <= groups // 4) & (n >= groups)) as more:
                _guess_limit(f, x, n, k, limit, t, largest, 2)
                more.otherwise()
                with f.when((k <= groups // 2) & (n >= groups)):
                    _guess_limit(f, x, n, k, limit, t, largest, 4)
        with f.loop(0, n, lanes) as L:
            rest = n - L.index
            keys = key(f, f.load(f.offset(x, L.index * t.bytes), t, lanes, f.first(rest, lanes)), largest)
            passes = (keys <= f.splat(f.load(limit, u), lanes)) & f.first(rest, lanes)
            with f.when(_any(f, passes)):
                f.store(spill, keys)
                f.store(flags, passes)
                stop = f.select(rest < lanes, rest, f.i64(lanes))
                with f.loop(0, stop, carry=[f.load(count, I64)]) as J:
                    word = f.load(f.offset(spill, J.index * u.bytes), u)
                    run.store(J.carry[0], word, L.index + J.index)
                    J.carry = (J.carry[0] + f.load(f.offset(flags, J.index), U8).to(I64),)
                f.store(count, J.carry[0])
                with f.when(J.carry[0] >= room):
                    f.call(order, *bases, J.carry[0])
                    f.store(count, k)
                    # A later item that equals the k-th does not replace it: the limit is one below it.
                    last = run.keys(k - 1)
                    f.store(limit, (f.select(last == 0, f.const(U64, 1), last) - 1).to(u))

        def emit(place: Value, at: Value) -> None:
            p, to = run.position(at), R.index * k + place
            f.store(f.offset(positions, to * 8), p)
            copy_item(f, f.offset(values, to * t.bytes), f.offset(x, p * t.bytes), t.bytes)

        total = f.load(count, I64)
        with f.branch(total <= RANK_LIMIT) as few:

            def emit_first(place: Value, at: Value) -> None:
                with f.when(place < k):
                    emit(place, at)

            # keys with positions are all distinct
            _rank_sort(f, run.bases[0], U64, total, emit_first, distinct=width == 1)
            few.otherwise()
            f.call(order, *bases, total)
            with f.loop(0, k) as J:
                emit(J.index, J.index)


def top_groups(f: Function, bits: int) -> int:
    """Groups that :func:`top_rows` cuts a row into to guess its limit."""
    return 4 * max(f.vector_bytes // max(bits // 8, 2), 1)


def _guess_limit(
    f: Function, x: Value, n: Value, k: Value, limit: Value, t: Type, largest: bool, registers: int
) -> None:
    """Lower ``limit`` to the k-th best of the best items of interleaved groups: at least k items are as good."""
    bits = max(t.bits, 8)
    u, lanes = WORK[bits], top_groups(f, bits) // 4
    groups = lanes * registers
    room = f.scratch(groups * u.bytes)
    worst = f.const(u, (1 << bits) - 1, lanes)
    with f.loop(0, n - (groups - 1), groups, carry=[worst] * registers) as L:
        at = f.offset(x, L.index * t.bytes)
        items = [key(f, f.load(f.offset(at, i * lanes * t.bytes), t, lanes), largest) for i in range(registers)]
        L.carry = tuple(f.unary("umin", a, b) for a, b in zip(L.carry, items, strict=True))
    for i, best in enumerate(L.carry):
        f.store(f.offset(room, i * lanes * u.bytes), best)
    # The k-th best is the best of those with at least k items as good, themselves included.
    bound = worst
    for best in L.carry:
        with f.loop(0, groups, carry=[f.const(u, 0, lanes)]) as J:
            other = f.splat(f.load(f.offset(room, J.index * u.bytes), u), lanes)
            J.carry = (J.carry[0] + f.select(other <= best, f.const(u, 1, lanes), 0),)
        bound = f.unary("umin", bound, f.select(J.carry[0] >= f.splat(k.to(u), lanes), best, worst))
    f.store(limit, bound.reduce(lambda a, b: f.unary("umin", a, b)))


def _order(f: Helper, width: int, bits: int) -> None:
    """The body of a helper that sorts a run in place; its parameters are the run, the other buffer and the length."""
    a, b, n = Run(f, *f.params[:width]), Run(f, *f.params[width : 2 * width]), f.params[-1]
    counts = f.scratch(bits // 8 * BINS * 8)
    _zero(f, counts, bits // 8 * BINS * 8)
    with f.loop(0, n) as L:
        count_digits(f, counts, a.load(L.index)[0], bits, 0 if width == 2 else 32)
    done = radix(f, a, b, n, bits, counts)
    with f.when(done.bases[0] != a.bases[0]), f.loop(0, n) as L:
        for base, word in zip(a.bases, done.load(L.index), strict=True):
            f.store(f.offset(base, L.index * 8), word)


def _any(f: Function, mask: Value) -> Value:
    """Whether any lane of ``mask`` is true."""
    whole = Type("mask", f"i{mask.lanes}", mask.lanes, "u")
    return f.emit(f"bitcast {mask.typed} to {whole.llvm}", whole) != 0


def _kth_of_few(f: Function, value: Value, position: Value, source: Value, kth: Value, n: Value, t: Type) -> None:
    """:func:`kth_rows` of short rows."""
    u = WORK[max(t.bits, 8)]
    keys = f.scratch(KTH_LIMIT * u.bytes)
    with f.loop(f.begin, f.end) as R:
        x = f.offset(source, R.index * n * t.bytes)
        k = f.load(f.offset(kth, R.index * 8), I64)
        _keys(f, keys, x, n, t, False)

        def take(first: Value, ranks: Value, count: Value) -> None:
            lanes = ranks.lanes
            hit = (ranks == f.splat(k.to(u), lanes)) & f.first(count, lanes)
            with f.when(_any(f, hit)):
                found = f.select(hit, f.iota(u, lanes), 0).reduce(lambda a, b: a | b)
                at = first + found.to(I64)
                f.store(f.offset(position, R.index * 8), at)
                copy_item(f, f.offset(value, R.index * t.bytes), f.offset(x, at * t.bytes), t.bytes)

        _ranks(f, keys, u, n, take)


@kernel
def median_places(f: Function, dtype: str, skip_nan: bool) -> None:
    """The place of the median of each row in ascending order: ``ptr = [k, x]``, ``arg = [n]``, ``[begin, end)`` are
    rows.

    If there is a NaN, the first one is the median; with ``skip_nan``, NaN are not counted.
    """
    t = TYPES[dtype]
    n = f.size(0)
    with f.loop(f.begin, f.end) as R:
        x = f.offset(f.data(1), R.index * n * t.bytes)
        if t.kind == "f":
            work = F32 if t.bits == 16 else t
            lanes = f.lanes(work)

            def numbers(i: Value, count: int) -> Value:
                """The number of items, of ``count``, that are not NaN."""
                item = f.load(f.offset(x, i * t.bytes), t, count).to(work)
                good = item == item
                return f.count_true(good) if count > 1 else good.to(I64)

            whole = n & f.i64(-lanes)
            with f.loop(0, whole, lanes, carry=[f.i64(0)]) as L:
                L.carry = (L.carry[0] + numbers(L.index, lanes),)
            with f.loop(whole, n, carry=L.carry) as L:
                L.carry = (L.carry[0] + numbers(L.index, 1),)
            good = L.carry[0]
        else:
            good = n
        middle = f.select(good > 0, good - 1, f.i64(0)) >> 1
        f.store(f.offset(f.data(0), R.index * 8), middle if skip_nan else f.select(good == n, middle, good))


@kernel
def kth_rows(f: Function, dtype: str, short: bool) -> None:
    """The item of each row that has ``k[row]`` items before it in ascending order, and its position.

    ``ptr = [value, position, x, k, buffer]``, ``arg = [n]``; the buffer has ``words(dtype) * n`` words per row. Digits
    are decided from the top: only items that share the k-th item's digit go to the next round. ``[begin, end)`` are
    rows.
    """
    t, bits, width = TYPES[dtype], key_bits(dtype), words(dtype)
    value, position, source, kth, buffer = (f.data(i) for i in range(5))
    n = f.size(0)
    if short:
        _kth_of_few(f, value, position, source, kth, n, t)
        return
    digit_bits = min(bits, 11)
    bins = 1 << digit_bits
    counts = f.scratch(bins * 8)

    def find(k: Value) -> tuple[Value, Value]:
        """The bin of item ``k``, and the number of items in the bins before it."""
        with f.while_([f.i64(0), f.i64(0)]) as W:
            i, before = W.carry
            count = f.load(f.offset(counts, i * 8), I64)
            W.test(before + count <= k)
            W.carry = (i + 1, before + count)
        return W.carry

    def tally(digit: Value) -> None:
        slot = f.offset(counts, digit * 8)
        f.store(slot, f.load(slot, I64) + 1)

    with f.loop(f.begin, f.end) as R:
        x = f.offset(source, R.index * n * t.bytes)
        base = f.offset(buffer, f.begin / f.size(1) * n * (8 * width))
        run = Run(f, *[f.offset(base, n * (8 * i)) for i in range(width)])

        def top(i: Value) -> tuple[Value, Value]:
            k = key(f, f.load(f.offset(x, i * t.bytes), t), False)
            return k, (k.to(U64) >> (bits - digit_bits)).to(I64)

        _zero(f, counts, bins * 8)
        with f.loop(0, n) as L:
            tally(top(L.index)[1])
        k = f.load(f.offset(kth, R.index * 8), I64)
        chosen, before = find(k)
        with f.loop(0, n, carry=[f.i64(0)]) as L:
            word, digit = top(L.index)
            run.store(L.carry[0], word, L.index)
            L.carry = (L.carry[0] + f.select(digit == chosen, f.i64(1), f.i64(0)),)
        with f.while_([f.i64(bits - digit_bits), L.carry[0], k - before]) as W:
            shift, count, k = W.carry
            W.test((shift > 0) & (count > 1))
            shift = f.select(shift < digit_bits, f.i64(0), shift - digit_bits)

            def digit_at(i: Value) -> Value:
                return ((run.keys(i) >> shift.to(U64)) & (bins - 1)).to(I64)

            _zero(f, counts, bins * 8)
            with f.loop(0, count) as L:
                tally(digit_at(L.index))
            chosen, before = find(k)
            with f.loop(0, count, carry=[f.i64(0)]) as L:
                record = run.load(L.index)
                stays = digit_at(L.index) == chosen
                for base, word in zip(run.bases, record, strict=True):
                    f.store(f.offset(base, L.carry[0] * 8), word)
                L.carry = (L.carry[0] + f.select(stays, f.i64(1), f.i64(0)),)
            W.carry = (shift, L.carry[0], k - before)
        p = run.position(W.carry[2])
        f.store(f.offset(position, R.index * 8), p)
        copy_item(f, f.offset(value, R.index * t.bytes), f.offset(x, p * t.bytes), t.bytes)


# ---- runs of equal items --------------------------------------------------------------------------------------------
@kernel
def mode_rows(f: Function, dtype: str) -> None:
    """The most frequent value of sorted rows (the smallest of equally frequent ones) and its last position.

    ``ptr = [value, position, sorted, positions]``, ``arg = [n]``, ``[begin, end)`` are rows.
    """
    t = TYPES[dtype]
    n = f.size(0)
    with f.loop(f.begin, f.end) as R:
        row = f.offset(f.data(2), R.index * n * t.bytes)
        zero = f.i64(0)
        with f.loop(0, n, carry=[zero, zero, zero]) as L:  # start of this run, length and end of the best
            start, best, end = L.carry
            previous = f.select(L.index > 0, L.index - 1, zero)
            new = f.load(f.offset(row, L.index * t.bytes), t) != f.load(f.offset(row, previous * t.bytes), t)
            start = f.select(new, L.index, start)
            length = L.index - start + 1
            better = length > best
            L.carry = (start, f.select(better, length, best), f.select(better, L.index, end))
        end = L.carry[2]
        p = f.load(f.offset(f.data(3), (R.index * n + end) * 8), I64)
        f.store(f.offset(f.data(1), R.index * 8), p)
        copy_item(f, f.offset(f.data(0), R.index * t.bytes), f.offset(row, end * t.bytes), t.bytes)


@kernel
def run_starts(f: Function, dtype: str) -> None:
    """A byte per item: 1 where it differs from the one before (the first always does).

    ``ptr = [flags, x]``, ``[begin, end)`` are items. NaN differs from NaN.
    """
    t, lanes = TYPES[dtype], 16
    flags, x = f.data(0), f.data(1)
    first = f.select(f.begin == 0, f.i64(1), f.begin)
    with f.when((f.begin == 0) & (f.end > 0)):
        f.store(flags, f.const(U8, 1))

    def differs(i: Value, n: int) -> Value:
        here = f.offset(x, i * t.bytes)
        return f.load(here, t, n) != f.load(f.offset(here, -t.bytes), t, n)

    with f.when(first < f.end):
        for i, n in f.groups(first, f.end, lanes):
            f.store(f.offset(flags, i), differs(i, n))


@kernel
def run_numbers(f: Function, ordered: bool) -> None:
    """Number the runs: ``dst[position[i]]`` (``dst[i]`` if ``ordered``) is the number of runs that began up to ``i``,
    minus one.

    ``ptr = [dst, flags, starts, positions]``, ``arg = [n]``; ``starts`` counts the flags before each block of
    ``BLOCK``. ``[begin, end)`` are blocks.
    """
    n = f.size(0)
    with f.loop(f.begin, f.end) as L:
        first = L.index * BLOCK
        stop = f.select(n - first < BLOCK, n, first + BLOCK)
        with f.loop(first, stop, carry=[f.load(f.offset(f.data(2), L.index * 8), I64)]) as J:
            seen = J.carry[0] + f.load(f.offset(f.data(1), J.index), U8).to(I64)
            at = J.index if ordered else f.load(f.offset(f.data(3), J.index * 8), I64)
            f.store(f.offset(f.data(0), at * 8), seen - 1)
            J.carry = (seen,)


@kernel
def run_lengths(f: Function) -> None:
    """Lengths of runs from their starts: ``ptr = [dst, starts]``, ``arg = [runs, n]``; the range counts runs, at
    least one."""
    runs, n = f.size(0), f.size(1)
    dst, starts = f.data(0), f.data(1)
    wide = f.lanes(I64)
    whole = f.select(f.end == runs, runs - 1, f.end)  # all but the last are followed by a start
    with f.loop(f.begin, whole, wide) as L:
        mask = f.first(whole - L.index, wide)
        here, following = (f.load(f.offset(starts, L.index * 8 + k), I64, wide, mask) for k in (0, 8))
        f.store(f.offset(dst, L.index * 8), following - here, mask)
    with f.when(f.end == runs):
        f.store(f.offset(dst, whole * 8), n - f.load(f.offset(starts, whole * 8), I64))
