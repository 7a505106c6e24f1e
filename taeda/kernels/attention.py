"""Scaled dot-product attention in tiles: the whole matrix of scores is never in memory.

A task of the forward kernel takes a block of queries and goes through the keys block by block, with the running maximum
and sum of each row (Milakov & Gimelshein 2018, https://arxiv.org/abs/1805.02867; Dao et al. 2022,
https://arxiv.org/abs/2205.14135). It keeps the logarithm of each row's sum of exponentials, from which the backward
kernel computes the weights again. The products are those of :mod:`taeda.kernels.gemm`, on blocks on the thread's stack.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

from . import scalar as s
from .build import kernel
from .dot import fold, rows_at_once, sums_along
from .gemm import Block
from .ir import BOOL, I32, I64, PTR, TYPES, Function, Helper, Type, Value
from .packing import pack_copy, pack_transpose
from .random import STATE, chosen_rows
from .tile import panel, smaller

#: Queries and keys of a block: one panel of the product for float32 with AVX-512.
QUERIES, KEYS = 64, 64
#: Queries that are processed together where a block is on the diagonal of causal attention.
DIAGONAL_QUERIES = 24
#: Blocks of at most so many queries (as in token-by-token decoding) do not pay for packing the keys.
FEW_QUERIES = 4
#: A row's scores may exceed its *top*, the maximum of an earlier block, by this much. A top that seldom changes saves
#: most rows the scaling of their outputs, and a branch that is hard to predict.
STALE = 4.0
#: Largest head dimension whose packed block of keys fits on the stack; above it the task is given memory.
MAX_HEAD = 256

#: Sizes (``l`` queries, ``s`` keys, head dimensions ``e`` and ``ev``, ``heads`` of the queries, ``shared`` of them per
#: head of keys); byte strides by batch, head and position of queries, keys, values, output and mask; whether attention
#: is causal. ``scale`` is a double. Dropout: ``position`` is the byte offset, among the states, of the position in the
#: first state; the doubles ``chance`` (probability that a weight is kept) and ``factor`` (of kept weights); ``kept`` is
#: where the marks of kept weights are in the task's memory, after packed keys (and values), and ``pitch`` the bytes
#: between their rows.
ATTENTION_ARGS = tuple(
    "l s e ev heads shared q_b q_h q_l k_b k_h k_s v_b v_h v_s o_b o_h o_l m_b m_h m_l causal scale "
    "position chance factor kept pitch".split()
)


class _Tiles:
    """Products of blocks: the tiles of one dtype, and stack memory for the blocks."""

    def __init__(self, f: Function, t: Type, product: Value):
        self.f, self.t = f, t
        self.block = Block(f, t, product)
        self.lanes, self.width = self.block.lanes, self.block.width
        self.copy = pack_copy(f, t, self.block.shape.vectors)
        self.pack_rows = pack_transpose(f, t, self.block.shape.vectors)
        self.item = f.i64(t.bytes)
        self.row = f.i64(KEYS * t.bytes)  # bytes in a row of a block of scores

    def scratch(self, rows: int, columns: int) -> Value:
        return self.f.scratch(rows * columns * self.t.bytes)

    def panel(self, depth: Value, room: Value) -> Value:
        """Memory for every panel of a packed block of ``KEYS`` columns: ``room`` where it is too deep for the stack."""
        panels = -(-KEYS // self.width)
        return self.f.select(depth > MAX_HEAD, room, self.scratch((MAX_HEAD + self.lanes) * panels, self.width))

    def beyond_stack(self, depth: Value) -> Value:
        """:func:`panel_bytes` of a block."""
        row = -(-KEYS // self.width) * self.width * self.t.bytes
        return self.f.select(depth > MAX_HEAD, (depth + self.lanes) * row, 0)

    def pack_transposed(self, to: Value, source: Value, stride: Value, depth: Value, columns: Value) -> None:
        """Pack the transpose of ``columns`` rows of ``depth`` elements."""
        f = self.f
        with f.loop(0, columns, self.width) as P:
            at = f.offset(to, P.index * (depth + self.lanes) * self.t.bytes)
            left = smaller(f, columns - P.index, self.width)
            f.call(self.pack_rows, at, f.offset(source, P.index * stride), stride, depth, left)

    def times_packed(
        self, c: Value, c_m: Value, a: Value, a_m: Value, m: Value, depth: Value, b: Value, n: Value, packed: Value
    ) -> None:
        """``c = a @ b`` for contiguous rows of ``a`` and ``b``, ``packed`` columns, from :meth:`pack_transposed`.

        Columns from ``n`` on are unspecified.
        """
        f, n = self.f, smaller(self.f, self.without_masks(n), packed)
        self.block.context.set(k=depth, a_m=a_m, a_k=self.item, a_tile=a_m * self.block.shape.rows)
        self.block.context.set(b_k=f.i64(self.width * self.t.bytes))
        self.block.set_c(f.const(BOOL, True), f.i64(0), c, c_m, c, c_m)
        with f.loop(0, n, self.width) as P:
            at = f.offset(b, P.index * (depth + self.lanes) * self.t.bytes)
            self.block.multiply(a, at, P.index, smaller(f, n - P.index, self.width), m, f.i64(0))

    def without_masks(self, n: Value) -> Value:
        """``n`` rounded up to whole vectors, so that no store is masked: a masked store is slow to read again."""
        f = self.f
        short = (n - 1) % self.width + 1
        for vectors in self.block.shape.widths:
            short = f.select(short <= vectors * self.lanes, f.i64(vectors * self.lanes), short)
        return (n - 1) / self.width * self.width + short

    def times_rows(
        self, c: Value, c_m: Value, a: Value, a_m: Value, m: Value, depth: Value, b: Value, b_m: Value, n: Value
    ) -> None:
        """``c = a @ b.T`` for few rows of ``a``, both contiguous. Columns from ``n`` on are unspecified."""
        f, together = self.f, rows_at_once(self.lanes)
        with f.loop(0, n, together) as J:
            last = n - J.index - 1
            rows = [f.offset(b, (J.index + smaller(f, f.i64(i), last)) * b_m) for i in range(together)]
            with f.loop(0, m) as I:
                sums = sums_along(f, self.t, [f.offset(a, I.index * a_m)], rows, depth)
                f.store(f.offset(c, I.index * c_m + J.index * self.item), fold(sums))

    def add_product(
        self, first: Value, c: Value, c_m: Value, a: Value, a_m: Value, a_k: Value, m: Value, depth: Value, b: Value,
        b_k: Value, n: Value, room: Value,
    ) -> None:  # fmt: skip
        """``c += a @ b`` (``c = a @ b`` where ``first``); ``b`` has contiguous rows."""
        f = self.f
        in_place = f.vector_bytes > 16  # elsewhere the tiles would read past the end of a short panel
        self.block.context.set(k=depth, a_m=a_m, a_k=a_k, a_tile=a_m * self.block.shape.rows)
        self.block.context.set(b_k=b_k if in_place else f.i64(self.width * self.t.bytes))
        self.block.set_c(first, f.i64(0), c, c_m, c, c_m)
        with f.loop(0, n, self.width) as P:
            columns, at = smaller(f, n - P.index, self.width), f.offset(b, P.index * self.t.bytes)
            if not in_place:
                f.call(self.copy, room, at, b_k, depth, columns)
                at = room
            self.block.multiply(a, at, P.index, columns, m, f.i64(0))


def panel_bytes(dtype: str, depth: int, vector_bytes: int) -> int:
    """Bytes of a packed block of keys of head dimension ``depth``; 0 if it fits on the stack."""
    item = TYPES[dtype].bytes
    width = panel(dtype, vector_bytes)
    return (depth + vector_bytes // item) * -(-KEYS // width) * width * item if depth > MAX_HEAD else 0


def _sizes(f: Function, names: tuple[str, ...]) -> dict[str, Value]:
    return {name: f.size(i) for i, name in enumerate(names)}


def _factors(f: Function, t: Type) -> Value:
    """The scale and the factor of dropout, as two numbers on the stack."""
    at = f.scratch(16)
    for i, name in enumerate(("scale", "factor")):
        f.store(f.offset(at, i * t.bytes), f.scalar(ATTENTION_ARGS.index(name), t))
    return at


class _Dropout:
    """The mask of dropout, drawn again from saved states of the generator, one block of queries at a time."""

    def __init__(self, f: Function, g: dict[str, Value], states: Value, room: Value):
        self.f, self.g, self.states, self.marks = f, g, states, f.offset(room, g["kept"])
        self.rows = chosen_rows(f)
        self.position = f.load(f.offset(states, g["position"]), I32).to(I64)

    def draw(self, head: Value, start: Value, count: Value, row: Value) -> None:
        """Draw the mask of ``count`` queries of a head from ``start`` on; ``row`` is where it begins."""
        f, g = self.f, self.g
        block = head * ((g["l"] + (QUERIES - 1)) / QUERIES) + start / QUERIES
        position = (self.position + (head * g["l"] + start) * g["s"] * 2) % STATE
        causal = g["causal"] != 0
        f.call(
            self.rows, f.offset(self.marks, row * g["pitch"]), g["pitch"], f.offset(self.states, block * (4 * STATE)),
            position, g["chance"], count, g["s"], f.select(causal, start + 1, g["s"]), causal.to(I64),
        )  # fmt: skip

    def at(self, row: Value, key: Value) -> Value:
        """The mask of a query from ``key`` on."""
        return self.f.offset(self.marks, row * self.g["pitch"] + key)


def _kept(f: Function, x: Value, marks: Value | None, factors: Value) -> Value:
    """Weights, or their gradients, after dropout."""
    if marks is None:
        return x
    kept, factor = f.load(marks, BOOL, x.lanes), f.load(f.offset(factors, x.type.bytes), x.type)
    return f.select(kept, x * factor, f.const(x.type, 0, x.lanes))


def _visible(f: Function, g: dict[str, Value], row: Value, first_key: Value, keys: Value) -> Value:
    """The number of a block's keys that the query ``row`` may see."""
    upto = row + 1 - first_key
    upto = f.select(upto < 0, f.i64(0), smaller(f, upto, keys))
    return f.select(g["causal"] != 0, upto, keys)


def _queries_at_once(
    f: Function, g: dict[str, Value], start: Value, rows: Value, first_key: Value, keys: Value
) -> Value:
    """The number of queries of a block processed together: few where causality hides many keys from the first ones."""
    hidden = (g["causal"] != 0) & (first_key + keys > start + DIAGONAL_QUERIES)
    return f.select(hidden & (rows > DIAGONAL_QUERIES), f.i64(DIAGONAL_QUERIES), f.i64(QUERIES))


def _seen(f: Function, g: dict[str, Value], end: Value, first_key: Value, keys: Value) -> Value:
    """The number of a block's keys that any query before ``end`` may see."""
    return f.select(g["causal"] != 0, smaller(f, end - first_key, keys), keys)


def _prefetch(f: Function, t: Type, coming: list[tuple[Value, Value, Value]], row: Value) -> None:
    """Prefetch a row of each operand that is read next: ``(rows, stride, numbers)``."""
    for pointer, stride, numbers in coming:
        with f.loop(0, numbers * t.bytes, 64) as L:
            f.prefetch(f.offset(pointer, row * stride + L.index), 2)


def _score(f: Function, t: Type, kind: str, scale: Value, at: Value, mask_at: Value, mask: Value) -> Value:
    """Scores of one vector: scaled, and minus infinity where masked."""
    lanes = f.lanes(t)
    low = f.const(t, -math.inf, lanes)
    x = f.load(at, t, lanes) * scale
    if kind == "add":
        x = x + f.load(mask_at, t, lanes, mask)
    if kind == "bool":
        mask = mask & f.load(mask_at, BOOL, lanes, mask)
    return f.select(mask, x, low)


def _vectors(f: Function, t: Type, n: Value, body: Callable[[Value, Value | None], None]) -> None:
    """``body(index, mask)`` for each vector of ``n`` elements. Only the last has a mask: masked stores are slow with
    AVX2."""
    lanes = f.lanes(t)
    with f.loop(0, n - (lanes - 1), lanes) as L:
        body(L.index, None)
    with f.loop(L.index, n, lanes) as L:
        body(L.index, f.first(n - L.index, lanes))


def _top(f: Function, a: Value, b: Value) -> Value:
    return f.select(b > a, b, a)


def _softmax(f: Function, t: Type, kind: str, dropped: bool, whole: bool) -> Helper:
    """``softmax(scores, mask, sums, out, visible, keys, ev, first, factors, marks)``: one row of a block of scores.

    The scores become exponentials relative to the row's top. ``sums`` holds the running sum, by lanes, and the top.
    When the top changes, the row of ``out`` is rescaled. Dropout comes after the sum. ``whole``: all ``KEYS`` keys are
    visible; four vectors are processed together.
    """

    h = f.helper("softmax_whole_row" if whole else "softmax_row", PTR, PTR, PTR, PTR, I64, I64, I64, I64, PTR, PTR)
    scores, mask_row, sums, out, visible, keys, ev, first, factors, marks = h.params
    lanes, item = h.lanes(t), t.bytes
    mask_item = 1 if kind == "bool" else item
    scale = h.load(factors, t)
    low, zero = h.const(t, -math.inf, lanes), h.const(t, 0, lanes)
    together = 4 if whole else 1

    def each(L: Any) -> list[Value]:
        return [L.index + j * lanes for j in range(together)]

    def score(i: Value) -> Value:
        if whole:
            return h.load(h.offset(scores, i * item), t, lanes) * scale
        return _score(
            h, t, kind, scale, h.offset(scores, i * item), h.offset(mask_row, i * mask_item),
            h.first(visible - i, lanes),
        )  # fmt: skip

    with h.loop(0, keys, lanes * together, carry=[low] * together) as L:
        xs = [score(i) for i in each(L)]
        if not whole:
            h.store(h.offset(scores, L.index * item), xs[0])
        L.carry = [_top(h, a, x) for a, x in zip(L.carry, xs, strict=True)]
    highest = functools.reduce(functools.partial(_top, h), L.carry)
    top_at, started = h.offset(sums, lanes * item), first == 0
    before = h.select(started, h.load(top_at, t, lanes), low)
    total = h.select(started, h.load(sums, t, lanes), zero)
    h.store(top_at, before)
    h.store(sums, total)
    # A new top is rare after the first blocks: test that before reducing the lanes of a row.
    with h.when(h.count_true(highest > before + STALE) > 0):
        top = h.splat(_top(h, before.lane(0), highest.reduce(functools.partial(_top, h))), lanes)
        h.store(top_at, top)
        shrink = s.exp_weight(before - top)
        h.store(sums, total * shrink)

        def bring(i: Value, left: Value | None) -> None:
            at = h.offset(out, i * item)
            h.store(at, h.load(at, t, lanes, left) * shrink, left)

        with h.when(started):
            _vectors(h, t, ev, bring)
    top = h.load(top_at, t, lanes)
    # A row that has seen no key keeps minus infinity; a difference of 0 would give exponentials of 1. Use 0 instead.
    base = h.select(top == -math.inf, zero, top)
    with h.loop(0, keys, lanes * together, carry=[zero] * together) as L:
        places = [h.offset(scores, i * item) for i in each(L)]
        xs = [score(i) if whole else h.load(at, t, lanes) for i, at in zip(each(L), places, strict=True)]
        exponentials = [s.exp_weight(x - base, not whole) for x in xs]
        for i, at, e in zip(each(L), places, exponentials, strict=True):
            h.store(at, _kept(h, e, h.offset(marks, i) if dropped else None, factors))
        L.carry = [a + e for a, e in zip(L.carry, exponentials, strict=True)]
    h.store(sums, h.load(sums, t, lanes) + functools.reduce(operator.add, L.carry))
    return h


@kernel
def attention(f: Function, dtype: str, kind: str, dropped: bool) -> None:
    """Output and sums; ``kind`` of mask is ``none``, ``bool`` or ``add``. The range counts blocks of queries.

    Pointers: output, sums ``[b, heads, l, 2]`` (each row's maximum, and 1 over the sum of exponentials relative to it),
    queries, keys, values, mask, ``gemm.panel_product``, the states of dropout, and the task's memory. The innermost
    strides are the item size.
    """
    t = TYPES[dtype]
    g = _sizes(f, ATTENTION_ARGS)
    tiles = _Tiles(f, t, f.data(6))
    softmax = _softmax(f, t, kind, dropped, False)
    softmax_whole = _softmax(f, t, kind, dropped, True) if kind == "none" else softmax
    dropout = _Dropout(f, g, f.data(7), f.data(8)) if dropped else None
    item, lanes = t.bytes, tiles.lanes
    scores, keys_transposed = tiles.scratch(QUERIES, KEYS), tiles.panel(g["e"], f.data(8))
    room = tiles.scratch(KEYS, tiles.width)
    sums_row = 2 * lanes * item
    sums = f.scratch(QUERIES * sums_row)
    factors = _factors(f, t)
    blocks = (g["l"] + QUERIES - 1) / QUERIES

    def operands(head: Value, start: Value) -> tuple[Value, Value, Value]:
        b, h = head / g["heads"], head % g["heads"]
        return (
            f.offset(f.data(2), b * g["q_b"] + h * g["q_h"] + start * g["q_l"]),
            f.offset(f.data(3), b * g["k_b"] + h / g["shared"] * g["k_h"]),
            f.offset(f.data(4), b * g["v_b"] + h / g["shared"] * g["v_h"]),
        )

    with f.loop(f.begin, f.end) as T:
        head, start = T.index / blocks, T.index % blocks * QUERIES
        b, h = head / g["heads"], head % g["heads"]
        rows = smaller(f, g["l"] - start, QUERIES)
        q, k, v = operands(head, start)
        after = smaller(f, T.index + 1, f.end - 1)
        q_after, k_after, v_after = operands(after / blocks, after % blocks * QUERIES)
        out = f.offset(f.data(0), b * g["o_b"] + h * g["o_h"] + start * g["o_l"])
        mask = f.offset(f.data(5), b * g["m_b"] + h * g["m_h"] + start * g["m_l"])
        end = f.select(g["causal"] != 0, smaller(f, start + rows, g["s"]), g["s"])
        if dropout is not None:
            dropout.draw(head, start, rows, f.i64(0))
        with f.loop(0, end, KEYS) as K:
            keys = smaller(f, end - K.index, KEYS)
            first = K.index == 0
            block = f.offset(k, K.index * g["k_s"])
            values, mask_at = f.offset(v, K.index * g["v_s"]), f.offset(mask, K.index * (1 if kind == "bool" else item))
            with f.when(rows > FEW_QUERIES):
                tiles.pack_transposed(keys_transposed, block, g["k_s"], g["e"], keys)
            last = K.index + KEYS >= end
            coming = [
                (f.select(last, k_after, f.offset(block, g["k_s"] * KEYS)), g["k_s"], g["e"]),
                (f.select(last, v_after, f.offset(values, g["v_s"] * KEYS)), g["v_s"], g["ev"]),
                (f.select(last, q_after, q), g["q_l"], g["e"]),
            ]
            step = _queries_at_once(f, g, start, rows, K.index, keys)
            with f.loop(0, rows, step) as P:
                count = smaller(f, rows - P.index, step)
                seen = _seen(f, g, start + P.index + count, K.index, keys)
                mine, into = f.offset(q, P.index * g["q_l"]), f.offset(out, P.index * g["o_l"])
                with f.branch(rows <= FEW_QUERIES) as B:
                    tiles.times_rows(scores, tiles.row, mine, g["q_l"], count, g["e"], block, g["k_s"], seen)
                    B.otherwise()
                    tiles.times_packed(scores, tiles.row, mine, g["q_l"], count, g["e"], keys_transposed, seen, keys)
                with f.loop(0, count) as R:
                    row = P.index + R.index
                    _prefetch(f, t, coming, row)
                    visible = _visible(f, g, start + row, K.index, keys)
                    args = (
                        f.offset(scores, R.index * tiles.row), f.offset(mask_at, row * g["m_l"]),
                        f.offset(sums, row * sums_row), f.offset(out, row * g["o_l"]),
                        visible, seen, g["ev"], first.to(I64), factors,
                        mask if dropout is None else dropout.at(row, K.index),
                    )  # fmt: skip
                    with f.branch(visible >= (KEYS if kind == "none" else KEYS + 1)) as B:
                        f.call(softmax_whole, *args)
                        B.otherwise()
                        f.call(softmax, *args)
                tiles.add_product(
                    first, into, g["o_l"], scores, tiles.row, tiles.item, count, seen, values, g["v_s"], g["ev"], room
                )
        with f.loop(0, rows) as R:
            total = f.load(f.offset(sums, R.index * sums_row), t, lanes).reduce(operator.add)
            top = f.load(f.offset(sums, R.index * sums_row + lanes * item), t)
            nothing = total == 0
            at = f.offset(f.data(1), (head * g["l"] + start + R.index) * (2 * item))
            f.store(at, f.select(nothing, f.const(t, 0), top))
            f.store(f.offset(at, item), f.select(nothing, f.const(t, 0), 1.0 / total))
            row, by = f.offset(out, R.index * g["o_l"]), f.splat(f.select(nothing, f.const(t, 1), 1.0 / total), lanes)

            def divide(i: Value, left: Value | None, row: Value = row, by: Value = by) -> None:
                into = f.offset(row, i * item)
                f.store(into, f.load(into, t, lanes, left) * by, left)

            _vectors(f, t, g["ev"], divide)


#: The arguments of ``attention_backward`` after :data:`ATTENTION_ARGS`: strides of the gradients of output, queries,
#: keys and values. Queries are processed in bands of ``band``, and of the heads that share keys, ``together`` at a
#: time.
BACKWARD_ARGS = ATTENTION_ARGS + tuple("g_b g_h g_l dq_b dq_h dq_l dk_b dk_h dk_s dv_b dv_h dv_s band together".split())


def _weights(f: Function, t: Type, kind: str, dropped: bool) -> Helper:
    """``weights(scores, grads, mask, sums, delta, visible, keys, factors, marks)``: one row of a block.

    ``scores`` become the weights after dropout. ``grads``, the gradients of the weights, become the gradients of the
    scores before scaling.
    """

    h = f.helper("weights_row", PTR, PTR, PTR, PTR, PTR, I64, I64, PTR, PTR)
    scores, grads, mask_row, sums, delta_at, visible, keys, factors, marks = h.params
    lanes, item = h.lanes(t), t.bytes
    mask_item = 1 if kind == "bool" else item
    scale, delta = h.load(factors, t), h.load(delta_at, t)
    top, inverse = h.load(sums, t), h.load(h.offset(sums, item), t)
    zero = h.const(t, 0, lanes)
    with h.loop(0, keys, lanes) as L:
        i = L.index
        at, grad_at = h.offset(scores, i * item), h.offset(grads, i * item)
        left = h.first(visible - i, lanes)
        x = _score(h, t, kind, scale, at, h.offset(mask_row, i * mask_item), left)
        weight = s.exp_weight(x - top) * inverse
        mark = h.offset(marks, i) if dropped else None
        h.store(at, _kept(h, weight, mark, factors))
        grad = weight * (_kept(h, h.load(grad_at, t, lanes), mark, factors) - delta) * scale
        h.store(grad_at, h.select(left, grad, zero))
    return h


@kernel
def attention_backward(f: Function, dtype: str, kind: str, dropped: bool) -> None:
    """Gradients of queries, keys and values. The range counts batches times heads of keys.

    Pointers: dq, dk, dv, memory for ``[b, heads, l]`` numbers, queries, keys, values, mask, output, its gradient, sums,
    ``gemm.panel_product``, the states of dropout, and the task's memory.
    """
    t = TYPES[dtype]
    g = _sizes(f, BACKWARD_ARGS)
    tiles = _Tiles(f, t, f.data(11))
    weigh = _weights(f, t, kind, dropped)
    dropout = _Dropout(f, g, f.data(12), f.data(13)) if dropped else None
    item = t.bytes
    scores, grads = tiles.scratch(QUERIES, KEYS), tiles.scratch(QUERIES, KEYS)
    keys_transposed = tiles.panel(g["e"], f.data(13))
    values_transposed = tiles.panel(g["ev"], f.offset(f.data(13), tiles.beyond_stack(g["e"])))
    room = tiles.scratch(QUERIES, tiles.width)
    factors = _factors(f, t)
    key_heads = g["heads"] / g["shared"]
    causal = g["causal"] != 0

    def at(i: int, name: str, b: Value, h: Value, position: Value, p: str = "l") -> Value:
        return f.offset(f.data(i), b * g[f"{name}_b"] + h * g[f"{name}_h"] + position * g[f"{name}_{p}"])

    zero = f.i64(0)
    with f.loop(f.begin, f.end) as T:
        b, kh = T.index / key_heads, T.index % key_heads
        first_head = kh * g["shared"]
        next_task = smaller(f, T.index + 1, f.end - 1)
        after_keys = next_task / key_heads, next_task % key_heads, zero
        after = after_keys[0], after_keys[1] * g["shared"], zero
        with f.loop(first_head, first_head + g["shared"]) as H:
            h = H.index
            _delta(
                f, t, g, at(9, "g", b, h, zero), at(8, "o", b, h, zero),
                f.offset(f.data(3), (b * g["heads"] + h) * g["l"] * item),
            )  # fmt: skip
        with f.loop(0, g["l"], g["band"]) as B, f.loop(first_head, first_head + g["shared"], g["together"]) as G:
            stop = smaller(f, g["l"], B.index + g["band"])
            if dropout is not None:  # one head at a time
                with f.loop(B.index, stop, QUERIES) as Q:
                    count = smaller(f, stop - Q.index, QUERIES)
                    dropout.draw(b * g["heads"] + G.index, Q.index, count, Q.index - B.index)
            with f.loop(0, f.select(causal, smaller(f, g["s"], stop), g["s"]), KEYS) as K:
                keys = smaller(f, g["s"] - K.index, KEYS)
                k, v = at(5, "k", b, kh, K.index, "s"), at(6, "v", b, kh, K.index, "s")
                dk, dv = at(1, "dk", b, kh, K.index, "s"), at(2, "dv", b, kh, K.index, "s")
                tiles.pack_transposed(keys_transposed, k, g["k_s"], g["e"], keys)
                tiles.pack_transposed(values_transposed, v, g["v_s"], g["ev"], keys)
                origin = f.select(causal, K.index / QUERIES * QUERIES, zero)  # the first block that sees these keys
                begin = f.select(origin > B.index, origin, B.index)
                with f.loop(zero, g["together"]) as H, f.loop(begin, stop, QUERIES) as Q:
                    h, start = G.index + H.index, Q.index
                    rows = smaller(f, g["l"] - start, QUERIES)
                    step = _queries_at_once(f, g, start, rows, K.index, keys)
                    pieces = (rows + step - 1) / step
                    mask = f.offset(at(7, "m", b, h, start), K.index * (1 if kind == "bool" else item))
                    flat = ((b * g["heads"] + h) * g["l"] + start) * item
                    more, deeper = start + QUERIES < g["l"], K.index + KEYS < g["s"]
                    coming = [
                        (f.select(more, at(4, "q", b, h, start + QUERIES), at(4, "q", *after)), g["q_l"], g["e"]),
                        (f.select(more, at(9, "g", b, h, start + QUERIES), at(9, "g", *after)), g["g_l"], g["ev"]),
                        (at(8, "o", *after), g["o_l"], g["ev"]),
                        (
                            f.select(deeper, f.offset(k, g["k_s"] * KEYS), at(5, "k", *after_keys, "s")),
                            g["k_s"],
                            g["e"],
                        ),
                        (
                            f.select(deeper, f.offset(v, g["v_s"] * KEYS), at(6, "v", *after_keys, "s")),
                            g["v_s"],
                            g["ev"],
                        ),
                    ]
                    with f.loop(0, pieces) as P:
                        # The last piece comes first: it sees every key, so it can initialize what the others add to.
                        fresh = (h == first_head) & (start == origin) & (P.index == 0)
                        top = (pieces - 1 - P.index) * step
                        count = smaller(f, rows - top, step)
                        seen = f.select(fresh, keys, _seen(f, g, start + top + count, K.index, keys))
                        q, grad, dq = (at(i, name, b, h, start + top) for i, name in ((4, "q"), (9, "g"), (0, "dq")))
                        tiles.times_packed(scores, tiles.row, q, g["q_l"], count, g["e"], keys_transposed, seen, keys)
                        tiles.times_packed(
                            grads, tiles.row, grad, g["g_l"], count, g["ev"], values_transposed, seen, keys
                        )
                        with f.loop(0, count) as R:
                            row = top + R.index
                            _prefetch(f, t, coming, row)
                            f.call(
                                weigh, f.offset(scores, R.index * tiles.row), f.offset(grads, R.index * tiles.row),
                                f.offset(mask, row * g["m_l"]), f.offset(f.data(10), (flat + row * item) * 2),
                                f.offset(f.data(3), flat + row * item), _visible(f, g, start + row, K.index, keys),
                                seen, factors, mask if dropout is None else dropout.at(start - B.index + row, K.index),
                            )  # fmt: skip
                        add, row, one = tiles.add_product, tiles.row, tiles.item
                        add(fresh, dv, g["dv_s"], scores, one, row, seen, count, grad, g["g_l"], g["ev"], room)
                        add(fresh, dk, g["dk_s"], grads, one, row, seen, count, q, g["q_l"], g["e"], room)
                        add(K.index == 0, dq, g["dq_l"], grads, row, one, count, seen, k, g["k_s"], g["e"], room)


def _delta(f: Function, t: Type, g: dict[str, Value], grad: Value, out: Value, to: Value) -> None:
    """``sum(grad * out)`` of each row: the softmax subtracts it from the gradient of every weight."""
    lanes, item = f.lanes(t), t.bytes
    with f.loop(0, g["l"]) as R:
        x, y = f.offset(grad, R.index * g["g_l"]), f.offset(out, R.index * g["o_l"])
        with f.loop(0, g["ev"], lanes, carry=[f.const(t, 0, lanes)]) as L:
            left, at = f.first(g["ev"] - L.index, lanes), L.index * item
            a, b = f.load(f.offset(x, at), t, lanes, left), f.load(f.offset(y, at), t, lanes, left)
            L.carry = [L.carry[0] + a * b]
        f.store(f.offset(to, R.index * item), L.carry[0].reduce(lambda a, b: a + b))
