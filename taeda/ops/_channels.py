"""Statistics, and what is made of them, per channel of memory that is ``[image, row, channel]``: see ``kernels.channel_norm``.

Statistics are ``[image, channel]``; batch norm takes a batch for one image.
"""

from __future__ import annotations

import functools

from .. import _core
from .._core import Tensor, empty, empty_like, launch
from .._core.machine import last_cache
from ..kernels import channel_norm as kernels
from ..kernels import target

#: Elements from which sums are taken by blocks of rows; below, columns of what is in the cache do.
LEAST = 1 << 17
#: Elements of an image for which a launch of its own is worth while.
LEAST_IMAGE = 1 << 14


def working(dtype):
    """What statistics are kept in."""
    return _core.float32 if dtype.itemsize == 2 else dtype


@functools.cache
def _cached() -> int:
    return last_cache() // 4 * 3


def _streams(x: Tensor, moved: int) -> bool:
    """Whether ``moved`` tensors like ``x`` would not stay in the cache, and results may be stored past it."""
    size = x.dtype.itemsize
    return x.numel() * size * moved > _cached() and size >= 4 and x.shape[-1] * size % 64 == 0


def _blocks(x: Tensor):
    """Sizes for the kernels that sum, and how many blocks there are."""
    images, rows, channels = x.shape
    most = kernels.rows_in_block(channels)
    blocks = -(-rows // most)
    return (rows, channels, most, blocks), images * blocks


def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and sum of squared differences from it, in float64."""
    images, _, channels = x.shape
    args, tasks = _blocks(x)
    states = empty((tasks, 3, channels), working(x.dtype))
    launch(kernels.channel_moments(x.dtype.name), (states, x), args, tasks, 1)
    mean, square = (empty((images, channels), _core.float64) for _ in range(2))
    lanes = max(target.host().vector_bytes // 8, 1)
    units = images * -(-channels // lanes)
    grain = max(1, 4096 // args[3])
    launch(kernels.channel_merge(x.dtype.name), (mean, square, states), args, units, grain)
    return mean, square


def products(g: Tensor, x: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of ``g * (x - mean)`` and of ``g``."""
    images, _, channels = x.shape
    args, tasks = _blocks(x)
    states = empty((images, args[3], 2, channels), working(x.dtype))
    launch(kernels.channel_gradients(x.dtype.name), (states, g, x, mean), args, tasks, 1)
    return tuple(states.sum(1).unbind(1))


def _apply(kernel, inputs, coefficients, last: bool) -> Tensor:
    x = inputs[0]
    images, rows, width = x.shape
    out = empty_like(x)
    size, item = x.dtype.itemsize, coefficients[0].dtype.itemsize
    every, one = (size, width * size), (item, 0) if last else (0, item)
    args = (width, rows, *every * (1 + len(inputs)), *one * len(coefficients))
    address = kernel(x.dtype.name, "c" if last else "s", _streams(x, 1 + len(inputs)))
    # One set of coefficients for all images, or one for each.
    columns = [c.contiguous() if c.dim() == 1 else c.contiguous().unbind(0) for c in coefficients]
    grain = max(1, 65536 // width)
    if images == 1:
        launch(address, (out, *inputs, *(c if isinstance(c, Tensor) else c[0] for c in columns)), args, rows, grain)
        return out
    for i, parts in enumerate(zip(out.unbind(0), *(t.unbind(0) for t in inputs), strict=True)):
        launch(address, (*parts, *(c if isinstance(c, Tensor) else c[i] for c in columns)), args, rows, grain)
    return out


def apply(x: Tensor, mean: Tensor, scale: Tensor, bias: Tensor, last: bool = True) -> Tensor:
    """``(x - mean) * scale + bias``; not ``last``: of ``[image, channel, position]``."""
    return _apply(kernels.channel_apply, (x,), (mean, scale, bias), last)


def apply_gradient(
    g: Tensor, x: Tensor, mean: Tensor, scale: Tensor, slope: Tensor, level: Tensor, last: bool = True
) -> Tensor:
    """``g * scale + (x - mean) * slope + level``."""
    return _apply(kernels.channel_apply_gradient, (g, x), (mean, scale, slope, level), last)
