"""Matrix products: one register tile, and the blocked loops around it that convolution and attention share.

The *tile* keeps ``rows x (vectors * lanes)`` accumulators in registers. At each step ``k`` it multiplies scalars of A,
read with any strides, by vectors of B, whose columns are contiguous. The rest of the kernel arranges memory for it:

* B is used in place where it is read few times. Else a panel of it (``K_BLOCK x panel`` elements, on the stack of the
  thread that uses it) is *packed*: copied or transposed so that it is read sequentially.
* A may be used in place with any strides: each tile prefetches what the next one reads. Packing A (``pitch`` items for
  the rows of a tile, one k after the other) pays where many panels read it by columns or in several blocks of k.
* C is cut into tasks of ``mc x nc`` elements by shape, fewer for one thread. The sum over k is never split between
  tasks, so results do not depend on the number of threads.

``matmul`` has the blocked product. ``matmul_dot`` has the product of a few rows and a matrix that is contiguous along
k.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .build import kernel
from .ir import I64, PTR, TYPES, Function, Helper, Type, Value

K_BLOCK = 256  # depth of a packed panel: 64 columns of float32 are then 64 KiB and stay in the second-level cache


@dataclass(frozen=True)
class Shape:
    """The register tile of one target: ``rows x (vectors * lanes)`` accumulators, and the panel widths in vectors."""

    rows: int
    widths: tuple[int, ...]

    #: Items between one k and the next in packed A: ``rows`` rounded up to a power of two, so that squares transpose.
    pitch = 8

    @property
    def vectors(self) -> int:
        return self.widths[0]


def tile_shape(vector_bytes: int) -> Shape:
    """The tile that fills the registers: 24 accumulators of 32 (AVX-512, NEON), 12 of 16 (AVX2, SSE)."""
    if vector_bytes == 64 or vector_bytes == 16:
        return Shape(6, (4, 2, 1))
    return Shape(6, (2, 1))


def prefetches_a(vector_bytes: int) -> bool:
    """Whether a tile prefetches the next rows of A: with AVX2 a step has half the multiplications to hide that."""
    return vector_bytes != 32


def panel(dtype: str, vector_bytes: int) -> int:
    """Columns of a full panel."""
    return tile_shape(vector_bytes).vectors * max(vector_bytes // TYPES[dtype].bytes, 1)


#: The arguments of ``matmul``. Strides are in bytes; ``a_m`` is A's along m, and so on. The product is added to ``d``
#: (``init``: 0 nothing, 1 a matrix or row with contiguous columns, 2 one scalar per row). C is cut into ``down`` by
#: ``across`` tasks, k into blocks of ``kc``. ``flags`` is a sum of the flags below. There are two batch dimensions;
#: ``n1`` is the size of the inner one.
MATMUL_ARGS = tuple(
    "m n k a_m a_k b_k b_n c_m c_n d_m init down across kc flags n1 a_b0 a_b1 b_b0 b_b1 c_b0 c_b1 d_b0 d_b1".split()
)
#: Flags. PACK_B: the task that uses B packs it. PACKED: B is packed already, by ``pack_b``. PACK_A: the task packs A,
#: at most ``A_TILES`` tiles. TRANSPOSED: C has contiguous columns, not rows; a task's part of it, rounded up to panels
#: and vectors, has at most ``TRANSPOSED_ITEMS`` items. DOWN_FIRST: consecutive tasks share columns, not rows. NEARBY: B
#: is in the second-level cache and is not prefetched.
PACK_B, PACKED, PACK_A, TRANSPOSED, DOWN_FIRST, NEARBY = 1, 2, 4, 8, 16, 32
TRANSPOSED_ITEMS = 16384
A_GAP = 64
A_TILES = 22  # with its padding and a panel of B this fits the second-level cache and the stack


class Context:
    """What the tiles of one block share, on the stack: one int64 per name."""

    NAMES = (
        "k", "a_m", "a_k", "a_tile", "b_k", "c_m", "d_m",
        # The tiles prefetch the next panel of B, then the next block of A. Each tile starts at `next_*`, goes on by
        # `*_stride` at each k, and then adds `*_advance` to `next_*`. `*_tiles`: how many tiles are still to prefetch.
        "next_b", "next_b_stride", "next_b_advance", "next_b_tiles",
        "next_a", "next_a_stride", "next_a_advance", "next_a_other_advance", "next_a_tiles",
        "prefetch", "prefetch_stride",  # what the current tile prefetches
    )  # fmt: skip

    def __init__(self, f: Function, pointer: Value):
        self.f, self.pointer = f, pointer

    @classmethod
    def new(cls, f: Function) -> Context:
        return cls(f, f.scratch(8 * len(cls.NAMES)))

    def at(self, name: str) -> Value:
        return self.f.offset(self.pointer, 8 * self.NAMES.index(name))

    def get(self, name: str, t: Type = I64) -> Value:
        return self.f.load(self.at(name), t)

    def set(self, **values: Value) -> None:
        for name, value in values.items():
            self.f.store(self.at(name), value)


def multiply_add(f: Function, a: Value, b: Value, c: Value) -> Value:
    """``a * b + c``, fused for floats; integers wrap."""
    return f.fma(a, b, c) if a.type.kind == "f" else a * b + c


def _tile(
    f: Function, t: Type, rows: int, vectors: int, full: bool = False, steps: int = 1, prefetches: bool = True
) -> Helper:
    """``tile(context, a, b, c, d, columns)``: one tile of C. Unless ``full``, the last vector is masked to ``columns``.

    The loop over k is unrolled ``steps`` times. ``prefetches``: it also prefetches what later tiles read.
    """
    h = f.helper(
        f"tile_{rows}x{vectors}" + "_full" * full + "_no_prefetch" * (not prefetches), PTR, PTR, PTR, PTR, PTR, I64
    )
    pointer, a, b, c, d, columns = h.params
    context = Context(h, pointer)
    lanes = h.lanes(t)
    a_m, a_k, b_k, a_tile = context.get("a_m"), context.get("a_k"), context.get("b_k"), context.get("a_tile")
    # While a tile works, it prefetches the next rows of A: row after row or, by columns, the last row at each k.
    by_rows = a_k == t.bytes
    near = a_tile + h.select(by_rows, h.i64(0), h.i64((rows - 1) * t.bytes))
    near_step = h.select(by_rows, a_m, h.i64(0))
    masks = [None] * vectors if full else _masks(h, vectors, columns, lanes)
    # Rows are addressed in groups from one pointer: x86 addresses 0, 1, 2 and 4 strides in the operand.
    group = 6 if h.vector_bytes == 32 else 3
    places = [None, a_m, *(a_m * i for i in range(2, group))]
    groups = [h.offset(a, a_m * g) for g in range(0, rows, group)]
    zero = h.const(t, 0, lanes)
    ahead, ahead_stride = context.get("prefetch", PTR), context.get("prefetch_stride")
    whole = rows == tile_shape(h.vector_bytes).rows
    if whole:
        _prefetch_c(h, c, context.get("c_m"), rows, vectors * lanes * t.bytes)
    loads = masks if h.vector_bytes > 16 else [None] * vectors  # elsewhere the last panel is always packed

    def sums(count: int, start: Value | int, limit: Value, carry: Sequence[Value]) -> tuple[Value, tuple[Value, ...]]:
        with h.loop(start, limit, count, carry=carry) as L:
            at_b, ahead, *rest = L.carry
            at_a, acc = [h.opaque(p) for p in rest[: len(groups)]], rest[len(groups) :]
            for _ in range(count):
                if whole and prefetches:
                    h.prefetch(ahead, 2)
                if whole and prefetches and prefetches_a(h.vector_bytes):
                    h.prefetch(h.offset(at_a[0], near + (L.index & 7) * near_step), 2)
                columns_of_b = [h.load(h.offset(at_b, v * lanes * t.bytes), t, lanes, loads[v]) for v in range(vectors)]
                for i in range(rows):
                    place = places[i % group]
                    x = h.splat(
                        h.load(at_a[i // group] if place is None else h.offset(at_a[i // group], place), t), lanes
                    )
                    for v in range(vectors):
                        acc[i * vectors + v] = multiply_add(h, x, columns_of_b[v], acc[i * vectors + v])
                at_b, ahead = h.offset(at_b, b_k), h.offset(ahead, ahead_stride) if prefetches else ahead
                at_a = [h.offset(p, a_k) for p in at_a]
            L.carry = [at_b, ahead, *at_a, *acc]
        return L.index, L.carry

    k = context.get("k")
    index, carry = h.i64(0), (b, ahead, *groups, *[zero] * (rows * vectors))
    if steps > 1:
        index, carry = sums(steps, index, k - (steps - 1), carry)
    _, carry = sums(1, index, k, carry)
    _finish(h, t, rows, vectors, carry[2 + len(groups) :], context, c, d, masks)
    return h


def _packed_tile(f: Function, t: Type, rows: int, vectors: int, steps: int = 2, prefetches: bool = True) -> Helper:
    """As :func:`_tile`, for a whole panel where A and B are both packed: no addresses to compute."""
    h = f.helper("tile_packed" + "_no_prefetch" * (not prefetches), PTR, PTR, PTR, PTR, PTR, I64)
    pointer, a, b, c, d, _ = h.params
    context = Context(h, pointer)
    lanes, pitch = h.lanes(t), tile_shape(h.vector_bytes).pitch
    d_m = context.get("d_m")
    _prefetch_c(h, d, d_m, rows, vectors * lanes * t.bytes)
    _prefetch_c(h, c, context.get("c_m"), rows, vectors * lanes * t.bytes)
    zero = h.const(t, 0, lanes)
    ahead_stride = context.get("prefetch_stride")

    def sums(count: int, limit: Value, start: Value | int, carry):
        with h.loop(start, limit, count, carry=carry) as L:
            at_a, at_b, ahead, *acc = L.carry
            if prefetches and count == steps:
                h.prefetch(ahead, 2)
            for u in range(count):
                row = [h.load(h.offset(at_b, (u * vectors + v) * lanes * t.bytes), t, lanes) for v in range(vectors)]
                for i in range(rows):
                    x = h.splat(h.load(h.offset(at_a, (u * pitch + i) * t.bytes), t), lanes)
                    for v in range(vectors):
                        acc[i * vectors + v] = multiply_add(h, x, row[v], acc[i * vectors + v])
            moved = h.offset(at_a, count * pitch * t.bytes), h.offset(at_b, count * vectors * lanes * t.bytes)
            L.carry = [*moved, h.offset(ahead, ahead_stride) if prefetches else ahead, *acc]
        return L

    k = context.get("k")
    many = sums(steps, k - (steps - 1), 0, [a, b, context.get("prefetch", PTR), *[zero] * (rows * vectors)])
    last = sums(1, k, many.index, list(many.carry))
    _finish(h, t, rows, vectors, last.carry[3:], context, c, d, [None] * vectors)
    return h


def _prefetch_c(h: Helper, c: Value, c_m: Value, rows: int, row: int) -> None:
    """Prefetch the cache lines of a tile of C, ``row`` bytes of each row: they arrive while the sum is computed."""
    for i in range(rows):
        for at in range(0, row, 64):
            h.prefetch(h.offset(h.offset(c, c_m * i), at), write=True)


def _masks(h: Function, vectors: int, columns: Value, lanes: int) -> list[Value | None]:
    """Masks of a panel's vectors; None for those that are always full in a panel of this width."""
    narrower = max((w for w in tile_shape(h.vector_bytes).widths if w < vectors), default=0)
    return [None if v < narrower else h.first(columns - v * lanes, lanes) for v in range(vectors)]


def _finish(h: Helper, t: Type, rows: int, vectors: int, acc, context: Context, c: Value, d: Value, masks) -> None:
    """Store the accumulators of a tile, added to the rows at ``d``."""
    lanes = h.lanes(t)
    c_m, d_m = context.get("c_m"), context.get("d_m")
    for i in range(rows):
        to, add = h.offset(c, c_m * i), h.offset(d, d_m * i)
        for v in range(vectors):
            at, mask = v * lanes * t.bytes, masks[v]
            h.store(h.offset(to, at), acc[i * vectors + v] + h.load(h.offset(add, at), t, lanes, mask), mask)


def _rows(f: Function, t: Type, vectors: int) -> Helper:
    """``rows(context, a, b, c, d, columns, m)``: all tiles of ``m`` rows against one panel."""
    most = tile_shape(f.vector_bytes).rows
    tiles = {n: _tile(f, t, n, vectors) for n in range(1, most + 1)}
    full = vectors == tile_shape(f.vector_bytes).vectors
    fast = _packed_tile(f, t, most, vectors) if full else None
    # Masks are slow. AVX2's masked stores take a dozen cycles each. On Intel, masked loads of AVX-512 take the issue
    # slots of multiplications (two for 24 of them). What a masked store wrote cannot be forwarded to a load. So whole
    # panels have tiles without masks.
    bare = {n: _tile(f, t, n, vectors, True) for n in tiles} if f.vector_bytes > 16 else None
    # AVX2 has 12 multiplications for the 8 loads of a step: anything more shows where another thread uses the core.
    # Only a few tiles prefetch; the others have no instructions for it and are unrolled four times.
    without_prefetch: dict[Helper | None, Helper] = {}
    if full and bare is not None and not prefetches_a(f.vector_bytes):
        without_prefetch = {bare[most]: _tile(f, t, most, vectors, True, 4, prefetches=False),
                            fast: _packed_tile(f, t, most, vectors, 4, prefetches=False)}  # fmt: skip
    h = f.helper(f"rows_{vectors}", PTR, PTR, PTR, PTR, PTR, I64, I64, I64)
    pointer, a, b, c, d, columns, m, packed = h.params
    context = Context(h, pointer)
    a_tile, c_m, d_m = context.get("a_tile"), context.get("c_m"), context.get("d_m")

    def whole(tile: Helper, start: Value | int, stop: Value, carry) -> tuple[Value, tuple[Value, ...]]:
        with h.loop(start, stop, most, carry=carry) as L:
            at_a, at_c, at_d = L.carry
            # Each tile prefetches a part of the next panel of B until all of it is done, then of the next block of A.
            next_b, left = context.get("next_b", PTR), context.get("next_b_tiles")
            more = left > 0
            context.set(
                prefetch=h.select(more, next_b, pointer),
                prefetch_stride=h.select(more, context.get("next_b_stride"), h.i64(0)),
                next_b=h.offset(next_b, context.get("next_b_advance")),
                next_b_tiles=left - 1,
            )
            a_tiles = context.get("next_a_tiles")
            with h.when(~more & (a_tiles > 0)):
                next_a, advance = context.get("next_a", PTR), context.get("next_a_advance")
                context.set(
                    prefetch=next_a,
                    prefetch_stride=context.get("next_a_stride"),
                    next_a=h.offset(next_a, advance),
                    next_a_tiles=a_tiles - 1,
                )
                context.set(next_a_advance=context.get("next_a_other_advance"), next_a_other_advance=advance)
            args = pointer, at_a, b, at_c, at_d, columns
            if tile in without_prefetch:
                with h.branch(more | (a_tiles > 0)) as B:
                    h.call(tile, *args)
                    B.otherwise()
                    h.call(without_prefetch[tile], *args)
            else:
                h.call(tile, *args)
            L.carry = [h.offset(at_a, a_tile), h.offset(at_c, c_m * most), h.offset(at_d, d_m * most)]
        return L.index, L.carry

    def rest(tiles: dict[int, Helper], start: Value, carry) -> None:
        index, (at_a, at_c, at_d) = whole(tiles[most], start, m - (most - 1), list(carry))
        left = m - index
        for n in range(1, most):
            with h.when(left == n):
                h.call(tiles[n], pointer, at_a, b, at_c, at_d, columns)

    start, carry = h.i64(0), (a, c, d)
    if fast is not None:
        usable = (packed != 0) & (columns == vectors * h.lanes(t))
        start, carry = whole(fast, 0, h.select(usable, m - (most - 1), h.i64(0)), [a, c, d])
    if bare is None:
        rest(tiles, start, carry)
        return h
    with h.branch(columns == vectors * h.lanes(t)) as B:
        rest(bare, start, carry)
        B.otherwise()
        rest(tiles, start, carry)
    return h


def transpose(rows: list[Value]) -> list[Value]:
    """Transpose every square of ``len(rows)`` lanes across the vectors, in log2(len(rows)) rounds of shuffles."""
    n, lanes = len(rows), rows[0].lanes
    step = 1
    while step < n:
        # Swap the off-diagonal blocks of every 2x2 arrangement of step x step blocks.
        low = [j if not j & step else lanes + (j ^ step) for j in range(lanes)]
        high = [(j ^ step) if not j & step else lanes + j for j in range(lanes)]
        out = list(rows)
        for i in range(n):
            if not i & step:
                out[i], out[i | step] = rows[i].shuffle(low, rows[i | step]), rows[i].shuffle(high, rows[i | step])
        rows = out
        step *= 2
    return rows


def transpose_halves(rows: list[Value]) -> list[Value]:
    """Transpose the 4 x 4 squares in both halves of four registers of eight: two rounds of one x86 instruction each."""
    a, b, c, d = rows
    low, high = [0, 8, 1, 9, 4, 12, 5, 13], [2, 10, 3, 11, 6, 14, 7, 15]
    left, right = [0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]
    pairs = [(a.shuffle(pick, b), c.shuffle(pick, d)) for pick in (low, high)]
    return [x.shuffle(pick, y) for x, y in pairs for pick in (left, right)]


def _pack_copy(f: Function, t: Type, vectors: int, panels: int = 1) -> Helper:
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


def _pack_transpose(f: Function, t: Type, vectors: int) -> Helper:
    """``transpose(to, b, b_n, k, columns)``: columns of B, each contiguous along k, transposed into the panel's rows.

    It works on squares of ``lanes x lanes``. The last ones write up to ``lanes - 1`` rows past ``k``; the panel has
    room for them.
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


def _transpose_out(f: Function, t: Type, to_type: Type) -> Helper:
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


def _pack_rows(f: Function, t: Type) -> Helper:
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


def _pack_columns(f: Function, t: Type, gap: int) -> Helper:
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


def spread(f: Function, t: Type, c: Value, c_m: Value, d: Value, d_m: Value, m: Value, n: Value) -> None:
    """Fill each row of C with its scalar of D."""
    lanes = f.lanes(t)
    with f.loop(0, m) as R:
        row = f.offset(c, R.index * c_m)
        x = f.splat(f.load(f.offset(d, R.index * d_m), t), lanes)
        with f.loop(0, n, lanes) as V:
            f.store(f.offset(row, V.index * t.bytes), x, f.first(n - V.index, lanes))


def _share(f: Function, i: Value, parts: Value, blocks: Value, size: int, whole: Value) -> tuple[Value, Value]:
    """Start of the ``i``-th of equal ``parts`` of ``blocks`` blocks of ``size``, and its length within ``whole``."""
    begin, end = (x * blocks / parts * size for x in (i, i + 1))
    return begin, smaller(f, whole, end) - begin


def smaller(f: Function, a: Value, b: Value | int) -> Value:
    """The smaller of two integers."""
    return f.select(a < b, a, b)


@kernel
def matmul(f: Function, dtype: str) -> None:
    """``C = A @ B + D`` over two batch dimensions; see :data:`MATMUL_ARGS`. The range counts tasks: batch, m, n blocks.

    Pointers: C, A, B, D and :func:`panel_product`. B has contiguous rows or contiguous columns (``b_n`` or ``b_k`` is
    the item size), C contiguous rows; A any strides.
    """
    t = TYPES[dtype]
    shape = tile_shape(f.vector_bytes)
    lanes = f.lanes(t)
    width = shape.vectors * lanes
    block = Block(f, t, f.data(4))
    copy, pack_transposed = _pack_copy(f, t, shape.vectors), _pack_transpose(f, t, shape.vectors)
    g = {name: f.size(i) for i, name in enumerate(MATMUL_ARGS)}
    buffer = f.scratch((K_BLOCK + lanes) * width * t.bytes)
    packing = PackA(f, t, A_GAP)
    slab = f.scratch((A_TILES * K_BLOCK + lanes) * packing.step + A_TILES * A_GAP)
    room, transpose_out = f.scratch(TRANSPOSED_ITEMS * t.bytes), _transpose_out(f, t, t)
    flags = PACK_A, PACK_B, PACKED, TRANSPOSED, DOWN_FIRST, NEARBY
    packs_a, packs_b, packed, transposed, down_first, nearby = ((g["flags"] & flag) != 0 for flag in flags)
    fast = (packs_a & (packs_b | packed)).to(I64)
    tiles, panels = (g["m"] + (shape.rows - 1)) / shape.rows, (g["n"] + (width - 1)) / width
    tasks = g["down"] * g["across"]

    with f.loop(f.begin, f.end) as T:
        batch, inside = T.index / tasks, T.index % tasks
        i, j = batch / g["n1"], batch % g["n1"]
        task_row = f.select(down_first, inside % g["down"], inside / g["across"])
        task_column = f.select(down_first, inside / g["down"], inside % g["across"])
        row, m = _share(f, task_row, g["down"], tiles, shape.rows, g["m"])
        column, n = _share(f, task_column, g["across"], panels, width, g["n"])
        base = {x: i * g[f"{x}_b0"] + j * g[f"{x}_b1"] for x in "abcd"}
        d_n = f.select(g["init"] == 1, f.i64(t.bytes), f.i64(0))
        a = f.offset(f.data(1), base["a"] + row * g["a_m"])
        b = f.offset(f.data(2), base["b"] + column * g["b_n"])
        target = f.offset(f.data(0), base["c"] + row * g["c_m"] + column * g["c_n"])
        d = f.offset(f.data(3), base["d"] + row * g["d_m"] + column * d_n)
        pitch = (n + (width - 1)) / width * (width * t.bytes)
        c, c_m = f.select(transposed, room, target), f.select(transposed, pitch, g["c_m"])
        with f.when(g["init"] == 2):
            spread(f, t, c, c_m, d, g["d_m"], m, n)
        with f.loop(0, g["k"], g["kc"]) as K:
            depth = smaller(f, g["k"] - K.index, g["kc"])
            at_a, at_b = f.offset(a, K.index * g["a_k"]), f.offset(b, K.index * g["b_k"])
            # Packed before, B has all panels of one block of k, then those of the next.
            at_b = f.offset(at_b, f.select(packed, column * depth * t.bytes, f.i64(0)))
            b_n = f.select(packed, depth * t.bytes, g["b_n"])
            with f.when(packs_a):
                packing.pack(
                    slab, at_a, g["a_m"], g["a_k"], m, depth,
                    lambda to, a, rows, depth=depth: f.call(packing.rows, to, a, g["a_m"], rows, depth),
                )  # fmt: skip
            item, step = f.i64(t.bytes), f.i64(packing.step)
            a_m, a_k = f.select(packs_a, item, g["a_m"]), f.select(packs_a, step, g["a_k"])
            a_tile = f.select(packs_a, depth * step + A_GAP, g["a_m"] * shape.rows)
            block.context.set(k=depth, a_m=a_m, a_k=a_k, a_tile=a_tile)
            use_a = f.select(packs_a, slab, at_a)
            block.context.set(b_k=f.select(packs_b | packed, f.i64(width * t.bytes), g["b_k"]))
            block.set_c(K.index == 0, g["init"], c, c_m, d, g["d_m"])
            # With A in place by columns, no tile prefetches the first tiles of the next block.
            by_columns = (g["a_k"] != t.bytes) & ~packs_a
            rows = f.select(by_columns, f.i64(shape.rows), m)
            more = (packs_a | by_columns) & (K.index + depth < g["k"])
            block.prefetch_a(f.offset(at_a, depth * g["a_k"]), g["a_m"], g["a_k"], rows, more)
            with f.loop(0, n, width) as P:
                columns = smaller(f, n - P.index, width)
                source = f.offset(at_b, P.index * b_n)
                with f.when(packs_b), f.branch(g["b_n"] == t.bytes) as B:
                    f.call(copy, buffer, source, g["b_k"], depth, columns)
                    B.otherwise()
                    f.call(pack_transposed, buffer, source, g["b_n"], depth, columns)
                last = column + P.index + width >= g["n"]
                deeper = ~packed & (P.index + width >= n) & (K.index + depth < g["k"])
                following = f.select(deeper, f.offset(at_b, depth * g["b_k"]), f.offset(source, b_n * width))
                block.prefetch_panel(following, g["b_k"], depth, packed, fast, (~last | deeper) & ~nearby)
                block.multiply(use_a, f.select(packs_b, buffer, source), P.index, columns, m, fast)
        with f.when(transposed):
            f.call(transpose_out, target, g["c_n"], room, pitch, m, n)


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
        self.rows, self.columns = _pack_rows(f, t), _pack_columns(f, t, gap)

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
    lanes = f.lanes(t)
    transposed = [i - 1 if i % 2 else lanes + i + 1 for i in range(lanes)]
    with f.loop(f.begin, f.end) as R, f.loop(0, n, lanes) as V:
        inside = f.first(n - V.index, lanes)
        x = f.load(f.offset(f.data(1), (R.index * n + V.index) * t.bytes), t, lanes, inside)
        to = f.offset(f.data(0), (R.index * n * 2 + V.index) * t.bytes)
        f.store(to, x, inside)
        f.store(f.offset(to, n * t.bytes), x.shuffle(transposed, x * -1.0), inside)


@kernel
def pack_b(f: Function, dtype: str) -> None:
    """All of B as panels of ``[depth, width]``, those of the first ``kc`` of k first. The range counts panels."""
    t = TYPES[dtype]
    shape, lanes = tile_shape(f.vector_bytes), f.lanes(t)
    width = shape.vectors * lanes
    line = width * t.bytes
    copy, pack_transposed = _pack_copy(f, t, shape.vectors), _pack_transpose(f, t, shape.vectors)
    n, k, b_n, b_k, kc = (f.size(i) for i in range(5))
    spare = f.scratch(lanes * line)
    panels = (n + (width - 1)) / width
    together = max(256 // line, 1)  # panels that are copied together: whole cache lines of each row
    copy_many = _pack_copy(f, t, shape.vectors, together) if together > 1 else copy
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


class Block:
    """The blocks of one product within a kernel: what their tiles share, and the call that does all rows of a panel.

    ``tiles`` is the address of :func:`panel_product`.
    """

    def __init__(self, f: Function, t: Type, tiles: Value):
        self.f, self.t = f, t
        shape = tile_shape(f.vector_bytes)
        self.lanes, self.shape = f.lanes(t), shape
        self.width = shape.vectors * self.lanes
        self.tiles, self.pointers, self.args = tiles, f.scratch(5 * 8), f.scratch(3 * 8)
        self.context = Context.new(f)
        self.context.set(next_b_tiles=f.i64(0), next_a_tiles=f.i64(0))
        self.zeros = f.scratch(self.width * t.bytes)
        for v in range(shape.vectors):
            f.store(f.offset(self.zeros, v * self.lanes * t.bytes), f.const(t, 0, self.lanes))

    def set_c(self, first: Value, init: Value, c: Value, c_m: Value, d: Value, d_m: Value) -> None:
        """What a block is added to: nothing, D or the filled C for the first one, C for the others."""
        f = self.f
        given, none = first & (init == 1), first & (init == 0)
        self.c, self.d = c, f.select(given, d, f.select(none, self.zeros, c))
        self.d_step = f.select(none, f.i64(0), f.i64(self.t.bytes))
        self.context.set(c_m=c_m, d_m=f.select(given, d_m, f.select(none, f.i64(0), c_m)))

    def prefetch_panel(self, panel: Value, b_k: Value, depth: Value, packed: Value, fast: Value, there: Value) -> None:
        """Have the tiles prefetch ``panel`` while they work, if ``there``: sequentially if ``packed``, else down its
        rows."""
        f = self.f
        lines = self.width * self.t.bytes // 64
        twice = packed & (fast != 0)  # packed tiles prefetch at every second k
        self.context.set(
            next_b=panel,
            next_b_stride=f.select(packed, f.i64(64), b_k),
            next_b_advance=f.select(packed, f.select(twice, depth * 32, depth * 64), f.i64(64)),
            next_b_tiles=f.select(there, f.select(twice, f.i64(2 * lines), f.i64(lines)), f.i64(0)),
        )

    def prefetch_a(self, a: Value, a_m: Value, a_k: Value, m: Value, there: Value) -> None:
        """Likewise for a block of A in place, ``K_BLOCK`` deep: each tile prefetches one column of cache lines."""
        f, run = self.f, K_BLOCK // 2  # a packed tile prefetches a line at every second k
        by_rows = a_k == self.t.bytes
        lines = f.select(by_rows, f.i64(K_BLOCK * self.t.bytes // 64), m * self.t.bytes / 64 + 1)
        half = f.select(by_rows, f.i64(64), a_k * run)  # a column of lines of A by columns takes two tiles
        self.context.set(
            next_a=a, next_a_stride=f.select(by_rows, a_m, a_k), next_a_advance=half,
            next_a_other_advance=f.select(by_rows, half, f.i64(64) - half),
            next_a_tiles=f.select(there, f.select(by_rows, lines, lines * 2), f.i64(0)),
        )  # fmt: skip

    def multiply(self, a: Value, b: Value, column: Value, columns: Value, m: Value, packed: Value) -> None:
        """The ``m`` rows against one panel ``b``, which has ``columns`` columns and starts at ``column``."""
        f = self.f
        c, d = f.offset(self.c, column * self.t.bytes), f.offset(self.d, column * self.d_step)
        for i, value in enumerate((self.context.pointer, a, b, c, d)):
            f.store(f.offset(self.pointers, 8 * i), value)
        for i, value in enumerate((columns, m, packed)):
            f.store(f.offset(self.args, 8 * i), value)
        f.call_kernel(self.tiles, self.pointers, self.args, f.i64(0), f.i64(1))


def _by_width(f: Function, rows: dict[int, Helper], columns: Value, lanes: int, args) -> None:
    """Call the narrowest of ``rows`` that holds ``columns``."""
    widths = sorted(rows)
    if len(widths) == 1:
        f.call(rows[widths[0]], *args)
        return
    with f.branch(columns <= widths[0] * lanes) as B:
        f.call(rows[widths[0]], *args)
        B.otherwise()
        _by_width(f, {w: rows[w] for w in widths[1:]}, columns, lanes, args)


@kernel
def panel_product(f: Function, dtype: str) -> None:
    """Rows of A times one panel of B: every kernel made of these blocks calls this one.

    Pointers: a :class:`Context`, A, B, C, D; arguments: columns of the panel, rows, whether both operands are packed.
    """
    f.inner = True
    t = TYPES[dtype]
    rows = {v: _rows(f, t, v) for v in tile_shape(f.vector_bytes).widths}
    columns, m, packed = (f.size(i) for i in range(3))
    _by_width(f, rows, columns, f.lanes(t), (*(f.data(i) for i in range(5)), columns, m, packed))
