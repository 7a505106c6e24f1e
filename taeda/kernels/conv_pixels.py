"""Convolution with channels along the registers: what is unfolded is rows of pixels, ``[pixel, (tap, channel)]``.

:mod:`taeda.kernels.conv` unfolds ``[(channel, tap), pixel]``, which is cheap where neighbouring outputs read neighbouring
inputs. With a stride, or in pictures narrower than a register, they do not. Here an image is turned to
``[pixel, channel]`` in squares, a tap of an output pixel is then some whole registers copied from one place, and the
product is pixels by (tap, channel) times (tap, channel) by output channels. Its result is turned back.

Two spatial dimensions cover one. What a task works on lies in its *slot*, as in :mod:`taeda.kernels.winograd`, whose
way with images these kernels share.
"""

from __future__ import annotations

from .build import kernel
from .gemm import Block, smaller, transpose
from .images import each_image, row_bytes, to_channels, to_pixels
from .ir import I64, PTR, TYPES, Function, Helper, Type, Value
from .pool import larger

#: ``m`` output channels from ``c``; sizes of input, output and kernel, stride, dilation (may be negative), padding.
#: ``rows`` is the rows of pixels of all output images, ``block`` those of a task. Strides of images and channels in bytes
#: (rows of pixels are contiguous). ``a_m`` is the bytes from one unfolded pixel to the next; a task does ``panels`` panels of
#: output channels; where its sums and the turned rows of input lie in the slot, which the unfolded pixels begin.
SHAPE = tuple("m c ih iw oh ow kh kw sh sw dh dw ph pw rows block x_n x_c y_n y_c a_m panels at_sum at_pixels".split())

#: After :data:`SHAPE`: ``tt`` taps are summed at a time; whether there is a bias.
PIXELS_ARGS = (*SHAPE, "tt", "bias")

#: After :data:`SHAPE`: the blocks are summed in parts of ``run``; the place of the turned gradient.
WEIGHT_ARGS = (*SHAPE, "run", "at_g")

#: Of ``pixel_weights``: channels, bytes from one to the next in the weights, whose taps are contiguous.
PANEL_ARGS = tuple("m c w_m w_c taps".split())


def _whole(f: Function, channels: Value, lanes: int) -> Value:
    """``channels`` rounded up to registers."""
    return (channels + (lanes - 1)) / lanes * lanes


def _unfold(f: Function, t: Type, turn: Helper) -> Helper:
    """``unfold(arg, to, x, channels, first, rows, pixels, zeros)``: some rows of one output image, a panel of channels.

    ``x`` is the image's first channel, ``pixels`` takes the turned rows of input; what lies in the padding is 0.
    """
    h = f.helper("unfold", PTR, PTR, PTR, I64, I64, I64, PTR, PTR)
    pointer, to, x, channels, first, rows, pixels, zeros = h.params
    g = {name: h.load(h.offset(pointer, 8 * i), I64) for i, name in enumerate(SHAPE)}
    lanes, pitch, none = h.lanes(t), row_bytes(h), h.i64(0)
    top = first * g["sh"] - g["ph"]
    reach = (g["kh"] - 1) * g["dh"]
    low, high = smaller(h, reach, none), larger(h, reach, none)
    begin = smaller(h, larger(h, top + low, 0), g["ih"])
    end = larger(h, smaller(h, top + (rows - 1) * g["sh"] + high + 1, g["ih"]), begin)
    h.call(turn, pixels, h.offset(x, begin * g["iw"] * t.bytes), g["x_c"], (end - begin) * g["iw"], channels)
    step = _whole(h, channels, lanes) * t.bytes
    with h.loop(0, g["kh"]) as Y, h.loop(0, rows) as R, h.loop(0, g["kw"]) as X:
        row, left = top + R.index * g["sh"] + Y.index * g["dh"], X.index * g["dw"] - g["pw"]
        inside = (row >= begin) & (row < end)
        source = h.offset(pixels, ((row - begin) * g["iw"] + left) * pitch)
        target = h.offset(to, R.index * g["ow"] * g["a_m"] + (Y.index * g["kw"] + X.index) * step)
        with h.loop(0, g["ow"], carry=[target, source, left]) as P:
            into, place, column = P.carry
            at = h.select(inside & (column >= 0) & (column < g["iw"]), place, zeros)
            with h.loop(0, step, h.vector_bytes) as V:
                h.store(h.offset(into, V.index), h.load(h.offset(at, V.index), t, lanes))
            P.carry = [h.offset(into, g["a_m"]), h.offset(place, g["sw"] * pitch), column + g["sw"]]
    return h


class _Unfolded:
    """Unfolding of blocks within a kernel."""

    def __init__(self, f: Function, t: Type, g: dict[str, Value], turn: Helper):
        self.f, self.g, self.helper = f, g, _unfold(f, t, turn)
        self.zeros = f.scratch(row_bytes(f))
        for at in range(0, row_bytes(f), f.vector_bytes):
            f.store(f.offset(self.zeros, at), f.const(t, 0, f.lanes(t)))

    def block(self, to: Value, x: Value, channels: Value, first: Value, rows: Value, pixels: Value) -> None:
        f, g = self.f, self.g

        def one(image: Value, row: Value, count: Value, before: Value) -> None:
            target, source = f.offset(to, before * g["a_m"]), f.offset(x, image * g["x_n"])
            f.call(self.helper, f.arg, target, source, channels, row, count, pixels, self.zeros)

        each_image(f, first, rows, g["oh"], g["ow"], one)


def _panel(f: Function, t: Type) -> Helper:
    """``panel(to, panel, places, w, w_m, w_c, m, c, taps)``: a panel of ``m`` by one of ``c`` for :func:`pixel_weights`."""
    h = f.helper("panel", PTR, I64, PTR, PTR, I64, I64, I64, I64, I64)
    to, panel, places, w, w_m, w_c, m, c, taps = h.params
    lanes, pitch = h.lanes(t), row_bytes(h)
    whole, width = _whole(h, c, lanes), row_bytes(h) // t.bytes
    with h.loop(0, whole) as C, h.loop(0, m, lanes) as V, h.loop(0, taps, lanes) as K:
        source = h.offset(w, V.index * w_m + C.index * w_c + K.index * t.bytes)
        some = h.first(h.select(C.index < c, taps - K.index, h.i64(0)), lanes)
        none = h.const(some.type, 0, lanes)
        rows = [
            h.load(h.offset(source, w_m * i), t, lanes, h.select(m - V.index > i, some, none)) for i in range(lanes)
        ]
        for i, tap in enumerate(transpose(rows)):
            with h.when(taps - K.index > i):
                at = h.offset(places, (K.index + i) * 24)
                base, count, index = (h.load(h.offset(at, 8 * n), I64) for n in range(3))
                row = panel * count * width + index * whole + C.index
                h.store(h.offset(to, base + row * pitch + V.index * t.bytes), tap)
    return h


def _gradients(f: Function, t: Type) -> Helper:
    """``gradients(to, w_m, sums, sums_t, m, c, taps)``: sums ``[tap, m, panel of c]`` as weights ``[m, c, tap]``."""
    h = f.helper("gradients", PTR, I64, PTR, I64, I64, I64, I64)
    to, w_m, sums, sums_t, m, c, taps = h.params
    lanes, pitch = h.lanes(t), row_bytes(h)
    with h.loop(0, m) as M, h.loop(0, c, lanes) as V, h.loop(0, taps, lanes) as K:
        source = h.offset(sums, K.index * sums_t + M.index * pitch + V.index * t.bytes)
        last = taps - K.index - 1
        rows = [h.load(h.offset(source, sums_t * smaller(h, h.i64(i), last)), t, lanes) for i in range(lanes)]
        target = h.offset(to, M.index * w_m + (V.index * taps + K.index) * t.bytes)
        left, some = c - V.index, h.first(taps - K.index, lanes)
        none = h.const(some.type, 0, lanes)
        for i, row in enumerate(transpose(rows)):
            h.store(h.offset(target, taps * (i * t.bytes)), row, h.select(left > i, some, none))
    return h


@kernel
def pixel_weights(f: Function, dtype: str) -> None:
    """Weights as panels ``[panel of m, panel of c, (tap, c), m]``, for one convolution or several that share the taps.

    Pointers: result, weights, and three int64 per tap: the byte where its convolution's panels begin, how many taps that has,
    and which of these this one is. See :data:`PANEL_ARGS`. The range counts panels.
    """
    t = TYPES[dtype]
    helper, width = _panel(f, t), row_bytes(f) // t.bytes
    m, c, w_m, w_c, taps = (f.size(i) for i in range(len(PANEL_ARGS)))
    panels = (c + width - 1) / width
    with f.loop(f.begin, f.end) as T:
        row, column = T.index / panels * width, T.index % panels * width
        w = f.offset(f.data(1), row * w_m + column * w_c)
        some, channels = smaller(f, m - row, width), smaller(f, c - column, width)
        f.call(helper, f.data(0), T.index, f.data(2), w, w_m, w_c, some, channels, taps)


@kernel
def conv_pixels(f: Function, dtype: str) -> None:
    """Output, or input's gradient; see :data:`PIXELS_ARGS`. The range counts blocks by ranges of panels of m.

    Pointers: output, input, weights of :func:`pixel_weights`, bias, ``panel_product``, slot.
    """
    t = TYPES[dtype]
    block = Block(f, t, f.data(4))
    g = {name: f.size(i) for i, name in enumerate(PIXELS_ARGS)}
    unfolded, back = _Unfolded(f, t, g, to_channels(f, t)), to_pixels(f, t)
    level = f.scratch(row_bytes(f))
    pitch, width, zero = f.i64(row_bytes(f)), block.width, f.i64(0)
    a = f.data(5)
    sums, pixels = f.offset(a, g["at_sum"]), f.offset(a, g["at_pixels"])
    taps, size = g["kh"] * g["kw"], g["block"] * g["ow"] * pitch
    c_panels, m_panels = (g["c"] + width - 1) / width, (g["m"] + width - 1) / width
    ranges = (m_panels + g["panels"] - 1) / g["panels"]
    block.context.set(a_m=g["a_m"], a_k=f.i64(t.bytes), a_tile=g["a_m"] * block.shape.rows, b_k=pitch)
    with f.loop(f.begin, f.end) as T:
        first, panel = T.index / ranges * g["block"], T.index % ranges * g["panels"]
        rows, last = smaller(f, g["rows"] - first, g["block"]), smaller(f, panel + g["panels"], m_panels)
        with f.loop(0, c_panels) as C:
            channels = smaller(f, g["c"] - C.index * width, width)
            x = f.offset(f.data(1), C.index * width * g["x_c"])
            unfolded.block(a, x, channels, first, rows, pixels)
            whole = _whole(f, channels, block.lanes)
            with f.loop(0, taps, g["tt"]) as K, f.loop(panel, last) as P:
                m = smaller(f, g["m"] - P.index * width, width)
                for at in range(0, width, block.lanes):
                    given = f.first(f.select(g["bias"] != 0, m - at, zero), block.lanes)
                    values = f.load(f.offset(f.data(3), (P.index * width + at) * t.bytes), t, block.lanes, given)
                    f.store(f.offset(level, at * t.bytes), values)
                block.context.set(k=smaller(f, taps - K.index, g["tt"]) * whole)
                at_c = f.offset(sums, (P.index - panel) * size)
                starts = (C.index == 0) & (K.index == 0)
                block.set_c(starts, f.i64(1), at_c, pitch, level, zero)
                b = f.offset(f.data(2), (P.index * c_panels + C.index) * taps * (width * pitch))
                at_a, at_b = f.offset(a, K.index * whole * t.bytes), f.offset(b, K.index * whole * pitch)
                block.multiply(at_a, at_b, zero, m, rows * g["ow"], zero)
        with f.loop(panel, last) as P:
            m = P.index * width

            def put(image: Value, row: Value, count: Value, before: Value, P=P, m=m) -> None:
                target = f.offset(f.data(0), image * g["y_n"] + m * g["y_c"] + row * g["ow"] * t.bytes)
                source = f.offset(sums, (P.index - panel) * size + before * pitch)
                f.call(back, target, g["y_c"], source, pitch, count * g["ow"], smaller(f, g["m"] - m, width))

            each_image(f, first, rows, g["oh"], g["ow"], put)


@kernel
def pixels_gradient(f: Function, dtype: str) -> None:
    """Gradient of the weights; see :data:`WEIGHT_ARGS`. The range counts parts, runs of ``mc``, panels of c.

    Pointers: result ``[part, m, c, tap]``, input, output's gradient, ``panel_product``, slot.
    """
    t = TYPES[dtype]
    block = Block(f, t, f.data(3))
    g = {name: f.size(i) for i, name in enumerate(WEIGHT_ARGS)}
    turn = to_channels(f, t)
    unfolded, gradients = _Unfolded(f, t, g, turn), _gradients(f, t)
    pitch, width, zero = f.i64(row_bytes(f)), block.width, f.i64(0)
    a, taps = f.data(4), g["kh"] * g["kw"]
    y, sums, pixels = (f.offset(a, g[name]) for name in ("at_g", "at_sum", "at_pixels"))
    c_panels, m_panels = (g["c"] + width - 1) / width, (g["m"] + width - 1) / width
    ranges = (m_panels + g["panels"] - 1) / g["panels"]
    item, w_m = f.i64(t.bytes), g["c"] * taps * t.bytes
    sums_t = g["panels"] * pitch * width
    block.context.set(a_m=item, a_k=pitch, a_tile=item * block.shape.rows, b_k=g["a_m"])
    with f.loop(f.begin, f.end) as T:
        rest, c = T.index / c_panels, T.index % c_panels * width
        part, m = rest / ranges, rest % ranges * g["panels"] * width
        channels, some = smaller(f, g["c"] - c, width), smaller(f, g["m"] - m, g["panels"] * width)
        begin = part * g["run"] * g["block"]
        x, grad = f.offset(f.data(1), c * g["x_c"]), f.offset(f.data(2), m * g["y_c"])
        with f.loop(begin, smaller(f, begin + g["run"] * g["block"], g["rows"]), g["block"]) as R:
            rows = smaller(f, g["rows"] - R.index, g["block"])
            unfolded.block(a, x, channels, R.index, rows, pixels)
            block.context.set(k=rows * g["ow"])
            with f.loop(0, some, width) as P:
                those = smaller(f, some - P.index, width)

                def turned(image: Value, row: Value, count: Value, before: Value, m=P.index, those=those) -> None:
                    source = f.offset(grad, image * g["y_n"] + m * g["y_c"] + row * g["ow"] * t.bytes)
                    f.call(turn, f.offset(y, before * pitch), source, g["y_c"], count * g["ow"], those)

                each_image(f, R.index, rows, g["oh"], g["ow"], turned)
                with f.loop(0, taps) as K:
                    at_c = f.offset(sums, K.index * sums_t + P.index * pitch)
                    block.set_c(R.index == begin, zero, at_c, pitch, at_c, zero)
                    at_b = f.offset(a, K.index * _whole(f, channels, block.lanes) * t.bytes)
                    block.multiply(y, at_b, zero, channels, those, zero)
        to = f.offset(f.data(0), (part * g["m"] + m) * w_m + c * taps * t.bytes)
        f.call(gradients, to, w_m, sums, sums_t, some, channels, taps)
