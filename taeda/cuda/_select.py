"""One item of each row, found by threads together: the one of a rank, the median, the most frequent.

Of a short row each thread of a warp has some keys in registers, and bits are decided from the top: those of the items
that are left and have a 0 are counted. A longer row has a block, which reads it once for each digit of 6 bits that is
decided, and once or twice to find the item's position. It keeps nothing of the row, and stops when one item is left.
"""

from __future__ import annotations

from functools import reduce

from ..kernels.build import kernel
from ..kernels.copy import copy_item
from ..kernels.ir import I32, I64, TYPES, U32, U64, Function, Value
from ..kernels.sort import KTH_LIMIT, key, key_bits
from ._blocks import THREADS, WARP, Block
from ._sort import BITS, DIGITS, EACH, sum_before

WARPS = THREADS // WARP


class _Keys:
    """The keys of the row of a block or a warp, as words of one type."""

    def __init__(self, block: Block, dtype: str, source: int) -> None:
        self.block, self.f, self.t = block, block.f, TYPES[dtype]
        self.word = U64 if key_bits(dtype) == 64 else U32
        self.n = self.f.size(0)
        self.row = self.f.offset(self.f.data(source), self.f.begin * self.n * self.t.bytes)

    def at(self, i: Value) -> Value:
        return key(self.f, self.f.load(self.f.offset(self.row, i * self.t.bytes), self.t), False).to(self.word)

    def at_or_zero(self, i: Value, here: Value) -> Value:
        f = self.f
        with f.loop(0, f.select(here, f.i64(1), 0), carry=[f.const(self.word, 0)]) as L:
            L.carry = (self.at(i),)
        return L.carry[0]

    def found(self, i: Value) -> None:
        """Write the item and its position: ``ptr = [value, position, ...]``."""
        f, nbytes = self.f, self.t.bytes
        f.store(f.offset(f.data(1), f.begin * 8), i)
        copy_item(f, f.offset(f.data(0), f.begin * nbytes), f.offset(self.row, i * nbytes), nbytes)


@kernel
def kth_rows(f: Function, dtype: str, short: bool) -> None:
    """As :func:`taeda.kernels.sort.kth_rows`, without its buffer."""
    block = Block(f, "warp" if short else "block")
    keys = _Keys(block, dtype, 2)
    k = f.load(f.offset(f.data(3), f.begin * 8), I64).to(I32)
    (_kth_of_few if short else _kth_of_many)(block, keys, key_bits(dtype), k)


def _kth_of_few(block: Block, keys: _Keys, bits: int, k: Value) -> None:
    """The k-th of a row of up to ``KTH_LIMIT`` items, for a warp."""
    f, lane = block.f, block.thread & (WARP - 1)
    items = [(lane + j * WARP).to(I64) for j in range(KTH_LIMIT // WARP)]
    left = [i < keys.n for i in items]
    words = [keys.at_or_zero(i, here) for i, here in zip(items, left, strict=True)]
    with f.loop(0, bits, carry=[k, *left]) as B:
        k, *left = B.carry
        amount = (f.i64(bits - 1) - B.index).to(keys.word)
        zero = [((word >> amount) & 1) == 0 for word in words]
        count = reduce(Value.__add__, (block.count(a & b) for a, b in zip(left, zero, strict=True)))
        low = k < count
        B.carry = (f.select(low, k, k - count), *(a & (b ^ ~low) for a, b in zip(left, zero, strict=True)))
    k, *left = B.carry
    seen = k - k
    for i, here in zip(items, left, strict=True):
        own, every = block.count_before(here)
        with f.when(here & (seen + own == k)):
            keys.found(i)
        seen = seen + every


def _kth_of_many(block: Block, keys: _Keys, bits: int, k: Value) -> None:
    """The k-th of a row of any length, for a block. Items left have the bits ``prefix`` where ``known`` has ones."""
    f, word, thread, n = block.f, keys.word, block.thread, keys.n
    lane, warp = thread & (WARP - 1), thread >> 5
    counters, totals = block.room(DIGITS * THREADS * 4), block.room(DIGITS * 4)
    parts = block.room(WARPS * 4)
    with f.while_([f.const(I32, bits), f.const(word, 0), f.const(word, 0), k, f.const(I32, 2)]) as D:
        shift, known, prefix, k, count = D.carry
        D.test((shift > 0) & (count > 1))
        shift = f.select(shift < BITS, f.const(I32, 0), shift - BITS)
        amount = shift.to(word)

        def counter(digit: Value) -> Value:
            return counters + (digit * THREADS + thread) * 4

        for d in range(DIGITS):
            block.store(counter(f.const(I32, d)), f.const(I32, 0))
        with f.loop(thread.to(I64), n, THREADS) as L:
            x = keys.at(L.index)
            with f.when((x & known) == prefix):
                place = counter(((x >> amount) & (DIGITS - 1)).to(I32))
                block.store(place, block.load(place, I32) + 1)
        block.barrier()
        with f.loop(0, DIGITS // WARPS) as L:
            digit = warp * (DIGITS // WARPS) + L.index.to(I32)
            counts = block.load(counters + (digit * THREADS + lane * EACH) * 4, I32, EACH)
            own = reduce(Value.__add__, (counts.lane(i) for i in range(EACH)))
            total = block.join(own, WARP, Value.__add__)
            with f.when(lane == 0):
                block.store(totals + digit * 4, total)
        block.barrier()
        pair = block.load(totals + lane * 8, I32, 2)
        low = sum_before(block, pair.lane(0) + pair.lane(1))[0] + pair.lane(0)  # items up to each of two digits
        high = low + pair.lane(1)
        chosen = block.count(low <= k) + block.count(high <= k)
        before = f.select(high <= k, high, f.select(low <= k, low, f.const(I32, 0)))
        before = block.join(before, WARP, lambda a, b: f.unary("smax", a, b))
        field = f.const(word, DIGITS - 1) << amount
        prefix = (prefix & ~field) | (chosen.to(word) << amount)
        D.carry = (shift, known | field, prefix, k - before, block.load(totals + chosen * 4, I32))
    _, known, prefix, k, _ = D.carry

    length = (n + (THREADS - 1)) / THREADS * WARP  # of the part of a warp
    begin, end = (f.select(i < n, i, n) for i in (warp.to(I64) * length, (warp + 1).to(I64) * length))

    def left(first: Value) -> tuple[Value, Value]:
        """The item of this thread, of those from ``first`` on, and whether it is left."""
        i = first + lane.to(I64)
        here = i < end
        return i, here & ((keys.at_or_zero(i, here) & known) == prefix)

    with f.loop(begin, end, WARP, carry=[f.const(I32, 0)]) as L:
        L.carry = (L.carry[0] + block.count(left(L.index)[1]),)
    mine = L.carry[0]
    with f.when(lane == 0):
        block.store(parts + warp * 4, mine)
    block.barrier()
    every = block.load(parts, I32, WARPS)
    before = reduce(Value.__add__, (f.select(warp > i, every.lane(i), f.const(I32, 0)) for i in range(WARPS)))
    with f.when((before <= k) & (k < before + mine)), f.loop(begin, end, WARP, carry=[before]) as L:
        i, here = left(L.index)
        own, found = block.count_before(here)
        with f.when(here & (L.carry[0] + own == k)):
            keys.found(i)
        L.carry = (L.carry[0] + found,)


@kernel
def median_places(f: Function, dtype: str, skip_nan: bool) -> None:
    """As :func:`taeda.kernels.sort.median_places`, of floats."""
    block = Block(f)
    t, n, thread = TYPES[dtype], f.size(0), block.thread
    row = f.offset(f.data(1), f.begin * n * t.bytes)
    parts = block.room(WARPS * 4)
    with f.loop(thread.to(I64), n, THREADS, carry=[f.const(I32, 0)]) as L:
        x = f.load(f.offset(row, L.index * t.bytes), t)
        L.carry = (L.carry[0] + (x == x).to(I32),)
    good = block.join(L.carry[0], WARP, Value.__add__)
    with f.when((thread & (WARP - 1)) == 0):
        block.store(parts + (thread >> 5) * 4, good)
    block.barrier()
    every = block.load(parts, I32, WARPS)
    good = reduce(Value.__add__, (every.lane(i) for i in range(WARPS))).to(I64)
    middle = f.select(good > 0, good - 1, f.i64(0)) >> 1
    with f.when(thread == 0):
        f.store(f.offset(f.data(0), f.begin * 8), middle if skip_nan else f.select(good == n, middle, good))


@kernel
def mode_rows(f: Function, dtype: str) -> None:
    """As :func:`taeda.kernels.sort.mode_rows`: each thread looks at some items, whether they end a longer run."""
    block = Block(f)
    t, n, thread = TYPES[dtype], f.size(0), block.thread
    row = f.offset(f.data(2), f.begin * n * t.bytes)
    parts = block.room(WARPS * 8)

    def item(i: Value) -> Value:
        return f.load(f.offset(row, i * t.bytes), t)

    with f.loop(thread.to(I64), n, THREADS, carry=[f.i64(1), f.i64(0)]) as L:  # the longest run, and its last item
        best, end = L.carry
        x, start = item(L.index), f.select(L.index >= best, L.index - best, f.i64(0))
        longer = (L.index >= best) & (item(start) == x)
        with f.while_([f.i64(0), f.select(longer, start, 0)]) as W:  # the first item that equals it
            low, high = W.carry
            W.test(low < high)
            middle = (low + high) >> 1
            same = item(middle) == x
            W.carry = (f.select(same, low, middle + 1), f.select(same, middle, high))
        L.carry = (f.select(longer, L.index + 1 - W.carry[0], best), f.select(longer, L.index, end))
    best, end = L.carry
    both = ((best << 32) | (f.i64((1 << 32) - 1) - end)).to(U64)  # of runs that are as long the first
    both = block.join(both, WARP, lambda a, b: f.unary("umax", a, b))
    with f.when((thread & (WARP - 1)) == 0):
        block.store(parts + (thread >> 5) * 8, both)
    block.barrier()
    with f.when(thread == 0):
        for i in range(WARPS):
            both = f.unary("umax", both, block.load(parts + 8 * i, U64))
        end = (~both & ((1 << 32) - 1)).to(I64)
        position = f.load(f.offset(f.data(3), (f.begin * n + end) * 8), I64)
        f.store(f.offset(f.data(1), f.begin * 8), position)
        copy_item(f, f.offset(f.data(0), f.begin * t.bytes), f.offset(row, end * t.bytes), t.bytes)
