"""Attention on a GPU: the threads of a block compute tiles of scores, and keep what they add up in registers.

A tile has up to 64 rows and 32 columns of scores. Its rows' operands are in shared memory as long as the block runs;
those of its columns come in chunks, through one place there. In the forward kernel and in that of the queries' gradient
rows are queries and columns keys; in that of the gradients of keys and values it is the other way round. Each thread
has 4 columns of a score, and up to 4 rows. Eight threads of a warp share a row. All sums are in a fixed order, in
float32, or in float64 for operands of it: the bits do not depend on the GPU. No float is added by atomic operations.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from ..kernels import scalar as s
from ..kernels.build import kernel
from ..kernels.ir import BOOL, F32, F64, I32, I64, TYPES, U64, Function, Type, Value
from ..kernels.philox import _below, _limit, _Words
from ._blocks import MOST_SHARED, THREADS, Block

COLUMNS = 32  # of a tile of scores
SHARING = 8  # threads of a row
LINES = THREADS // SHARING  # rows that the threads have at once
EACH = COLUMNS // SHARING  # columns of a thread
MOST_REGISTERS = 64  # of a thread's sums
VECTOR = 16  # bytes of an access

#: Sizes and byte strides by the names of :data:`taeda.kernels.attention.ATTENTION_ARGS`, with that of a mask's columns.
#: ``chance`` is the probability that a weight is kept, ``factor`` what it is multiplied by then.
ARGS = tuple(
    "l s e ev heads shared q_b q_h q_l k_b k_h k_s v_b v_h v_s o_b o_h o_l m_b m_h m_l m_s causal scale chance "
    "factor".split()
)
BACKWARD_ARGS = ARGS + tuple("g_b g_h g_l dq_b dq_h dq_l dk_b dk_h dk_s dv_b dv_h dv_s".split())


def working(t: Type) -> Type:
    """The type that is computed in."""
    return F64 if t is F64 else F32


def rounded(depth: int) -> int:
    """Numbers of a row that kernels are written for, where an operand has ``depth``."""
    return -(-depth // 32) * 32


def _shared(item: int, depth: int, rows: int, operands: int) -> int:
    chunk = _chunk(item, depth)
    return (
        operands * rows * (depth * item + VECTOR)
        + COLUMNS * (chunk * item + VECTOR)
        + rows * (COLUMNS + 8) * item
        + 3 * COLUMNS * item
    )


def _chunk(item: int, depth: int) -> int:
    """Numbers of a row of the columns' operand that are in shared memory at a time."""
    return 64 if item == 4 and depth % 64 == 0 else 32


def rows_of(dtype: str, depth: int, operands: int, results: int) -> int:
    """Rows of a tile, of ``operands`` in shared memory and ``results`` in registers; 0: there is not enough of it."""
    item = working(TYPES[dtype]).bytes
    for each in (4, 2, 1):
        registers = results * each * depth // SHARING * item // 4
        if registers <= MOST_REGISTERS and _shared(item, depth, each * LINES, operands) <= MOST_SHARED:
            return each * LINES
    return 0


class _Tile:
    """The threads of a block, and their places in a tile of scores."""

    def __init__(self, f: Function, dtype: str, depth: int, operands: int, results: int) -> None:
        self.f, self.t, self.depth = f, TYPES[dtype], depth
        self.w = w = working(self.t)
        self.item, self.vector = w.bytes, VECTOR // w.bytes
        self.block = block = Block(f)
        self.rows = rows_of(dtype, depth, operands, results)
        self.each = self.rows // LINES
        self.chunk = _chunk(self.item, depth)
        self.pitch, self.chunk_pitch = depth * self.item + VECTOR, self.chunk * self.item + VECTOR
        self.score_pitch = (COLUMNS + 8) * self.item  # so that rows of a warp are in different banks
        self.operands = [block.room(self.rows * self.pitch) for _ in range(operands)]
        self.near, self.scores = block.room(COLUMNS * self.chunk_pitch), block.room(self.rows * self.score_pitch)
        self.lane, self.warp = block.thread & 31, block.thread >> 5
        self.x, self.y = block.thread & (SHARING - 1), block.thread >> (SHARING.bit_length() - 1)

    def row(self, i: int) -> Value:
        return self.y + LINES * i

    def column(self, j: int) -> Value:
        return self.x + SHARING * j

    def zeros(self, count: int) -> list[Value]:
        return [self.f.const(self.w, 0)] * count

    # ---- moving ------------------------------------------------------------------------------------------------------
    def fetch(
        self, to: Value, pitch: int, source: Value, stride: Value, rows: int, there: Value, first: int, columns: int,
        width: Value,
    ) -> None:  # fmt: skip
        """Rows into shared memory, ``columns`` numbers of each from ``first`` on. Behind ``there`` rows and ``width``
        numbers are zeros."""
        f = self.f
        lines = []
        for i in range(rows // (THREADS // 32)):
            row = self.warp + (THREADS // 32) * i
            wide = row.to(I64)
            inside = wide < there
            lines.append((row, inside, f.offset(source, f.select(inside, wide, 0) * stride)))
        for g in range(columns // 32):
            own = self.lane + 32 * g
            wide = own.to(I64) + first
            inside = wide < width
            offset = f.select(inside, wide, 0) * self.t.bytes
            for row, here, base in lines:
                x = f.load(f.offset(base, offset), self.t).to(self.w)
                x = f.select(here & inside, x, 0.0)
                self.block.store(to + row * pitch + own * self.item, x)

    def keep(self, which: int, source: Value, stride: Value, there: Value, width: Value) -> None:
        self.fetch(self.operands[which], self.pitch, source, stride, self.rows, there, 0, self.depth, width)

    def bring(self, source: Value, stride: Value, there: Value, chunk: int, width: Value) -> None:
        """A chunk of an operand of the columns."""
        self.block.barrier()  # what was there is no longer read
        self.fetch(
            self.near, self.chunk_pitch, source, stride, COLUMNS, there, chunk * self.chunk, self.chunk, width
        )  # fmt: skip
        self.block.barrier()

    # ---- products ----------------------------------------------------------------------------------------------------
    def products(self, which: int, source: Value, stride: Value, there: Value, width: Value) -> list[list[Value]]:
        """Rows of an operand times rows of ``source``: this thread's, by row and column."""
        f, block = self.f, self.block
        sums = self.zeros(self.each * EACH)
        for chunk in range(self.depth // self.chunk):
            self.bring(source, stride, there, chunk, width)
            mine = self.operands[which] + self.y * self.pitch + chunk * self.chunk * self.item
            other = self.near + self.x * self.chunk_pitch
            with f.loop(0, self.chunk, self.vector, carry=sums) as L:
                at = L.index.to(I32) * self.item
                a = [block.load(mine + at + LINES * i * self.pitch, self.w, self.vector) for i in range(self.each)]
                b = [block.load(other + at + SHARING * j * self.chunk_pitch, self.w, self.vector) for j in range(EACH)]
                new = list(L.carry)
                for v in range(self.vector):
                    for i in range(self.each):
                        for j in range(EACH):
                            new[i * EACH + j] = f.fma(a[i].lane(v), b[j].lane(v), new[i * EACH + j])
                L.carry = tuple(new)
            sums = list(L.carry)
        return [sums[i * EACH : (i + 1) * EACH] for i in range(self.each)]

    def share(self, values: list[list[Value]]) -> None:
        """Give the tile of scores to the warp that has its rows."""
        self.block.warp_barrier()  # what was there is no longer read
        for i, row in enumerate(values):
            for j, x in enumerate(row):
                self.block.store(self.scores + self.row(i) * self.score_pitch + self.column(j) * self.item, x)
        self.block.warp_barrier()

    @property
    def groups(self) -> int:
        """Groups of numbers of a chunk that a thread has of a row."""
        return self.chunk // (SHARING * self.vector)

    def add(
        self, sums: list[Value], source: Value, stride: Value, there: Value, width: Value, ready: bool = False
    ) -> list[Value]:
        """``sums`` and the tile of scores times rows of ``source``. ``ready``: its chunk is in shared memory, if there
        is only one."""
        f, block, part = self.f, self.block, self.each * self.groups * self.vector
        made: list[Value] = []
        for chunk in range(self.depth // self.chunk):
            if not (ready and self.depth == self.chunk):
                self.bring(source, stride, there, chunk, width)
            mine, other = self.scores + self.y * self.score_pitch, self.near + self.x * VECTOR
            with f.loop(0, COLUMNS, self.vector, carry=sums[chunk * part : (chunk + 1) * part]) as L:
                at = L.index.to(I32)
                a = [
                    block.load(mine + at * self.item + LINES * i * self.score_pitch, self.w, self.vector)
                    for i in range(self.each)
                ]
                new = list(L.carry)
                for v in range(self.vector):
                    for g in range(self.groups):
                        place = other + (at + v) * self.chunk_pitch + g * SHARING * VECTOR
                        b = block.load(place, self.w, self.vector)
                        for i in range(self.each):
                            for u in range(self.vector):
                                k = (i * self.groups + g) * self.vector + u
                                new[k] = f.fma(a[i].lane(v), b.lane(u), new[k])
                L.carry = tuple(new)
            made += L.carry
        return made

    def sums(self) -> list[Value]:
        """Zeros to add to."""
        return self.zeros(self.each * self.depth // SHARING)

    def scaled(self, sums: list[Value], by: list[Value]) -> list[Value]:
        """Each row times a number."""
        part = self.groups * self.vector
        return [x * by[k // part % self.each] for k, x in enumerate(sums)]

    def put(self, sums: list[Value], to: Value, stride: Value, there: Value, width: Value) -> None:
        """Write what was added up: by one access for a vector where all of them are aligned."""
        f, t = self.f, self.t
        nbytes = self.vector * t.bytes
        apart = (f.address(to) | stride | width * t.bytes) & (nbytes - 1)
        part = self.groups * self.vector
        with f.branch(apart == 0) as B:
            for aligned in (True, False):
                if not aligned:
                    B.otherwise()
                for i in range(self.each):
                    row = self.row(i).to(I64)
                    with f.when(row < there):
                        base = f.offset(to, row * stride)
                        for k in range(0, self.depth // SHARING, self.vector):
                            chunk, inside = divmod(k, part)
                            first = chunk * self.chunk + inside * SHARING
                            own = self.x.to(I64) * self.vector + first
                            at = chunk * self.each * part + i * part + inside
                            self._put(f.offset(base, own * t.bytes), sums[at : at + self.vector], width - own, aligned)

    def _put(self, to: Value, numbers: list[Value], left: Value, aligned: bool) -> None:
        f, t = self.f, self.t
        if aligned:
            text = "poison"
            for i, number in enumerate(numbers):
                x = number.to(t)
                x = x.bits(TYPES["uint16"]) if t.bytes == 2 else x
                into = f"insertelement <{len(numbers)} x {x.llvm}> {text}, {x.typed}, i64 {i}"
                made = f.emit(into, x.type, len(numbers))
                text = made.text
            with f.when(left > 0):
                f.lines.append(f"  store {made.typed}, ptr {to.text}, align {len(numbers) * t.bytes}")
            return
        for i, number in enumerate(numbers):
            with f.when(left > i):
                f.store(f.offset(to, i * t.bytes), number.to(t))


class _Call:
    """The arguments of a launch: where operands are, which scores take part, which weights are dropped."""

    def __init__(self, tile: _Tile, names: tuple[str, ...], kind: str, dropped: bool, mask: int, states: int) -> None:
        self.tile, self.f, self.kind, self.dropped, self.mask = tile, tile.f, kind, dropped, mask
        f, w = self.f, tile.w
        self.g = {name: f.size(i) for i, name in enumerate(names) if name not in ("scale", "chance", "factor")}
        self.scale = f.scalar(names.index("scale"), w)
        self.causal = self.g["causal"] != 0
        self.mask_type = {"none": BOOL, "bool": BOOL}.get(kind) or TYPES[kind]
        if dropped:
            self.words = _Words(f, f.data(states))
            self.limit = _limit(f, f.scalar(names.index("chance"), F64))
            self.factor = f.scalar(names.index("factor"), w)

    def at(self, i: int, name: str, b: Value, h: Value, position: Value, p: str = "l") -> Value:
        """The address of a row of an operand."""
        f, g = self.f, self.g
        return f.offset(f.data(i), b * g[f"{name}_b"] + h * g[f"{name}_h"] + position * g[f"{name}_{p}"])

    def score(self, product: Value, b: Value, h: Value, query: Value, key: Value) -> Value:
        """The score of a query and a key: minus infinity where it does not take part, or where there is none."""
        f, g = self.f, self.g
        end = f.select(self.causal, f.select(query + 1 < g["s"], query + 1, g["s"]), g["s"])
        seen = (key < end) & (query < g["l"])
        x = product * self.scale
        if self.kind != "none":
            row, column = f.select(seen, query, 0), f.select(seen, key, 0)
            at = self.at(self.mask, "m", b, h, row)
            found = f.load(f.offset(at, column * g["m_s"]), self.mask_type)
            if self.kind == "bool":
                seen = seen & found
            else:
                x = x + found.to(x.type)
        return f.select(seen, x, -math.inf)

    def kept(self, b: Value, h: Value, query: Value, key: Value) -> Value | None:
        """Whether a weight is kept: by the number of its element among all weights."""
        if not self.dropped:
            return None
        g = self.g
        element = ((b * g["heads"] + h) * g["l"] + query) * g["s"] + key
        return _below(self.words(element, U64), self.limit)

    def times_kept(self, x: Value, kept: Value | None) -> Value:
        return x if kept is None else self.f.select(kept, x * self.factor, 0.0)


def _least(f: Function, a: Value, b: Value) -> Value:
    return f.select(a < b, a, b)


def _top(f: Function) -> Callable[[Value, Value], Value]:
    return lambda a, b: f.select(b > a, b, a)


@kernel
def forward(f: Function, dtype: str, kind: str, dropped: bool, depth: int) -> None:
    """Output and sums, as of :func:`taeda.kernels.attention.attention`. A block has a tile of queries.

    Pointers: output, sums, queries, keys, values, mask, seed and call of dropout. ``kind``: the mask's dtype.
    """
    tile = _Tile(f, dtype, depth, 1, 1)
    call = _Call(tile, ARGS, kind, dropped, 5, 6)
    g, w = call.g, tile.w
    low = f.const(w, -math.inf)
    blocks = (g["l"] + (tile.rows - 1)) / tile.rows
    head, start = f.begin / blocks, f.begin % blocks * tile.rows
    b, h = head / g["heads"], head % g["heads"]
    kh, rows = h / g["shared"], g["l"] - start
    tile.keep(0, call.at(2, "q", b, h, start), g["q_l"], rows, g["e"])
    stop = f.select(call.causal, _least(f, start + _least(f, rows, f.i64(tile.rows)), g["s"]), g["s"])
    each = tile.each
    state = [*[low] * each, *tile.zeros(each), *tile.sums()]
    with f.loop(0, stop, COLUMNS, carry=state) as K:
        tops, totals, sums = K.carry[:each], K.carry[each : 2 * each], list(K.carry[2 * each :])
        keys = g["s"] - K.index
        found = tile.products(0, call.at(3, "k", b, kh, K.index, "s"), g["k_s"], keys, g["e"])
        new_tops, new_totals, shrinks, weights = [], [], [], []
        for i in range(each):
            query = start + tile.row(i).to(I64)
            places = [K.index + tile.column(j).to(I64) for j in range(EACH)]
            scores = [call.score(x, b, h, query, key) for x, key in zip(found[i], places, strict=True)]
            highest = scores[0]
            for x in scores[1:]:
                highest = _top(f)(highest, x)
            top = _top(f)(tops[i], tile.block.join(highest, SHARING, _top(f)))
            base = f.select(top == -math.inf, 0.0, top)  # a row that has seen no key
            shrink = s.exp_weight(tops[i] - base)
            raised = [s.exp_weight(x - base) for x in scores]
            total = totals[i] * shrink
            for x in raised:
                total = total + x
            new_tops.append(top)
            new_totals.append(total)
            shrinks.append(shrink)
            weights.append([
                call.times_kept(x, call.kept(b, h, query, key)) for x, key in zip(raised, places, strict=True)
            ])  # fmt: skip
        tile.share(weights)
        sums = tile.add(
            tile.scaled(sums, shrinks), call.at(4, "v", b, kh, K.index, "s"), g["v_s"], keys, g["ev"]
        )  # fmt: skip
        K.carry = (*new_tops, *new_totals, *sums)
    tops, totals, sums = K.carry[:each], K.carry[each : 2 * each], list(K.carry[2 * each :])
    factors = []
    for i in range(each):
        total = tile.block.join(totals[i], SHARING, operator.add)
        nothing, inverse = total == 0, 1.0 / total
        factors.append(f.select(nothing, 1.0, inverse))
        row = tile.row(i).to(I64)
        with f.when((row < rows) & (tile.x == 0)):
            to = f.offset(f.data(1), (head * g["l"] + start + row) * (2 * w.bytes))
            f.store(to, f.select(nothing, 0.0, tops[i]))
            f.store(f.offset(to, w.bytes), f.select(nothing, 0.0, inverse))
    tile.put(tile.scaled(sums, factors), call.at(0, "o", b, h, start), g["o_l"], rows, g["ev"])


class _Gradients:
    """Both backward kernels. ``sums`` and ``delta`` are of a thread's queries: maximum, 1 over the sum, and the mean of
    the gradient."""

    def __init__(self, f: Function, dtype: str, kind: str, dropped: bool, depth: int, results: int) -> None:
        self.f, self.tile = f, _Tile(f, dtype, depth, 2, results)
        self.call = _Call(self.tile, BACKWARD_ARGS, kind, dropped, 7, 11)
        self.columns = self.tile.block.room(3 * COLUMNS * self.tile.item)  # or means of rows

    def statistics(self, query: Value, head: Value) -> list[Value]:
        f, item = self.f, self.tile.item
        flat = head * self.call.g["l"] + f.select(query < self.call.g["l"], query, 0)
        sums = f.offset(f.data(10), flat * (2 * item))
        return [f.load(sums, self.tile.w), f.load(f.offset(sums, item), self.tile.w)]

    def bring_columns(self, first: Value, head: Value) -> None:
        """Sums and means of a tile's queries into shared memory. The barriers of the products come behind."""
        f, tile, item = self.f, self.tile, self.tile.item
        thread, length = tile.block.thread, self.call.g["l"]
        of_sums = thread < 2 * COLUMNS
        query = first + f.select(of_sums, thread >> 1, thread - 2 * COLUMNS).to(I64)
        flat = head * length + _least(f, query, length - 1)
        sums = f.offset(f.data(10), flat * (2 * item) + (thread & 1).to(I64) * item)
        at = f.select(of_sums, sums, f.offset(f.data(3), flat * item))
        with f.when(thread < 3 * COLUMNS):
            tile.block.store(self.columns + thread * item, f.load(at, tile.w))

    def of_column(self, j: int) -> tuple[list[Value], Value]:
        """Sums and mean of column ``j`` of this thread, from there."""
        tile, item = self.tile, self.tile.item
        own = tile.column(j)
        sums = tile.block.load(self.columns + own * (2 * item), tile.w, 2)
        return [sums.lane(0), sums.lane(1)], tile.block.load(self.columns + (own + 2 * COLUMNS) * item, tile.w)

    def weigh(
        self, product: Value, grad: Value, b: Value, h: Value, query: Value, key: Value, sums: list[Value], delta: Value
    ) -> tuple[Value, Value]:
        """The weight after dropout, and the gradient of the score before scaling, of a query and a key."""
        f, call = self.f, self.call
        x = call.score(product, b, h, query, key)
        weight = s.exp_weight(x - sums[0]) * sums[1]
        kept = call.kept(b, h, query, key)
        ds = weight * (call.times_kept(grad, kept) - delta) * call.scale
        hidden = x == -math.inf
        return f.select(hidden, 0.0, call.times_kept(weight, kept)), f.select(hidden, 0.0, ds)


@kernel
def query_gradient(f: Function, dtype: str, kind: str, dropped: bool, depth: int) -> None:
    """The gradient of queries, and for the other kernel the mean gradient of each. A block has a tile of queries.

    Pointers: gradients of queries, keys and values, means, queries, keys, values, mask, output, its gradient, sums,
    seed and call of dropout.
    """
    both = _Gradients(f, dtype, kind, dropped, depth, 1)
    tile, call = both.tile, both.call
    g, w, block = call.g, tile.w, tile.block
    means = both.columns
    blocks = (g["l"] + (tile.rows - 1)) / tile.rows
    head, start = f.begin / blocks, f.begin % blocks * tile.rows
    b, h = head / g["heads"], head % g["heads"]
    kh, rows = h / g["shared"], g["l"] - start
    tile.keep(0, call.at(4, "q", b, h, start), g["q_l"], rows, g["e"])
    tile.keep(1, call.at(9, "g", b, h, start), g["g_l"], rows, g["ev"])
    block.barrier()
    out = call.at(8, "o", b, h, start)
    with f.loop(0, tile.rows, THREADS // 32) as R:  # a warp for each row
        row = tile.warp + R.index.to(I32)
        wide = row.to(I64)
        inside = wide < rows
        source = f.offset(out, f.select(inside, wide, 0) * g["o_l"])
        with f.loop(0, g["ev"], 32, carry=tile.zeros(1)) as C:
            column = C.index.to(I32) + tile.lane
            there = column.to(I64) < g["ev"]
            x = f.load(f.offset(source, f.select(there, column.to(I64), 0) * tile.t.bytes), tile.t).to(w)
            y = block.load(tile.operands[1] + row * tile.pitch + column * tile.item, w)
            C.carry = (C.carry[0] + f.select(there, x * y, 0.0),)
        mean = block.join(C.carry[0], 32, operator.add)
        with f.when(tile.lane == 0):
            block.store(means + row * tile.item, mean)
    block.barrier()
    own = block.thread.to(I64)
    with f.when((own < rows) & (own < tile.rows)):
        to = f.offset(f.data(3), (head * g["l"] + start + own) * tile.item)
        f.store(to, block.load(means + block.thread * tile.item, w))
    of_row = []
    for i in range(tile.each):
        query = start + tile.row(i).to(I64)
        of_row.append((query, both.statistics(query, head), block.load(means + tile.row(i) * tile.item, w)))
    stop = f.select(call.causal, _least(f, start + _least(f, rows, f.i64(tile.rows)), g["s"]), g["s"])
    with f.loop(0, stop, COLUMNS, carry=tile.sums()) as K:
        keys, k = g["s"] - K.index, call.at(5, "k", b, kh, K.index, "s")
        grads = tile.products(1, call.at(6, "v", b, kh, K.index, "s"), g["v_s"], keys, g["ev"])
        scores = tile.products(0, k, g["k_s"], keys, g["e"])
        tile.share([
            [
                both.weigh(
                    scores[i][j], grads[i][j], b, h, query, K.index + tile.column(j).to(I64), sums, delta
                )[1]
                for j in range(EACH)
            ]
            for i, (query, sums, delta) in enumerate(of_row)
        ])  # fmt: skip
        K.carry = tuple(tile.add(list(K.carry), k, g["k_s"], keys, g["e"], ready=True))
    tile.put(list(K.carry), call.at(0, "dq", b, h, start), g["dq_l"], rows, g["e"])


@kernel
def key_gradients(f: Function, dtype: str, kind: str, dropped: bool, depth: int) -> None:
    """The gradients of keys and values. A block has a tile of keys, and goes through the queries that see it, of all
    heads that share it. Pointers: as of :func:`query_gradient`."""
    both = _Gradients(f, dtype, kind, dropped, depth, 2)
    tile, call = both.tile, both.call
    g = call.g
    key_heads, blocks = g["heads"] / g["shared"], (g["s"] + (tile.rows - 1)) / tile.rows
    head, start = f.begin / blocks, f.begin % blocks * tile.rows
    b, kh = head / key_heads, head % key_heads
    keys = g["s"] - start
    tile.keep(0, call.at(5, "k", b, kh, start, "s"), g["k_s"], keys, g["e"])
    tile.keep(1, call.at(6, "v", b, kh, start, "s"), g["v_s"], keys, g["ev"])
    origin = f.select(call.causal, start / COLUMNS * COLUMNS, 0)  # the first tile of queries that sees these keys
    first_head = kh * g["shared"]
    count = len(tile.sums())
    with f.loop(first_head, first_head + g["shared"], carry=tile.sums() * 2) as H:
        h = H.index
        flat = b * g["heads"] + h
        with f.loop(origin, g["l"], COLUMNS, carry=H.carry) as Q:
            queries, q, grad = g["l"] - Q.index, call.at(4, "q", b, h, Q.index), call.at(9, "g", b, h, Q.index)
            both.bring_columns(Q.index, flat)
            scores = tile.products(0, q, g["q_l"], queries, g["e"])
            grads = tile.products(1, grad, g["g_l"], queries, g["ev"])
            weights: list[list[Value]] = [[] for _ in range(tile.each)]
            changes: list[list[Value]] = [[] for _ in range(tile.each)]
            for j in range(EACH):
                query = Q.index + tile.column(j).to(I64)
                sums, delta = both.of_column(j)
                for i in range(tile.each):
                    key = start + tile.row(i).to(I64)
                    weight, ds = both.weigh(scores[i][j], grads[i][j], b, h, query, key, sums, delta)
                    weights[i].append(weight)
                    changes[i].append(ds)
            of_keys, of_values = list(Q.carry[:count]), list(Q.carry[count:])
            tile.share(weights)
            of_values = tile.add(of_values, grad, g["g_l"], queries, g["ev"], ready=True)
            tile.share(changes)
            of_keys = tile.add(of_keys, q, g["q_l"], queries, g["e"])
            Q.carry = (*of_keys, *of_values)
        H.carry = Q.carry
    tile.put(list(H.carry[:count]), call.at(1, "dk", b, kh, start, "s"), g["dk_s"], keys, g["e"])
    tile.put(list(H.carry[count:]), call.at(2, "dv", b, kh, start, "s"), g["dv_s"], keys, g["ev"])
