"""Packing the operands of a product: A into tiles, B into panels, which a tile reads sequentially.

``pack_copy`` and the other helpers pack for the kernel that calls them, onto its stack. ``pack_a`` and ``pack_b`` are
kernels that pack a whole operand before the product.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from .build import kernel
from .ir import I64, PTR, TYPES, Function, Helper, Type, Value
from .tile import smaller, tile_shape, transpose, transpose_halves


def pack_copy(f: Function, t: Type, vectors: int, panels: int = 1) -> Helper:
    """``copy(to, b, b_k, k, columns)``: ``k`` rows with contiguous columns; columns past the end are 0.

    Several ``panels`` follow each other in memory and are all full.
    """
    h = f.helper("pack_copy" + f"_{panels}" * (panels > 1), PTR, PTR, I64, I64, I64)
    to, b, b_k, k, columns = h.params
    lanes = h.lanes(t)
    width = vectors * lanes * t.bytes
    if panels > 1:
        places = [k * (width * i) for i in range(panels)]
        with h.loop(0, k, carry=[to, b]) as L:
            target, source = L.carry
            for i, place in enumerate(places):
                for v in range(vectors):
                    at = v * lanes * t.bytes
                    x = h.load(h.offset(source, i * width + at), t, lanes)
                    h.store(h.offset(h.offset(target, place), at), x)
            L.carry = [h.offset(target, width), h.offset(source, b_k)]
        return h
    with h.branch(columns >= vectors * lanes) as B:
        with h.loop(0, k, carry=[to, b]) as L:
            target, source = L.carry
            for v in range(vectors):
                at = v * lanes * t.bytes
                h.store(h.offset(target, at), h.load(h.offset(source, at), t, lanes))
            L.carry = [h.offset(target, width), h.offset(source, b_k)]
        B.otherwise()
        with h.loop(0, columns, lanes) as V:
            mask = h.first(columns - V.index, lanes)
            at = V.index * t.bytes
            with h.loop(0, k, carry=[h.offset(to, at), h.offset(b, at)]) as L:
                target, source = L.carry
                h.store(target, h.load(source, t, lanes, mask))
                L.carry = [h.offset(target, width), h.offset(source, b_k)]
    return h


def pack_transpose(f: Function, t: Type, vectors: int) -> Helper:
    """``transpose(to, b, b_n, k, columns)``: columns of B, each contiguous along k, transposed into the panel's rows.

    It works on squares of ``lanes x lanes``. The last ones write up to ``lanes - 1`` rows past ``k``; the panel has
    room for these rows.
    """
    h = f.helper("pack_transpose", PTR, PTR, I64, I64, I64)
    to, b, b_n, k, columns = h.params
    lanes = h.lanes(t)
    width = vectors * lanes * t.bytes

    def square(start: Value, target: Value, index: Value, left: Value | None, whole: bool) -> None:
        source = h.offset(start, index * t.bytes)
        short = None if whole else h.first(k - index, lanes)
        masks = [short] * lanes
        if left is not None:
            short = h.first(k - index, lanes)
            none = h.const(short.type, 0, lanes)
            masks = [h.select(left > i, short, none) for i in range(lanes)]
        rows = [h.load(h.offset(source, b_n * i), t, lanes, mask) for i, mask in enumerate(masks)]
        at = h.offset(target, index * width)
        for i, column in enumerate(transpose(rows)):
            h.store(h.offset(at, i * width), column)

    with h.loop(0, columns, lanes) as V:
        left = columns - V.index
        start, target = h.offset(b, V.index * b_n), h.offset(to, V.index * t.bytes)
        with h.branch(left >= lanes) as B:
            # With AVX2, masked loads and the making of masks cost as much as the transposition.
            with h.loop(0, k - (lanes - 1), lanes) as K:
                square(start, target, K.index, None, True)
            with h.loop(K.index, k, lanes) as K:
                square(start, target, K.index, None, False)
            B.otherwise()
            with h.loop(0, k, lanes) as K:
                square(start, target, K.index, left, False)
    return h


def transpose_out(f: Function, t: Type, to_type: Type) -> Helper:
    """``transpose_out(to, step, block, pitch, rows, columns)``: store a block of C where columns are contiguous.

    It goes down one register of columns at a time, which writes few streams of cache lines. Whole squares are stored
    without masks: masked stores cost more than the transposition (convolution to 64 images of 256 x 256: 6.8 to 2.6
    ms).
    """
    h = f.helper("transpose_out", PTR, I64, PTR, I64, I64, I64)
    to, step, block, pitch, rows, columns = h.params
    lanes = h.lanes(t)

    def square(row: Value, column: Value, rows_whole: bool, columns_whole: bool) -> None:
        short, left = h.first(rows - row, lanes), columns - column
        none = h.const(short.type, 0, lanes)
        source = h.offset(block, row * pitch + column * t.bytes)
        target = h.offset(to, column * step + row * to_type.bytes)
        transposed = transpose([h.load(h.offset(source, pitch * i), t, lanes) for i in range(lanes)])
        for i, line in enumerate(transposed):
            place = h.offset(target, step * i)
            if not rows_whole:
                h.store(place, line.to(to_type), h.select(left > i, short, none))
            elif columns_whole:
                h.store(place, line.to(to_type))
            else:
                with h.when(left > i):
                    h.store(place, line.to(to_type))

    end = rows - (lanes - 1)
    with h.loop(0, columns, lanes) as V:
        with h.branch(columns - V.index >= lanes) as B:
            with h.loop(0, end, lanes) as R:
                square(R.index, V.index, True, True)
            B.otherwise()
            with h.loop(0, end, lanes) as R:
                square(R.index, V.index, True, False)
        with h.loop(rows / lanes * lanes, rows, lanes) as R:
            square(R.index, V.index, False, False)
    return h


def pack_rows(f: Function, t: Type) -> Helper:
    """``rows(to, a, a_m, m, k)``: one tile of a row-major A as ``k`` times ``pitch`` items, transposed in squares.

    ``k`` is rounded up to whole squares; the values of the extra rows are unspecified.
    """
    h = f.helper("pack_rows", PTR, PTR, I64, I64, I64)
    to, a, a_m, m, k = h.params
    shape, lanes = tile_shape(h.vector_bytes), h.lanes(t)
    pitch, rows = shape.pitch, shape.rows
    n = min(pitch, lanes)  # the side of a square; a vector holds lanes / n of them
    step = pitch * t.bytes

    def squares(index: Value, whole: bool) -> None:
        source, target = h.offset(a, index * t.bytes), h.offset(to, index * step)
        if not whole:
            short = h.first(k - index, lanes)
            none = h.const(short.type, 0, lanes)
        for first in range(0, pitch, n):
            masks = [None if whole else h.select(m > i, short, none) for i in range(first, min(first + n, rows))]
            square = [h.load(h.offset(source, a_m * (first + i)), t, lanes, mask) for i, mask in enumerate(masks)]
            square += [h.const(t, 0, lanes)] * (n - len(square))
            for j, column in enumerate(transpose(square)):
                for block in range(lanes // n):
                    at = (block * n + j) * step + first * t.bytes
                    h.store(h.offset(target, at), column.slice(block * n, n))

    def halves(index: Value) -> None:
        """``lanes`` rows of packed A from half registers: loads join the halves, and no shuffle crosses them."""
        half = lanes // 2
        for at in range(0, lanes, half):
            source = h.offset(a, (index + at) * t.bytes)
            parts = [h.load(h.offset(source, a_m * i), t, half) for i in range(rows)]
            parts += [h.const(t, 0, half)] * (pitch - rows)
            whole = [parts[i].shuffle(range(lanes), parts[i + half]) for i in range(half)]
            for j, column in enumerate(transpose_halves(whole)):
                h.store(h.offset(to, (index + (at + j)) * step), column)

    many = halves if lanes == pitch == 8 else functools.partial(squares, whole=True)
    with h.loop(0, h.select(m >= rows, k - (lanes - 1), h.i64(0)), lanes) as K:
        many(K.index)
    with h.loop(K.index, k, lanes) as K:
        squares(K.index, False)
    return h


def pack_columns(f: Function, t: Type, gap: int) -> Helper:
    """``columns(to, a, a_k, m, k)``: all tiles of a column-major A side by side, so that lines are read once, in order.

    The padding of a tile is whatever follows its rows in memory. Only the last tiles need masks.
    """
    h = f.helper("pack_columns", PTR, PTR, I64, I64, I64)
    to, a, a_k, m, k = h.params
    shape = tile_shape(h.vector_bytes)
    n = min(shape.pitch, h.lanes(t))
    step, rows = shape.pitch * t.bytes, shape.rows
    apart = k * step + gap
    whole = (m - (shape.pitch - rows)) / rows  # tiles whose padding is inside of the matrix

    def copy(target: Value, source: Value, left: Value | None) -> None:
        for first in range(0, shape.pitch, n):
            mask = None if left is None else h.first(smaller(h, left, h.i64(rows)) - first, n)
            at = first * t.bytes
            h.store(h.offset(target, at), h.load(h.offset(source, at), t, n, mask))

    with h.loop(0, k, carry=[to, a]) as K:
        place, line = K.carry
        with h.loop(0, whole, carry=[place, line]) as W:
            copy(*W.carry, None)
            target, source = W.carry
            W.carry = [h.offset(target, apart), h.offset(source, rows * t.bytes)]
        with h.loop(W.index * rows, m, rows, carry=W.carry) as R:
            copy(*R.carry, m - R.index)
            target, source = R.carry
            R.carry = [h.offset(target, apart), h.offset(source, rows * t.bytes)]
        K.carry = [h.offset(place, step), h.offset(line, a_k)]
    return h


#: The arguments of ``pack_a`` and ``pack_b``: A is [m, k], B is [k, n]; ``size`` is m or n and ``x_s`` its stride;
#: ``kc``, for ``pack_b`` only, is the size of a block of k.
PACK_ARGS = ("size", "k", "x_s", "x_k", "kc")
PACK_GROUP = 8  # tiles of A that ``pack_a`` packs at a time


class PackA:
    """Packs rows of A into tiles of ``[k, pitch]``, ``gap`` bytes apart, within a kernel."""

    def __init__(self, f: Function, t: Type, gap: int = 0):
        self.f, self.t, self.gap = f, t, gap
        self.shape, self.lanes = tile_shape(f.vector_bytes), f.lanes(t)
        self.step = self.shape.pitch * t.bytes
        self.rows, self.columns = pack_rows(f, t), pack_columns(f, t, gap)

    def pack(self, to: Value, a: Value, a_m: Value, a_k: Value, m: Value, k: Value, tile: Callable) -> None:
        """All ``m`` rows; ``tile(to, a, rows)`` packs one tile of a row-major A."""
        f, rows = self.f, self.shape.rows
        with f.branch(a_k == self.t.bytes) as B:
            with f.loop(0, m, rows, carry=[to, a]) as M:
                target, source = M.carry
                tile(target, source, m - M.index)
                M.carry = [f.offset(target, k * self.step + self.gap), f.offset(source, a_m * rows)]
            B.otherwise()
            f.call(self.columns, to, a, a_k, m, k)


@kernel
def pack_a(f: Function, dtype: str) -> None:
    """All of A as tiles of ``[k, pitch]``, for products large enough to read it often.

    The range counts groups of :data:`PACK_GROUP` tiles.
    """
    t = TYPES[dtype]
    packing = PackA(f, t)
    lanes, step, pitch = packing.lanes, packing.step, packing.shape.pitch
    group = PACK_GROUP * packing.shape.rows
    m, k, a_m, a_k = (f.size(i) for i in range(4))
    spare = f.scratch(lanes * step)
    whole = k / lanes * lanes

    def tile(to: Value, a: Value, count: Value) -> None:
        f.call(packing.rows, to, a, a_m, count, whole)
        # The last, short square writes past its end, where another thread's tile may be: it goes through the stack.
        with f.when(whole < k):
            f.call(packing.rows, spare, f.offset(a, whole * t.bytes), a_m, count, k - whole)
            with f.loop(whole, k) as R:
                n = min(pitch, lanes)
                for at in range(0, step, n * t.bytes):
                    x = f.load(f.offset(spare, (R.index - whole) * step + at), t, n)
                    f.store(f.offset(to, R.index * step + at), x)

    with f.loop(f.begin, f.end) as G:
        left = smaller(f, m - G.index * group, group)
        to, a = f.offset(f.data(0), G.index * PACK_GROUP * k * step), f.offset(f.data(1), G.index * group * a_m)
        packing.pack(to, a, a_m, a_k, left, k, tile)


@kernel
def widen(f: Function, dtype: str) -> None:
    """B of a complex product: ``ptr = [wide, b]``, ``arg = [real numbers of a row]``; the range counts rows.

    Each row becomes two: as it is, and multiplied by i. Complex rows of A are multiplied by that as real ones.
    """
    t, n = TYPES[dtype], f.size(0)
    lanes = max(f.lanes(t), 2)  # pairs of parts
    transposed = [i - 1 if i % 2 else lanes + i + 1 for i in range(lanes)]
    with f.loop(f.begin, f.end) as R, f.loop(0, n, lanes) as V:
        inside = f.first(n - V.index, lanes)
        x = f.load(f.offset(f.data(1), (R.index * n + V.index) * t.bytes), t, lanes, inside)
        to = f.offset(f.data(0), (R.index * n * 2 + V.index) * t.bytes)
        f.store(to, x, inside)
        f.store(f.offset(to, n * t.bytes), x.shuffle(transposed, x * -1.0), inside)


@kernel
def pack_b(f: Function, dtype: str) -> None:
    """All of B as panels of ``[depth, width]``, first the panels of the first ``kc`` of k. The range counts panels."""
    t = TYPES[dtype]
    shape, lanes = tile_shape(f.vector_bytes), f.lanes(t)
    width = shape.vectors * lanes
    line = width * t.bytes
    copy, pack_transposed = pack_copy(f, t, shape.vectors), pack_transpose(f, t, shape.vectors)
    n, k, b_n, b_k, kc = (f.size(i) for i in range(5))
    spare = f.scratch(lanes * line)
    panels = (n + (width - 1)) / width
    together = max(256 // line, 1)  # panels that are copied together: whole cache lines of each row
    copy_many = pack_copy(f, t, shape.vectors, together) if together > 1 else copy
    with f.while_([f.begin]) as T:
        at = T.carry[0]
        T.test(at < f.end)
        start, panel = at / panels * kc, at % panels
        columns, depth = smaller(f, n - panel * width, f.i64(width)), smaller(f, k - start, kc)
        to = f.offset(f.data(0), (start * panels + panel * depth) * line)
        source = f.offset(f.data(1), panel * width * b_n + start * b_k)
        many = (b_n == t.bytes) & (n - panel * width >= together * width) & (f.end - at >= together)
        with f.branch(many) as B:
            f.call(copy_many, to, source, b_k, depth, columns)
            B.otherwise()
            with f.branch(b_n == t.bytes) as B2:
                f.call(copy, to, source, b_k, depth, columns)
                B2.otherwise()
                whole = depth / lanes * lanes
                f.call(pack_transposed, to, source, b_n, whole, columns)
                with f.when(whole < depth):  # the last square writes past its end, where another panel may be
                    f.call(pack_transposed, spare, f.offset(source, whole * t.bytes), b_n, depth - whole, columns)
                    f.call(copy, f.offset(to, whole * line), spare, f.i64(line), depth - whole, f.i64(width))
        T.carry = [at + f.select(many, f.i64(together), f.i64(1))]


@kernel
def split_complex(f: Function, dtype: str) -> None:
    """``ptr = [parts, x]``, ``arg = [count]``: the real parts of ``count`` complex numbers, then the imaginary ones."""
    t, count = TYPES[dtype], f.size(0)
    with f.loop(0, count) as L:
        for part in (0, 1):
            x = f.load(f.offset(f.data(1), (L.index * 2 + part) * t.bytes), t)
            f.store(f.offset(f.data(0), (count * part + L.index) * t.bytes), x)


@kernel
def join_complex(f: Function, dtype: str) -> None:
    """``x + i y`` of complex ``x`` and ``y``: ``ptr = [sums, x and then y]``, ``arg = [count]``."""
    t, count = TYPES[dtype], f.size(0)
    with f.loop(0, count) as L:
        at = L.index * (2 * t.bytes)
        to, x = f.offset(f.data(0), at), f.offset(f.data(1), at)
        y = f.offset(x, count * (2 * t.bytes))
        (a, b), (c, d) = ((f.load(z, t), f.load(f.offset(z, t.bytes), t)) for z in (x, y))
        f.store(to, a - d)
        f.store(f.offset(to, t.bytes), b + c)
