"""Copies that move bytes and compute nothing: transposed copies, blocks of rows, triangles.

Elementwise copies and casts are pointwise kernels whose body is the identity (:mod:`taeda.kernels.pointwise`). The
kernels here move whole cache lines: they transpose tiles in registers and copy rows as runs of bytes. They know only
the size of an item, so one kernel serves every dtype of that size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from . import float8
from .build import kernel
from .ir import BOOL, F32, F64, I64, TYPES, U8, U16, U32, U64, Function, Type, Value
from .pointwise import AHEAD, cast, is_complex, stored

#: The unsigned type that carries one item of so many bytes; 16 bytes are two lanes of 8.
CARRIER: dict[int, tuple[Type, int]] = {1: (U8, 1), 2: (U16, 1), 4: (U32, 1), 8: (U64, 1), 16: (U64, 2)}

LINE = 64  # bytes in a cache line, on every target that taeda knows


def copy_item(f: Function, dst: Value, src: Value, item: int) -> None:
    """Copy one item of ``item`` bytes."""
    t, lanes = CARRIER[item]
    f.store(dst, f.load(src, t, lanes))


def moved_at_once(f: Function) -> int:
    """Bytes of one load or store of a copy; at least 16, which LLVM divides if there are no vectors."""
    return max(f.vector_bytes, 16)


def copy_bytes(f: Function, dst: Value, src: Value, nbytes: Value, item: int) -> None:
    """Copy ``nbytes`` (a multiple of ``item``), in full vectors and then item by item; no overlap."""
    t = CARRIER[item][0]
    if f.threads > 1:
        for i, _, mask in f.strips(0, nbytes / t.bytes, f.threads):
            f.store(f.offset(dst, i * t.bytes), f.load(f.offset(src, i * t.bytes), t, f.threads, mask), mask)
        return
    width = moved_at_once(f)
    wide = width // t.bytes
    with f.loop(0, nbytes - (4 * width - 1), 4 * width) as L:
        parts = [f.load(f.offset(src, L.index + i * width), t, wide) for i in range(4)]
        for i, part in enumerate(parts):
            f.store(f.offset(dst, L.index + i * width), part)
    done = nbytes & f.i64(-4 * width)
    with f.loop(done, nbytes - (width - 1), width) as L:
        f.store(f.offset(dst, L.index), f.load(f.offset(src, L.index), t, wide))
    done = nbytes & f.i64(-width)
    if width > 16 and item < 16:
        with f.loop(done, nbytes - 15, 16) as L:
            f.store(f.offset(dst, L.index), f.load(f.offset(src, L.index), t, 16 // t.bytes))
        done = nbytes & f.i64(-16)
    with f.loop(done, nbytes, item) as L:
        copy_item(f, f.offset(dst, L.index), f.offset(src, L.index), item)


def fill_bytes(f: Function, dst: Value, nbytes: Value, x: Value, item: int) -> None:
    """Store the item ``x`` over ``nbytes``."""
    t = CARRIER[item][0]
    width = moved_at_once(f)
    wide = width // t.bytes
    full = f.splat(x, wide) if x.lanes == 1 else x.shuffle([i % x.lanes for i in range(wide)])
    with f.loop(0, nbytes - (width - 1), width) as L:
        f.store(f.offset(dst, L.index), full)
    with f.loop(nbytes & f.i64(-width), nbytes, item) as L:
        f.store(f.offset(dst, L.index), x)


# ---- transposition --------------------------------------------------------------------------------------------------
#: The arguments of ``transpose``: rows, columns and strides in bytes of the result and of the source; ``b1`` is the
#: size of the inner of two batch dimensions. ``few`` is one of :data:`FEW` where so many columns lie side by side in
#: the result, its negative where so many rows do in the source, else 0. Of four the last two are ``far`` behind the
#: first two.
TRANSPOSE_ARGS = tuple("rows columns dst_row src_row b1 dst_b0 dst_b1 src_b0 src_b1 far few".split())


def transpose_registers(rows: list[Value]) -> list[Value]:
    """The transpose of an n x n tile held as n vectors of n lanes, by log2(n) rounds of perfect shuffles."""
    n = len(rows)
    low = [x for i in range(n // 2) for x in (i, n + i)]
    high = [x for i in range(n // 2, n) for x in (i, n + i)]
    for _ in range(n.bit_length() - 1):
        transposed = []
        for i in range(n // 2):
            transposed.append(rows[i].shuffle(low, rows[i + n // 2]))
            transposed.append(rows[i].shuffle(high, rows[i + n // 2]))
        rows = transposed
    return rows


def tile_side(f: Function, item: int) -> int:
    """Side of the tile that is transposed in registers."""
    if item == 16:
        return 4
    return min(moved_at_once(f) // item, 16)


def transpose_rows(item: int) -> int:
    """Rows of the result in one unit of the parallel dimension: as many as a cache line of the source has."""
    return max(LINE // item, 16)


def _tile(f: Function, dst: Value, src: Value, dst_row: Value, src_row: Value, item: int, stream: bool = False) -> None:
    """One tile, written whole rows at a time; with ``stream`` these are cache lines."""
    n = tile_side(f, item)
    t, lanes = CARRIER[item]
    if item == 16:
        for i in range(n):
            for j in range(n):
                x = f.load(f.offset(src, src_row * j + i * item), t, lanes)
                f.store(f.offset(dst, dst_row * i + j * item), x)
        return
    rows = [f.load(f.offset(src, src_row * j), t, n) for j in range(n)]
    for i, row in enumerate(transpose_registers(rows)):
        f.store(f.offset(dst, dst_row * i), row, nontemporal=stream)


def _plain(f: Function, dst: Value, src: Value, dst_row: Value, src_row: Value, item: int, i: tuple, j: tuple) -> None:
    """Rows ``i`` and columns ``j`` of the result item by item: the edges that fill no tile."""
    with f.loop(*i) as I, f.loop(*j) as J:
        to = f.offset(dst, I.index * dst_row + J.index * item)
        copy_item(f, to, f.offset(src, J.index * src_row + I.index * item), item)


def _batch(f: Function, g: dict[str, Value], index: Value) -> tuple[Value, Value]:
    """The starts of batch ``index`` in the result and in the source (:func:`transpose`)."""
    b0 = index / g["b1"]
    b1 = index - b0 * g["b1"]
    return (
        f.offset(f.data(0), b0 * g["dst_b0"] + b1 * g["dst_b1"]),
        f.offset(f.data(1), b0 * g["src_b0"] + b1 * g["src_b1"]),
    )


def _strips(f: Function, g: dict[str, Value], strips: Value, strip: int) -> Iterator[tuple[Value, Value, Value]]:
    """For each strip of ``[begin, end)`` its first row, and where its batch of the result and of the source starts.

    Positions are updated from strip to strip: two divisions took longer than transposing the 32 items of a small
    matrix.
    """
    inner, steps = g["b1"], [(g["dst_b0"], g["dst_b1"]), (g["src_b0"], g["src_b1"])]
    batch = f.begin / strips
    b0 = batch / inner
    b1 = batch - b0 * inner
    carry = [f.begin - batch * strips, b1, *(b0 * far + b1 * near for far, near in steps)]
    with f.loop(f.begin, f.end, carry=carry) as S:
        s, b1, to, at = S.carry
        yield s * strip, f.offset(f.data(0), to), f.offset(f.data(1), at)
        last, wraps = s + 1 == strips, b1 + 1 == inner
        moved = [
            f.select(last, x + f.select(wraps, far - near * (inner - 1), near), x)
            for x, (far, near) in zip((to, at), steps, strict=True)
        ]
        b1 = f.select(last, f.select(wraps, f.i64(0), b1 + 1), b1)
        S.carry = (f.select(last, f.i64(0), s + 1), b1, *moved)


#: So few adjacent rows or columns are interleaved or deinterleaved: images of 3 channels, pixels of 2 x 2. Item by item
#: that took 1.5 ns each.
FEW = (2, 3, 4)


def _few_places(f: Function, base: Value, row: Value, far: Value, few: int) -> list[Value]:
    """The beginnings of ``few`` rows; two pairs of them may be ``far`` apart (pixels of 2 x 2)."""
    steps = [f.i64(0), row, far if few == 4 else row + row, far + row][:few]
    return [f.offset(base, step) for step in steps]


def _interleave(f: Function, dst: Value, rows: list[Value], item: int, n: int) -> None:
    """Interleave rows of the source, ``n`` items of each."""
    t, few = CARRIER[item][0], len(rows)
    rows = [f.load(row, t, n) for row in rows]
    if n == 1:
        for i, row in enumerate(rows):
            f.store(f.offset(dst, i * item), row)
        return
    both = [a.shuffle(range(2 * n), b) for a, b in zip(rows[::2], [*rows[1::2], rows[-1]], strict=False)]
    picks = [j * n + i for i in range(n) for j in range(few)]
    f.store(dst, both[0].shuffle(picks, both[1] if few > 2 else None))


def _deinterleave(f: Function, rows: list[Value], src: Value, item: int, n: int) -> None:
    """Deinterleave: the inverse of :func:`_interleave`."""
    t, few = CARRIER[item][0], len(rows)
    if n == 1:
        for i, row in enumerate(rows):
            copy_item(f, row, f.offset(src, i * item), item)
        return
    x = f.load(src, t, n * few)
    for j, row in enumerate(rows):
        f.store(row, x.shuffle(range(j, n * few, few)))


def _widths(f: Function, item: int) -> list[int]:
    """Numbers of items that are interleaved at once, largest first; smaller ones take the rest after whole vectors."""
    n = tile_side(f, item)
    return [m for m in (n, n // 2, n // 4) if m * item >= 16 and m > 1] + [1]


def _in_widths(f: Function, count: Value, widths: list[int]) -> Iterator[tuple[Value, int]]:
    """The start of each run of ``n`` of ``count`` items, and ``n``: as many as possible of the first width, then of the
    next."""
    start = f.i64(0)
    for n in widths:
        stop = start + ((count - start) & f.i64(-n)) if n > 1 else count
        with f.loop(start, stop, n) as L:
            yield L.index, n
        start = stop


@kernel
def transpose(f: Function, item: int) -> None:
    """``dst[b0, b1, i, j] = src[b0, b1, j, i]``, both contiguous in their last dimension.

    See :data:`TRANSPOSE_ARGS`. ``[begin, end)`` are strips of ``transpose_rows(item)`` rows, for each batch.
    """
    g = {name: f.size(i) for i, name in enumerate(TRANSPOSE_ARGS)}
    rows, columns, dst_row, src_row, far, woven = (g[x] for x in "rows columns dst_row src_row far few".split())
    side, strip, widths = tile_side(f, item), transpose_rows(item), _widths(f, item)
    f.transposes = item, strip, 0
    for first, to, at in _strips(f, g, (rows + (strip - 1)) / strip, strip):
        to, at = f.offset(to, first * dst_row), f.offset(at, first * item)
        count = f.select(rows - first < strip, rows - first, f.i64(strip))
        for few in FEW if item < 16 else ():
            with f.when(woven == few):
                for i, n in _in_widths(f, count, widths):
                    places = _few_places(f, f.offset(at, i * item), src_row, far, few)
                    _interleave(f, f.offset(to, i * dst_row), places, item, n)
            with f.when(woven == -few):
                for j, n in _in_widths(f, columns, widths):
                    places = _few_places(f, f.offset(to, j * item), dst_row, far, few)
                    _deinterleave(f, places, f.offset(at, j * src_row), item, n)
        with f.when(woven == 0):
            whole_i, whole_j = count & f.i64(-side), columns & f.i64(-side)
            with f.loop(0, whole_j, side) as J, f.loop(0, whole_i, side) as I:
                there = f.offset(to, I.index * dst_row + J.index * item)
                _tile(f, there, f.offset(at, J.index * src_row + I.index * item), dst_row, src_row, item)
            small = SMALL if item < 16 and side > SMALL else 1
            _edges(f, to, at, dst_row, src_row, item, small, (f.i64(0), whole_i), (whole_j, columns))
            _edges(f, to, at, dst_row, src_row, item, small, (whole_i, count), (f.i64(0), columns))


SMALL = 4  # side of the tiles that edges are made of


def _edges(f: Function, to: Value, at: Value, dst_row: Value, src_row: Value, item: int, side: int, i: tuple, j: tuple):
    """Rows ``i`` and columns ``j`` of the result by tiles of ``side``, the rest item by item."""
    if side == 1:
        with f.when((i[0] < i[1]) & (j[0] < j[1])):
            _plain(f, to, at, dst_row, src_row, item, i, j)
        return
    stop_i, stop_j = (a + ((b - a) & f.i64(-side)) for a, b in (i, j))
    with f.when((i[0] < i[1]) & (j[0] < j[1])):
        with f.loop(j[0], stop_j, side) as J, f.loop(i[0], stop_i, side) as I:
            there = f.offset(to, I.index * dst_row + J.index * item)
            here = f.offset(at, J.index * src_row + I.index * item)
            tile = [f.load(f.offset(here, src_row * k), CARRIER[item][0], side) for k in range(side)]
            for k, row in enumerate(transpose_registers(tile)):
                f.store(f.offset(there, dst_row * k), row)
        _plain(f, to, at, dst_row, src_row, item, (i[0], stop_i), (stop_j, j[1]))
        _plain(f, to, at, dst_row, src_row, item, (stop_i, i[1]), j)


#: Rows and columns of a block by item size: two blocks fit the second-level cache.
BLOCK = {1: 512, 2: 256, 4: 256, 8: 128, 16: 64}


def transpose_block(item: int) -> tuple[int, int]:
    """Rows and columns of the result in one unit of :func:`transpose_large`."""
    return BLOCK[item], BLOCK[item]


@kernel
def transpose_large(f: Function, item: int) -> None:
    """:func:`transpose` past the cache, for results that would not stay in it.

    ``[begin, end)`` are square blocks of :data:`BLOCK` items, row by row, for each batch. Memory must be read and
    written in long runs: while one block is transposed, the next is prefetched along its rows (4096 x 4096 float32, Zen
    4, one thread: 5.4 ms; 10.2 when lines of 64 rows are read in turn). Where rows of the result do not begin at cache
    lines, a few at a time are assembled in the first-level cache and written by whole lines (3001 x 3008: 4.2 and 9.3
    ms). A row's part of a block then begins and ends at cache lines, and the block reads a few more columns.
    """
    g = {name: f.size(i) for i, name in enumerate(TRANSPOSE_ARGS)}
    rows, columns, dst_row, src_row = (g[x] for x in "rows columns dst_row src_row".split())
    n, side = tile_side(f, item), BLOCK[item]
    f.transposes = item, *transpose_block(item)
    run = side * item  # bytes
    pitch = run + LINE
    buffer = f.scratch(n * pitch + LINE)
    blocks_i, blocks_j = (rows + (side - 1)) / side, (columns + (side - 1)) / side

    def place(index: Value) -> tuple[Value, Value, Value, Value]:
        """The beginnings of block ``index`` in the result and in the source, and its first row and column."""
        batch = index / (blocks_i * blocks_j)
        inside = index - batch * (blocks_i * blocks_j)
        i = inside / blocks_j
        first_i, first_j = i * side, (inside - i * blocks_j) * side
        to, at = _batch(f, g, batch)
        to = f.offset(to, first_i * dst_row + first_j * item)
        return to, f.offset(at, first_j * src_row + first_i * item), first_i, first_j

    def fetch(at: Value, tile: Value) -> None:
        """Prefetch as many lines of the block at ``at`` as a tile has, row by row."""
        lines = max(n * n * item // LINE, 1)
        first = tile * (lines * LINE)
        row = first / run
        line = f.offset(at, row * src_row + (first - row * run))
        for k in range(lines):
            f.prefetch(f.offset(line, k * LINE), 2)

    def put(to: Value, part: Value, stop: Value, begins: Value) -> None:
        """Store part of a row, up to ``stop`` bytes, from its first line on; what precedes it only where rows begin."""
        shift = -f.address(to) & (LINE - 1)
        stop = f.select(shift + run < stop, shift + run, stop)
        head = f.select(shift < stop, shift, stop)
        whole = head + ((stop - head) & f.i64(-LINE))
        wide = moved_at_once(f) // 8
        with f.when(begins & (head > 0)):
            copy_bytes(f, to, part, head, item)
        with f.loop(head, whole, LINE) as L:
            for k in range(0, LINE, moved_at_once(f)):
                x = f.load(f.offset(part, L.index + k), U64, wide)
                f.store(f.offset(to, L.index + k), x, nontemporal=True)
        with f.when(whole < stop):
            copy_bytes(f, f.offset(to, whole), f.offset(part, whole), stop - whole, item)

    def by_tiles(here: Value, stop: Value, ahead: Value, tile: Value, to: Value, to_row: Value, stream: bool) -> None:
        """Tiles of ``n`` rows of the result, up to column ``stop``."""
        with f.loop(0, stop, n) as J:
            fetch(ahead, tile + J.index / n)
            _tile(f, f.offset(to, J.index * item), f.offset(here, J.index * src_row), to_row, src_row, item, stream)

    def staged(here: Value, count: Value, ahead: Value, tile: Value, to: Value, begins: Value) -> None:
        """The same through the buffer, for rows that do not begin at lines and for tiles narrower than a line."""
        whole = count & f.i64(-n)
        by_tiles(here, whole, ahead, tile, buffer, f.i64(pitch), False)
        with f.loop(whole, count) as J, f.loop(0, n) as K:
            there = f.offset(buffer, K.index * pitch + J.index * item)
            copy_item(f, there, f.offset(here, J.index * src_row + K.index * item), item)
        with f.loop(0, n) as K:
            put(f.offset(to, K.index * dst_row), f.offset(buffer, K.index * pitch), count * item, begins)

    def block(index: Value) -> None:
        to, at, first_i, first_j = place(index)
        ahead = place(f.select(index + 1 < f.end, index + 1, index))[1]
        count_i, left = f.select(rows - first_i < side, rows - first_i, f.i64(side)), columns - first_j
        count_j = f.select(left < side + LINE // item, left, f.i64(side + LINE // item))
        whole_i = count_i & f.i64(-n)
        in_lines = ((f.address(to) | dst_row) & (LINE - 1)) == 0
        with f.loop(0, whole_i, n) as I:
            here, tile = f.offset(at, I.index * item), I.index / n * (side // n)
            rows_at = f.offset(to, I.index * dst_row)
            straight = in_lines & (left >= side) if n * item == LINE else f.const(BOOL, False)
            with f.when(straight):
                by_tiles(here, f.i64(side), ahead, tile, rows_at, dst_row, True)
            with f.when(~straight):
                staged(here, count_j, ahead, tile, rows_at, first_j == 0)
        with f.when(whole_i < count_i):
            stop = f.select(left < side, left, f.i64(side))
            _plain(f, to, at, dst_row, src_row, item, (whole_i, count_i), (f.i64(0), stop))

    with f.loop(f.begin, f.end) as S:
        block(S.index)
    f.fence()


# ---- runs of bytes ---------------------------------------------------------------------------------------------------
@kernel
def copy_lines(f: Function) -> None:
    """Copy cache lines past the cache; ``[begin, end)`` are lines, and the target begins at one."""
    dst, src = f.data(0), f.data(1)
    wide = moved_at_once(f) // 8
    for line, lines in f.groups(f.begin, f.end, 4):
        begin = line * LINE
        at = [f.offset(src, begin + i) for i in range(0, lines * LINE, moved_at_once(f))]
        for i in range(0, lines * LINE, LINE):
            f.prefetch(f.offset(src, begin + (AHEAD + i)))
        parts = [f.load(p, U64, wide) for p in at]
        for i, part in enumerate(parts):
            f.store(f.offset(dst, begin + i * moved_at_once(f)), part, nontemporal=True)
    f.fence()


# ---- rows -----------------------------------------------------------------------------------------------------------
@kernel
def copy_rows(f: Function, item: int) -> None:
    """``dst[row, :] = src[row, :]`` for rows that are runs of bytes.

    ``arg = [row bytes, dst row stride, src row stride, chunk bytes]``; ``[begin, end)`` are chunks, row by row. The
    chunk is a multiple of the item and cuts long rows so that threads can share them.
    """
    dst, src = f.data(0), f.data(1)
    nbytes, dst_row, src_row, chunk = (f.size(i) for i in range(4))
    chunks = (nbytes + (chunk - 1)) / chunk
    with f.loop(f.begin, f.end) as L:
        row = L.index / chunks
        start = (L.index - row * chunks) * chunk
        count = f.select(nbytes - start < chunk, nbytes - start, chunk)
        copy_bytes(f, f.offset(dst, row * dst_row + start), f.offset(src, row * src_row + start), count, item)


@kernel
def triangle(f: Function, item: int, upper: bool) -> None:
    """Rows of a batch of matrices with zeros below (``upper``) or above the diagonal ``k``.

    ``arg = [rows, columns, k]``, both operands contiguous; ``[begin, end)`` are rows of the whole batch.
    """
    dst, src = f.data(0), f.data(1)
    rows, columns, k = (f.size(i) for i in range(3))
    t, lanes = CARRIER[item]
    zero = f.const(t, 0, lanes)
    with f.loop(f.begin, f.end) as L:
        i = L.index - L.index / rows * rows
        at = i + k if upper else i + k + 1  # the first column of the upper part, the first column past the lower one
        at = f.select(at < 0, f.i64(0), f.select(at > columns, columns, at)) * item
        whole = columns * item
        to, here = f.offset(dst, L.index * whole), f.offset(src, L.index * whole)
        if upper:
            fill_bytes(f, to, at, zero, item)
            copy_bytes(f, f.offset(to, at), f.offset(here, at), whole - at, item)
        else:
            copy_bytes(f, to, here, at, item)
            fill_bytes(f, f.offset(to, at), whole - at, zero, item)


@kernel
def reverse_rows(f: Function, item: int) -> None:
    """``dst[row, j] = src[row, n - 1 - j]``: ``arg = [n, dst row stride, src row stride]``, items contiguous."""
    dst, src = f.data(0), f.data(1)
    n, dst_row, src_row = (f.size(i) for i in range(3))
    t, lanes = CARRIER[item]
    with f.loop(f.begin, f.end) as L:
        to, last = f.offset(dst, L.index * dst_row), f.offset(src, L.index * src_row + n * item)
        wide = moved_at_once(f) // t.bytes
        items = wide // lanes
        order = [i * lanes + k for i in reversed(range(items)) for k in range(lanes)]
        with f.loop(0, n - (items - 1), items) as J:
            x = f.load(f.offset(last, -(J.index + items) * item), t, wide)
            f.store(f.offset(to, J.index * item), x.shuffle(order))
        with f.loop(n & f.i64(-items), n) as J:
            copy_item(f, f.offset(to, J.index * item), f.offset(last, -(J.index + 1) * item), item)


@kernel
def sequence(f: Function, dtype: str) -> None:
    """``dst[i] = start + i * step``: ``arg = [start, step]``, ``[begin, end)`` are elements.

    Integers count in int64, floats in float64, and are rounded once.
    """
    t = TYPES[dtype]
    work = F64 if t.kind == "f" else I64
    start, step = f.scalar(0, work), f.scalar(1, work)
    _store_counted(f, t, work, lambda i: f.fma(i, step, start) if work is F64 else i * step + start)


@kernel
def spaced(f: Function, dtype: str) -> None:
    """``n`` numbers from ``start`` to ``end``, both exact: ``arg = [n, start, end, step]`` in float64.

    The upper half counts down from ``end``, so that the sequence is symmetric.
    """
    t = TYPES[dtype]
    n = f.size(0)
    start, end, step = (f.scalar(i, F64) for i in (1, 2, 3))
    half, last = (n / 2).to(F64), (n - 1).to(F64)

    def value(i: Value) -> Value:
        x = f.select(i < half, f.fma(i, step, start), f.fma(i - last, step, end))
        return x.to(I64) if t.kind in "iu" else x

    _store_counted(f, t, F64, value)


@kernel
def identity(f: Function, dtype: str) -> None:
    """The rows ``[begin, end)`` of the identity matrix: ``arg = [columns]``."""
    columns = f.size(0)
    one = cast(f.const(F32, 1), dtype) if dtype in float8.NAMES else f.const(stored(dtype), 1)
    item = stored(dtype).bytes * (2 if is_complex(dtype) else 1)
    carrier, lanes = CARRIER[item]
    with f.loop(f.begin, f.end) as R:
        row = f.offset(f.data(0), R.index * columns * item)
        fill_bytes(f, row, columns * item, f.const(carrier, 0, lanes), item)
        with f.when(R.index < columns):
            f.store(f.offset(row, R.index * item), one)  # for a complex number, the real part


def _store_counted(f: Function, t: Type, work: Type, value: Callable[[Value], Value]) -> None:
    """Store ``value(i)`` for the elements ``i`` of the range, which are counted in ``work``.

    The count is carried as a vector: AVX2 has no instruction that converts int64 to float64.
    """
    lanes = f.lanes(work)
    first = f.splat(f.begin.to(work), lanes) + f.iota(I64, lanes).to(work)
    with f.loop(f.begin, f.end - (lanes - 1), lanes, carry=[first]) as L:
        (i,) = L.carry
        f.store(f.offset(f.data(0), L.index * t.bytes), value(i).to(t))
        L.carry = [i + lanes]
    with f.loop(f.begin + ((f.end - f.begin) & f.i64(-lanes)), f.end) as L:
        f.store(f.offset(f.data(0), L.index * t.bytes), value(L.index.to(work)).to(t))
