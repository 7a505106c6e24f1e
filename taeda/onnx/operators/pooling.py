"""ONNX's pooling."""

from __future__ import annotations

import math
from math import inf
from typing import Any

import taeda.nn.functional as F

from ... import linalg
from ..._typed import Tensor
from ...ops import pointwise
from ...ops.creation import arange, zeros_like
from ...ops.joining import stack
from ...ops.reduction import amax, mean
from ...ops.scatter import scatter
from ..table import op
from ..values import integers
from .windows import Windows

_MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def _window_sums(x: Tensor, w: Windows) -> Tensor:
    """The sum of each window of ``x``, which is padded already."""
    flat = x.reshape(-1, 1, *x.shape[2:])
    sums = _CONV[len(w.kernel)](flat, flat.new_ones(1, 1, *w.kernel), None, w.strides, 0, w.dilations)
    return sums.reshape(*x.shape[:2], *sums.shape[2:])


@op("AveragePool")
def average_pool(
    x: Tensor, *, kernel_shape: list[int], ceil_mode: int = 0, count_include_pad: int = 0, **attributes: Any
) -> Tensor:
    """The mean of the elements in a window; places that ``ceil_mode`` adds never count."""
    w = Windows.of(x, kernel_shape, ceil_mode=ceil_mode, **attributes)
    n = len(kernel_shape)
    small = all(2 * b <= k for b, k in zip(w.before, kernel_shape, strict=True))
    if w.symmetric() and small and not ceil_mode and set(w.dilations) == {1}:
        return _AVERAGE[n](x, kernel_shape, w.strides, w.before, False, bool(count_include_pad))
    inside = x.new_ones(1, 1, *x.shape[2:])
    if count_include_pad:
        explicit = Windows.of(x, kernel_shape, **attributes)
        more = [a - b for a, b in zip(w.after, explicit.after, strict=True)]
        inside = w._replace(before=[0] * n, after=more).pad(explicit.pad(inside, 1.0))
    else:
        inside = w.pad(inside)
    return _window_sums(w.pad(x), w) / _window_sums(inside, w)


@op("LpPool")
def lp_pool(x: Tensor, *, kernel_shape: list[int], p: int = 2, **attributes: Any) -> Tensor:
    w = Windows.of(x, kernel_shape, **attributes)
    return _window_sums(w.pad(pointwise.abs(x) ** p), w) ** (1 / p)


@op("MaxPool", outputs=True)
def max_pool(x: Tensor, *, kernel_shape: list[int], outputs: int, storage_order: int = 0, **attributes: Any) -> Any:
    """The largest element of each window and, as the second output, its place in the whole of ``x``."""
    w = Windows.of(x, kernel_shape, **attributes)
    wide = x if x.is_floating_point() else x.float()
    padded = w.pad(wide, -inf)
    function = _MAX[len(kernel_shape)]
    if outputs < 2:
        return function(padded, kernel_shape, w.strides, 0, w.dilations).to(x.dtype)
    largest, places = function(padded, kernel_shape, w.strides, 0, w.dilations, return_indices=True)
    index, step = zeros_like(places), 1
    dims = range(len(kernel_shape))[::-1]
    found = {}
    for dim in dims:  # places are in the padded image, by rows
        found[dim] = places % padded.shape[2 + dim] - w.before[dim]
        places = places // padded.shape[2 + dim]
    for dim in reversed(dims) if storage_order else dims:
        index, step = index + found[dim] * step, step * x.shape[2 + dim]
    images = arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * len(kernel_shape))
    return largest.to(x.dtype), index + images * step


@op("MaxUnpool")
def max_unpool(
    x: Tensor, places: Tensor, output_shape: Tensor | None = None, *, kernel_shape: list[int],
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Tensor:  # fmt: skip
    """Zeros with the elements of ``x`` where they were found; a larger ``output_shape`` adds zeros behind."""
    n = len(kernel_shape)
    strides, pads = strides or [1] * n, pads or [0] * 2 * n
    sizes = [(x.shape[2 + i] - 1) * strides[i] + kernel_shape[i] - pads[i] - pads[n + i] for i in range(n)]
    flat = x.new_zeros(math.prod(x.shape[:2]) * math.prod(sizes))
    result = scatter(flat, 0, places.reshape(-1), x.reshape(-1)).reshape(*x.shape[:2], *sizes)
    if output_shape is not None:
        for i, wanted in enumerate(integers(output_shape)[2:]):
            result = F.pad(result, [0, 0] * (n - 1 - i) + [0, wanted - sizes[i]])
    return result


def _over_image(x: Tensor) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


op("GlobalAveragePool")(lambda x: mean(x, _over_image(x), keepdim=True))
op("GlobalMaxPool")(lambda x: amax(x, _over_image(x), keepdim=True))
op("GlobalLpPool")(lambda x, *, p=2: linalg.vector_norm(x, p, _over_image(x), keepdim=True))


@op("MaxRoiPool")
def max_roi_pool(x: Tensor, rois: Tensor, *, pooled_shape: list[int], spatial_scale: float = 1.0) -> Tensor:
    """The largest element of each cell of a grid over each region (Girshick 2015): (image, x1, y1, x2, y2)."""
    results = []
    height, width = x.shape[2:]
    for image, *box in rois.tolist():
        x1, y1, x2, y2 = (math.floor(v * spatial_scale + 0.5) for v in box)
        rows = _cells(y1, y2, pooled_shape[0], height)
        columns = _cells(x1, x2, pooled_shape[1], width)
        picture = x[int(image)]
        cells = [[_largest(picture[:, a:b, c:d]) for c, d in columns] for a, b in rows]
        results.append(stack([stack(row, -1) for row in cells], -2))
    return stack(results)


def _cells(first: int, last: int, count: int, length: int) -> list[tuple[int, int]]:
    size = max(last - first + 1, 1) / count
    starts = [min(max(math.floor(i * size) + first, 0), length) for i in range(count)]
    ends = [min(max(math.ceil((i + 1) * size) + first, 0), length) for i in range(count)]
    return list(zip(starts, ends, strict=True))


def _largest(cell: Tensor) -> Tensor:
    return amax(cell, (1, 2)) if cell.numel() else cell.new_zeros(cell.shape[0])
