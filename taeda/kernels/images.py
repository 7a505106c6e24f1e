"""Images transposed to ``[pixel, channel]`` and back, a panel of channels at a time, within kernels of convolution."""

from __future__ import annotations

from collections.abc import Callable

from . import packing
from .ir import Function, Helper, Type, Value
from .tile import smaller, tile_shape


def row_bytes(f: Function) -> int:
    """Bytes of one pixel of a panel."""
    return tile_shape(f.vector_bytes).vectors * f.vector_bytes


def to_channels(f: Function, t: Type) -> Helper:
    """``to_channels(to, x, x_c, pixels, channels)``: contiguous pixels of some channels to ``[pixel, channel]``.

    Channels up to the end of the panel are 0. Whole squares are written, so ``to`` has room for one more.
    """
    return packing.pack_transpose(f, t, tile_shape(f.vector_bytes).vectors)


def to_pixels(f: Function, t: Type, to: Type | None = None) -> Helper:
    """``to_pixels(y, y_c, from, pitch, pixels, channels)``: ``[pixel, channel]``, a row every ``pitch`` bytes, to
    images.

    Whole squares are read, so ``from`` has room for one more. The result may be of another type, ``to``.
    """
    return packing.transpose_out(f, t, to or t)


def each_image(f: Function, first: Value, rows: Value, down: Value, across: Value, fn: Callable) -> None:
    """``fn(image, its first row, rows, number of places before these)`` for ``rows`` of consecutive images.

    An image has ``down`` rows of ``across`` places: pixels, or tiles of them.
    """
    last = first + rows
    with f.while_([first]) as L:
        (row,) = L.carry
        L.test(row < last)
        image, inside = row / down, row % down
        count = smaller(f, down - inside, last - row)
        fn(image, inside, count, (row - first) * across)
        L.carry = (row + count,)
