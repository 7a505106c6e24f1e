"""Winograd's convolution for 3x3 kernels with stride 1, F(2x2, 3x3): 16 multiplications, not 36.

Four outputs, a *tile* of 2x2, come from a 4x4 window of the input. Both the window and the 3x3 weights are transformed
to 16 *positions* (``B' d B`` and ``G g G'`` of Lavin & Gray 2016), multiplied position by position, summed over
channels and transformed back (``A' m A``). The sums over channels are 16 matrix products on the tiles of
:mod:`taeda.kernels.gemm`: tiles by input channels times input channels by output channels.

Channels are along the vectors. An image is transposed to ``[pixel, channel]`` in squares, as in the other products, so
its width does not matter and the transforms are additions of whole vectors; the result is transposed back. A task works
in a *slot*, memory that the launcher lends to a thread for one call.

The weights of a 3x3 kernel take only halves and sums, so the result is about as exact as a plain sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .build import kernel
from .gemm import Block
from .images import each_image, row_bytes, to_channels, to_pixels
from .ir import I64, PTR, TYPES, Function, Helper, Type, Value
from .pool import larger
from .tile import smaller, transpose

POSITIONS = 16
TAPS = 9

#: ``m`` output channels from ``c``; sizes of input and output images, padding, tiles down and across an image. ``rows``
#: is the rows of tiles of all images, ``block`` those of a task. Strides of images and channels in bytes; rows of
#: pixels are contiguous. Weights ``w``: strides of ``m`` and ``c``; ``flip`` reverses the kernel. V holds the
#: transformed input, ``v_b, v_x, v_t`` bytes from block to block, position to position, tile to tile.
SHAPE = tuple("m c ih iw oh ow ph pw th tw rows block x_n x_c y_n y_c w_m w_c flip v_b v_x v_t".split())

#: The arguments of ``winograd`` after :data:`SHAPE`: a task does ``panels`` panels of channels; ``cc`` input channels
#: are summed at a time; ``bias``: whether there is one; ``ready``: what is transformed already (:data:`INPUT`,
#: :data:`WEIGHTS`); offsets in the slot.
WINOGRAD_ARGS = SHAPE + tuple("panels cc bias ready at_m at_u at_pixels at_out".split())
#: Flags for parts that are transformed already.
INPUT, WEIGHTS = 1, 2

#: The arguments of ``winograd_weight`` after :data:`SHAPE`: the blocks are summed in parts of ``run``; a task does
#: ``mc`` output channels by a panel of input channels; offsets in the slot, which begins with V.
WEIGHT_ARGS = SHAPE + tuple("run mc g_x g_t at_g at_sum at_pixels".split())


# ---- the transforms of one dimension --------------------------------------------------------------------------------
def _of_input(d: Sequence[Value]) -> tuple[Value, ...]:
    return d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]


def _of_gradient(y: Sequence[Value]) -> tuple[Value, ...]:
    return y[0], y[0] + y[1], y[0] - y[1], -y[1]


def _of_weights(g: Sequence[Value]) -> tuple[Value, ...]:
    ends, middle = (g[0] + g[2]) * 0.5, g[1] * 0.5
    return g[0], ends + middle, ends - middle, g[2]


def _to_output(m: Sequence[Value]) -> tuple[Value, ...]:
    return m[0] + m[1] + m[2], m[1] - m[2] - m[3]


def _to_weights(u: Sequence[Value]) -> tuple[Value, ...]:
    total, difference = (u[1] + u[2]) * 0.5, (u[1] - u[2]) * 0.5
    return u[0] + total, difference, u[3] + total


def _twice(fn: Callable, square: Sequence[Sequence[Value]]) -> list[list[Value]]:
    """``fn`` down the columns of a square of rows, then along its rows."""
    columns = [fn(column) for column in zip(*square, strict=True)]
    return [list(fn(row)) for row in zip(*columns, strict=True)]


# ---- between memory and positions -----------------------------------------------------------------------------------
def _windows(f: Function, t: Type, transposing: Helper, name: str, window: int, fn: Callable) -> Helper:
    """Transform the windows of some rows of tiles of one image, for one panel of channels.

    ``to`` is the place of the first tile's first position. ``window`` is 4 for inputs, whose windows overlap, and 2 for
    gradients; pixels outside of the image are 0. ``pixels`` is memory for the transposed rows.
    """
    h = f.helper(name, PTR, I64, I64, PTR, I64, I64, I64, I64, I64, I64, I64, I64, I64, PTR, PTR)
    to, v_x, v_t, x, x_c, channels, first, rows, height, width, ph, pw, across, pixels, zeros = h.params
    lanes, pitch = h.lanes(t), row_bytes(h)
    shared = window - 2
    top = first * 2 - ph
    begin, end = larger(h, top, 0), smaller(h, top + rows * 2 + shared, height)
    count = larger(h, end - begin, 0) * width
    h.call(transposing, pixels, h.offset(x, begin * width * t.bytes), x_c, count, channels)
    with h.loop(0, rows) as R:
        starts, steps = [], []
        for i in range(window):
            row = top + R.index * 2 + i
            inside = (row >= 0) & (row < height)
            starts.append(h.select(inside, h.offset(pixels, (row - begin) * width * pitch), zeros))
            steps.append(h.select(inside, h.i64(pitch), h.i64(0)))
        with h.loop(0, channels, lanes) as V:
            at = V.index * t.bytes

            def column(w: Value, starts=starts, steps=steps, at=at) -> list[Value]:
                """The transformed column ``w`` of the windows of this row."""
                inside = (w >= 0) & (w < width)
                found = []
                for start, step in zip(starts, steps, strict=True):
                    place = h.select(inside, h.offset(start, w * step), zeros)
                    found.append(h.load(h.offset(place, at), t, lanes))
                return list(fn(found))

            before = [v for i in range(shared) for v in column(h.i64(i) - pw)]
            target = h.offset(to, R.index * across * v_t + at)
            with h.loop(0, across, carry=[target, *before]) as T:
                place, *kept = T.carry
                columns = [kept[4 * i : 4 * i + 4] for i in range(shared)]
                columns += [column(T.index * 2 - pw + i) for i in range(shared, window)]
                for i, row in enumerate(zip(*columns, strict=True)):
                    for j, value in enumerate(fn(row)):
                        h.store(h.offset(place, v_x * (4 * i + j)), value)
                T.carry = [h.offset(place, v_t), *(v for c in columns[2:] for v in c)]
    return h


def _weights(f: Function, t: Type) -> Helper:
    """``weights(to, u_x, w, w_m, w_c, m, c, flip)``: U, for at most a panel of ``m`` channels along the vectors."""
    h = f.helper("weights", PTR, I64, PTR, I64, I64, I64, I64, I64)
    to, u_x, w, w_m, w_c, m, c, flip = h.params
    lanes, pitch = h.lanes(t), row_bytes(h)
    # Reversing a kernel exchanges the outer two of its four positions.
    order = [h.select(flip != 0, h.i64(3 - i if i % 3 == 0 else i), h.i64(i)) for i in range(4)]
    # The dimension with the smaller stride goes first: channels at a large stride are pages apart.
    near = w_m < w_c
    inner = h.select(near, (m + (lanes - 1)) / lanes, c)
    with h.loop(0, (m + (lanes - 1)) / lanes * c) as L:
        slow, fast = L.index / inner, L.index % inner
        row, column = h.select(near, fast, slow) * lanes, h.select(near, slow, fast)
        left, source = m - row, h.offset(w, row * w_m + column * w_c)
        ahead = h.offset(source, h.select(near, w_c * 3, h.i64(0)))
        for line in range(0, TAPS * lanes * t.bytes, 64):
            h.prefetch(h.offset(ahead, line))
        taps: list[Value] = []
        for start in range(0, TAPS, lanes):
            some = h.first(h.i64(TAPS - start), lanes)
            none = h.const(some.type, 0, lanes)
            rows = [
                h.load(h.offset(source, w_m * i + start * t.bytes), t, lanes, h.select(left > i, some, none))
                for i in range(lanes)
            ]
            taps += transpose(rows)[: TAPS - start]
        target = h.offset(to, column * pitch + row * t.bytes)
        for i, row in enumerate(_twice(_of_weights, [taps[0:3], taps[3:6], taps[6:9]])):
            for j, value in enumerate(row):
                h.store(h.offset(target, (order[i] * 4 + order[j]) * u_x), value)
    return h


def _outputs(f: Function, t: Type) -> Helper:
    """``outputs(to, sums, m_x, channels, bias, rows, left, width, across, spare)``: rows of tiles as
    ``[pixel, channel]``.

    ``left`` is the rows of pixels from the first on; what is outside of the image goes to ``spare``.
    """
    h = f.helper("outputs", PTR, PTR, I64, I64, PTR, I64, I64, I64, I64, PTR)
    to, sums, m_x, channels, bias, rows, left, width, across, spare = h.params
    lanes, pitch = h.lanes(t), row_bytes(h)
    with h.loop(0, rows) as R, h.loop(0, across) as T:
        source = h.offset(sums, (R.index * across + T.index) * pitch)
        row, column = R.index * 2, T.index * 2
        target = h.offset(to, (row * width + column) * pitch)
        places = []
        for i in range(2):
            for j in range(2):
                inside = (row + i < left) & (column + j < width)
                places.append(h.select(inside, h.offset(target, (width * i + j) * pitch), spare))
        with h.loop(0, channels, lanes) as V:
            at = V.index * t.bytes
            level = h.load(h.offset(bias, at), t, lanes)
            square = [[h.load(h.offset(source, m_x * (4 * i + j) + at), t, lanes) for j in range(4)] for i in range(4)]
            for place, value in zip(places, (v for r in _twice(_to_output, square) for v in r), strict=True):
                h.store(h.offset(place, at), value + level)
    return h


def _gradients(f: Function, t: Type) -> Helper:
    """``gradients(to, w_m, sums, m_x, m, c)``: the sums of the positions ``[m, panel of c]`` as weights
    ``[m, c, tap]``."""
    h = f.helper("gradients", PTR, I64, PTR, I64, I64, I64)
    to, w_m, sums, m_x, m, c = h.params
    lanes, pitch = h.lanes(t), row_bytes(h)
    with h.loop(0, m) as M, h.loop(0, c, lanes) as V:
        source = h.offset(sums, M.index * pitch + V.index * t.bytes)
        square = [[h.load(h.offset(source, m_x * (4 * i + j)), t, lanes) for j in range(4)] for i in range(4)]
        taps = [v for row in _twice(_to_weights, square) for v in row]
        target, left = h.offset(to, M.index * w_m + V.index * (TAPS * t.bytes)), c - V.index
        for start in range(0, TAPS, lanes):
            some = h.first(h.i64(TAPS - start), lanes)
            none = h.const(some.type, 0, lanes)
            rows = taps[start : start + lanes]
            rows += [h.const(t, 0, lanes)] * (lanes - len(rows))
            for i, row in enumerate(transpose(rows)):
                there = h.offset(target, (i * TAPS + start) * t.bytes)
                h.store(there, row, h.select(left > i, some, none))
    return h


class _Transform:
    """Transforms windows of images to positions within a kernel: of the input, or of the output's gradient
    (``gradient``)."""

    def __init__(self, f: Function, t: Type, g: dict[str, Value], transposing: Helper, gradient: bool):
        self.f, self.t, self.g = f, t, g
        self.zeros, zero = f.scratch(row_bytes(f)), f.i64(0)
        for at in range(0, row_bytes(f), f.vector_bytes):
            f.store(f.offset(self.zeros, at), f.const(t, 0, f.lanes(t)))
        if gradient:
            self.helper = _windows(f, t, transposing, "of_gradient", 2, _of_gradient)
            self.n, self.c, self.sizes = g["y_n"], g["y_c"], (g["oh"], g["ow"], zero, zero)
        else:
            self.helper = _windows(f, t, transposing, "of_input", 4, _of_input)
            self.n, self.c, self.sizes = g["x_n"], g["x_c"], (g["ih"], g["iw"], g["ph"], g["pw"])

    def block(self, to, v_x, v_t, source, channels, first, rows, pixels) -> None:
        """``channels`` from ``source`` on, for some rows of tiles, panel by panel; ``pixels`` is memory for a
        transposed image."""
        f, g, width = self.f, self.g, row_bytes(self.f) // self.t.bytes
        with f.loop(0, channels, width) as C:
            some = smaller(f, channels - C.index, width)

            def one(image: Value, row: Value, count: Value, before: Value) -> None:
                target = f.offset(to, before * v_t + C.index * self.t.bytes)
                start = f.offset(source, image * self.n + C.index * self.c)
                args = (target, v_x, v_t, start, self.c, some, row, count, *self.sizes, g["tw"], pixels, self.zeros)
                f.call(self.helper, *args)

            each_image(f, first, rows, g["th"], g["tw"], one)


# ---- kernels --------------------------------------------------------------------------------------------------------
@kernel
def winograd_weights(f: Function, dtype: str) -> None:
    """U ``[panel of m, position, c, m]`` from the weights. Pointers: U, weights. The range counts panels of ``m``."""
    t = TYPES[dtype]
    helper, pitch = _weights(f, t), row_bytes(f)
    g = {name: f.size(i) for i, name in enumerate(SHAPE)}
    with f.loop(f.begin, f.end) as T:
        row, u_x = T.index * (pitch // t.bytes), g["c"] * pitch
        m = smaller(f, g["m"] - row, pitch // t.bytes)
        to, w = f.offset(f.data(0), T.index * POSITIONS * u_x), f.offset(f.data(1), row * g["w_m"])
        f.call(helper, to, u_x, w, g["w_m"], g["w_c"], m, g["c"], g["flip"])


@kernel
def winograd_input(f: Function, dtype: str) -> None:
    """V from the input, for blocks that several tasks use.

    Pointers: V, input, slot. The range counts blocks by panels of channels.
    """
    t = TYPES[dtype]
    g = {name: f.size(i) for i, name in enumerate(SHAPE)}
    transform = _Transform(f, t, g, to_channels(f, t), False)
    width = row_bytes(f) // t.bytes
    panels = (g["c"] + width - 1) / width
    with f.loop(f.begin, f.end) as T:
        block, channel = T.index / panels, T.index % panels * width
        first = block * g["block"]
        to = f.offset(f.data(0), block * g["v_b"] + channel * t.bytes)
        channels, rows = smaller(f, g["c"] - channel, width), smaller(f, g["rows"] - first, g["block"])
        source = f.offset(f.data(1), channel * g["x_c"])
        transform.block(to, g["v_x"], g["v_t"], source, channels, first, rows, f.data(2))


@kernel
def winograd(f: Function, dtype: str) -> None:
    """Output, or input's gradient; see :data:`WINOGRAD_ARGS`. The range counts blocks of tiles by ranges of panels of
    m.

    Pointers: output, input (V where it is ready), weights (U where they are ready), bias, ``panel_product``, slot.
    """
    t = TYPES[dtype]
    block = Block(f, t, f.data(4))
    g = {name: f.size(i) for i, name in enumerate(WINOGRAD_ARGS)}
    transform = _Transform(f, t, g, to_channels(f, t), False)
    weights, outputs, back = _weights(f, t), _outputs(f, t), to_pixels(f, t)
    level, spare = f.scratch(row_bytes(f)), f.scratch(row_bytes(f))
    pitch, width = f.i64(row_bytes(f)), block.width
    input_ready, weights_ready = (g["ready"] & INPUT) != 0, (g["ready"] & WEIGHTS) != 0
    slot, zero = f.data(5), f.i64(0)
    sums, pixels, out = (f.offset(slot, g[name]) for name in ("at_m", "at_pixels", "at_out"))
    m_x, u_x = g["block"] * g["tw"] * pitch, f.select(weights_ready, g["c"], g["cc"]) * pitch
    all_panels = (g["m"] + width - 1) / width
    ranges = (all_panels + g["panels"] - 1) / g["panels"]
    block.context.set(a_m=g["v_t"], a_k=f.i64(t.bytes), a_tile=g["v_t"] * block.shape.rows, b_k=pitch)
    with f.loop(f.begin, f.end) as T:
        index, panel = T.index / ranges, T.index % ranges * g["panels"]
        first = index * g["block"]
        rows = smaller(f, g["rows"] - first, g["block"])
        v = f.select(input_ready, f.offset(f.data(1), index * g["v_b"]), slot)
        with f.when(~input_ready):
            transform.block(v, g["v_x"], g["v_t"], f.data(1), g["c"], first, rows, pixels)
        with f.loop(panel, smaller(f, panel + g["panels"], all_panels)) as P:
            m = P.index * width
            channels = smaller(f, g["m"] - m, width)
            w = f.offset(f.data(2), m * f.select(weights_ready, g["c"] * (POSITIONS * t.bytes), g["w_m"]))
            for at in range(0, width, block.lanes):
                given = f.first(f.select(g["bias"] != 0, channels - at, zero), block.lanes)
                values = f.load(f.offset(f.data(3), m * t.bytes + at * t.bytes), t, block.lanes, given)
                f.store(f.offset(level, at * t.bytes), values)
            with f.loop(0, g["c"], g["cc"]) as C:
                depth = smaller(f, g["c"] - C.index, g["cc"])
                u = f.select(weights_ready, f.offset(w, C.index * pitch), f.offset(slot, g["at_u"]))
                with f.when(~weights_ready):
                    start = f.offset(w, C.index * g["w_c"])
                    f.call(weights, u, u_x, start, g["w_m"], g["w_c"], channels, depth, g["flip"])
                block.context.set(k=depth)
                with f.loop(0, POSITIONS) as X:
                    at_c, at_v = f.offset(sums, X.index * m_x), f.offset(v, X.index * g["v_x"] + C.index * t.bytes)
                    block.set_c(C.index == 0, zero, at_c, pitch, at_c, zero)
                    block.multiply(at_v, f.offset(u, X.index * u_x), zero, channels, rows * g["tw"], zero)

            def put(image: Value, row: Value, count: Value, before: Value, m=m, channels=channels) -> None:
                source, left = f.offset(sums, before * pitch), g["oh"] - row * 2
                f.call(outputs, out, source, m_x, channels, level, count, left, g["ow"], g["tw"], spare)
                target = f.offset(f.data(0), image * g["y_n"] + m * g["y_c"] + row * 2 * g["ow"] * t.bytes)
                f.call(back, target, g["y_c"], out, pitch, smaller(f, count * 2, left) * g["ow"], channels)

            each_image(f, first, rows, g["th"], g["tw"], put)


@kernel
def winograd_gradient(f: Function, dtype: str) -> None:
    """Gradient of the weights; see :data:`WEIGHT_ARGS`. The range counts parts, runs of ``mc``, panels of c.

    Pointers: result ``[part, m, c, tap]``, input, output's gradient, ``panel_product``, slot.
    """
    t = TYPES[dtype]
    block = Block(f, t, f.data(3))
    g = {name: f.size(i) for i, name in enumerate(WEIGHT_ARGS)}
    transposing = to_channels(f, t)
    of_input, of_gradient = _Transform(f, t, g, transposing, False), _Transform(f, t, g, transposing, True)
    gradients = _gradients(f, t)
    pitch, width = f.i64(row_bytes(f)), block.width
    v, zero = f.data(4), f.i64(0)
    y, sums, pixels = (f.offset(v, g[name]) for name in ("at_g", "at_sum", "at_pixels"))
    m_x = g["mc"] * pitch
    panels, runs = (g["c"] + width - 1) / width, (g["m"] + g["mc"] - 1) / g["mc"]
    item = f.i64(t.bytes)
    block.context.set(a_m=item, a_k=g["g_t"], a_tile=item * block.shape.rows, b_k=g["v_t"])
    with f.loop(f.begin, f.end) as T:
        rest, channel = T.index / panels, T.index % panels * width
        part, m = rest / runs, rest % runs * g["mc"]
        channels, some = smaller(f, g["c"] - channel, width), smaller(f, g["m"] - m, g["mc"])
        begin = part * g["run"] * g["block"]
        x, grad = f.offset(f.data(1), channel * g["x_c"]), f.offset(f.data(2), m * g["y_c"])
        with f.loop(begin, smaller(f, begin + g["run"] * g["block"], g["rows"]), g["block"]) as R:
            rows = smaller(f, g["rows"] - R.index, g["block"])
            of_input.block(v, g["v_x"], g["v_t"], x, channels, R.index, rows, pixels)
            of_gradient.block(y, g["g_x"], g["g_t"], grad, some, R.index, rows, pixels)
            block.context.set(k=rows * g["tw"])
            with f.loop(0, POSITIONS) as X:
                at_c = f.offset(sums, X.index * m_x)
                block.set_c(R.index == begin, zero, at_c, pitch, at_c, zero)
                at_y, at_v = f.offset(y, X.index * g["g_x"]), f.offset(v, X.index * g["v_x"])
                block.multiply(at_y, at_v, zero, channels, some, zero)
        to = f.offset(f.data(0), (part * g["m"] + m) * g["w_m"] + channel * g["w_c"])
        f.call(gradients, to, g["w_m"], sums, m_x, some, channels)
