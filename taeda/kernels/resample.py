"""Resampling: each output is a short weighted sum of inputs along a line, given by a table of taps.

``out[o] = sum_t weight[t, o] * in[index[t, o]]`` along one dimension, or along the last two of a plane at once. This
covers interpolation of any kind, averages over uneven windows, and their gradients (with the transposed tables).
"""

from __future__ import annotations

from .build import kernel
from .ir import F32, F64, I32, I64, TYPES, Function, Value
from .pointwise import WORKING, part

#: Bytes of the row of a plane that is summed first and then resampled along itself.
STAGED = 16384
AT_ONCE = 4  # vectors for which the taps are looked up once


def working(dtype: str) -> str:
    """The dtype for computing with ``dtype``, also for weights."""
    return WORKING.get(dtype, dtype)


# ---- channels first --------------------------------------------------------------------------------------------------
#: The arguments of :func:`plane`: sizes and taps across (of rows) and along (in a row), pieces of a row and vectors in
#: one.
PLANE_ARGS = "out_h in_h taps_h out_w in_w taps_w pieces registers".split()


def _pick(f: Function, low: Value, high: Value, index: Value) -> Value:
    """Lane ``index`` of two vectors, by AVX-512's permutation."""
    kind = {F32: "ps", F64: "pd"}[low.type]
    return f.intrinsic(f"llvm.x86.avx512.vpermi2var.{kind}.512", low.type, low.lanes, low, index, high)


@kernel
def plane(f: Function, dtype: str, staged: bool, picks: bool) -> None:
    """Along the last dimension and the one before; planes are contiguous. ``arg``: :data:`PLANE_ARGS`.

    ``ptr = [out, in, index across, weight across, starts, places, weights, spans]``. The tables along a row are by
    vector of outputs and tap: ``starts``, the first input; ``places``, relative to it, and ``weights`` of each lane.
    ``picks``: places are lanes of two vectors; else they are offsets in bytes (int32). ``staged``: the rows of a result
    are added up first, from ``spans[2 * piece]`` to ``spans[2 * piece + 1]``; else there is one row, of weight 1. The
    range counts rows of the result.
    """
    t, work = part(dtype), part(working(dtype))
    lanes = f.lanes(work)
    g = {name: f.size(i) for i, name in enumerate(PLANE_ARGS)}
    out, source, index_h, weight_h, starts, places, weights, spans = (f.data(i) for i in range(8))
    buffer = f.scratch(STAGED + 2 * lanes * work.bytes) if staged else None
    here = work if staged else t
    place_type = I64 if picks and work is F64 else I32

    def stage(image: Value, y: Value, first: Value, stop: Value) -> None:
        """The weighted sum of the input rows of row ``y``."""

        def some(at: Value, count: int, mask: Value | None) -> None:
            with f.loop(0, g["taps_h"], carry=[f.const(work, 0, lanes)] * count) as T:
                entry = T.index * g["out_h"] + y
                row = f.load(f.offset(index_h, entry * 8), I64) * g["in_w"] + at
                w = f.splat(f.load(f.offset(weight_h, entry * work.bytes), work), lanes)
                place = f.offset(image, row * t.bytes)
                loads = [f.load(f.offset(place, i * lanes * t.bytes), t, lanes, mask).to(work) for i in range(count)]
                T.carry = tuple(f.fma(w, x, total) for x, total in zip(loads, T.carry, strict=True))
            to = f.offset(buffer, (at - first) * work.bytes)
            for i, x in enumerate(T.carry):
                f.store(f.offset(to, i * lanes * work.bytes), x)

        for at, count, mask in f.strips(first, stop, lanes, AT_ONCE):
            some(at, count, mask)

    def tap(line: Value, entry: Value) -> Value:
        start = f.load(f.offset(starts, entry * 8), I64)
        place = f.load(f.offset(places, entry * (lanes * place_type.bytes)), place_type, lanes)
        at = f.offset(line, start * here.bytes)
        if not picks:
            return f.gather_at(at, place, here).to(work)
        left = g["in_w"] - start
        masks = [None if staged else f.first(left - i * lanes, lanes) for i in range(2)]
        low, high = (f.load(f.offset(at, i * lanes * here.bytes), here, lanes, m) for i, m in enumerate(masks))
        return _pick(f, low, high, place)

    registers = (g["out_w"] + (lanes - 1)) / lanes
    with f.loop(f.begin, f.end) as R:
        number, y = R.index / g["out_h"], R.index % g["out_h"]
        image = f.offset(source, number * g["in_h"] * g["in_w"] * t.bytes)
        with f.loop(0, g["pieces"]) as P:
            if staged:
                span = f.offset(spans, P.index * 16)
                first = f.load(span, I64)
                stage(image, y, first, f.load(f.offset(span, 8), I64))
                line = f.offset(buffer, first * -work.bytes)
            else:
                line = f.offset(image, f.load(f.offset(index_h, y * 8), I64) * g["in_w"] * t.bytes)
            last = (P.index + 1) * g["registers"]
            with f.loop(P.index * g["registers"], f.select(last < registers, last, registers)) as V:
                with f.loop(0, g["taps_w"], carry=[f.const(work, 0, lanes)]) as T:
                    entry = V.index * g["taps_w"] + T.index
                    w = f.load(f.offset(weights, entry * (lanes * work.bytes)), work, lanes)
                    T.carry = (f.fma(w, tap(line, entry), T.carry[0]),)
                o = V.index * lanes
                to = f.offset(out, (R.index * g["out_w"] + o) * t.bytes)
                f.store(to, T.carry[0].to(t), f.first(g["out_w"] - o, lanes))


# ---- channels last ---------------------------------------------------------------------------------------------------


@kernel
def plane_last(f: Function, dtype: str, taps: tuple[int, int]) -> None:
    """Along the two dimensions before the last, which are channels.

    ``ptr = [out, in, index across, weight across, index along, weight along]``,
    ``arg = [out_h, in_h, taps_h, out_w, in_w, taps_w, channels]``; ``taps`` are those across and along where there are
    few, else 0. The range counts rows.
    """
    t, work = part(dtype), part(working(dtype))
    lanes = f.lanes(work)
    out_h, in_h, taps_h, out_w, in_w, taps_w, channels = (f.size(i) for i in range(7))
    out, source, index_h, weight_h, index_w, weight_w = (f.data(i) for i in range(6))
    pixel = channels * t.bytes

    def table(index: Value, weight: Value, entry: Value) -> tuple[Value, Value]:
        return f.load(f.offset(index, entry * 8), I64), f.load(f.offset(weight, entry * work.bytes), work)

    def add(sums: tuple, line: Value, c: Value, w: Value, mask: Value | None) -> tuple:
        at, many = f.offset(line, c * t.bytes), f.splat(w, lanes)
        loads = [f.load(f.offset(at, i * lanes * t.bytes), t, lanes, mask).to(work) for i in range(len(sums))]
        return tuple(f.fma(many, x, total) for x, total in zip(loads, sums, strict=True))

    def by_loops(image: Value, y: Value, x: Value) -> None:
        for c, count, mask in f.strips(0, channels, lanes, AT_ONCE):
            with f.loop(0, taps_h, carry=[f.const(work, 0, lanes)] * count) as H:
                row, across = table(index_h, weight_h, H.index * out_h + y)
                with f.loop(0, taps_w, carry=H.carry) as W:
                    place, along = table(index_w, weight_w, W.index * out_w + x)
                    line = f.offset(image, (row * in_w + place) * pixel)
                    W.carry = add(W.carry, line, c, across * along, mask)
                H.carry = W.carry
            put(y, x, c, H.carry, mask)

    def unrolled(image: Value, y: Value, x: Value) -> None:
        rows = [table(index_h, weight_h, y + out_h * i) for i in range(taps[0])]
        columns = [table(index_w, weight_w, x + out_w * i) for i in range(taps[1])]
        near = [(f.offset(image, (i * in_w + j) * pixel), a * b) for i, a in rows for j, b in columns]
        for c, count, mask in f.strips(0, channels, lanes, AT_ONCE):
            sums: tuple = (f.const(work, 0, lanes),) * count
            for line, w in near:
                sums = add(sums, line, c, w, mask)
            put(y, x, c, sums, mask)

    def put(y: Value, x: Value, c: Value, sums: tuple, mask: Value | None) -> None:
        to = f.offset(out, ((R.index * out_w + x) * channels + c) * t.bytes)
        for i, total in enumerate(sums):
            f.store(f.offset(to, i * lanes * t.bytes), total.to(t), mask)

    with f.loop(f.begin, f.end) as R:
        number, y = R.index / out_h, R.index % out_h
        image = f.offset(source, number * in_h * in_w * pixel)
        with f.loop(0, out_w) as X:
            (unrolled if taps[0] else by_loops)(image, y, X.index)


# ---- any dimension ---------------------------------------------------------------------------------------------------
@kernel
def outer(f: Function, dtype: str) -> None:
    """Along a dimension that is not the last: vectors run along the inner dimensions.

    ``ptr = [out, in, index, weight]``: int64 indices and weights, tap-major. ``arg = [outputs, inputs, inner, taps]``.
    The range counts outputs, for each outer position.
    """
    t, work = TYPES[dtype], part(working(dtype))
    lanes = f.lanes(work)
    outputs, inputs, inner, taps = (f.size(i) for i in range(4))
    out, src, index, weight = (f.data(i) for i in range(4))
    with f.loop(f.begin, f.end) as row:
        a, o = row.index / outputs, row.index % outputs
        here = f.offset(src, a * inputs * inner * t.bytes)
        there = f.offset(out, row.index * inner * t.bytes)
        for at, count, mask in f.strips(0, inner, lanes, AT_ONCE):
            with f.loop(0, taps, carry=[f.const(work, 0, lanes)] * count) as tap:
                entry = tap.index * outputs + o
                line = f.offset(here, (f.load(f.offset(index, entry * 8), I64) * inner + at) * t.bytes)
                w = f.splat(f.load(f.offset(weight, entry * work.bytes), work), lanes)
                loads = [f.load(f.offset(line, i * lanes * t.bytes), t, lanes, mask).to(work) for i in range(count)]
                tap.carry = tuple(f.fma(w, x, total) for x, total in zip(loads, tap.carry, strict=True))
            for i, total in enumerate(tap.carry):
                f.store(f.offset(there, (at + i * lanes) * t.bytes), total.to(t), mask)
