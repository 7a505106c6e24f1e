"""ONNX ops that gather, scatter and select elements."""

from __future__ import annotations

import math

from ..._core import int64
from ..._typed import Tensor
from ...ops import scatter, sorting
from ...ops.creation import arange, full, zeros
from ...ops.indexing import nonzero, where
from ..table import op


def _wrapped(places: Tensor, length: int) -> Tensor:
    """Indices, of which negative ones count from the end."""
    places = places.to(int64)
    return where(places < 0, places + length, places)


@op("Gather", moves=True)
def gather(x: Tensor, places: Tensor, *, axis: int = 0) -> Tensor:
    axis %= x.ndim
    flat = x.index_select(axis, _wrapped(places, x.shape[axis]).reshape(-1))
    return flat.reshape([*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]])


@op("GatherElements", moves=True)
def gather_elements(x: Tensor, places: Tensor, *, axis: int = 0) -> Tensor:
    return scatter.gather(x, axis, _wrapped(places, x.shape[axis]))


@op("GatherND", moves=True)
def gather_nd(x: Tensor, places: Tensor, *, batch_dims: int = 0) -> Tensor:
    """``places`` holds indices of the leading dimensions of ``x`` in its last one, after ``batch_dims`` common ones."""
    index = []
    for dim in range(batch_dims):
        index.append(arange(x.shape[dim]).reshape(-1, *[1] * (places.ndim - 2 - dim)))
    index += list(places.to(int64).unbind(-1))
    return x[tuple(index)]


_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@op("Scatter ScatterElements")
def scatter_elements(x: Tensor, places: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none") -> Tensor:
    places = _wrapped(places, x.shape[axis])
    if reduction == "none":
        return scatter.scatter(x, axis, places, updates)
    return scatter.scatter_reduce(x, axis, places, updates, _REDUCTIONS[reduction])


@op("ScatterND")
def scatter_nd(x: Tensor, places: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    depth = places.shape[-1]
    inner = math.prod(x.shape[depth:])
    flat = zeros(places.shape[:-1], dtype=int64)
    for dim, part in enumerate(places.unbind(-1)):
        flat = flat * x.shape[dim] + _wrapped(part, x.shape[dim])
    rows = (flat.reshape(-1, 1) * inner + arange(inner)).reshape(-1)
    result = scatter_elements(x.reshape(-1), rows, updates.reshape(-1), axis=0, reduction=reduction)
    return result.reshape(x.shape)


@op("TensorScatter")
def tensor_scatter(
    cache: Tensor, update: Tensor, starts: Tensor | None = None, *, axis: int = -2, mode: str = "linear"
) -> Tensor:
    """``update`` written into ``cache`` along ``axis``, for each example from its own start on."""
    axis %= cache.ndim
    first = zeros(cache.shape[0], dtype=int64) if starts is None else starts
    rows = first.unsqueeze(1) + arange(update.shape[axis])
    if mode == "circular":
        rows = rows % cache.shape[axis]
    sizes = [1] * cache.ndim
    sizes[0], sizes[axis] = rows.shape
    return scatter.scatter(cache, axis, rows.reshape(sizes).expand(update.shape), update)


@op("Compress", moves=True)
def compress(x: Tensor, condition: Tensor, *, axis: int | None = None) -> Tensor:
    x = x.reshape(-1) if axis is None else x
    return x.index_select(axis or 0, nonzero(condition).reshape(-1))


op("NonZero")(lambda x: nonzero(x).T)


@op("ReverseSequence", moves=True)
def reverse_sequence(x: Tensor, lengths: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    """The first ``lengths[i]`` steps of each example in reverse."""
    steps = arange(x.shape[time_axis]).unsqueeze(1)
    places = where(steps < lengths, lengths - 1 - steps, steps)
    places = places if time_axis < batch_axis else places.T
    sizes = [n if dim in (batch_axis, time_axis) else 1 for dim, n in enumerate(x.shape)]
    return scatter.gather(x, time_axis, places.reshape(sizes).expand(x.shape))


@op("Unique")
def unique(x: Tensor, *, axis: int | None = None, sorted: int = 1) -> tuple[Tensor, ...]:
    """Values, the first place of each, where each element went, and how often each came."""
    values, inverse, counts = sorting.unique(x, return_inverse=True, return_counts=True, dim=axis)
    flat = inverse.reshape(-1)
    places = arange(flat.numel())
    first = scatter.scatter_reduce(full([counts.numel()], flat.numel()), 0, flat, places, "amin", include_self=True)
    if not sorted:  # in the order in which they come
        order = sorting.argsort(first)
        values, first, counts = values.index_select(axis or 0, order), first[order], counts[order]
        flat = sorting.argsort(order)[flat]
    return values, first, flat, counts
