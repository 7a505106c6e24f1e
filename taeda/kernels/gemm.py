"""Matrix products: the register tile's loop, and the blocked loops around it that convolution and attention share.

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

from collections.abc import Callable, Sequence

from .build import kernel
from .copy import CARRIER, copy_item
from .ir import F32, I64, PTR, TYPES, Function, Helper, Type, Value
from .packing import PackA, pack_copy, pack_transpose, transpose_out
from .tile import multiply_add, prefetches_a, smaller, tile_shape

K_BLOCK = 256  # depth of a packed panel: 64 columns of float32 are then 64 KiB and stay in the second-level cache

#: The arguments of ``matmul``. Strides are in bytes; ``a_m`` is A's along m, and so on. The product is added to ``d``
#: (``init``: 0 nothing, 1 a matrix or row with contiguous columns, 2 one scalar per row). C is cut into ``down`` by
#: ``across`` tasks, k into blocks of ``kc``. ``flags`` is a sum of the flags below. There are two batch dimensions;
#: ``n1`` is the size of the inner one.
MATMUL_ARGS = tuple(
    "m n k a_m a_k b_k b_n c_m c_n d_m init down across kc flags n1 a_b0 a_b1 b_b0 b_b1 c_b0 c_b1 d_b0 d_b1".split()
)
#: The arguments of ``product_elements``: a task computes one element of C, its sum in blocks of ``kc``, each added to
#: the sum so far. ``init``: what the first is added to, 0 nothing, 1 ``d``, 2 zero.
ELEMENT_ARGS = tuple("m n k kc init n1 a_m a_k b_k b_n c_m c_n d_m d_n a_b0 a_b1 b_b0 b_b1 c_b0 c_b1 d_b0 d_b1".split())
#: Flags. PACK_B: the task that uses B packs it. PACKED: B is packed already, by ``pack_b``. PACK_A: the task packs A,
#: at most ``A_TILES`` tiles. TRANSPOSED: C has contiguous columns, not rows; a task's part of it, rounded up to panels
#: and vectors, has at most ``TRANSPOSED_ITEMS`` items. DOWN_FIRST: consecutive tasks share columns, not rows. NEARBY: B
#: is in the second-level cache and is not prefetched.
PACK_B, PACKED, PACK_A, TRANSPOSED, DOWN_FIRST, NEARBY = 1, 2, 4, 8, 16, 32
TRANSPOSED_ITEMS = 16384
A_GAP = 64
A_TILES = 22  # with its padding and a panel of B this fits the second-level cache and the stack


class Context:
    """Values that the tiles of one block share, on the stack: one int64 per name."""

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
        made = cls(f, f.scratch(8 * len(cls.NAMES)))
        if f.vector_bytes < 16:  # these stores are not needed, but a device may see the block copied
            made.set(**{name: f.i64(0) for name in cls.NAMES})
        return made

    def at(self, name: str) -> Value:
        return self.f.offset(self.pointer, 8 * self.NAMES.index(name))

    def get(self, name: str, t: Type = I64) -> Value:
        return self.f.load(self.at(name), t)

    def set(self, **values: Value) -> None:
        for name, value in values.items():
            self.f.store(self.at(name), value)


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
    copy, pack_transposed = pack_copy(f, t, shape.vectors), pack_transpose(f, t, shape.vectors)
    g = {name: f.size(i) for i, name in enumerate(MATMUL_ARGS)}
    buffer = f.scratch((K_BLOCK + lanes) * width * t.bytes)
    packing = PackA(f, t, A_GAP)
    slab = f.scratch((A_TILES * K_BLOCK + lanes) * packing.step + A_TILES * A_GAP)
    room, transposing = f.scratch(TRANSPOSED_ITEMS * t.bytes), transpose_out(f, t, t)
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
            # Packed B has all panels of one block of k, then those of the next.
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
            f.call(transposing, target, g["c_n"], room, pitch, m, n)


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
        """The addend of a block: nothing, D or the filled C for the first one, C for the others."""
        f = self.f
        given, none = first & (init == 1), first & (init == 0)
        self.c, self.d = c, f.select(given, d, f.select(none, self.zeros, c))
        self.d_step = f.select(none, f.i64(0), f.i64(self.t.bytes))
        self.context.set(c_m=c_m, d_m=f.select(given, d_m, f.select(none, f.i64(0), c_m)))

    def prefetch_panel(self, panel: Value, b_k: Value, depth: Value, packed: Value, fast: Value, there: Value) -> None:
        """Let the tiles prefetch ``panel`` while they work, if ``there``: sequentially if ``packed``, else down its
        rows.
        """
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


def _add_blocks(f: Function, g: dict[str, Value], t: Type, acc: Type, d: Value, carry: list, block: Callable) -> Value:
    """The blocks of a sum, each added to the sum so far. ``block(first, *carry)`` gives the block that begins there,
    and what is carried on; ``d``: see :data:`ELEMENT_ARGS`.
    """
    spare = f.scratch(acc.bytes)
    f.store(spare, f.const(acc, 0))
    with f.when(g["init"] == 1):
        f.store(spare, f.load(d, t).to(acc))
    with f.loop(0, g["k"], g["kc"], carry=[f.load(spare, acc), *carry]) as B:
        total, *rest = B.carry
        made, *rest = block(B.index, *rest)
        alone = (g["init"] == 0) & (B.index == 0)
        B.carry = (f.select(alone, made, made + total), *rest)
    return B.carry[0]


@kernel
def product_elements(f: Function, dtype: str) -> None:
    """``a @ b + d`` with a task for each element; see :data:`ELEMENT_ARGS`. Floats of 16 bits are summed in
    float32.
    """
    t = TYPES[dtype]
    f.products = dtype
    acc = F32 if t.kind == "f" and t.bytes == 2 else t
    g = {name: f.size(i) for i, name in enumerate(ELEMENT_ARGS)}
    zero = f.const(acc, 0)
    with f.loop(f.begin, f.end) as T:
        batch, place = T.index / (g["m"] * g["n"]), T.index % (g["m"] * g["n"])
        outer, inner = batch / g["n1"], batch % g["n1"]
        i, j = place / g["n"], place % g["n"]
        c, a, b, d = (
            f.offset(f.data(n), outer * g[f"{s}_b0"] + inner * g[f"{s}_b1"]) for n, s in enumerate(("c", "a", "b", "d"))
        )
        a, b = f.offset(a, i * g["a_m"]), f.offset(b, j * g["b_n"])
        c, d = (f.offset(p, i * g[f"{s}_m"] + j * g[f"{s}_n"]) for p, s in ((c, "c"), (d, "d")))

        def block(first: Value, at_a: Value, at_b: Value) -> tuple:
            stop = smaller(f, first + g["kc"], g["k"])
            with f.loop(first, stop, carry=[zero, at_a, at_b]) as K:
                sum_so_far, x, y = K.carry
                sum_so_far = multiply_add(f, f.load(x, t).to(acc), f.load(y, t).to(acc), sum_so_far)
                K.carry = (sum_so_far, f.offset(x, g["a_k"]), f.offset(y, g["b_k"]))
            return K.carry

        f.store(c, _add_blocks(f, g, t, acc, d, [a, b], block).to(t))


@kernel
def add_parts(f: Function, dtype: str) -> None:
    """The sums of :func:`product_elements`, of one matrix, whose blocks are in memory: ``ptr = [c, parts, parts, d]``,
    with parts ``[block, m, n]``. A task adds those of one element.
    """
    t = TYPES[dtype]
    g = {name: f.size(i) for i, name in enumerate(ELEMENT_ARGS)}
    with f.loop(f.begin, f.end) as T:
        i, j = T.index / g["n"], T.index % g["n"]
        c, d = (f.offset(f.data(n), i * g[f"{s}_m"] + j * g[f"{s}_n"]) for n, s in ((0, "c"), (3, "d")))

        def block(first: Value, part: Value) -> tuple:
            return f.load(part, t), f.offset(part, g["m"] * g["n"] * t.bytes)

        f.store(c, _add_blocks(f, g, t, t, d, [f.offset(f.data(1), T.index * t.bytes)], block))


@kernel
def sum_nothing(f: Function, item: int) -> None:
    """Rows of a product over an empty dimension: zeros, or D. ``ptr = [c, d]``, items of ``item`` bytes.

    Numbers: rows of a matrix, inner matrices, columns, whether D is given; the strides of C (outer, inner, row) and of
    D (outer, inner, row, column).
    """
    t, lanes = CARRIER[item]
    with f.loop(f.begin, f.end) as R:
        row, i, j = R.index % f.size(0), R.index / f.size(0) / f.size(1), R.index / f.size(0) % f.size(1)
        c = f.offset(f.data(0), i * f.size(4) + j * f.size(5) + row * f.size(6))
        d = f.offset(f.data(1), i * f.size(7) + j * f.size(8) + row * f.size(9))
        with f.branch(f.size(3) == 0) as b:
            with f.loop(0, f.size(2)) as column:
                f.store(f.offset(c, column.index * item), f.const(t, 0, lanes))
            b.otherwise()
            with f.loop(0, f.size(2)) as column:
                copy_item(f, f.offset(c, column.index * item), f.offset(d, column.index * f.size(10)), item)
