"""Rows sorted by radix: a block of threads has a row.

Each thread has a run of neighbouring items, and a counter in shared memory for each value of a digit. Counters are
summed in the order of digits, then of threads, so that each thread knows where its items go: of equal ones the earlier
come first. Digits that are the same in all keys are left out.
"""

from __future__ import annotations

from ..kernels.build import kernel
from ..kernels.copy import copy_item
from ..kernels.ir import I32, I64, TYPES, U64, Function, Value
from ..kernels.sort import Run, key, key_bits, words
from ._blocks import THREADS, WARP, Block

BITS = 6  # of a digit: counters of all threads have 32 KiB
DIGITS = 1 << BITS
EACH = THREADS // WARP  # counters of a lane, where a warp sums those of a digit


def sum_before(block: Block, x: Value) -> tuple[Value, Value]:
    """The sum of ``x`` in the lanes before, and in all."""
    lane, before, total, distance = block.thread & (WARP - 1), x - x, x, 1
    while distance < WARP:
        other = block.partner(total, distance)
        before = block.f.select((lane & distance) != 0, before + other, before)
        total = total + other
        distance *= 2
    return before, total


@kernel
def sort_rows(f: Function, dtype: str, descending: bool) -> None:
    """As :func:`taeda.kernels.sort.sort_rows` of rows that are not short, with the same arguments."""
    block = Block(f)
    t, bits, width = TYPES[dtype], key_bits(dtype), words(dtype)
    values, positions, source, spare = (f.data(i) for i in range(4))
    n, row, thread = f.size(0), f.begin, block.thread
    x, to, index = (f.offset(p, row * n * size) for p, size in ((source, t.bytes), (values, t.bytes), (positions, 8)))
    other = f.offset(spare, row / f.size(1) * n * (8 * width))
    a = Run(f, to, index) if width == 2 else Run(f, index)
    b = Run(f, other, f.offset(other, n * 8)) if width == 2 else Run(f, other)
    counters, totals = block.room(DIGITS * THREADS * 4), block.room(DIGITS * 4)
    starts, parts = block.room(DIGITS * 4), block.room(THREADS * 8)
    shift = 0 if width == 2 else 32

    own = thread.to(I64)
    first = key(f, f.load(x, t), descending).to(U64)
    with f.loop(own, n, THREADS, carry=[f.const(U64, 0)]) as L:
        k = key(f, f.load(f.offset(x, L.index * t.bytes), t), descending)
        a.store(L.index, k, L.index)
        L.carry = (L.carry[0] | (k.to(U64) ^ first),)
    block.store(parts + thread * 8, L.carry[0])
    block.barrier()
    with f.loop(0, THREADS, carry=[f.const(U64, 0)]) as L:
        L.carry = (L.carry[0] | block.load(parts + L.index.to(I32) * 8, U64),)
    different = L.carry[0]  # bits of keys

    chunk = (n + (THREADS - 1)) / THREADS
    begin, end = (f.select(i < n, i, n) for i in (own * chunk, own * chunk + chunk))
    lane, warp = thread & (WARP - 1), thread >> 5
    with f.loop(0, -(-bits // BITS), carry=[*a.bases, *b.bases]) as D:
        src, dst = Run(f, *D.carry[:width]), Run(f, *D.carry[width:])
        amount = (D.index * BITS).to(U64)
        wanted = ((different >> amount) & (DIGITS - 1)) != 0

        def digit_of(record: list[Value]) -> Value:
            return (((record[0] >> shift) >> amount) & (DIGITS - 1)).to(I32)

        def counter(digit: Value) -> Value:
            return counters + (digit * THREADS + thread) * 4

        with f.when(wanted):
            with f.loop(0, DIGITS) as L:
                block.store(counter(L.index.to(I32)), f.const(I32, 0))
            with f.loop(begin, end) as L:
                place = counter(digit_of(src.load(L.index)))
                block.store(place, block.load(place, I32) + 1)
            block.barrier()
            with f.loop(0, DIGITS // EACH) as L:
                digit = warp * (DIGITS // EACH) + L.index.to(I32)
                place = counters + (digit * THREADS + lane * EACH) * 4
                counts = block.load(place, I32, EACH)
                each = [counts.lane(i) for i in range(EACH)]
                before, total = sum_before(block, each[0] + each[1] + each[2] + each[3])
                for i, count in enumerate(each):
                    counts = counts.with_lane(i, before)
                    before = before + count
                block.store(place, counts)
                with f.when(lane == 0):
                    block.store(totals + digit * 4, total)
            block.barrier()
            pair = block.load(totals + lane * 8, I32, 2)
            before, _ = sum_before(block, pair.lane(0) + pair.lane(1))
            with f.when(warp == 0):
                both = pair.with_lane(0, before).with_lane(1, before + pair.lane(0))
                block.store(starts + lane * 8, both)
            block.barrier()
            with f.loop(begin, end) as L:
                record = src.load(L.index)
                digit = digit_of(record)
                place = counter(digit)
                count = block.load(place, I32)
                block.store(place, count + 1)
                at = (block.load(starts + digit * 4, I32) + count).to(I64)
                for base, word in zip(dst.bases, record, strict=True):
                    f.store(f.offset(base, at * 8), word)
            block.barrier()
        D.carry = tuple(
            f.select(wanted, x, y) for x, y in zip((*dst.bases, *src.bases), (*src.bases, *dst.bases), strict=True)
        )
    done = Run(f, *D.carry[:width])
    with f.loop(own, n, THREADS) as L:
        p = done.position(L.index)
        f.store(f.offset(index, L.index * 8), p)
        copy_item(f, f.offset(to, L.index * t.bytes), f.offset(x, p * t.bytes), t.bytes)
