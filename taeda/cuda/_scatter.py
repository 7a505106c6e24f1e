"""Scatter along the last dimension: a thread for each line, which keeps the order of the index, as on the CPU.

The index and what is scattered are read by whole rows: a warp brings 16 positions of its 32 lines into shared memory,
where each thread finds those of its line. The threads of a warp meet at no bank: the places of a row are exchanged by
the bits of its number.
"""

from __future__ import annotations

from ..kernels.build import kernel
from ..kernels.copy import CARRIER
from ..kernels.indexing import ALONG_ARGS, combine
from ..kernels.ir import BF16, F16, F32, I32, I64, TYPES, Function, Type, Value
from ._blocks import THREADS, WARP, Block

POSITIONS = 16  # of a line in shared memory
MOST_ITEM = 8  # bytes of an item that there is room for


def covers(what: int | str, action: str, layout: str) -> bool:
    """Whether this module has the kernel in place of :func:`taeda.kernels.indexing.along`."""
    item = what if isinstance(what, int) else TYPES[what].bytes
    return action != "get" and layout == "last" and item <= MOST_ITEM


class _Rows:
    """16 positions of 32 lines of each warp."""

    def __init__(self, block: Block, t: Type) -> None:
        self.block, self.t = block, t
        self.base = block.room(THREADS * POSITIONS * t.bytes)

    def at(self, line: Value, k: Value) -> Value:
        """The place of position ``k`` of a line of the block."""
        n, lane = self.t.bytes, line & (WARP - 1)
        exchanged = {8: lane & 15, 4: (lane >> 1) & 15, 2: (lane >> 2) << 1, 1: (lane >> 3) << 2}[n]
        return self.base + (line * POSITIONS + (k ^ exchanged)) * n


@kernel
def along(f: Function, what: int | str, action: str, layout: str, outer: int) -> None:
    """``far[o, index[o, d]] op= near[o, d]``, arguments as in :func:`taeda.kernels.indexing.along`."""
    block = Block(f, "lines")
    t = CARRIER[what][0] if isinstance(what, int) else TYPES[what]
    kept = TYPES["uint8"] if t.kind == "b" else TYPES["uint16"] if t is BF16 else t
    nd, _, _, _, far_d, _, near_d, _, index_d, _ = map(f.size, range(len(ALONG_ARGS)))
    nd = f.select(f.load(f.data(1), I64) == 0, nd, 0)  # nothing, where the check has found an error
    lane, here = block.thread & (WARP - 1), f.begin < f.end
    nd = f.select(f.begin - lane.to(I64) < f.end, nd, 0)  # of a warp without lines too
    rest = f.select(here, f.begin, f.end - 1)
    offsets = [f.i64(0)] * 3
    for k in reversed(range(outer)):
        count, *strides = (f.size(len(ALONG_ARGS) + 4 * k + m) for m in range(4))
        i = rest
        if k:
            rest = rest / count
            i = i - rest * count
        offsets = [at + i * stride for at, stride in zip(offsets, strides, strict=True)]
    far = f.offset(f.data(0), offsets[0])
    starts = [block.room(THREADS * 8) for _ in range(2)]
    for place, offset in zip(starts, offsets[1:], strict=True):
        block.store(place + block.thread * 8, offset)
    block.warp_barrier()
    sides = [(_Rows(block, kept), f.data(2), near_d), (_Rows(block, I64), f.data(3), index_d)]
    first, own = block.thread - lane + (lane >> 4), lane & (POSITIONS - 1)
    with f.loop(0, nd, POSITIONS) as D:
        position = D.index + own.to(I64)
        position = f.select(position < nd, position, nd - 1)
        for start, (rows, source, step) in zip(starts, sides, strict=True):
            for j in range(0, WARP, WARP // POSITIONS):
                line = first + j
                at = f.offset(source, block.load(start + line * 8, I64) + position * step)
                block.store(rows.at(line, own), f.load(at, rows.t))
        block.warp_barrier()
        left = nd - D.index
        left = f.select(left < POSITIONS, left, f.i64(POSITIONS))
        with f.loop(0, f.select(here, left, 0)) as L:
            now = L.index.to(I32)
            x, i = (block.load(rows.at(block.thread, now), rows.t) for rows, *_ in sides)
            to = f.offset(far, i * far_d)
            if action == "put":
                f.store(to, x)
            else:
                _accumulate(f, t, action, to, x)
        block.warp_barrier()


def _accumulate(f: Function, t: Type, op: str, to: Value, x: Value) -> None:
    """As :func:`taeda.kernels.indexing.accumulate` of an item that was read before."""
    x = x != 0 if t.kind == "b" else x.bits(t)
    old = f.load(to, t)
    wide = F32 if t in (F16, BF16) else t
    f.store(to, combine(f, op, old.to(wide), x.to(wide)).to(t))
