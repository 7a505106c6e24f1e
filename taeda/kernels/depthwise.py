"""Convolution with one input channel per group, and the gradient of its weights.

Such a convolution has no sums over channels for the tile of :mod:`taeda.kernels.gemm` to work on. Here a band of rows of
one channel is laid out in a buffer, with its padding as zeros, so that every tap of the kernel reads it at a constant
distance: with a stride ``s`` the positions are sorted by their remainder by ``s`` into *phases*, a volume for each.
Output positions, of which each row is as long as the buffer's, then follow each other without a gap, and vectors run over
the ends of rows; what they compute there is left out when the rows are written (or, in the gradient, multiplied by zero).

Small images are done several at a time, one after the other within each phase. The launcher gives, for each tap, its
distance; then the first and last column of each phase that are inside the image, or, for images so small that rows are
too short to be copied one by one, *maps*: where each item of the buffer comes from, and each output from.
"""

from __future__ import annotations

from .build import kernel
from .gemm import multiply_add, smaller
from .ir import F64, I32, I64, PTR, TYPES, Function, Helper, Type, Value

MOST = 9  # taps at a time, whose weights (or, in the gradient, sums) stay in registers
VECTORS = 4  # of output positions at a time
SLACK = 64  # items that each buffer is longer than its rows

#: Sizes are of the output, the input and the buffer; ``s`` strides, ``lo`` the input position of the first tap of output
#: position 0, ``ph`` numbers of phases, by dimension (depth, row, column). ``band`` is how many rows of the output are
#: done at a time, of ``stack`` images; ``maps`` says whether there are maps. Strides of x and y are in bytes: image, channel, depth, row, column. ``room`` is the bytes of the
#: buffer of one piece of ``grain`` tasks.
ARGS = tuple(
    "o0 o1 o2 i0 i1 i2 b0 b1 b2 s0 s1 s2 lo0 lo1 lo2 ph0 ph1 ph2 band bands images groups m taps bias room grain "
    "stack maps "
    "x_n x_c x_0 x_1 x_2 y_n y_c y_0 y_1 y_2".split()
)


class _Layout:
    """The arguments, and what the launcher prepared: ``table`` and ``maps``."""

    def __init__(self, f: Function, t: Type, table: Value, maps: Value):
        self.f, self.t, self.table = f, t, table
        self.g = {name: f.size(i) for i, name in enumerate(ARGS)}
        self.phases = self.g["ph0"] * self.g["ph1"] * self.g["ph2"]
        self.cell = self.g["b0"] * self.g["b1"] * self.g["b2"]  # items of an image in a phase
        self.volume = self.cell * self.g["stack"] * t.bytes
        self.row = self.g["b2"] * t.bytes
        self.pixels = self.g["o0"] * self.g["o1"] * self.g["o2"]
        self.from_x = maps
        self.from_y = f.offset(maps, self.phases * self.cell * 4)
        self.to_y = f.offset(self.from_y, self.cell * 4)

    def used(self, rows: Value, images: Value) -> Value:
        """Bytes from the first output position to past the last one, in rows as long as the buffer's."""
        g = self.g
        last = ((g["o0"] - 1) * g["b1"] + rows - 1) * g["b2"] + g["o2"]
        return ((images - 1) * self.cell + last) * self.t.bytes

    def spread(self, to: Value, x: Value, start: Value, images: Value) -> None:
        """The phases of one channel at ``x`` for the band of output rows from ``start``, with zeros for the padding."""
        f, g = self.f, self.g
        with f.loop(0, self.phases) as P, f.loop(0, images) as N:
            target = f.offset(to, P.index * self.volume + N.index * self.cell * self.t.bytes)
            source = f.offset(x, N.index * g["x_n"])
            with f.branch(g["maps"] != 0) as B:
                self._collect(target, source, f.offset(self.from_x, P.index * self.cell * 4))
                B.otherwise()
                self._spread_rows(target, source, start, P.index)
        self.clear(f.offset(to, self.phases * self.volume))

    def _collect(self, to: Value, source: Value, places: Value) -> None:
        """The items of one image in a phase from ``places`` in bytes; where that is negative, 0."""
        f, t = self.f, self.t
        lanes = f.lanes(t)
        with f.loop(0, self.cell, lanes) as X:
            at = f.load(f.offset(places, X.index * 4), I32, lanes)
            f.store(f.offset(to, X.index * t.bytes), f.gather_at(source, at.to(I64), t, at >= 0))

    def _spread_rows(self, to: Value, x: Value, start: Value, phase: Value) -> None:
        f, g, t = self.f, self.g, self.t
        lanes = f.lanes(t)
        plain = g["x_2"] * g["s2"] == t.bytes
        p2, rest = phase % g["ph2"], phase / g["ph2"]
        ends = f.offset(self.table, (g["taps"] + p2 * 2) * 8)
        begin, step = (p2 + g["lo2"]) * g["x_2"], g["x_2"] * g["s2"]
        first, last = f.load(ends, I64), f.load(f.offset(ends, 8), I64)
        with f.loop(0, g["b0"]) as Z, f.loop(0, g["b1"]) as Y:
            z = rest / g["ph1"] + Z.index * g["s0"] + g["lo0"]
            y = rest % g["ph1"] + (Y.index + start) * g["s1"] + g["lo1"]
            inside = (z >= 0) & (z < g["i0"]) & (y >= 0) & (y < g["i1"])
            here = f.select(inside, first, g["b2"])
            target = f.offset(to, (Z.index * g["b1"] + Y.index) * self.row)
            source = f.offset(x, z * g["x_0"] + y * g["x_1"])
            with f.loop(0, g["b2"], lanes) as X:
                at = f.splat(X.index, lanes) + f.iota(I64, lanes)
                mask = (at >= f.splat(here, lanes)) & (at < f.splat(last, lanes))
                there = f.offset(target, X.index * t.bytes)
                with f.branch(plain) as B:
                    f.store(there, f.load(f.offset(source, begin + X.index * step), t, lanes, mask))
                    B.otherwise()
                    f.store(there, f.gather_at(source, at * f.splat(step, lanes) + f.splat(begin, lanes), t, mask))

    def write(self, count: Value, flat: Value, y: Value, images: Value) -> None:
        """Copy ``count`` rows of each image to the band of an output channel that begins at ``y``."""
        f, g, t = self.f, self.g, self.t
        lanes = f.lanes(t)
        plain = (g["y_2"] == t.bytes) & (g["y_1"] == g["o2"] * t.bytes) & (g["y_0"] == g["o1"] * g["y_1"])
        with f.loop(0, images) as N:
            source = f.offset(flat, N.index * self.cell * t.bytes)
            target = f.offset(y, N.index * g["y_n"])
            with f.branch((g["maps"] != 0) & plain) as B:
                with f.loop(0, self.pixels, lanes) as X:
                    mask = f.first(self.pixels - X.index, lanes)
                    at = f.load(f.offset(self.to_y, X.index * 4), I32, lanes)
                    f.store(f.offset(target, X.index * t.bytes), f.gather_at(source, at.to(I64), t, mask), mask)
                B.otherwise()
                self._write_rows(count, source, target)

    def _write_rows(self, count: Value, flat: Value, y: Value) -> None:
        f, g, t = self.f, self.g, self.t
        lanes = f.lanes(t)
        with f.loop(0, g["o0"]) as Z, f.loop(0, count) as Y:
            source = f.offset(flat, (Z.index * g["b1"] + Y.index) * self.row)
            target = f.offset(y, Z.index * g["y_0"] + Y.index * g["y_1"])
            with f.loop(0, g["o2"], lanes) as X:
                left = g["o2"] - X.index
                to, x = f.offset(target, X.index * g["y_2"]), f.load(f.offset(source, X.index * t.bytes), t, lanes)
                with f.branch(g["y_2"] == t.bytes) as B:
                    f.store(to, x, f.first(left, lanes))
                    B.otherwise()
                    f.scatter(to, g["y_2"], x, smaller(f, left, lanes))

    def read(self, count: Value, flat: Value, y: Value, images: Value) -> None:
        """Copy ``count`` rows of a channel of a contiguous tensor, with zeros wherever no output is."""
        f, g, t = self.f, self.g, self.t
        with f.loop(0, images) as N:
            target, source = f.offset(flat, N.index * self.cell * t.bytes), f.offset(y, N.index * g["y_n"])
            with f.branch(g["maps"] != 0) as B:
                self._collect(target, source, self.from_y)
                B.otherwise()
                self._read_rows(count, target, source)
        self.clear(f.offset(flat, self.used(count, images)))

    def _read_rows(self, count: Value, flat: Value, y: Value) -> None:
        f, g, t = self.f, self.g, self.t
        lanes = f.lanes(t)
        with f.loop(0, g["o0"]) as Z, f.loop(0, g["b1"]) as Y:
            target = f.offset(flat, (Z.index * g["b1"] + Y.index) * self.row)
            source = f.offset(y, Z.index * g["y_0"] + Y.index * g["y_1"])
            width = f.select(Y.index < count, g["o2"], f.i64(0))
            with f.loop(0, g["b2"], lanes) as X:
                left = f.select(X.index < width, width - X.index, f.i64(0))
                x = f.load(f.offset(source, X.index * t.bytes), t, lanes, f.first(left, lanes))
                f.store(f.offset(target, X.index * t.bytes), x)

    def clear(self, at: Value) -> None:
        """The slack behind a buffer."""
        lanes = self.f.lanes(self.t)
        for i in range(0, SLACK, lanes):
            self.f.store(self.f.offset(at, i * self.t.bytes), self.f.const(self.t, 0, lanes))


def _choose(f: Function, helpers: dict[int, Helper], count: Value, *args: Value) -> None:
    """Call the helper for ``count`` taps."""
    for n, helper in helpers.items():
        with f.when(count == n):
            f.call(helper, *args)


def _weigh(f: Function, t: Type, taps: int) -> Helper:
    """``weigh(to, x, table, w, used, start)``: ``to = start + sum of w[i] * x[distance i]`` over some taps.

    ``start`` points to what is added, item after item if it is ``to`` itself and else the same for all.
    """
    h = f.helper(f"weigh_{taps}", PTR, PTR, PTR, PTR, I64, PTR)
    to, x, table, w, used, start = h.params
    lanes = h.lanes(t)
    sources = [h.offset(x, h.load(h.offset(table, 8 * i), I64)) for i in range(taps)]
    weights = [h.splat(h.load(h.offset(w, i * t.bytes), t), lanes) for i in range(taps)]
    width = lanes * t.bytes

    def run(again: bool) -> None:
        given = None if again else h.splat(h.load(start, t), lanes)
        with h.loop(0, used, VECTORS * width) as L:
            here = h.offset(to, L.index)
            acc = [h.load(h.offset(here, v * width), t, lanes) if again else given for v in range(VECTORS)]
            for source, weight in zip(sources, weights, strict=True):
                at = h.offset(source, L.index)
                acc = [multiply_add(h, weight, h.load(h.offset(at, v * width), t, lanes), a) for v, a in enumerate(acc)]
            for v, a in enumerate(acc):
                h.store(h.offset(here, v * width), a)

    with h.branch(start == to) as B:
        run(True)
        B.otherwise()
        run(False)
    return h


@kernel
def depthwise(f: Function, dtype: str) -> None:
    """``y[n, g * m + i] = sum over taps of w[g * m + i, tap] * x[n, g]``, plus ``bias[g * m + i]``; see :data:`ARGS`.

    ``ptr = [y, x, w, bias, table, buffer, -, maps]``; the range counts tasks: stack of images, group, band.
    """
    t = TYPES[dtype]
    layout = _Layout(f, t, f.data(4), f.data(7))
    g = layout.g
    helpers = {n: _weigh(f, t, n) for n in range(1, MOST + 1)}
    zero = f.scratch(t.bytes)
    f.store(zero, f.const(t, 0))
    buffer = f.offset(f.data(5), f.begin / g["grain"] * g["room"])
    flat = f.offset(buffer, layout.phases * layout.volume + SLACK * t.bytes)
    with f.loop(f.begin, f.end) as T:
        band, rest = T.index % g["bands"], T.index / g["bands"]
        group, image = rest % g["groups"], rest / g["groups"] * g["stack"]
        start = band * g["band"]
        count, images = smaller(f, g["o1"] - start, g["band"]), smaller(f, g["images"] - image, g["stack"])
        used = layout.used(count, images)
        layout.spread(buffer, f.offset(f.data(1), image * g["x_n"] + group * g["x_c"]), start, images)
        with f.loop(0, g["m"]) as M:
            channel = group * g["m"] + M.index
            w = f.offset(f.data(2), channel * g["taps"] * t.bytes)
            bias = f.select(g["bias"] != 0, f.offset(f.data(3), channel * t.bytes), zero)
            with f.loop(0, g["taps"], MOST) as K:
                args = f.offset(layout.table, K.index * 8), f.offset(w, K.index * t.bytes), used
                _choose(f, helpers, smaller(f, g["taps"] - K.index, f.i64(MOST)), flat, buffer, *args,
                        f.select(K.index == 0, bias, flat))  # fmt: skip
            y = f.offset(f.data(0), image * g["y_n"] + channel * g["y_c"] + start * g["y_1"])
            layout.write(count, flat, y, images)


def _correlate(f: Function, t: Type, taps: int) -> Helper:
    """``correlate(sums, x, table, y, used)``: add ``sum of y * x[distance i]`` to the i-th of ``sums``, float64 for floats."""
    h = f.helper(f"correlate_{taps}", PTR, PTR, PTR, PTR, I64)
    sums, x, table, y, used = h.params
    lanes, ways = h.lanes(t), 1 if taps > 4 else 2
    width = lanes * t.bytes
    sources = [h.offset(x, h.load(h.offset(table, 8 * i), I64)) for i in range(taps)]
    with h.loop(0, used, ways * width, carry=[h.const(t, 0, lanes)] * (taps * ways)) as L:
        acc = list(L.carry)
        for u in range(ways):
            at = L.index + u * width
            g = h.load(h.offset(y, at), t, lanes)
            for i, source in enumerate(sources):
                acc[u * taps + i] = multiply_add(h, g, h.load(h.offset(source, at), t, lanes), acc[u * taps + i])
        L.carry = tuple(acc)
    for i in range(taps):
        total = L.carry[i] if ways == 1 else L.carry[i] + L.carry[taps + i]
        place = h.offset(sums, 8 * i)
        wide = F64 if t.kind == "f" else I64
        h.store(place, h.load(place, wide) + total.reduce(lambda a, b: a + b).to(wide))
    return h


@kernel
def depthwise_weight(f: Function, dtype: str) -> None:
    """``w[g, tap, i] = sum over n and positions of x[n, g] * y[n, g * m + i]``, where y is the output's gradient.

    ``ptr = [w, x, y, -, table, buffer, sums, maps]``, ``sums`` of ``taps`` words per piece; the range counts output channels.
    """
    t = TYPES[dtype]
    wide = F64 if t.kind == "f" else I64
    layout = _Layout(f, t, f.data(4), f.data(7))
    g = layout.g
    helpers = {n: _correlate(f, t, n) for n in range(1, MOST + 1)}
    piece = f.begin / g["grain"]
    buffer, sums = f.offset(f.data(5), piece * g["room"]), f.offset(f.data(6), piece * g["taps"] * 8)
    flat = f.offset(buffer, layout.phases * layout.volume + SLACK * t.bytes)
    with f.loop(f.begin, f.end) as T:
        group, i = T.index / g["m"], T.index % g["m"]
        with f.loop(0, g["taps"]) as K:
            f.store(f.offset(sums, K.index * 8), f.const(wide, 0))
        with f.loop(0, g["images"], g["stack"]) as N, f.loop(0, g["bands"]) as B:
            start = B.index * g["band"]
            count, images = smaller(f, g["o1"] - start, g["band"]), smaller(f, g["images"] - N.index, g["stack"])
            layout.spread(buffer, f.offset(f.data(1), N.index * g["x_n"] + group * g["x_c"]), start, images)
            layout.read(
                count, flat, f.offset(f.data(2), N.index * g["y_n"] + T.index * g["y_c"] + start * g["y_1"]), images
            )
            with f.loop(0, g["taps"], MOST) as K:
                _choose(f, helpers, smaller(f, g["taps"] - K.index, f.i64(MOST)), f.offset(sums, K.index * 8), buffer,
                        f.offset(layout.table, K.index * 8), flat, layout.used(count, images))  # fmt: skip
        with f.loop(0, g["taps"]) as K:
            at = (group * g["taps"] + K.index) * g["m"] + i
            f.store(f.offset(f.data(0), at * t.bytes), f.load(f.offset(sums, K.index * 8), wide).to(t))
