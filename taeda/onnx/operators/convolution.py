"""ONNX's convolutions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import taeda.nn.functional as F

from ..._typed import Tensor
from ...ops.creation import arange
from ...ops.joining import cat, stack
from ..table import op
from ..values import integers
from .windows import Windows

_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def _of_rank(functions: dict, n: int):
    if n not in functions:
        raise NotImplementedError(f"expected 1 to 3 spatial dimensions, got {n}")
    return functions[n]


@op("Conv")
def conv(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, group: int = 1, kernel_shape: list[int] | None = None,
    **attributes: Any,
) -> Tensor:  # fmt: skip
    windows = Windows.of(x, list(weight.shape[2:]), **attributes)
    function = _of_rank(_CONV, len(windows.kernel))
    if windows.symmetric():
        padding = windows.before
    else:
        x, padding = windows.pad(x), [0] * len(windows.kernel)
    return function(x, weight, bias, windows.strides, padding, windows.dilations, group)


@op("ConvTranspose")
def conv_transpose(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, auto_pad: str = "NOTSET",
    dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None,
    output_padding: list[int] | None = None, output_shape: list[int] | None = None, pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:  # fmt: skip
    """The whole result, then cut or filled up at both ends."""
    n = weight.ndim - 2
    strides, dilations, extra = strides or [1] * n, dilations or [1] * n, output_padding or [0] * n
    cuts = list(pads or [0] * 2 * n)
    spans = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilations, strict=True)]
    for i in range(n):
        full = (x.shape[2 + i] - 1) * strides[i] + spans[i] + extra[i]
        if output_shape or auto_pad.startswith("SAME"):
            wanted = output_shape[i - n] if output_shape else x.shape[2 + i] * strides[i]
            total = full - wanted
            half = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
            cuts[i], cuts[n + i] = (half, total - half) if total > 0 else (0, total)
    y = _of_rank(_TRANSPOSED, n)(x, weight, bias, strides, 0, 0, group, dilations)
    for i in range(n):
        length = (x.shape[2 + i] - 1) * strides[i] + spans[i] + extra[i] - cuts[i] - cuts[n + i]
        behind = cuts[i] + length - y.shape[2 + i]
        if behind > 0:  # no window reaches there: the bias alone
            y = F.pad(y, [0, 0] * (n - 1 - i) + [0, behind])
            if bias is not None:
                y = cat([y.narrow(2 + i, 0, y.shape[2 + i] - behind), _biased(y, bias, 2 + i, behind)], 2 + i)
        y = y.narrow(2 + i, cuts[i], length)
    return y


def _biased(y: Tensor, bias: Tensor, dim: int, count: int) -> Tensor:
    sizes = [count if i == dim else n for i, n in enumerate(y.shape)]
    return bias.reshape(-1, *[1] * (y.ndim - 2)).expand(sizes)


@op("DeformConv")
def deform_conv(
    x: Tensor, weight: Tensor, offset: Tensor, bias: Tensor | None = None, mask: Tensor | None = None, *,
    group: int = 1, kernel_shape: list[int] | None = None, offset_group: int = 1, **attributes: Any,
) -> Tensor:  # fmt: skip
    """Each element of a window is read at its place plus an offset, by bilinear interpolation (Dai et al. 2017).

    In float64: of float32 places, those that are whole numbers are not exactly so.
    """
    dtype, (x, weight, offset) = x.dtype, (t.double() for t in (x, weight, offset))
    n, channels, height, width = x.shape
    w = Windows.of(x, list(weight.shape[2:]), **attributes)
    (rows, columns), taps = w.counts, math.prod(w.kernel)
    offset = offset.reshape(n, offset_group, taps, 2, rows, columns)
    samples = []
    for tap, (i, j) in enumerate(itertools.product(*map(range, w.kernel))):
        y = (arange(rows) * w.strides[0] - w.before[0] + i * w.dilations[0]).unsqueeze(1) + offset[:, :, tap, 0]
        z = arange(columns) * w.strides[1] - w.before[1] + j * w.dilations[1] + offset[:, :, tap, 1]
        grid = stack([(2 * z + 1) / width - 1, (2 * y + 1) / height - 1], -1).to(x.dtype)
        grouped = x.reshape(n * offset_group, -1, height, width)
        read = F.grid_sample(grouped, grid.flatten(0, 1), align_corners=False).unflatten(0, (n, offset_group))
        if mask is not None:
            read = read * mask.reshape(n, offset_group, 1, taps, rows, columns)[:, :, :, tap]
        samples.append(read.reshape(n, channels, rows, columns))
    patches = stack(samples, 2).reshape(n, group, -1, rows * columns)
    result = weight.reshape(group, weight.shape[0] // group, -1) @ patches
    result = result.reshape(n, -1, rows, columns)
    return (result if bias is None else result + bias.reshape(-1, 1, 1)).to(dtype)


@op("Col2Im")
def col2im(x: Tensor, image_shape: Tensor, block_shape: Tensor, **attributes: Any) -> Tensor:
    """Blocks, which are columns of ``x``, added where they lie in the image."""
    sizes, block = integers(image_shape), integers(block_shape)
    n, channels = x.shape[0], x.shape[1] // math.prod(block)
    image = x.new_zeros([n, channels, *sizes])
    w = Windows.of(image, block, **attributes)
    padded = w.pad(image)
    x = x.reshape(n, channels, math.prod(block), *w.counts)
    for tap, place in enumerate(itertools.product(*map(range, block))):
        index: list[slice] = [slice(None)] * 2
        for at, step, dilation, count in zip(place, w.strides, w.dilations, w.counts, strict=True):
            index.append(slice(at * dilation, at * dilation + (count - 1) * step + 1, step))
        padded = _added(padded, tuple(index), x[:, :, tap])
    return padded[(..., *(slice(b, b + size) for b, size in zip(w.before, sizes, strict=True)))]


def _added(x: Tensor, index: tuple, y: Tensor) -> Tensor:
    x = x.clone()
    x[index] += y
    return x
