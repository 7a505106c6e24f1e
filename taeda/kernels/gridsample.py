"""Sampling at points: a table of the taps of each point, then a gather, a scatter, or products with the gradient.

A tap is an element of the input with a weight. Tables are tap-major over the points of one sample: int64 element index
(-1 where the tap is outside and counts as zero), weight, and the weight's derivatives by each coordinate.
"""

from __future__ import annotations

from .build import kernel
from .ir import BF16, F16, F32, F64, I64, TYPES, Function, Type, Value
from .scalar import basic


def _compute(t: Type) -> Type:
    return F32 if t in (F16, BF16) else t


def _lanes(f: Function, work: Type) -> int:
    return min(f.lanes(work), 2 * f.lanes(I64))


class _Axis:
    """One coordinate: its value, the padding mode, and the size of its dimension."""

    def __init__(self, f: Function, x: Value, size: Value, padding: str, align: bool):
        self.f, self.padding, self.align = f, padding, align
        self.size = f.splat(size.to(x.type), x.lanes)
        top = self.size - 1.0
        self.scale = top * 0.5 if align else self.size * 0.5
        self.raw = (x + 1.0) * self.scale if align else ((x + 1.0) * self.size - 1.0) * 0.5

    def reflected(self, x: Value) -> tuple[Value, Value]:
        """``x`` reflected at the borders and clamped, and the derivative of that (-1, 0 or 1)."""
        f, zero = self.f, self.f.const(x.type, 0.0, x.lanes)
        slope = self.f.const(x.type, 1.0, x.lanes)
        if self.padding == "zeros":
            return x, slope
        if self.padding == "reflection":
            low = 0.0 if self.align else -0.5
            span = self.size - 1.0 if self.align else self.size
            moved = x - low
            slope = f.select(moved < 0.0, slope * -1.0, slope)
            moved = basic.abs(moved)
            flips = basic.floor(moved / span)
            rest = moved - flips * span
            odd = flips - basic.floor(flips * 0.5) * 2.0 > 0.5
            x = f.select(odd, span - rest, rest) + low
            slope = f.select(odd, -slope, slope)
            x = f.select(span > 0.0, x, zero)
            slope = f.select(span > 0.0, slope, zero)
        top = self.size - 1.0
        inside = (x > 0.0) & (x < top)
        slope = f.select(inside, slope, zero)
        return basic.minimum(basic.maximum(x, zero), top), slope

    def index(self, x: Value) -> tuple[Value, Value]:
        """A whole position as an int64, and whether it is inside."""
        inside = (x >= 0.0) & (x <= self.size - 1.0)
        return self.f.select(inside, x, self.f.const(x.type, 0.0, x.lanes)).to(I64), inside


def _cubic(t: Value, a: float = -0.75) -> list[tuple[Value, Value]]:
    """Weights of the taps at -1, 0, 1, 2 for the fraction ``t``, and their derivatives (Keys 1981)."""

    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1, (3 * (a + 2) * x - 2 * (a + 3)) * x

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a, (3 * a * x - 10 * a) * x + 8 * a

    w0, d0 = far(t + 1.0)
    w1, d1 = near(t)
    w2, d2 = near(1.0 - t)
    w3, d3 = far(2.0 - t)
    return [(w0, d0), (w1, d1), (w2, -d2), (w3, -d3)]


def _taps_of(axis: _Axis, mode: str) -> list[tuple[Value, Value, Value, Value]]:
    """(index, inside, weight, derivative) of each tap along one axis."""
    f = axis.f
    if mode == "bicubic":
        base = basic.floor(axis.raw)
        result = []
        for k, (w, d) in enumerate(_cubic(axis.raw - base)):
            at, _ = axis.reflected(base + float(k - 1))
            result.append((*axis.index(at), w, d * axis.scale))
        return result
    at, slope = axis.reflected(axis.raw)
    if mode == "nearest":
        one = f.const(at.type, 1.0, at.lanes)
        return [(*axis.index(f.unary("roundeven", at)), one, one * 0.0)]
    base = basic.floor(at)
    part = at - base
    slope = slope * axis.scale
    return [(*axis.index(base), 1.0 - part, -slope), (*axis.index(base + 1.0), part, slope)]


@kernel
def table(f: Function, dtype: str, mode: str, padding: str, align: bool, dims: int) -> None:
    """Fill the tables from the grid.

    ``ptr = [index, weight, derivative, grid]``, ``arg = [points, size of each dimension, outermost first]``; the
    parallel dimension is samples times vectors of points. Tables of one sample follow those of the one before.
    """
    t = TYPES[dtype]
    work = _compute(t)
    lanes = _lanes(f, work)
    points = f.size(0)
    sizes = [f.size(1 + d) for d in range(dims)]
    per_sample = (points + (lanes - 1)) / lanes
    count = {"bilinear": 2, "nearest": 1, "bicubic": 4}[mode] ** dims
    with f.loop(f.begin, f.end) as L:
        sample, at = L.index / per_sample, (L.index % per_sample) * lanes
        here = points - at
        mask = f.first(here, lanes)
        left = f.select(here < lanes, here, f.i64(lanes))
        point = f.offset(f.data(3), (sample * points + at) * (dims * t.bytes))
        axes = []
        for d in range(dims):  # the grid's coordinates start with the innermost dimension
            place = f.offset(point, (dims - 1 - d) * t.bytes)
            x = f.gather(place, f.i64(dims * t.bytes), t, lanes, left).to(work)
            x = f.select(x == x, x, f.const(work, -1.0, lanes))
            axes.append(_taps_of(_Axis(f, x, sizes[d], padding, align), mode))
        base = sample * (count * points) + at

        def put(operand: int, x: Value, slot: Value) -> None:
            f.store(f.offset(f.data(operand), slot * x.type.bytes), x, mask)

        def combine(d: int, index: Value | None, inside: Value | None, factors: list, number: int) -> int:
            """Walk over all combinations of taps, outermost dimension first."""
            if d == dims:
                weight = factors[0][0]
                for w, _ in factors[1:]:
                    weight = weight * w
                slot = base + points * number
                put(0, f.select(inside, index, f.const(I64, -1, lanes)), slot)
                put(1, weight, slot)
                for k in range(dims):
                    slope = factors[k][1]
                    for j, (w, _) in enumerate(factors):
                        slope = slope * w if j != k else slope
                    put(2, slope, (sample * (count * dims) + (number * dims + k)) * points + at)
                return number + 1
            for i, ok, w, dw in axes[d]:
                whole = i if index is None else index * f.splat(sizes[d], lanes) + i
                both = ok if inside is None else inside & ok
                number = combine(d + 1, whole, both, [*factors, (w, dw)], number)
            return number

        combine(0, None, None, [], 0)


@kernel
def sample(f: Function, dtype: str) -> None:
    """``ptr = [out, in, index, weight]``, ``arg = [points, elements of a plane, taps, channels]``; parallel over
    planes."""
    t = TYPES[dtype]
    work = _compute(t)
    lanes = _lanes(f, work)
    points, plane, taps, channels = (f.size(i) for i in range(4))
    with f.loop(f.begin, f.end) as L:
        source = f.offset(f.data(1), L.index * plane * t.bytes)
        first = (L.index / channels) * taps * points
        with f.loop(f.i64(0), points, lanes) as p:
            mask = f.first(points - p.index, lanes)
            with f.loop(f.i64(0), taps, 1, [f.const(work, 0.0, lanes)]) as tap:
                slot = first + tap.index * points + p.index
                index = f.load(f.offset(f.data(2), slot * 8), I64, lanes, mask, -1)
                w = f.load(f.offset(f.data(3), slot * work.bytes), work, lanes, mask)
                x = f.gather_at(source, index * t.bytes, t, index >= 0).to(work)
                tap.carry = (f.fma(w, x, tap.carry[0]),)
            f.store(f.offset(f.data(0), (L.index * points + p.index) * t.bytes), tap.carry[0].to(t), mask)


@kernel
def scatter(f: Function, dtype: str) -> None:
    """``ptr = [gradient of in (zero), gradient of out, index, weight]``, arguments as :func:`sample`; parallel over
    planes."""
    t = TYPES[dtype]
    work = _compute(t)
    points, plane, taps, channels = (f.size(i) for i in range(4))
    with f.loop(f.begin, f.end) as L:
        target = f.offset(f.data(0), L.index * plane * t.bytes)
        first = (L.index / channels) * taps * points
        with f.loop(f.i64(0), points) as p:
            g = f.load(f.offset(f.data(1), (L.index * points + p.index) * t.bytes), t).to(work)
            with f.loop(f.i64(0), taps) as tap:
                slot = first + tap.index * points + p.index
                index = f.load(f.offset(f.data(2), slot * 8), I64)
                with f.when(index >= 0):
                    place = f.offset(target, index * t.bytes)
                    w = f.load(f.offset(f.data(3), slot * work.bytes), work)
                    f.store(place, f.fma(w, g, f.load(place, t).to(work)).to(t))


@kernel
def slope(f: Function, dtype: str, dims: int) -> None:
    """Gradient of the grid.

    ``ptr = [gradient of grid, in, gradient of out, index, derivative]``, arguments as :func:`sample`; the parallel
    dimension is samples times vectors of points.
    """
    t = TYPES[dtype]
    work = _compute(t)
    lanes = _lanes(f, work)
    points, plane, taps, channels = (f.size(i) for i in range(4))
    per_sample = (points + (lanes - 1)) / lanes
    with f.loop(f.begin, f.end) as L:
        sample_, at = L.index / per_sample, (L.index % per_sample) * lanes
        here = points - at
        mask = f.first(here, lanes)
        zero = f.const(work, 0.0, lanes)
        with f.loop(f.i64(0), taps, 1, [zero] * dims) as tap:
            slot = (sample_ * taps + tap.index) * points + at
            index = f.load(f.offset(f.data(3), slot * 8), I64, lanes, mask, -1)
            with f.loop(f.i64(0), channels, 1, [zero]) as c:
                row = sample_ * channels + c.index
                x = f.gather_at(f.offset(f.data(1), row * plane * t.bytes), index * t.bytes, t, index >= 0).to(work)
                g = f.load(f.offset(f.data(2), (row * points + at) * t.bytes), t, lanes, mask).to(work)
                c.carry = (f.fma(x, g, c.carry[0]),)
            total = []
            for k in range(dims):
                entry = ((sample_ * taps + tap.index) * dims + k) * points + at
                d = f.load(f.offset(f.data(4), entry * work.bytes), work, lanes, mask)
                total.append(f.fma(d, c.carry[0], tap.carry[k]))
            tap.carry = tuple(total)
        left = f.select(here < lanes, here, f.i64(lanes))
        point = f.offset(f.data(0), (sample_ * points + at) * (dims * t.bytes))
        for k in range(dims):
            f.scatter(f.offset(point, (dims - 1 - k) * t.bytes), f.i64(dims * t.bytes), tap.carry[k].to(t), left)


# ---- many channels: lanes are channels, which are contiguous in memory -----------------------------------------------
@kernel
def sample_last(f: Function, dtype: str) -> None:
    """:func:`sample` with channels last: ``out`` is ``[samples, points, channels]``. The range counts points of all
    samples."""
    t = TYPES[dtype]
    work = _compute(t)
    lanes = f.lanes(work)
    points, plane, taps, channels = (f.size(i) for i in range(4))
    with f.loop(f.begin, f.end) as P:
        number, p = P.index / points, P.index % points
        image, first = f.offset(f.data(1), number * plane * channels * t.bytes), number * taps * points + p
        with f.loop(0, channels, lanes) as C:
            here = f.first(channels - C.index, lanes)
            with f.loop(0, taps, 1, [f.const(work, 0.0, lanes)]) as tap:
                slot = first + tap.index * points
                index = f.load(f.offset(f.data(2), slot * 8), I64)
                w = f.splat(f.load(f.offset(f.data(3), slot * work.bytes), work), lanes)
                seen = f.splat(index >= 0, lanes) & here
                x = f.load(f.offset(image, (index * channels + C.index) * t.bytes), t, lanes, seen).to(work)
                tap.carry = (f.fma(w, x, tap.carry[0]),)
            f.store(f.offset(f.data(0), (P.index * channels + C.index) * t.bytes), tap.carry[0].to(t), here)


@kernel
def scatter_last(f: Function, dtype: str) -> None:
    """:func:`scatter` with channels last. The range counts registers of channels, for each sample."""
    t = TYPES[dtype]
    work = _compute(t)
    lanes = f.lanes(work)
    points, plane, taps, channels = (f.size(i) for i in range(4))
    registers = (channels + (lanes - 1)) / lanes
    with f.loop(f.begin, f.end) as R:
        number, c = R.index / registers, R.index % registers * lanes
        here = f.first(channels - c, lanes)
        image = f.offset(f.data(0), (number * plane * channels + c) * t.bytes)
        with f.loop(0, points) as P:
            at = f.offset(f.data(1), ((number * points + P.index) * channels + c) * t.bytes)
            g = f.load(at, t, lanes, here).to(work)
            with f.loop(0, taps) as tap:
                slot = (number * taps + tap.index) * points + P.index
                index = f.load(f.offset(f.data(2), slot * 8), I64)
                w = f.splat(f.load(f.offset(f.data(3), slot * work.bytes), work), lanes)
                seen = f.splat(index >= 0, lanes) & here
                place = f.offset(image, index * channels * t.bytes)
                f.store(place, f.fma(w, g, f.load(place, t, lanes, seen).to(work)).to(t), seen)


@kernel
def slope_last(f: Function, dtype: str, dims: int) -> None:
    """:func:`slope` with channels last. The range counts points of all samples."""
    t = TYPES[dtype]
    work = _compute(t)
    lanes = f.lanes(work)
    points, plane, taps, channels = (f.size(i) for i in range(4))
    zero = f.const(work, 0.0)
    with f.loop(f.begin, f.end) as P:
        number, p = P.index / points, P.index % points
        image = f.offset(f.data(1), number * plane * channels * t.bytes)
        gradient = f.offset(f.data(2), P.index * channels * t.bytes)
        with f.loop(0, taps, 1, [zero] * dims) as tap:
            entry = number * taps + tap.index
            index = f.load(f.offset(f.data(3), (entry * points + p) * 8), I64)
            seen = f.splat(index >= 0, lanes)
            line = f.offset(image, index * channels * t.bytes)
            with f.loop(0, channels, lanes, [f.const(work, 0.0, lanes)]) as C:
                here = f.first(channels - C.index, lanes) & seen
                x, g = (f.load(f.offset(a, C.index * t.bytes), t, lanes, here).to(work) for a in (line, gradient))
                C.carry = (f.fma(x, g, C.carry[0]),)
            along = C.carry[0].reduce(lambda a, b: a + b)
            weights = [f.offset(f.data(4), ((entry * dims + k) * points + p) * work.bytes) for k in range(dims)]
            tap.carry = tuple(f.fma(f.load(w, work), along, x) for w, x in zip(weights, tap.carry, strict=True))
        for k in range(dims):
            place = f.offset(f.data(0), (P.index * dims + (dims - 1 - k)) * t.bytes)
            f.store(place, tap.carry[k].to(t))


#: Dtype of weights in the tables, by the input's.
WEIGHTS = {"float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": F64.name}
