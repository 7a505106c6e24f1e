"""ONNX ops that ask for sizes, and that reshape, repeat, join, cut and pad tensors."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

import taeda
import taeda.nn.functional as F

from ..._typed import Tensor
from ..table import op
from ..values import DTYPES, integers

op("Identity")(lambda x: x)


@op("Shape")
def shape(x: Any, *, start: int = 0, end: int | None = None) -> Tensor:
    return taeda.tensor(list(x.shape)[start:end], dtype=taeda.int64)


op("Size")(lambda x: taeda.tensor(math.prod(x.shape), dtype=taeda.int64))


@op("Reshape", moves=True)
def reshape(x: Tensor, shape: Any, *, allowzero: int = 0) -> Tensor:
    """A size of 0 is the input's unless ``allowzero``."""
    sizes = integers(shape)
    return x.reshape([x.shape[i] if n == 0 and not allowzero else n for i, n in enumerate(sizes)])


@op("Flatten", moves=True)
def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    first = math.prod(x.shape[: axis if axis >= 0 else axis + x.ndim])
    return x.reshape(first, x.numel() // first if first else math.prod(x.shape[axis:]))


op("Transpose", moves=True)(lambda x, *, perm=None: x.permute(list(range(x.ndim))[::-1] if perm is None else perm))


@op("Squeeze", moves=True)
def squeeze(x: Tensor, axes: Any = None) -> Tensor:
    if axes is None:
        return x.squeeze()
    dims = integers(axes)
    wrong = [dim for dim in dims if x.shape[dim] != 1]
    if wrong:
        raise ValueError(f"expected dimensions of size 1 to squeeze, got axes {dims} of shape {list(x.shape)}")
    return x.squeeze(tuple(dims))


@op("Unsqueeze", moves=True)
def unsqueeze(x: Tensor, axes: Any) -> Tensor:
    dims = integers(axes)
    for dim in sorted(dim % (x.ndim + len(dims)) for dim in dims):
        x = x.unsqueeze(dim)
    return x


op("Expand", moves=True)(lambda x, shape: taeda.broadcast_to(x, taeda.broadcast_shapes(x.shape, shape.tolist())))
op("Tile", 1)(lambda x, tiles, axis: taeda.cat([x] * int(tiles), int(axis)))
op("Tile", 6, moves=True)(lambda x, repeats: taeda.tile(x, tuple(repeats.tolist())))


@op("Concat")
def concat(*inputs: Any, axis: int = 1) -> Any:
    if isinstance(inputs[0], np.ndarray):
        return np.concatenate(inputs, axis)
    return taeda.cat(inputs, axis)


# ---- cutting ---------------------------------------------------------------------------------------------------------
@op("Split", outputs=True, moves=True)
def split(
    x: Tensor, sizes: Any = None, *, split: list[int] | None = None, axis: int = 0, num_outputs: int = 0, outputs: int
) -> tuple[Tensor, ...]:
    """Parts of ``sizes`` along ``axis``, or equal ones, of which the last may be smaller."""
    sizes = sizes if sizes is not None else split
    length = x.shape[axis]
    if sizes is None:
        each = -(-length // (num_outputs or outputs))
        starts = [min(i * each, length) for i in range((num_outputs or outputs) + 1)]
        sizes = [b - a for a, b in itertools.pairwise(starts)]
    return tuple(taeda.split(x, integers(sizes), axis))


def _slice(start: int, end: int, step: int, length: int) -> slice:
    """Python's slice for ONNX's, whose ends are clamped whatever the direction."""
    start, end = (start + length if start < 0 else start), (end + length if end < 0 else end)
    if step > 0:
        return slice(min(max(start, 0), length), min(max(end, 0), length), step)
    end = min(max(end, -1), length - 1)
    return slice(min(max(start, 0), length - 1), end if end >= 0 else None, step)


op("Slice", 1)(lambda x, *, starts, ends, axes=None: slice_(x, starts, ends, axes))


@op("Slice", 10, moves=True)
def slice_(x: Tensor, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Tensor:
    begins = integers(starts)
    dims = integers(axes) if axes is not None else list(range(len(begins)))
    strides = integers(steps) if steps is not None else [1] * len(begins)
    index = [slice(None)] * x.ndim
    for dim, start, end, step in zip(dims, begins, integers(ends), strides, strict=True):
        index[dim] = _slice(start, end, step, x.shape[dim]) if x.shape[dim] else slice(0, 0)
    return x[tuple(index)]


@op("CenterCropPad")
def center_crop_pad(x: Tensor, shape: Tensor, *, axes: list[int] | None = None) -> Tensor:
    dims = axes if axes is not None else range(x.ndim)
    for dim, wanted in zip(dims, shape.tolist(), strict=True):
        missing = wanted - x.shape[dim]
        if missing < 0:
            x = x.narrow(dim, -missing // 2, wanted)
        else:
            x = _padded(x, dim, missing // 2, missing - missing // 2, "constant", 0)
    return x


# ---- padding ---------------------------------------------------------------------------------------------------------
def _padded(x: Tensor, dim: int, before: int, after: int, mode: str, value: Any) -> Tensor:
    """``x`` with ``before`` and ``after`` more places along one dimension; negative numbers cut."""
    length = x.shape[dim]
    if mode == "constant":
        dim %= x.ndim
        return F.pad(x, [0, 0] * (x.ndim - 1 - dim) + [before, after], value=value) if before or after else x
    places = taeda.arange(-before, length + after)
    if mode == "edge":
        places = places.clamp(0, length - 1)
    elif mode == "wrap":
        places = places % length
    else:
        places = (places % max(2 * length - 2, 1)).minimum(-places % max(2 * length - 2, 1))
    return x.index_select(dim, places)


@op("Pad", 1)
def pad_1(x: Tensor, *, pads: Any = None, paddings: Any = None, mode: str = "constant", value: float = 0.0) -> Tensor:
    return pad(x, pads or paddings, value, mode=mode)


@op("Pad", 11)
def pad(x: Tensor, pads: Any, value: Any = None, axes: Any = None, *, mode: str = "constant") -> Tensor:
    dims = [dim % x.ndim for dim in integers(axes)] if axes is not None else list(range(x.ndim))
    numbers = integers(pads)
    if len(numbers) != 2 * len(dims):
        raise ValueError(f"expected {2 * len(dims)} numbers in pads, got {len(numbers)}")
    filler = 0 if value is None else value.item() if isinstance(value, Tensor) else value
    for dim, before, after in zip(dims, numbers, numbers[len(dims) :], strict=False):
        x = _padded(x, dim, before, after, mode, filler)
    return x


# ---- blocks of channels ----------------------------------------------------------------------------------------------
@op("DepthToSpace", moves=True)
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = x.shape
    b, depth = blocksize, c // blocksize**2
    if mode == "DCR":
        x = x.reshape(n, b, b, depth, h, w).permute(0, 3, 4, 1, 5, 2)
    else:
        x = x.reshape(n, depth, b, b, h, w).permute(0, 1, 4, 2, 5, 3)
    return x.reshape(n, depth, h * b, w * b)


@op("SpaceToDepth", moves=True)
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = x.shape
    b = blocksize
    parts = x.reshape(n, c, h // b, b, w // b, b)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return parts.permute(order).reshape(n, c * b * b, h // b, w // b)


# ---- made from numbers -----------------------------------------------------------------------------------------------
@op("Range")
def range_(start: Tensor, limit: Tensor, delta: Tensor, *, stash_type: int = 1) -> Tensor:
    first, step = start.item(), delta.item()
    count = max(math.ceil((limit.item() - first) / step), 0)
    return (taeda.arange(count) * step + first).to(start.dtype)


@op("EyeLike")
def eye_like(x: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    rows, columns = x.shape
    ones = taeda.arange(columns) - taeda.arange(rows).unsqueeze(1) == k
    return ones.to(DTYPES[dtype] if dtype else x.dtype)


op("Trilu")(lambda x, k=None, *, upper=1: (taeda.triu if upper else taeda.tril)(x, 0 if k is None else int(k)))


@op("OneHot")
def one_hot(places: Tensor, depth: Tensor, values: Tensor, *, axis: int = -1) -> Tensor:
    """Places outside of ``depth`` have no hot element; negative ones count from the end."""
    count = int(depth)
    places = places.to(taeda.int64)
    hot = taeda.where(places < 0, places + count, places).unsqueeze(-1) == taeda.arange(count)
    return taeda.where(hot, values[1], values[0]).movedim(-1, axis)
