"""Depthwise convolution of images with channels last: a vector holds neighbouring channels of one pixel.

Images are read in place: a tap is a vector of the input times one of the weights, which are ``[tap, channel]``. For the
usual widths and strides, a vector is loaded once for all windows of a row that contain it. For the others, the loops
leave out what a window has outside of the image. Groups have as many inputs as outputs, mostly one; two dimensions
cover one.

For groups of a few channels (:data:`GROUPS`) a vector holds several groups: each input of a group in turn is broadcast
to the lanes of its outputs, and weights are ``[tap, input, channel]``. They have only :data:`GROUPED` widths and
strides.

Images of 16-bit floats are read and written as they are; weights, bias and sums are then float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .build import kernel
from .ir import F32, I64, PTR, TYPES, U16, Function, Helper, Type, Value
from .pool import larger
from .tile import multiply_add, smaller

#: Sizes of input, output and kernel, stride, dilation (positive), padding (may be negative); byte strides of image, row
#: and pixel. A task does ``block`` rows of an image. ``w_t`` is the bytes from tap to tap, ``w_j`` from input to input
#: of a group.
LAST_ARGS = tuple("images c ih iw oh ow kh kw sh sw dh dw ph pw x_n x_h x_w y_n y_h y_w block bias w_t w_j".split())

AT_ONCE = 4  # output positions, or sums of a gradient
WIDE = 8  # output positions whose windows share loads
ROWS_AT_ONCE = 16  # rows of outputs that one sum of a gradient in registers covers: longer sums would round worse
#: Widths and strides of kernels whose windows share loads.
SHARED = ((3, 1), (5, 1), (7, 1), (3, 2), (5, 2))
GROUPS = (2, 4, 8, 16)  # channels of a group; at most a vector
GROUPED = ((1, 1), (2, 1), (3, 1), (3, 2))


def _sums(io: Type) -> Type:
    """The type in which images of ``io`` are multiplied and summed."""
    return F32 if io.bytes == 2 else io


def _read(f: Function, place: Value, io: Type, lanes: int, mask: Value) -> Value:
    """Neighbouring channels of a pixel."""
    return f.load(place, io, lanes, mask).to(_sums(io))


class _Pixel:
    """Neighbouring channels of a pixel, in groups of ``group``."""

    def __init__(self, f: Function, place: Value, io: Type, lanes: int, mask: Value, group: int):
        self.f, self.place, self.io, self.lanes, self.group = f, place, io, lanes, group
        if group < lanes:
            self.all = _read(f, place, io, lanes, mask)

    def spread(self, j: int) -> Value:
        """The ``j``-th of each group in all of its lanes."""
        if self.group == 1:
            return self.all
        if self.group == self.lanes:  # a load that broadcasts leaves the shuffle ports to the arithmetic
            one = self.f.load(self.f.offset(self.place, j * self.io.bytes), self.io)
            return self.f.splat(one.to(_sums(self.io)), self.lanes)
        return self.all.shuffle([i // self.group * self.group + j for i in range(self.lanes)])


class _Line:
    """The taps of output ``o`` along one dimension that are inside of the image, and where the first tap is."""

    def __init__(self, f: Function, g: dict[str, Value], name: str, o: Value):
        step = g["d" + name]
        self.start = o * g["s" + name] - g["p" + name]
        self.first = f.select(self.start < 0, (step - 1 - self.start) / step, f.i64(0))
        last = f.select(g["i" + name] > self.start, (g["i" + name] - self.start + step - 1) / step, f.i64(0))
        self.last = smaller(f, g["k" + name], last)


def _whole_windows(f: Function, g: dict[str, Value]) -> tuple[Value, Value]:
    """The columns of output, from first to past the last, whose windows are inside of the image."""
    room = g["iw"] + g["pw"] - (g["kw"] - 1) * g["dw"] - 1
    first = smaller(f, larger(f, (g["pw"] + g["sw"] - 1) / g["sw"], f.i64(0)), g["ow"])
    last = f.select(room < 0, f.i64(0), smaller(f, room / g["sw"] + 1, g["ow"]))
    return first, larger(f, last, first)


def _meets(f: Function, g: dict[str, Value], tap: Value, along: str = "w") -> tuple[Value, Value]:
    """The columns (``along`` "h": rows) of output, from first to past the last, whose given tap is in the image."""
    size, step = g["i" + along], g["s" + along]
    left = g["p" + along] - tap * g["d" + along]
    reach = size + left
    low = f.select(left > 0, (left + step - 1) / step, f.i64(0))
    high = smaller(f, g["o" + along], f.select(reach > 0, (reach + step - 1) / step, f.i64(0)))
    return low, larger(f, high, low)


def _is_shared(g: dict[str, Value], width: int, stride: int) -> Value:
    return (g["kw"] == width) & (g["sw"] == stride) & (g["dw"] == 1)


def _shared_windows(f: Function, io: Type, width: int, stride: int, group: int) -> Helper:
    """A row of outputs, ``WIDE`` at a time: a loaded vector of an input row is used for all windows that contain it.

    ``row`` is where the first row of taps meets the image's column 0. Outside of the image it reads at ``nothing``;
    outputs past the end go to ``spare``.
    """
    h = f.helper(f"shared_{width}_{stride}", *[PTR] * 4, *[I64] * 14, *[PTR] * 2)
    to, row, weights, bias, given, first, last, tap_h, x_h, y_h, c, ow, iw, pw, x_w, y_w, w_t, w_j, nothing, spare = (
        h.params
    )
    t = _sums(io)
    lanes = h.lanes(t)
    columns = (WIDE - 1) * stride + width
    with h.loop(0, ow, WIDE) as X, h.loop(0, c, lanes) as V:
        inside, at, of_sums = h.first(c - V.index, lanes), V.index * io.bytes, V.index * t.bytes
        none = h.const(inside.type, 0, lanes)
        begin = X.index * stride - pw
        level = h.load(h.offset(bias, of_sums), t, lanes, h.select(given != 0, inside, none))
        source, w = h.offset(row, begin * x_w + at), h.offset(weights, of_sums)
        with h.loop(first, last, carry=[level] * WIDE) as H:
            acc = list(H.carry)
            taps, places = h.offset(w, H.index * width * w_t), h.offset(source, H.index * tap_h)
            pixels = []
            for column in range(columns):
                there = (begin + column >= 0) & (begin + column < iw)
                pixels.append(
                    _Pixel(h, h.select(there, h.offset(places, x_w * column), nothing), io, lanes, inside, group)
                )
            for j in range(group):
                weight = [h.load(h.offset(taps, w_t * i + w_j * j), t, lanes, inside) for i in range(width)]
                for column, pixel in enumerate(pixels):
                    value = pixel.spread(j)
                    for i in range(WIDE):
                        if 0 <= column - i * stride < width:
                            acc[i] = multiply_add(h, value, weight[column - i * stride], acc[i])
            H.carry = acc
        target = h.offset(to, X.index * y_w + at)
        # The hardware prefetcher does not follow rows of pixels that are read a vector at a time. So the next row of
        # outputs and its inputs are prefetched.
        ahead = h.offset(source, last * tap_h)
        for column in range(WIDE):
            for row_ahead in range(stride):
                for i in range(stride):
                    h.prefetch(h.offset(h.offset(ahead, x_h * row_ahead), x_w * (column * stride + i)))
            h.prefetch(h.offset(target, y_h + y_w * column), write=True)
        for i, value in enumerate(H.carry):
            place = h.select(X.index + i < ow, h.offset(target, y_w * i), spare)
            value = value.to(io).bits(U16) if io.bytes == 2 else value  # LLVM takes bfloats past a branch as floats
            with h.branch(c - V.index >= lanes) as B:
                h.store(place, value)
                B.otherwise()
                h.store(place, value, inside)
    return h


def _any_windows(f: Function, io: Type, g: dict[str, Value], target: Value, row: Value, line: _Line, whole: Value,
                 end: Value, tap_h: Value, tap_w: Value, step: Value) -> None:  # fmt: skip
    """A row of outputs: those from ``whole`` to ``end`` a few at a time, the others one by one."""
    t = _sums(io)
    lanes = f.lanes(t)

    def outputs(ox: Value, count: int, first: Value, last: Value) -> None:
        """``count`` outputs from column ``ox`` on, whose taps in the image are from ``first`` to ``last``.

        All their channels: memory is read sequentially along them.
        """
        here = f.offset(row, (ox * g["sw"] - g["pw"]) * g["x_w"])
        with f.loop(0, g["c"], lanes) as V:
            inside, at, of_sums = f.first(g["c"] - V.index, lanes), V.index * io.bytes, V.index * t.bytes
            given = f.select(g["bias"] != 0, inside, f.const(inside.type, 0, lanes))
            level = f.load(f.offset(f.data(3), of_sums), t, lanes, given)
            source, w = f.offset(here, at), f.offset(f.data(2), of_sums)
            with f.loop(line.first, line.last, carry=[level] * count) as H:
                taps, places = f.offset(w, H.index * g["kw"] * g["w_t"]), f.offset(source, H.index * tap_h)
                with f.loop(first, last, carry=list(H.carry)) as W:
                    weight = f.load(f.offset(taps, W.index * g["w_t"]), t, lanes, inside)
                    place = f.offset(places, W.index * tap_w)
                    W.carry = [
                        multiply_add(f, _read(f, f.offset(place, step * i), io, lanes, inside), weight, acc)
                        for i, acc in enumerate(W.carry)
                    ]
                H.carry = W.carry
            for i, acc in enumerate(H.carry):
                f.store(f.offset(target, (ox + i) * g["y_w"] + at), acc.to(io), inside)

    def singly(start: Value, stop: Value) -> None:
        with f.loop(start, stop) as X:
            column = _Line(f, g, "w", X.index)
            outputs(X.index, 1, column.first, column.last)

    singly(f.i64(0), whole)
    with f.loop(whole, end - (AT_ONCE - 1), AT_ONCE) as X:
        outputs(X.index, AT_ONCE, f.i64(0), g["kw"])
    singly(X.index, g["ow"])


def _shared(f: Function, io: Type, group: int, make: Callable[..., Helper]) -> dict[tuple[int, int], Helper]:
    """Helpers by width and stride."""
    return {size: make(f, io, *size, group) for size in (SHARED if group == 1 else GROUPED)}


def _none_of(f: Function, g: dict[str, Value], sizes: Iterable[tuple[int, int]]) -> Value:
    others = f.i64(1) == 1
    for width, stride in sizes:
        others = others & ~_is_shared(g, width, stride)
    return others


@kernel
def depthwise_last(f: Function, dtype: str, group: int) -> None:
    """``y = bias + sum over taps of w * x``; see :data:`LAST_ARGS`. Pointers: y, x, w, bias. The range counts blocks of
    rows."""
    io = TYPES[dtype]
    t = _sums(io)
    g = {name: f.size(i) for i, name in enumerate(LAST_ARGS)}
    lanes, blocks = f.lanes(t), (g["oh"] + g["block"] - 1) / g["block"]
    whole, end = _whole_windows(f, g)
    tap_h, tap_w, step = g["dh"] * g["x_h"], g["dw"] * g["x_w"], g["sw"] * g["x_w"]
    shared = _shared(f, io, group, _shared_windows)
    nothing, spare = f.scratch(max(f.vector_bytes, 8)), f.scratch(max(f.vector_bytes, 8))
    f.store(nothing, f.const(t, 0, lanes))
    others = _none_of(f, g, shared)
    with f.loop(f.begin, f.end) as T:
        image, begin = T.index / blocks, T.index % blocks * g["block"]
        x, y = f.offset(f.data(1), image * g["x_n"]), f.offset(f.data(0), image * g["y_n"])
        with f.loop(begin, smaller(f, begin + g["block"], g["oh"])) as Y:
            line = _Line(f, g, "h", Y.index)
            target = f.offset(y, Y.index * g["y_h"])
            row = f.offset(x, line.start * g["x_h"])
            for (width, stride), helper in shared.items():
                with f.when(_is_shared(g, width, stride)):
                    f.call(helper, target, row, f.data(2), f.data(3), g["bias"], line.first, line.last, tap_h, g["x_h"],
                    g["y_h"], g["c"],
                           g["ow"], g["iw"], g["pw"], g["x_w"], g["y_w"], g["w_t"], g["w_j"], nothing,
                           spare)  # fmt: skip
            if group == 1:
                with f.when(others):
                    _any_windows(f, io, g, target, row, line, whole, end, tap_h, tap_w, step)


def _shared_sums(f: Function, io: Type, width: int, stride: int, group: int) -> Helper:
    """Add to ``sums`` of a row of taps what ``count`` rows of outputs give; ``WIDE`` outputs share loads.

    ``row`` is where the first of them meets the image's column 0; ``x_h`` and ``y_h`` are the bytes to the next.
    Outside of the image, or past the last output, it reads at ``nothing``.
    """
    h = f.helper(f"sums_{width}_{stride}", *[PTR] * 3, *[I64] * 11, PTR)
    sums, row, grad, count, x_h, y_h, c, ow, iw, pw, x_w, y_w, w_t, w_j, nothing = h.params
    t = _sums(io)
    lanes = h.lanes(t)
    inside, zero = h.first(c, lanes), h.const(t, 0, lanes)
    # Inputs of a group whose sums fit the registers with the outputs.
    together = min(group, 2 if h.vector_bytes == 32 else 8)
    wide = WIDE if width * together <= 16 else WIDE // 2
    apart = 2 if width * together < 5 else 1  # independent sums: each addition waits for the one before
    for first in range(0, group, together):
        with h.loop(0, count, carry=[zero] * (width * together * apart)) as Y:
            places, outputs = h.offset(row, Y.index * x_h), h.offset(grad, Y.index * y_h)
            with h.loop(0, ow, wide, carry=list(Y.carry)) as X:
                acc, begin = list(X.carry), X.index * stride - pw
                values = []
                for i in range(wide):
                    place = h.select(X.index + i < ow, h.offset(outputs, (X.index + i) * y_w), nothing)
                    values.append(_read(h, place, io, lanes, inside))
                for column in range((wide - 1) * stride + width):
                    there = (begin + column >= 0) & (begin + column < iw)
                    place = h.select(there, h.offset(places, (begin + column) * x_w), nothing)
                    pixel = _Pixel(h, place, io, lanes, inside, group)
                    for j in range(together):
                        one = pixel.spread(first + j)
                        for i in range(wide):
                            tap = column - i * stride
                            if 0 <= tap < width:
                                at = (tap * together + j) * apart + i % apart
                                acc[at] = multiply_add(h, one, values[i], acc[at])
                X.carry = acc
            Y.carry = X.carry
        for tap in range(width):
            for j in range(together):
                place, at = h.offset(sums, w_t * tap + w_j * (first + j)), (tap * together + j) * apart
                total = Y.carry[at]
                for i in range(1, apart):
                    total = total + Y.carry[at + i]
                h.store(place, h.load(place, t, lanes, inside) + total, inside)
    return h


def _any_sums(f: Function, io: Type, g: dict[str, Value], sums: Value, x: Value, y: Value, inside: Value) -> None:
    """Add an image to the sums of all taps, row by row."""
    t = _sums(io)
    lanes = f.lanes(t)
    zero = f.const(t, 0, lanes)
    with f.loop(0, g["oh"]) as Y:
        line = _Line(f, g, "h", Y.index)
        grad = f.offset(y, Y.index * g["y_h"])
        with f.loop(line.first, line.last) as H:
            row = f.offset(x, (line.start + H.index * g["dh"]) * g["x_h"])
            taps_of_row = f.offset(sums, H.index * g["kw"] * g["w_t"])

            def some(tap: Value, count: int, row=row, taps_of_row=taps_of_row, grad=grad) -> None:
                """``count`` taps of this row: together where all are in the image, so that y is loaded once."""
                ranges = [_meets(f, g, tap + i) for i in range(count)]
                low, high = ranges[0][0], ranges[0][1]
                for one, other in ranges[1:]:
                    low, high = larger(f, low, one), smaller(f, high, other)
                high = larger(f, high, low)
                source = f.offset(row, (tap * g["dw"] - g["pw"]) * g["x_w"])

                def more(start: Value, stop: Value, apart: int, acc: Sequence[Value], which: Sequence[int]):
                    """``apart`` outputs at a time, each with its own sums for the taps ``which``."""
                    with f.loop(start, stop, apart, carry=acc) as X:
                        after = []
                        for i in range(apart):
                            there = f.offset(grad, (X.index + i) * g["y_w"])
                            dy = _read(f, there, io, lanes, inside)
                            here = f.offset(source, (X.index + i) * g["sw"] * g["x_w"])
                            for j, tap_of in enumerate(which):
                                value = _read(f, f.offset(here, g["dw"] * g["x_w"] * tap_of), io, lanes, inside)
                                after.append(multiply_add(f, value, dy, X.carry[i * len(which) + j]))
                        X.carry = after
                    return X.index, X.carry

                together, apart = list(range(count)), AT_ONCE if count == 1 else 2
                at, totals = more(low, high - (apart - 1), apart, [zero] * (count * apart), together)
                _, rest = more(at, high, 1, totals[:count], together)
                for i, (begin, end) in enumerate(ranges):
                    total = rest[i]
                    for j in range(1, apart):
                        total = total + totals[j * count + i]
                    _, (total,) = more(begin, smaller(f, low, end), 1, [total], [i])
                    _, (total,) = more(larger(f, high, begin), end, 1, [total], [i])
                    place = f.offset(taps_of_row, (tap + i) * g["w_t"])
                    f.store(place, f.load(place, t, lanes, inside) + total, inside)

            with f.loop(0, g["kw"] - 2, 3) as W:
                some(W.index, 3)
            with f.loop(W.index, g["kw"]) as W:
                some(W.index, 1)


@kernel
def depthwise_last_weight(f: Function, dtype: str, group: int) -> None:
    """``w[part, tap, input, channel] = sum of x * y``, where y is the output's gradient; see :data:`LAST_ARGS`.

    Pointers: w, x, y. ``block`` is the images of a part. The range counts parts times vectors of channels.
    """
    io = TYPES[dtype]
    t = _sums(io)
    g = {name: f.size(i) for i, name in enumerate(LAST_ARGS)}
    lanes, taps = f.lanes(t), g["kh"] * g["kw"]
    vectors = (g["c"] + lanes - 1) / lanes
    zero, nothing = f.const(t, 0, lanes), f.scratch(max(f.vector_bytes, 8))
    f.store(nothing, zero)
    shared = _shared(f, io, group, _shared_sums)
    others = _none_of(f, g, shared)
    with f.loop(f.begin, f.end) as T:
        part, channel = T.index / vectors, T.index % vectors * lanes
        inside, at = f.first(g["c"] - channel, lanes), channel * io.bytes
        sums = f.offset(f.data(0), part * taps * g["w_t"] + channel * t.bytes)
        with f.loop(0, taps) as K:
            for j in range(group):
                f.store(f.offset(sums, K.index * g["w_t"] + g["w_j"] * j), zero, inside)
        first = part * g["block"]
        with f.loop(first, smaller(f, first + g["block"], g["images"])) as N:
            x, y = f.offset(f.data(1), N.index * g["x_n"] + at), f.offset(f.data(2), N.index * g["y_n"] + at)
            if group == 1:
                with f.when(others):
                    _any_sums(f, io, g, sums, x, y, inside)
            with f.when(~others), f.loop(0, g["oh"], ROWS_AT_ONCE) as Y, f.loop(0, g["kh"]) as H:
                # Rows of outputs, of these, whose row of taps is in the image.
                low, high = _meets(f, g, H.index, "h")
                low, high = larger(f, low, Y.index), smaller(f, high, Y.index + ROWS_AT_ONCE)
                row = f.offset(x, (low * g["sh"] - g["ph"] + H.index * g["dh"]) * g["x_h"])
                grad = f.offset(y, low * g["y_h"])
                taps_of_row = f.offset(sums, H.index * g["kw"] * g["w_t"])
                for (width, stride), helper in shared.items():
                    with f.when((high > low) & _is_shared(g, width, stride)):
                        f.call(helper, taps_of_row, row, grad, high - low, g["sh"] * g["x_h"], g["y_h"],
                        g["c"] - channel,
                               g["ow"], g["iw"], g["pw"], g["x_w"], g["y_w"], g["w_t"], g["w_j"], nothing)  # fmt: skip
