"""Rows sorted by radix: a block of threads has a row.

Each warp has a run of neighbouring items, which it reads 32 at a time, and a counter in shared memory for each value of
a digit of 8 bits. Counters are summed in the order of digits, then of warps. Threads of a warp whose items have the
same digit find each other by votes. So each thread knows where its item goes: of equal ones the earlier come first.
Digits that are the same in all keys are left out.
"""

from __future__ import annotations

from functools import reduce

from ..kernels.build import kernel
from ..kernels.copy import copy_item
from ..kernels.ir import I32, I64, TYPES, U64, Function, Value
from ..kernels.sort import Run, key, key_bits, words
from ._blocks import THREADS, WARP, Block

BITS = 6  # of a digit, where each thread has counters (``_select.py``): they take 32 KiB
DIGITS = 1 << BITS
EACH = THREADS // WARP  # counters of a lane, where a warp sums those of a digit
WARPS = THREADS // WARP
BYTE = 8  # bits of a digit, where each warp has counters


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
    counters, sums, parts = block.room(WARPS << BYTE + 2), block.room(2 * WARPS * 4), block.room(THREADS * 8)
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

    lane, warp = thread & (WARP - 1), thread >> 5
    length = (n + (THREADS - 1)) / THREADS * WARP  # of the run of a warp
    begin, end = (f.select(i < n, i, n) for i in (warp.to(I64) * length, (warp + 1).to(I64) * length))

    def counter(of: Value | int, digit: Value) -> Value:
        return counters + ((digit + (of << BYTE)) << 2)

    with f.loop(0, -(-bits // BYTE), carry=[*a.bases, *b.bases]) as D:
        src, dst = Run(f, *D.carry[:width]), Run(f, *D.carry[width:])
        amount = (D.index * BYTE).to(U64)
        every = (1 << BYTE) - 1
        wanted = ((different >> amount) & every) != 0

        def digits_of(first: Value) -> tuple[list[Value], Value, Value, Value]:
            """Item of this thread among the 32 from ``first`` on: its words, whether there is one, its digit, and
            the threads that have the same digit."""
            i = first + lane.to(I64)
            here = i < end
            record = src.load(f.select(here, i, end - 1))
            digit = (((record[0] >> shift) >> amount) & every).to(I32)
            return record, here, digit, block.peers(digit, BYTE, here)

        with f.when(wanted):
            for at in range(0, 1 << BYTE, WARP):
                block.store(counter(warp, lane + at), f.const(I32, 0))
            block.warp_barrier()
            with f.loop(begin, end, WARP) as L:
                _, here, digit, peers = digits_of(L.index)
                with f.when(here & (block.before(peers) == 0)):
                    place = counter(warp, digit)
                    block.store(place, block.load(place, I32) + f.unary("ctpop", peers))
                block.warp_barrier()
            block.barrier()
            found = []
            for half in range(2):  # a digit for each thread
                counts = [block.load(counter(k, thread + half * THREADS), I32) for k in range(WARPS)]
                before, total = sum_before(block, reduce(Value.__add__, counts))
                with f.when(lane == 0):
                    block.store(sums + (warp + half * WARPS) * 4, total)
                found.append((counts, before))
            block.barrier()
            earlier = f.const(I32, 0)
            for half, (counts, start) in enumerate(found):
                totals = block.load(sums + half * WARPS * 4, I32, WARPS)
                start = start + earlier
                for i in range(WARPS):
                    start = start + f.select(warp > i, totals.lane(i), f.const(I32, 0))
                    earlier = earlier + totals.lane(i)
                for i, count in enumerate(counts):
                    block.store(counter(i, thread + half * THREADS), start)
                    start = start + count
            block.barrier()
            with f.loop(begin, end, WARP) as L:
                record, here, digit, peers = digits_of(L.index)
                place, rank = counter(warp, digit), block.before(peers)
                first = block.load(place, I32)
                with f.when(here):
                    for base, word in zip(dst.bases, record, strict=True):
                        f.store(f.offset(base, (first + rank).to(I64) * 8), word)
                block.warp_barrier()
                with f.when(here & (rank == 0)):
                    block.store(place, first + f.unary("ctpop", peers))
                block.warp_barrier()
            block.barrier()
        D.carry = tuple(
            f.select(wanted, x, y) for x, y in zip((*dst.bases, *src.bases), (*src.bases, *dst.bases), strict=True)
        )
    done = Run(f, *D.carry[:width])
    with f.loop(own, n, THREADS) as L:
        p = done.position(L.index)
        f.store(f.offset(index, L.index * 8), p)
        copy_item(f, f.offset(to, L.index * t.bytes), f.offset(x, p * t.bytes), t.bytes)
