"""Sums, means and maxima of bags of rows of a table; the rows are never gathered in memory."""

from __future__ import annotations

from .build import kernel
from .ir import I64, Function, Value
from .pointwise import WORKING, part

AT_ONCE = 4  # vectors of a row that are summed together
AHEAD = 8  # how many items ahead to prefetch: rows are at random addresses


@kernel
def bag_totals(f: Function, dtype: str, mean: bool) -> None:
    """``out[b] = sum over i of weight[indices[i]]`` for ``i`` from ``edges[b]`` to ``edges[b + 1]``; an empty bag is 0.

    Pointers: out, weight, indices and edges (int64, indices in range). ``arg = [width]``. The range counts bags.
    """
    stored, t = part(dtype), part(WORKING.get(dtype, dtype))
    lanes, width = f.lanes(t), f.size(0)
    row_bytes = width * stored.bytes

    def columns(bag: Value, first: Value, last: Value, column: Value, count: int, mask: Value | None) -> None:
        source = f.offset(f.data(1), column * stored.bytes)

        def row(item: Value) -> Value:
            return f.offset(source, f.load(f.offset(f.data(2), item * 8), I64) * row_bytes)

        with f.loop(first, last, carry=[f.const(t, 0, lanes)] * count) as L:
            later = L.index + AHEAD
            ahead, at = row(f.select(later < last, later, L.index)), row(L.index)
            for line in range(0, count * lanes * stored.bytes, 64):
                f.prefetch(f.offset(ahead, line))
            places = [f.offset(at, i * lanes * stored.bytes) for i in range(count)]
            L.carry = [x + f.load(p, stored, lanes, mask).to(t) for x, p in zip(L.carry, places, strict=True)]
        n = last - first
        share = f.select(n > 0, n, 1).to(t)
        out = f.offset(f.data(0), bag * row_bytes + column * stored.bytes)
        for i, x in enumerate(L.carry):
            x = x / share if mean else x
            f.store(f.offset(out, i * lanes * stored.bytes), x.to(stored), mask)

    with f.loop(f.begin, f.end) as B:
        first, last = (f.load(f.offset(f.data(3), (B.index + i) * 8), I64) for i in (0, 1))
        for column, count, mask in f.strips(0, width, lanes, AT_ONCE):
            columns(B.index, first, last, column, count, mask)


@kernel
def bag_maxima(f: Function, dtype: str) -> None:
    """The maxima of bags (see :func:`bag_totals`), and the number of the row that each comes from.

    Among equal values the first counts, and NaN wins; an empty bag is 0, from row -1. Pointers: out, rows (int64),
    weight, indices, edges. ``arg = [width]``. The range counts bags.
    """
    stored, t = part(dtype), part(WORKING.get(dtype, dtype))
    lanes, width = f.lanes(t), f.size(0)
    with f.loop(f.begin, f.end) as B, f.loop(0, width, lanes) as C:
        first, last = (f.load(f.offset(f.data(4), (B.index + i) * 8), I64) for i in (0, 1))
        mask = f.first(width - C.index, lanes)
        with f.loop(first, last, carry=[f.const(t, 0, lanes), f.const(I64, -1, lanes)]) as L:
            most, rows = L.carry
            row = f.load(f.offset(f.data(3), L.index * 8), I64)
            x = f.load(f.offset(f.data(2), (row * width + C.index) * stored.bytes), stored, lanes, mask).to(t)
            better = (x > most) | (rows < 0) | ((x != x) & (most == most))
            L.carry = f.select(better, x, most), f.select(better, f.splat(row, lanes), rows)
        at = B.index * width + C.index
        f.store(f.offset(f.data(0), at * stored.bytes), L.carry[0].to(stored), mask)
        f.store(f.offset(f.data(1), at * 8), L.carry[1], mask)


@kernel
def bag_spread(f: Function, dtype: str) -> None:
    """The adjoint of :func:`bag_maxima`: ``out[rows[b, c], c] += g[b, c]``.

    Pointers: out (zero), g, rows. ``arg = [width, bags]``. The range counts columns.
    """
    stored, t = part(dtype), part(WORKING.get(dtype, dtype))
    width, bags = f.size(0), f.size(1)
    with f.loop(0, bags) as B, f.loop(f.begin, f.end) as C:
        at = B.index * width + C.index
        row = f.load(f.offset(f.data(2), at * 8), I64)
        with f.when(row >= 0):
            place = f.offset(f.data(0), (row * width + C.index) * stored.bytes)
            x = f.load(f.offset(f.data(1), at * stored.bytes), stored).to(t)
            f.store(place, (f.load(place, stored).to(t) + x).to(stored))
