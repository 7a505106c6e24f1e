"""Depthwise convolution of images with channels first, and its gradients; rows are read in place.

A block is :func:`height` rows of outputs by one vector of columns. A vector of an input row, loaded for one column of
taps, is used for every output of the block whose window contains it, so arithmetic takes the time, not loads. Blocks
whose windows are inside of the image need no masks; the others read zeros around it. With a stride of 2, two vectors
are loaded and split into even and odd columns; the input's gradient writes its even and odd columns together (two
*phases*). For signals, which have one row, a block is as many vectors of columns.

Dilation only moves the rows of a block apart. Kernels whose height is not in :data:`LINES`, or whose stride is above 2,
process outputs row by row. 16-bit floats are computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .build import kernel
from .ir import F32, F64, I32, I64, TYPES, U16, U32, Function, Type, Value
from .pool import larger
from .tile import multiply_add, smaller

#: Kernel heights whose rows of taps share loads, for stride 1 and stride 2.
LINES = ((1, 2, 3, 4, 5, 7), (1, 3, 5, 7))

#: Sizes of the output and the input; byte strides of x and y, and of the weights by group, output channel, summed input
#: channel and tap. ``m`` outputs of a group share ``q`` inputs. Along the depth: taps, stride, dilation (positive),
#: padding. Rows: output ``r`` of a block, ``apart`` from the one before, and tap ``i`` meet input row
#: ``first + step * y + reach * (r * stride + i)``, and ``chunk`` further for each of ``chunks`` of taps. Columns:
#: ``s2`` and ``d2`` are stride and dilation; for each phase, where its weights begin, its number of taps and the input
#: column of output 0. A task does ``band`` blocks of a plane.
ARGS = tuple(
    "channels m q o0 o1 o2 i0 i1 i2 x_n x_c x_0 x_1 y_n y_c y_0 y_1 y_2 w_g w_c w_q w_0 w_1 w_2 k0 s0 d0 p0 "
    "first step reach apart chunks chunk s2 d2 w_even taps_even at_even w_odd taps_odd at_odd bias band bands".split()
)
#: As above; ``taps`` in all, ``k1`` by ``k2`` of them; ``images``, of which ``every`` so many are summed in float32;
#: bytes of the sums of one piece of ``grain`` tasks.
WEIGHT_ARGS = (*ARGS, *"taps k1 k2 images every grain room".split())


def height(vector_bytes: int) -> int:
    """Rows of a block, whose sums and weights should fit the registers: AVX2 has 16."""
    return 4 if vector_bytes == 32 else 8


def _sums(io: Type) -> Type:
    """The type in which images of ``io`` are multiplied and summed."""
    return F32 if io.bytes == 2 else io


@dataclass
class _Slice:
    """One step of the sum: an input channel, its weights, the row that the first of them meets, and its number."""

    source: Value
    weights: Value
    row: Value
    tap: Value
    carry: tuple[Value, ...]


class _Plane:
    """The images that both kernels read. ``single``: the sum has one channel, one slice and one chunk of taps."""

    def __init__(self, f: Function, dtype: str, names: tuple[str, ...], lines: int, step: int, flat: bool, half: bool,
                 single: bool):  # fmt: skip
        self.f, self.io, self.lines, self.step, self.flat, self.single = f, TYPES[dtype], lines, step, flat, single
        self.t = _sums(self.io)
        self.lanes = max(f.lanes(self.t) // (2 if half else 1), 1)
        self.height = height(f.vector_bytes)
        self.g = {name: f.size(i) for i, name in enumerate(names)}
        self.every = 1 if flat or lines == 1 else max(step, 1)  # rows of the input from one output to the next
        self.rows = self.height if flat else (self.height - 1) * self.every + lines
        self.width = self.lanes * (self.height if flat else 1)  # columns of a block
        self.pitch = f.i64(self.lanes * step * self.io.bytes) if flat else self.g["reach"] * self.g["x_1"]
        if flat and step == 0:
            self.pitch = self.g["s2"] * (self.lanes * self.io.bytes)
        self.limits = f.scratch(self.rows * self.lanes * 4)
        numbers = f.vector(I32, range(self.lanes)) if self.lanes > 1 else f.const(I32, 0)
        self.numbers = numbers * f.splat(self.g["s2"].to(I32), self.lanes) if step == 0 else numbers

    def depth(self, z: Value) -> tuple[Value, Value, Value]:
        """Position of the first tap of output ``z`` along the depth; the first tap inside of the image, and the end of
        those."""
        f, g = self.f, self.g
        start, step = z * g["s0"] - g["p0"], g["d0"]
        first = f.select(start < 0, (step - 1 - start) / step, f.i64(0))
        last = f.select(g["i0"] > start, (g["i0"] - start + step - 1) / step, f.i64(0))
        return start, first, smaller(f, g["k0"], last)

    @contextmanager
    def slices(self, x: Value, w: Value, z: Value, row: Value, carry: Sequence[Value]) -> Iterator[_Slice]:
        """Loops over the whole sum except the taps of a chunk; set ``carry`` as in a loop."""
        f, g = self.f, self.g
        if self.single:
            yield _Slice(x, w, row, f.i64(0), tuple(carry))
            return
        start, first, last = self.depth(z)
        with f.loop(0, g["q"], carry=carry) as Q:
            with f.loop(first, last, carry=Q.carry) as D:
                with f.loop(0, g["chunks"], carry=D.carry) as C:
                    source = f.offset(x, Q.index * g["x_c"] + (start + D.index * g["d0"]) * g["x_0"])
                    weights = f.offset(w, Q.index * g["w_q"] + D.index * g["w_0"] + C.index * g["w_1"])
                    line, tap = row + C.index * g["chunk"], D.index * g.get("k1", g["chunks"]) + C.index
                    if self.lines == 1 and not self.flat:
                        with f.when(g["chunks"] > 1):
                            self.bound(line)
                    one = _Slice(source, weights, line, tap, C.carry)
                    yield one
                    C.carry = one.carry
                D.carry = C.carry
            Q.carry = D.carry
        one.carry = Q.carry

    def bound(self, row: Value) -> None:
        """Store, for each row from ``row`` on, how many columns it has: none if it is outside of the image."""
        f, g = self.f, self.g
        for i in range(1 if self.flat else self.rows):
            line = row + g["reach"] * i
            limit = f.select((line >= 0) & (line < g["i1"]), g["i2"], 0).to(I32)
            f.store(f.offset(self.limits, i * self.lanes * 4), f.splat(limit, self.lanes))

    def inside(self, row: Value, phases: tuple[str, ...]) -> tuple[Value, Value]:
        """The range of columns in which blocks of outputs in rows that meet ``row`` first read only from the image."""
        f, g = self.f, self.g
        bottom = row + (g["chunks"] - 1) * g["chunk"] + (0 if self.flat else g["reach"] * (self.rows - 1))
        reach = g["s2"] * (self.width - 1) if self.step == 0 else f.i64(self.width * self.step - 1)
        first, last = f.i64(0), (g["o2"] - self.width * len(phases)) / len(phases) + 1
        last = f.select(g["o2"] < self.width * len(phases), f.i64(0), last)
        for phase in phases:
            left, right = g["at_" + phase], g["at_" + phase] + (g["taps_" + phase] - 1) * g["d2"] + reach
            first = larger(f, first, (g["s2"] - 1 - left) / g["s2"])
            room = g["i2"] - 1 - right
            last = smaller(f, last, f.select(room < 0, f.i64(0), room / g["s2"] + 1))
        return first, f.select((row >= 0) & (bottom < g["i1"]), last, f.i64(0))

    def reader(self, source: Value, row: Value, column: Value, masked: bool) -> Callable[[int], list[Value]]:
        """``read(n)`` loads the next of the rows from ``row`` on, at ``column``, for ``n`` adjacent taps."""
        f, g, io, lanes = self.f, self.g, self.io, self.lanes
        places = [f.offset(source, row * g["x_1"] + column * io.bytes)]

        def read(n: int) -> list[Value]:
            i, place = len(places) - 1, places[-1]
            places.append(f.offset(place, self.pitch))
            # By row of the image; all rows of a flat block are in one.
            limit = f.offset(self.limits, 0 if self.flat else i * lanes * 4)
            away = (
                (g["s2"] * (lanes * i) if self.step == 0 else f.i64(lanes * i * self.step)) if self.flat else f.i64(0)
            )

            def load(extra: int) -> Value:
                mask = None
                if masked or self.step == 0:
                    there = f.splat((column + away + extra).to(I32), lanes) + self.numbers
                if masked:
                    mask = there.bits(U32) < f.load(limit, U32, lanes)
                if self.step == 0:
                    inside = f.offset(source, row * g["x_1"] + g["reach"] * g["x_1"] * (0 if self.flat else i))
                    return f.gather_at(inside, there.to(I64) * io.bytes, io, mask).to(self.t)
                return f.load(f.offset(place, extra * io.bytes), io, lanes, mask).to(self.t)

            if self.step != 2:
                return [load(0)]
            low, high = load(0), load(lanes)
            return [low.shuffle(range(k, 2 * lanes, 2), high) for k in range(n)] if lanes > 1 else [low, high][:n]

        return read

    def prefetch_below(self, x: Value, row: Value, left: Value, following: Value) -> None:
        """Prefetch the rows of plane ``x`` that the block below will read, or the block at the top of the ``following``
        one.

        The hardware prefetcher fails here: planes are short, and many rows are read in turn. With AVX2 the forward pass
        takes 0.4 to 0.5 of the time. With AVX-512, which reads whole lines, it would take 1.05 to 1.25, so it is left
        out.
        """
        f, g, new = self.f, self.g, self.height * self.every
        if self.flat or not self.single or f.vector_bytes != 32:
            return
        below = row + g["reach"] * self.rows
        there = below < g["i1"]
        source = f.select(there, x, following)
        line = f.offset(source, f.select(there, below, f.i64(0)) * g["x_1"] + left * g["s2"] * self.io.bytes)
        for i in range(new):
            f.prefetch(f.offset(line, g["reach"] * i * g["x_1"]))

    def each_tap(
        self, count: Value, carry: Sequence[Value], body: Callable[[Value, int, list[Value]], list[Value]]
    ) -> tuple[Value, ...]:
        """``carry = body(tap, n, carry)`` for all taps of a row; with a stride of 2, ``n`` = 2 taps at a time."""
        f, begin = self.f, self.f.i64(0)
        if self.step == 2:
            together = f.select(self.g["d2"] == 1, count - 1, f.i64(0))
            with f.loop(0, together, 2, carry=carry) as J:
                J.carry = tuple(body(J.index, 2, list(J.carry)))
            begin, carry = J.index, J.carry
        with f.loop(begin, count, carry=carry) as J:
            J.carry = tuple(body(J.index, 1, list(J.carry)))
        return J.carry

    def blocks(self, residue: Value) -> Value:
        """The number of blocks of a plane: of rows ``residue``, ``residue + apart`` and so on, or of columns."""
        g = self.g
        if self.flat:
            return (g["o2"] + self.width - 1) / self.width
        return ((g["o1"] - residue + g["apart"] - 1) / g["apart"] + self.height - 1) / self.height

    def each_block(self, begin: Value, end: Value, residue: Value, phases: tuple[str, ...],
                   body: Callable[[Value, Value, Value, Value, bool], None]) -> None:  # fmt: skip
        """``body(top, row, rows, left, masked)``: the first row of outputs and of input, how many rows there are, the
        column."""
        f, g, several = self.f, self.g, len(phases)

        def both(top: Value, row: Value, rows: Value, left: Value, plain: Value) -> None:
            with f.branch(plain) as B:
                body(top, row, rows, left, False)
                B.otherwise()
                body(top, row, rows, left, True)

        if self.flat:
            row = g["first"]
            first, last = self.inside(row, phases)
            self.bound(row)
            with f.loop(
                begin * self.width, smaller(f, end * self.width, (g["o2"] + several - 1) / several), self.width
            ) as X:
                both(f.i64(0), row, f.i64(1), X.index, (X.index >= first) & (X.index < last))
            return
        with f.loop(begin, end) as Y:
            top = residue + Y.index * self.height * g["apart"]
            row, rows = g["first"] + top * g["step"], (g["o1"] - top + g["apart"] - 1) / g["apart"]
            first, last = self.inside(row, phases)
            last = f.select(rows < self.height, f.i64(0), last)
            self.bound(row)
            with f.loop(0, (g["o2"] + several - 1) / several, self.lanes) as X:
                both(top, row, rows, X.index, (X.index >= first) & (X.index < last))


@kernel
def depthwise(f: Function, dtype: str, lines: int, step: int, phases: int, flat: bool, half: bool, single: bool,
              apart: bool) -> None:  # fmt: skip
    """``y = bias + sum over channels and taps of w * x``; see :data:`ARGS`. Pointers: y, x, w, bias.

    The range counts tasks: image, channel, band. ``step`` is the stride along a row, 0 if above 2. ``half`` vectors are
    for short rows. ``apart``: the results are columns of an image at a stride.
    """
    p = _Plane(f, dtype, ARGS, lines, step, flat, half, single)
    g, io, t, lanes, height = p.g, p.io, p.t, p.lanes, p.height
    names = ("even", "odd")[:phases]
    zero = f.scratch(t.bytes)
    f.store(zero, f.const(t, 0))

    def total(
        phase: str, x: Value, w: Value, level: Value, z: Value, row: Value, left: Value, masked: bool
    ) -> list[Value]:
        """The sums of a block."""
        column = left * g["s2"] + g["at_" + phase]
        with p.slices(x, f.offset(w, g["w_" + phase]), z, row, [f.splat(level, lanes)] * height) as S:

            def taps(j: Value, n: int, acc: list[Value]) -> list[Value]:
                here, read = f.offset(S.weights, j * g["w_2"]), p.reader(S.source, S.row, column + j * g["d2"], masked)
                weight = [[f.splat(f.load(f.offset(here, g["w_1"] * i + g["w_2"] * k), t), lanes)
                           for i in range(lines)] for k in range(n)]  # fmt: skip
                for i in range(p.rows):
                    for k, value in enumerate(read(n)):
                        for line in range(lines):
                            r, rest = divmod(i - line, p.every)
                            if rest == 0 and 0 <= r < height:
                                acc[r] = multiply_add(f, value, weight[k][line], acc[r])
                return acc

            S.carry = p.each_tap(g["taps_" + phase], S.carry, taps)
        return list(S.carry)

    def write(y: Value, values: list[list[Value]], rows: Value, columns: Value, masked: bool) -> None:
        """Write both phases of the outputs of a block that begins at ``y``; it has ``rows`` rows and ``columns``
        columns."""
        for r in range(height):
            here = f.offset(y, (g["y_2"] * (lanes * phases) if flat else g["apart"] * g["y_1"]) * r)
            out = [values[phase][r].to(io) for phase in range(phases)]
            out = [value.bits(U16) for value in out] if io.bytes == 2 else out
            if phases == 2 and lanes > 1:
                pairs = [i // 2 + lanes * (i % 2) for i in range(2 * lanes)]
                out = [out[0].shuffle(pairs[:lanes], out[1]), out[0].shuffle(pairs[lanes:], out[1])]
            for i, value in enumerate(out):
                left = columns - ((r * phases if flat else 0) + i) * lanes
                there = f.offset(here, g["y_2"] * (i * lanes) if apart else i * lanes * io.bytes)
                if not masked and not apart:
                    f.store(there, value)
                    continue
                with f.when(rows > (0 if flat else r)):
                    if apart:
                        f.scatter(there, g["y_2"], value, smaller(f, left, f.i64(lanes)))
                    else:
                        f.store(there, value, f.first(left, lanes))

    with f.loop(f.begin, f.end) as T:
        plane, band = T.index / g["bands"], T.index % g["bands"] * g["band"]
        image, channel = plane / g["channels"], plane % g["channels"]
        x = f.offset(f.data(1), image * g["x_n"] + channel / g["m"] * g["q"] * g["x_c"])
        w = f.offset(f.data(2), channel / g["m"] * g["w_g"] + channel % g["m"] * g["w_c"])
        y = f.offset(f.data(0), image * g["y_n"] + channel * g["y_c"])
        level = f.load(f.select(g["bias"] != 0, f.offset(f.data(3), channel * t.bytes), zero), t)
        with f.loop(0, g["o0"]) as Z, f.loop(0, g["apart"]) as P:

            def block(top: Value, row: Value, rows: Value, left: Value, masked: bool) -> None:
                to = f.offset(y, Z.index * g["y_0"] + top * g["y_1"] + left * phases * g["y_2"])
                if phases == 1:
                    p.prefetch_below(x, row, left, f.offset(x, g["x_c"]))
                values = [total(phase, x, w, level, Z.index, row, left, masked) for phase in names]
                write(to, values, rows, g["o2"] - left * phases, masked)

            p.each_block(band, smaller(f, band + g["band"], p.blocks(P.index)), P.index, names, block)


@kernel
def depthwise_weight(f: Function, dtype: str, lines: int, step: int, flat: bool, half: bool, single: bool) -> None:
    """``w[channel, tap] = sum of x * y``, where y is the output's gradient; see :data:`WEIGHT_ARGS`. Pointers: w, x, y,
    sums.

    The range counts channels. The sums of a tap's lanes are in memory; from time to time they are added up in float64
    (int64 for integers).
    """
    p = _Plane(f, dtype, WEIGHT_ARGS, lines, step, flat, half, single)
    g, io, t, lanes, height = p.g, p.io, p.t, p.lanes, p.height
    wide = F64 if t.kind == "f" else I64
    size = lanes * t.bytes
    totals = f.offset(f.data(3), f.begin / g["grain"] * g["room"])
    sums = f.offset(totals, (g["taps"] + 7) / 8 * 64)

    def block(x: Value, y: Value, z: Value, row: Value, rows: Value, left: Value, masked: bool) -> None:
        columns = g["o2"] - left
        grad = []
        for r in range(height):
            here = f.offset(y, r * lanes * io.bytes if flat else g["apart"] * g["y_1"] * r)
            there = columns - r * lanes if flat else f.select(rows > r, columns, f.i64(0))
            grad.append(f.load(here, io, lanes, f.first(there, lanes) if masked else None).to(t))
        with p.slices(x, x, z, row, []) as S:

            def taps(j: Value, n: int, _: list[Value]) -> list[Value]:
                read = p.reader(S.source, S.row, left * g["s2"] + g["at_even"] + j * g["d2"], masked)
                here = f.offset(sums, (S.tap * g["k2"] + j) * size)
                places = [[f.offset(here, (g["k2"] * line + k) * size) for line in range(lines)] for k in range(n)]
                acc = [[f.load(place, t, lanes) for place in row] for row in places]
                for i in range(p.rows):
                    for k, value in enumerate(read(n)):
                        for line in range(lines):
                            r, rest = divmod(i - line, p.every)
                            if rest == 0 and 0 <= r < height:
                                acc[k][line] = multiply_add(f, value, grad[r], acc[k][line])
                for k in range(n):
                    for place, value in zip(places[k], acc[k], strict=True):
                        f.store(place, value)
                return []

            S.carry = p.each_tap(g["taps_even"], S.carry, taps)

    def add_up() -> None:
        """Add the sums of all lanes to the totals."""
        with f.loop(0, g["taps"]) as K:
            place, total = f.offset(sums, K.index * size), f.offset(totals, K.index * 8)
            lane_sums = f.load(place, t, lanes)
            f.store(total, f.load(total, wide) + lane_sums.reduce(lambda a, b: a + b).to(wide))
            f.store(place, f.const(t, 0, lanes))

    with f.loop(f.begin, f.end) as T:
        with f.loop(0, g["taps"]) as K:
            f.store(f.offset(totals, K.index * 8), f.const(wide, 0))
            f.store(f.offset(sums, K.index * size), f.const(t, 0, lanes))
        with f.loop(0, g["images"], g["every"]) as E:
            with f.loop(E.index, smaller(f, E.index + g["every"], g["images"])) as N, f.loop(0, g["o0"]) as Z:
                x = f.offset(f.data(1), N.index * g["x_n"] + T.index / g["m"] * g["x_c"])
                y = f.offset(f.data(2), N.index * g["y_n"] + T.index * g["y_c"] + Z.index * g["y_0"])

                def one(top: Value, row: Value, rows: Value, left: Value, masked: bool) -> None:
                    p.prefetch_below(x, row, left, f.offset(x, g["x_n"]))
                    block(x, f.offset(y, top * g["y_1"] + left * io.bytes), Z.index, row, rows, left, masked)

                with f.loop(0, g["apart"]) as P:
                    p.each_block(f.i64(0), p.blocks(P.index), P.index, ("even",), one)
            add_up()
        with f.loop(0, g["taps"]) as K:
            total = f.load(f.offset(totals, K.index * 8), wide)
            f.store(f.offset(f.data(0), (T.index * g["taps"] + K.index) * t.bytes), total.to(t))
