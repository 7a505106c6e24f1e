"""Pooling of images with channels last: vectors hold neighbouring channels of one pixel, and images are read in place.

Half precision is computed in float32. The loops leave out the parts of a window outside the image.
"""

from __future__ import annotations

from .build import kernel
from .ir import I32, I64, Function, Value
from .pointwise import WORKING, part, to_type
from .pool import POOL_ARGS, _Axis, larger, lowest
from .tile import smaller

#: The arguments of :mod:`taeda.kernels.pool`, then the number of channels.
POOL_LAST_ARGS = (*POOL_ARGS, "c")

AT_ONCE = 4  # vectors of channels that share the look-up of a window's taps


@kernel
def pool_last(f: Function, dtype: str, kind: str, plain: bool) -> None:
    """``kind`` is ``max``, ``argmax`` (with the int64 index in the plane as second output) or ``sum``. The range counts
    rows.

    ``plain``: windows of a fixed size without gaps. For other windows the divisions for each pixel take longer than its
    16 channels.
    """
    stored, t = part(dtype), part(WORKING.get(dtype, dtype))
    lanes = f.lanes(t)
    g = {name: f.size(i) for i, name in enumerate(POOL_LAST_ARGS)}
    source = f.data(2 if kind == "argmax" else 1)
    pixel = g["c"] * stored.bytes
    image = g["id"] * g["ih"] * g["iw"] * pixel

    def window(at: Value, axes: tuple[_Axis, ...], channel: Value, count: int, mask: Value | None, to: Value) -> None:
        d, h, w = axes
        start = f.const(t, 0, lanes) if kind == "sum" else lowest(f, t, lanes)
        first = ((d.at(d.first) * g["ih"] + h.at(h.first)) * g["iw"] + w.at(w.first)).to(I32)
        carry = [start] * count + ([f.splat(first, lanes)] * count if kind == "argmax" else [])
        at = f.offset(at, channel * stored.bytes)
        with f.loop(d.first, d.last, carry=carry) as D:
            with f.loop(h.first, h.last, carry=D.carry) as H:
                line = (d.at(D.index) * g["ih"] + h.at(H.index)) * g["iw"]
                with f.loop(w.first, w.last, carry=H.carry) as W:
                    place = line + w.at(W.index)
                    here, values, indices = f.offset(at, place * pixel), [], []
                    for i in range(count):
                        x = to_type(f.load(f.offset(here, i * lanes * stored.bytes), stored, lanes, mask), t)
                        best = W.carry[i]
                        if kind == "sum":
                            values.append(best + x)
                            continue
                        better = (x > best) | (x != x) if t.kind == "f" else x > best  # NaN wins
                        values.append(f.select(better, x, best))
                        if kind == "argmax":
                            indices.append(f.select(better, f.splat(place.to(I32), lanes), W.carry[count + i]))
                    W.carry = (*values, *indices)
                H.carry = W.carry
            D.carry = H.carry
        extent = w.extent * (d.extent * h.extent)
        divide = f.select(g["divide"] > 0, g["divide"], extent).to(t)
        for i in range(count):
            element, value = to + (channel + i * lanes), D.carry[i]
            if kind == "sum" and t.kind == "f":
                value = value / divide
            f.store(f.offset(f.data(0), element * stored.bytes), to_type(value, stored), mask)
            if kind == "argmax":
                f.store(f.offset(f.data(1), element * 8), D.carry[count + i].to(I64), mask)

    with f.loop(f.begin, f.end) as R:
        oh, rest = R.index % g["oh"], R.index / g["oh"]
        at = f.offset(source, rest / g["od"] * image)
        d, h = _Axis(f, g, "d", rest % g["od"], plain), _Axis(f, g, "h", oh, plain)
        with f.loop(0, g["ow"]) as X:
            w, to = _Axis(f, g, "w", X.index, plain), (R.index * g["ow"] + X.index) * g["c"]
            for c, count, mask in f.strips(0, g["c"], lanes, AT_ONCE):
                window(at, (d, h, w), c, count, mask, to)


@kernel
def pool_back_last(f: Function, dtype: str, kind: str) -> None:
    """The gradient that every input gets from the windows that contain it. Dilation 1, windows of a fixed size. The
    range counts input rows.

    ``kind`` is ``sum``, or ``argmax`` where a window's gradient goes to the one input that its index (third pointer)
    names.
    """
    stored, t = part(dtype), part(WORKING.get(dtype, dtype))
    lanes = f.lanes(t)
    g = {name: f.size(i) for i, name in enumerate(POOL_LAST_ARGS)}
    outputs = g["od"] * g["oh"] * g["ow"]

    def windows(name: str, i: Value) -> tuple[Value, Value]:
        """The first window that contains ``i``, and the end of them."""
        place, stride = i + g["p" + name], g["s" + name]
        first = larger(f, place - g["k" + name], -1) + 1  # the first window that does not end before it
        return (first + (stride - 1)) / stride, smaller(f, place / stride + 1, g["o" + name])

    def gather(
        near: tuple, channel: Value, count: int, mask: Value | None, image: Value, own: Value, to: Value
    ) -> None:
        (d, d_end), (h, h_end), (w, w_end) = near
        mine = f.splat(own, lanes)
        with f.loop(d, d_end, carry=[f.const(t, 0, lanes)] * count) as D:
            with f.loop(h, h_end, carry=D.carry) as H:
                line = image * outputs + (D.index * g["oh"] + H.index) * g["ow"]
                with f.loop(w, w_end, carry=H.carry) as W:
                    sums = []
                    for i in range(count):
                        element = (line + W.index) * g["c"] + (channel + i * lanes)
                        takes = mask
                        if kind == "argmax":
                            index = f.load(f.offset(f.data(2), element * 8), I64, lanes, mask)
                            takes = index == mine if mask is None else (index == mine) & mask
                        x = f.load(f.offset(f.data(1), element * stored.bytes), stored, lanes, takes)
                        sums.append(W.carry[i] + to_type(x, t))
                    W.carry = tuple(sums)
                H.carry = W.carry
            D.carry = H.carry
        for i in range(count):
            element = to + (channel + i * lanes)
            f.store(f.offset(f.data(0), element * stored.bytes), to_type(D.carry[i], stored), mask)

    with f.loop(f.begin, f.end) as R:
        y, rest = R.index % g["ih"], R.index / g["ih"]
        z, image = rest % g["id"], rest / g["id"]
        d, h = windows("d", z), windows("h", y)
        with f.loop(0, g["iw"]) as X:
            near, pixel = (d, h, windows("w", X.index)), R.index * g["iw"] + X.index
            own = (z * g["ih"] + y) * g["iw"] + X.index
            for c, count, mask in f.strips(0, g["c"], lanes, AT_ONCE):
                gather(near, c, count, mask, image, own, pixel * g["c"])
