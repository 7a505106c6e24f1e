"""Pooling: maximum and sum over windows of an image, and their adjoints.

A vector holds neighbouring outputs of one row; a loop goes over the taps of the window. Three spatial dimensions (d, h,
w) cover one and two; the images are contiguous planes. The commonest strides along a row have kernels of their own,
which load contiguous vectors and pick elements by a shuffle: a gather takes five times as long.
"""

from __future__ import annotations

from collections import namedtuple

from .build import kernel
from .fused import apply_steps, numbers_of
from .ir import F64, I32, I64, TYPES, U32, Function, Type, Value
from .pointwise import WORKING, part
from .rows import Epilogue
from .tile import smaller

#: Sizes of output, input and window, stride, dilation, padding. ``adaptive`` is 1 where window ``o`` of a dimension
#: runs from ``floor(o * i / n)`` to ``ceil((o + 1) * i / n)``. A sum is divided by ``divide`` if that is positive; else
#: by the size of the window within the image (0), or within the image and its padding (-1).
PoolArgs = namedtuple("PoolArgs", "od oh ow id ih iw kd kh kw sd sh sw dd dh dw pd ph pw adaptive divide")
POOL_ARGS = PoolArgs._fields


#: Strides along a row that have kernels of their own; 0 stands for the others, and for windows of different sizes.
STRIDES = (1, 2, 3, 4)
#: In place of a stride: a vector holds neighbouring elements of one window, which is plain and large.
ALONG = -1
#: The same for windows so long that four vectors side by side hide the latency of a comparison.
LONG = -4


def larger(f: Function, a: Value, b: Value | int) -> Value:
    """The larger of two integers."""
    return f.select(a > b, a, b)


def lowest(f: Function, t: Type, lanes: int) -> Value:
    """The lower bound of all values of ``t``."""
    return f.const(t, float("-inf") if t.kind == "f" else -(1 << (t.bits - 1)), lanes)


class _Axis:
    """The window of one output along one dimension: taps ``first .. last`` at ``start + tap * step`` are in the image.

    ``plain`` windows have a fixed size and no gaps: their bounds take no divisions.
    """

    def __init__(self, f: Function, g: dict[str, Value], name: str, o: Value, plain: bool = False):
        size, window, self.step = g["i" + name], g["k" + name], g["d" + name]
        if plain:
            self.step = f.i64(1)
            self.start = o * g["s" + name] - g["p" + name]
            self.first, self.last = larger(f, -self.start, 0), smaller(f, window, size - self.start)
            padded = smaller(f, self.start + window, size + g["p" + name]) - self.start
            self.extent = f.select(g["divide"] < 0, padded, self.last - self.first)
            return
        adaptive = g["adaptive"] != 0
        low = o * size / g["o" + name]
        high = ((o + 1) * size + g["o" + name] - 1) / g["o" + name]
        self.start = f.select(adaptive, low, o * g["s" + name] - g["p" + name])
        count = f.select(adaptive, high - low, window)
        one = self.step - 1
        self.first = f.select(self.start < 0, (one - self.start) / self.step, f.i64(0))
        self.last = smaller(f, count, (size - self.start + one) / self.step)
        inside = smaller(f, self.start + count, size) - larger(f, self.start, 0)
        padded = smaller(f, self.start + count, size + g["p" + name]) - self.start
        self.extent = f.select(g["divide"] < 0, padded, inside)

    def at(self, tap: Value) -> Value:
        return self.start + tap * self.step


@kernel
def pool(f: Function, dtype: str, kind: str, stride: int, plain: bool) -> None:
    """``kind`` is ``max``, ``argmax`` (with the int64 index in the plane as second output) or ``sum``. The range
    counts rows. ``stride``: see :data:`STRIDES`, :data:`ALONG` and :data:`LONG`. ``plain``: windows of a fixed size
    without gaps; for others the divisions for each row take longer than a short row."""
    t = TYPES[dtype]
    lanes = f.lanes(t) * (4 if stride == LONG else 1)
    g = {name: f.size(i) for i, name in enumerate(POOL_ARGS)}
    source_at = 2 if kind == "argmax" else 1
    plane_size = g["id"] * g["ih"] * g["iw"]

    def strided(base: Value, first: Value) -> tuple[Value, Value, Value]:
        """Every ``stride``-th element of a line from ``first`` on, 0 outside of it; their places, and which are
        inside."""
        at = first.to(I32) + f.iota(I32, lanes * stride)
        inside = at.bits(U32) < g["iw"].to(U32)  # as unsigned numbers, places before the line are large
        every = f.load(f.offset(base, first * t.bytes), t, lanes * stride, inside)
        picks = range(0, lanes * stride, stride)
        return (every, at, inside) if stride == 1 else (every.shuffle(picks), at.shuffle(picks), inside.shuffle(picks))

    def windows(o: Value) -> tuple[Value, Value, Value]:
        """The begins and ends of the windows of outputs ``o``, and the largest number of taps of a window."""
        fixed, count = o * (stride or g["sw"]) - g["pw"], g["kw"]
        if stride:
            return fixed, fixed + count * g["dw"], count
        # Below 2 ** 52, quotients of integers are exact enough in float64 for floor and ceil to be right.
        ratio, size = o.to(F64) * g["iw"].to(F64), g["ow"].to(F64)
        adaptive = f.splat(g["adaptive"], lanes) != 0
        low = f.unary("floor", ratio / size).to(I64)
        high = f.unary("ceil", (ratio + g["iw"].to(F64)) / size).to(I64)
        start = f.select(adaptive, low, fixed)
        stop = f.select(adaptive, high, fixed + count * g["dw"])
        return start, stop, f.select(g["adaptive"] != 0, g["iw"] / g["ow"] + 2, count)

    initial = [f.const(t, 0, lanes) if kind == "sum" else lowest(f, t, lanes)]
    initial += [f.const(I32, -1, lanes)] if kind == "argmax" else []

    def along(plane: Value, d: _Axis, h: _Axis, row: Value, ow: Value) -> None:
        w = _Axis(f, g, "w", ow, plain)
        with f.loop(d.first, d.last, carry=initial) as D:
            with f.loop(h.first, h.last, carry=list(D.carry)) as H:
                first = (d.at(D.index) * g["ih"] + h.at(H.index)) * g["iw"] + w.start
                base = f.offset(plane, first * t.bytes)
                with f.loop(w.first, w.last, lanes, carry=list(H.carry)) as W:
                    mask = f.first(w.last - W.index, lanes)
                    value = f.load(f.offset(base, W.index * t.bytes), t, lanes, mask)
                    places = (first + W.index).to(I32) + f.iota(I32, lanes)
                    W.carry = _combine(f, kind, list(W.carry), value, places, mask)
                H.carry = W.carry
            D.carry = H.carry
        made = list(D.carry)
        while (half := made[0].lanes // 2) > 0:
            low, high = ([x.shuffle(range(k, k + half)) for x in made] for k in (0, half))
            made = _combine_lanes(f, kind, low, high)
        total = made[0]
        if kind == "sum" and t.kind == "f":
            extent = w.extent * (d.extent * h.extent)
            total = total / f.select(g["divide"] > 0, g["divide"], extent).to(t)
        at = row * g["ow"] + ow
        f.store(f.offset(f.data(0), at * t.bytes), total)
        if kind == "argmax":
            f.store(f.offset(f.data(1), at * 8), made[1].to(I64))

    def chunk(plane: Value, d: _Axis, h: _Axis, row: Value, ow: Value) -> None:
        here = f.first(g["ow"] - ow, lanes)
        start, stop, most = windows(ow + f.iota(I64, lanes))
        with f.loop(d.first, d.last, carry=initial) as D:
            with f.loop(h.first, h.last, carry=list(D.carry)) as H:
                line = d.at(D.index) * g["ih"] + h.at(H.index)
                base = f.offset(plane, line * g["iw"] * t.bytes)
                with f.loop(0, most, carry=list(H.carry)) as W:
                    if stride:
                        value, x, mask = strided(base, ow * stride - g["pw"] + W.index * g["dw"])
                    else:
                        x = start + W.index * g["dw"]
                        mask = here & (x >= 0) & (x < g["iw"]) & (x < stop)
                        value = f.gather_at(base, x * t.bytes, t, mask)
                    W.carry = _combine(f, kind, list(W.carry), value, (line * g["iw"]).to(I32) + x.to(I32), mask)
                H.carry = W.carry
            D.carry = H.carry
        result = list(D.carry)
        at = row * g["ow"] + ow
        if kind == "sum":
            whole = f.splat(g["pw"], lanes)
            edge = g["divide"] < 0
            left = f.select(edge, start, f.select(start > 0, start, 0))
            end = g["iw"] + f.select(edge, whole, 0)
            width = f.select(stop < end, stop, end) - left
            extent = (width * (d.extent * h.extent)).to(t)
            divide = f.select(g["divide"] > 0, f.splat(g["divide"].to(t), lanes), extent)
            result[0] = result[0] / divide if t.kind == "f" else result[0]
        f.store(f.offset(f.data(0), at * t.bytes), result[0], here)
        if kind == "argmax":
            f.store(f.offset(f.data(1), at * 8), result[1].to(I64), here)

    rest = f.begin / g["oh"]
    with f.loop(f.begin, f.end, carry=[f.begin % g["oh"], rest % g["od"], rest / g["od"]]) as R:
        oh, od, channel = R.carry
        plane = f.offset(f.data(source_at), channel * plane_size * t.bytes)
        d, h = _Axis(f, g, "d", od, plain), _Axis(f, g, "h", oh, plain)
        with f.loop(0, g["ow"], 1 if stride < 0 else lanes) as W:
            (along if stride < 0 else chunk)(plane, d, h, R.index, W.index)
        last_row = oh + 1 == g["oh"]
        last_plane = last_row & (od + 1 == g["od"])
        R.carry = (
            f.select(last_row, 0, oh + 1),
            f.select(last_plane, 0, f.select(last_row, od + 1, od)),
            f.select(last_plane, channel + 1, channel),
        )


def _combine(f: Function, kind: str, acc: list[Value], value: Value, index: Value, mask: Value) -> list[Value]:
    """Add one tap. Among equal values the first counts, and NaN wins, as in PyTorch."""
    if kind == "sum":
        return [acc[0] + value]  # masked lanes have been read as 0
    better = value > acc[0]
    if value.type.kind == "f":
        better = better | (value != value)
    if kind == "argmax":
        better = better | (acc[1] < 0)
    better = better & mask
    return [f.select(better, value, acc[0])] + ([f.select(better, index, acc[1])] if kind == "argmax" else [])


def _combine_lanes(f: Function, kind: str, a: list[Value], b: list[Value]) -> list[Value]:
    """As :func:`_combine`, of taps in any order: of equal values that with the lower index counts, of NaN the last."""
    if kind != "argmax":
        return _combine(f, kind, a, b[0], b[0], f.first(f.i64(b[0].lanes), b[0].lanes))
    mine, theirs = (x[1].bits(U32) for x in (a, b))  # -1, where there is no tap, is the highest
    better = (b[0] > a[0]) | ((b[0] == a[0]) & (theirs < mine))
    if a[0].type.kind == "f":
        better = better | ((b[0] != b[0]) & ((a[0] == a[0]) | (mine < theirs)))
    return [f.select(better, y, x) for x, y in zip(a, b, strict=True)]


@kernel
def pool_spread(f: Function, dtype: str, stride: int) -> None:
    """Adjoint of the plain sum: every input gets the sum of the windows that contain it. Dilation 1. The range counts
    input rows.

    ``stride`` is 1; 2 or 4 where windows are adjacent along a row, without padding; -2 for any other windows at a
    stride of 2, whose elements are spread by a shuffle; 0 for the rest.
    """
    t = TYPES[dtype]
    lanes = f.lanes(t)
    g = {name: f.size(i) for i, name in enumerate(POOL_ARGS)}
    plane_size = g["od"] * g["oh"] * g["ow"]

    def taps(name: str, i: Value) -> tuple[Value, Value, Value]:
        """First tap, end of the taps, and ``i + padding``: the taps step by the stride."""
        place, stride = i + g["p" + name], g["s" + name]
        return (
            larger(f, place % stride, place - (g["o" + name] - 1) * stride),
            smaller(f, g["k" + name], place + 1),
            place,
        )

    def chunk(plane: Value, row: Value, z: Value, y: Value, iw: Value) -> None:
        here = f.first(g["iw"] - iw, lanes)
        place = (iw + g["pw"]).to(I32) + f.iota(I32, lanes)
        first_d, end_d, place_d = taps("d", z)
        first_h, end_h, place_h = taps("h", y)
        zero = f.const(t, 0, lanes)
        if stride:
            windows_w = 1 if stride > 1 else g["kw"]
        else:
            windows_w = (g["kw"] + g["sw"] - 1) / g["sw"]
            inverse = f.splat(f.const(F64, 1.0) / g["sw"].to(F64), lanes)
            last_w = f.unary("floor", (place.to(F64) + 0.5) * inverse).to(I32)  # half a place from a wrong quotient
            ow, sw, kw = (g[name].to(I32) for name in ("ow", "sw", "kw"))
        with f.loop(first_d, end_d, g["sd"], carry=[zero]) as D:
            with f.loop(first_h, end_h, g["sh"], carry=list(D.carry)) as H:
                line = (place_d - D.index) / g["sd"] * g["oh"] + (place_h - H.index) / g["sh"]
                base = f.offset(plane, line * g["ow"] * t.bytes)
                with f.loop(0, windows_w, carry=list(H.carry)) as W:
                    if stride > 1:
                        few, first = max(lanes // stride, 2), iw / stride
                        near = f.load(f.offset(base, first * t.bytes), t, few, f.first(g["ow"] - first, few))
                        value = near.shuffle([i // stride for i in range(lanes)])
                    elif stride == -2:
                        few, a = max(lanes // 2, 1), iw + g["pw"] - W.index  # lane i has a window where a + i is even
                        first = (a + 1) >> 1
                        valid = (first.to(I32) + f.iota(I32, few)).bits(U32) < g["ow"].to(U32)
                        near = f.load(f.offset(base, first * t.bytes), t, few, valid)
                        none = f.const(t, 0, few)
                        even, odd = (
                            near.shuffle([i // 2 if i % 2 == k else few for i in range(lanes)], none) for k in (0, 1)
                        )
                        value = f.select((a & 1) == 0, even, odd)
                    elif stride:
                        mask = (place - W.index.to(I32)).bits(U32) < g["ow"].to(U32)  # unsigned: negative is large
                        value = f.load(f.offset(base, (iw + g["pw"] - W.index) * t.bytes), t, lanes, mask)
                    else:
                        o = last_w - W.index.to(I32)
                        mask = here & (o >= 0) & (o < ow) & (place - o * sw < kw)
                        value = f.gather_at(base, o.to(I64) * t.bytes, t, mask)
                    W.carry = [W.carry[0] + value]
                H.carry = W.carry
            D.carry = H.carry
        f.store(f.offset(f.data(0), (row * g["iw"] + iw) * t.bytes), D.carry[0], here)

    with f.loop(f.begin, f.end) as R:
        y, rest = R.index % g["ih"], R.index / g["ih"]
        plane = f.offset(f.data(1), rest / g["id"] * plane_size * t.bytes)
        place, s = y + g["ph"], g["sh"]
        no_begin, no_end = place % s != 0, (place + g["kh"] * (s - 1)) % s != 0  # of a window at this row
        with f.branch(no_begin & no_end & (y > 0) & (R.index > f.begin)) as B:  # it is as the row above
            here, above = (f.offset(f.data(0), row * g["iw"] * t.bytes) for row in (R.index, R.index - 1))
            for first, count in f.groups(0, g["iw"], lanes):
                f.store(f.offset(here, first * t.bytes), f.load(f.offset(above, first * t.bytes), t, count))
            B.otherwise()
            with f.loop(0, g["iw"], lanes) as W:
                chunk(plane, R.index, rest % g["id"], y, W.index)


@kernel
def pool_place(f: Function, dtype: str, apart: bool, room: int = 0) -> None:
    """Adjoint of the maximum: ``out[plane, index[plane, i]] += g[plane, i]``. ``arg`` is (outputs, inputs) per plane.

    ``out`` is cleared first. The range counts planes. Half precision is rounded after each addition. Windows that are
    ``apart`` never share an index, and nothing is added. With an epilogue, whose leaves and results have the shape of
    ``out``, a plane of at most ``room`` bytes is assembled on the stack.
    """
    t = TYPES[dtype]
    lanes, working = f.lanes(t), part(WORKING.get(dtype, dtype))
    outputs, inputs = f.size(0), f.size(1)
    group = 4  # the index is read ahead of the writes
    plane = f.scratch(room) if f.epilogue else None

    def some(out: Value, first: Value, count: int) -> None:
        places = [f.load(f.offset(f.data(2), (first + k) * 8), I64) for k in range(count)]
        for k, place in enumerate(places):
            at = f.offset(out, place * t.bytes)
            x = f.load(f.offset(f.data(1), (first + k) * t.bytes), t)
            f.store(at, x if apart else (f.load(at, t).to(working) + x.to(working)).to(t))

    with f.loop(f.begin, f.end) as P:
        out = f.offset(f.data(0), P.index * outputs * t.bytes) if plane is None else plane
        for first, count in f.groups(0, outputs, lanes):
            f.store(f.offset(out, first * t.bytes), f.const(t, 0, count))
        for first, count in f.groups(P.index * inputs, (P.index + 1) * inputs, group):
            some(out, first, count)
        if plane is not None:
            _apply_epilogue(f, t, plane, P.index * outputs, outputs)


def _apply_epilogue(f: Function, t: Type, plane: Value, begin: Value, size: Value) -> None:
    """Apply the epilogue to a ``plane``, which begins at element ``begin`` of its operands, and store the results."""
    epilogue = f.epilogue
    assert isinstance(epilogue, Epilogue)
    leaves = len(epilogue.leaves) - epilogue.leaves.count(None)
    results = [0, *range(3 + leaves, 2 + leaves + len(epilogue.outs))]
    numbers = numbers_of(f, epilogue.steps, 2)
    for first, count in f.groups(0, size, f.lanes(t)):
        own, others = f.load(f.offset(plane, first * t.bytes), t, count), iter(range(3, 3 + leaves))
        loaded = [
            own if leaf is None else f.load(f.offset(f.data(next(others)), (begin + first) * t.bytes), t, count)
            for leaf in epilogue.leaves
        ]
        made = [*apply_steps(f, epilogue.steps, loaded, numbers, count), own]
        for k, step in zip(results, epilogue.outs, strict=True):
            f.store(f.offset(f.data(k), (begin + first) * t.bytes), f.splat(made[step], count))
