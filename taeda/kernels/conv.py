"""Convolution on the blocks of the matrix product; no image is unfolded as a whole.

A convolution is a product ``C[channel, pixel] = A[channel, (c, tap)] X[(c, tap), pixel]`` where row ``(c, tap)`` of X
is the input's channel ``c``, shifted by the kernel's tap. ``conv`` unfolds one panel of X at a time, a few output
pixels by a few channels, onto the thread's stack, where the tiles of :mod:`taeda.kernels.gemm` read it. The gradient of
the input is the same kernel with a negative dilation. ``conv_weight`` sums over pixels instead, with X as the left
operand.

Three spatial dimensions (d, h, w) cover one and two as well.
"""

from __future__ import annotations

from .build import kernel
from .gemm import K_BLOCK, PACKED, Block, spread
from .ir import I64, PTR, TYPES, Function, Helper, Type, Value
from .packing import pack_transpose
from .tile import smaller

#: Geometry of the unfolded rows: sizes of output, input and kernel, stride, dilation (may be negative), padding, and
#: byte strides of the input. Output ``o`` meets tap ``k`` at input ``o * stride - padding + k * dilation``.
GEOMETRY = tuple("od oh ow id ih iw kd kh kw sd sh sw dd dh dw pd ph pw x_c x_d x_h x_w".split())

#: The arguments of ``conv`` after :data:`GEOMETRY`: ``m`` output channels per group from ``channels`` inputs; strides
#: of input, output, weights (``a``) and bias by image ``n`` and group ``g``; ``packed`` and ``a_tile`` as for
#: ``matmul``. ``init`` is 2 where there is a bias. A task is ``mc`` channels by ``nc`` pixels; a block of k is ``cc``
#: channels by ``tt`` taps.
CONV_ARGS = GEOMETRY + tuple(
    "images groups m channels x_n x_g c_n c_g c_m a_g a_m a_k a_tile packed d_g d_m init mc nc cc tt".split()
)

#: The arguments of ``conv_weight`` after :data:`GEOMETRY`: the gradient's strides (``g``; its pixels are contiguous),
#: and those of the result ``[part, group, (c, tap), channel]``. The images are summed in ``parts`` runs of ``run``. A
#: task is ``cc`` channels by ``tt`` taps by ``nc`` output channels; a block of its sum has ``pixels`` pixels.
WEIGHT_ARGS = GEOMETRY + tuple(
    "images groups m channels x_n x_g g_n g_g g_m c_p c_g c_r parts run nc cc tt pixels".split()
)

#: The arguments of a device that computes convolutions by tiles (``_core/conv_tiles.pxi``), after those of its product
#: and :data:`GEOMETRY`. Its sum goes by segments of so many k, a block of channels or an image. ``pixels``: of an image
#: of the result. ``x_next`` and ``y_next``: bytes from a segment of the image and of the gradient to the next one.
#: ``most``: k of a part.
TILE_ARGS = GEOMETRY + tuple("segment pixels most x_next y_next".split())

#: The arguments of ``interleave``: sizes of a plane of the result; byte strides of rows (``y_h``), planes (``y_d``) and
#: images of ``depth`` planes (``y_c``).
INTERLEAVE_ARGS = tuple("depth height width y_c y_d y_h".split())

UNFOLD_ROWS = 192  # most rows (c, tap) that a task of ``conv_weight`` unfolds
UNFOLD_PIXELS = 128  # pixels of a block of its sum


def _arguments(f: Function, pointer: Value, names: tuple[str, ...]) -> dict[str, Value]:
    return {name: f.load(f.offset(pointer, 8 * i), I64) for i, name in enumerate(names)}


def _unfold(f: Function, t: Type) -> Helper:
    """``unfold(arg, to, pitch, x, first, columns, tap, taps, channels)``: rows (c, tap) of X for some output pixels.

    Rows are ``pitch`` bytes apart and start with channel ``x``; padding is 0. A chunk is one vector of pixels of one
    output row, unfolded for all taps and channels, so that they share the address arithmetic of a tap.
    """
    h = f.helper("unfold", PTR, PTR, I64, PTR, I64, I64, I64, I64, I64)
    pointer, to, pitch, x, first, columns, tap, taps, channels = h.params
    lanes = h.lanes(t)
    g = _arguments(h, pointer, GEOMETRY)
    step_w = g["sw"] * g["x_w"]
    with h.while_([h.i64(0)]) as C:
        (column,) = C.carry
        C.test(column < columns)
        pixel = first + column
        ow, rest = pixel % g["ow"], pixel / g["ow"]
        oh, od = rest % g["oh"], rest / g["oh"]
        run = smaller(h, smaller(h, g["ow"] - ow, columns - column), lanes)
        here = h.first(run, lanes)
        start = {"d": od * g["sd"] - g["pd"], "h": oh * g["sh"] - g["ph"], "w": ow * g["sw"] - g["pw"]}
        kw, left = tap % g["kw"], tap / g["kw"]
        with h.loop(tap, tap + taps, carry=[left / g["kh"], left % g["kh"], kw]) as K:
            kd, kh, kw = K.carry
            d, hh, w = start["d"] + kd * g["dd"], start["h"] + kh * g["dh"], start["w"] + kw * g["dw"]
            inside = _within(h, d, g["id"]) & _within(h, hh, g["ih"])
            row = h.offset(x, h.select(inside, d * g["x_d"] + hh * g["x_h"], 0))
            # Lanes whose input column exists: from the first column at or after 0 to the last inside.
            low = h.select(w < 0, (g["sw"] - 1 - w) / g["sw"], h.i64(0))
            end = g["iw"] - w
            high = h.select(end > 0, (end + g["sw"] - 1) / g["sw"], h.i64(0))
            high = h.select(inside, smaller(h, run, high), h.i64(0))
            mask = h.first(high, lanes) & ~h.first(low, lanes)
            target = h.offset(to, (K.index - tap) * pitch + column * t.bytes)
            with h.branch(step_w == t.bytes) as B:
                with h.loop(0, channels, carry=[target, h.offset(row, w * g["x_w"])]) as L:
                    into, at = L.carry
                    h.store(into, h.load(at, t, lanes, mask), here)
                    L.carry = [h.offset(into, taps * pitch), h.offset(at, g["x_c"])]
                B.otherwise()
                offsets = h.splat(w * g["x_w"], lanes) + h.iota(I64, lanes) * step_w
                with h.loop(0, channels, carry=[target, row]) as L:
                    into, at = L.carry
                    h.store(into, h.gather_at(at, offsets, t, mask), here)
                    L.carry = [h.offset(into, taps * pitch), h.offset(at, g["x_c"])]
            turn_w = kw + 1 == g["kw"]
            turn_h = turn_w & (kh + 1 == g["kh"])
            zero = h.i64(0)
            K.carry = [
                h.select(turn_h, kd + 1, kd),
                h.select(turn_h, zero, h.select(turn_w, kh + 1, kh)),
                h.select(turn_w, zero, kw + 1),
            ]
        C.carry = [column + run]
    return h


def _within(h: Function, i: Value, size: Value) -> Value:
    return (i >= 0) & (i < size)


@kernel
def conv(f: Function, dtype: str) -> None:
    """Output, or input's gradient, of a convolution; see :data:`CONV_ARGS`. The range counts image, group, m, n.

    Pointers: output, input, weights, bias and ``panel_product``.
    """
    t = TYPES[dtype]
    block = Block(f, t, f.data(4))
    unfold = _unfold(f, t)
    width, rows = block.width, block.shape.rows
    g = {name: f.size(i) for i, name in enumerate(CONV_ARGS)}
    buffer = f.scratch((K_BLOCK + block.lanes) * width * t.bytes)
    pitch = f.i64(width * t.bytes)
    taps, pixels = g["kd"] * g["kh"] * g["kw"], g["od"] * g["oh"] * g["ow"]
    mt, nt = (g["m"] + g["mc"] - 1) / g["mc"], (pixels + g["nc"] - 1) / g["nc"]
    packed = (g["packed"] & PACKED) != 0
    with f.loop(f.begin, f.end) as T:
        batch, inside = T.index / (mt * nt), T.index % (mt * nt)
        image, group = batch / g["groups"], batch % g["groups"]
        row, column = (inside / nt) * g["mc"], (inside % nt) * g["nc"]
        m, n = smaller(f, g["m"] - row, g["mc"]), smaller(f, pixels - column, g["nc"])
        x = f.offset(f.data(1), image * g["x_n"] + group * g["x_g"])
        a_row = f.select(packed, row / rows * g["a_tile"], row * g["a_m"])
        a = f.offset(f.data(2), group * g["a_g"] + a_row)
        c = f.offset(f.data(0), image * g["c_n"] + group * g["c_g"] + row * g["c_m"] + column * t.bytes)
        d = f.offset(f.data(3), group * g["d_g"] + row * g["d_m"])
        with f.when(g["init"] == 2):
            spread(f, t, c, g["c_m"], d, g["d_m"], m, n)
        block.context.set(a_m=g["a_m"], a_k=g["a_k"], b_k=pitch)
        block.context.set(a_tile=f.select(packed, g["a_tile"], g["a_m"] * rows))
        with f.loop(0, g["channels"], g["cc"]) as C, f.loop(0, taps, g["tt"]) as K:
            channels, some = smaller(f, g["channels"] - C.index, g["cc"]), smaller(f, taps - K.index, g["tt"])
            block.context.set(k=channels * some)
            at_a = f.offset(a, (C.index * taps + K.index) * g["a_k"])
            at_x = f.offset(x, C.index * g["x_c"])
            block.set_c((C.index == 0) & (K.index == 0), g["init"], c, g["c_m"], d, g["d_m"])
            with f.loop(0, n, width) as P:
                columns = smaller(f, n - P.index, width)
                f.call(unfold, f.arg, buffer, pitch, at_x, column + P.index, columns, K.index, some, channels)
                block.multiply(at_a, buffer, P.index, columns, m, packed.to(I64))


@kernel
def conv_weight(f: Function, dtype: str) -> None:
    """Gradient of a convolution's weights; see :data:`WEIGHT_ARGS`. The range counts its tasks.

    Pointers: result, input, gradient and ``panel_product``.
    """
    t = TYPES[dtype]
    block = Block(f, t, f.data(3))
    unfold, pack_transposed = _unfold(f, t), pack_transpose(f, t, block.shape.vectors)
    width, rows = block.width, block.shape.rows
    g = {name: f.size(i) for i, name in enumerate(WEIGHT_ARGS)}
    buffer = f.scratch((UNFOLD_PIXELS + block.lanes) * width * t.bytes)
    slab = f.scratch(UNFOLD_ROWS * (UNFOLD_PIXELS + block.lanes) * t.bytes)
    pitch = f.i64((UNFOLD_PIXELS + block.lanes) * t.bytes)  # plus one vector: power-of-two rows share cache sets
    taps, pixels = g["kd"] * g["kh"] * g["kw"], g["od"] * g["oh"] * g["ow"]
    ct, tt = (g["channels"] + g["cc"] - 1) / g["cc"], (taps + g["tt"] - 1) / g["tt"]
    nt = (g["m"] + g["nc"] - 1) / g["nc"]
    none = f.i64(0)
    block.context.set(a_m=pitch, a_k=f.i64(t.bytes), a_tile=pitch * rows, b_k=f.i64(width * t.bytes))
    with f.loop(f.begin, f.end) as T:
        rest, column = T.index / nt, (T.index % nt) * g["nc"]
        rest, tap = rest / tt, (rest % tt) * g["tt"]
        rest, channel = rest / ct, (rest % ct) * g["cc"]
        part, group = rest / g["groups"], rest % g["groups"]
        some, channels = smaller(f, taps - tap, g["tt"]), smaller(f, g["channels"] - channel, g["cc"])
        n = smaller(f, g["m"] - column, g["nc"])
        x = f.offset(f.data(1), group * g["x_g"] + channel * g["x_c"])
        grad = f.offset(f.data(2), group * g["g_g"] + column * g["g_m"])
        c = f.offset(
            f.data(0), part * g["c_p"] + group * g["c_g"] + (channel * taps + tap) * g["c_r"] + column * t.bytes
        )
        first = part * g["run"]
        with f.loop(first, smaller(f, first + g["run"], g["images"])) as I, f.loop(0, pixels, g["pixels"]) as K:
            depth = smaller(f, pixels - K.index, g["pixels"])
            block.context.set(k=depth)
            block.set_c((I.index == first) & (K.index == 0), none, c, g["c_r"], c, none)
            at_x = f.offset(x, I.index * g["x_n"])
            f.call(unfold, f.arg, slab, pitch, at_x, K.index, depth, tap, some, channels)
            at_g = f.offset(grad, I.index * g["g_n"] + K.index * t.bytes)
            with f.loop(0, n, width) as P:
                columns = smaller(f, n - P.index, width)
                f.call(pack_transposed, buffer, f.offset(at_g, P.index * g["g_m"]), g["g_m"], depth, columns)
                block.multiply(slab, buffer, P.index, columns, channels * some, none)


@kernel
def interleave(f: Function, dtype: str) -> None:
    """Rows from their even columns and their odd columns, which are contiguous; see :data:`INTERLEAVE_ARGS`.

    Pointers: result, even and odd columns. The range counts planes.
    """
    t = TYPES[dtype]
    depth, height, width, y_c, y_d, y_h = (f.size(i) for i in range(len(INTERLEAVE_ARGS)))
    lanes = f.lanes(t)
    counts = (width + 1) / 2, width / 2
    order = [i // 2 + lanes * (i % 2) for i in range(2 * lanes)]
    with f.loop(f.begin, f.end) as T:
        plane = f.offset(f.data(0), T.index / depth * y_c + T.index % depth * y_d)
        sources = [f.offset(f.data(1 + i), T.index * height * count * t.bytes) for i, count in enumerate(counts)]
        with f.loop(0, height, carry=[plane, *sources]) as Y:
            to, *rows = Y.carry
            with f.loop(0, counts[0], lanes) as X:
                at = X.index * t.bytes
                both = [
                    f.load(f.offset(row, at), t, lanes, f.first(count - X.index, lanes))
                    for row, count in zip(rows, counts, strict=True)
                ]
                for i in range(2):
                    start = X.index * 2 + i * lanes
                    mixed = both[0].shuffle(order[i * lanes : (i + 1) * lanes], both[1])
                    f.store(f.offset(to, start * t.bytes), mixed, f.first(width - start, lanes))
            ends = [f.offset(row, count * t.bytes) for row, count in zip(rows, counts, strict=True)]
            Y.carry = [f.offset(to, y_h), *ends]
