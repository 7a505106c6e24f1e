"""Elements that are picked, or written, by tensors of places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core import bool_, float32, int8, int16, int32, int64, uint8
from ...ops import exchange
from ...ops.creation import zeros
from ...types import iinfo
from ..writer import Unsupported, Value, Writer, is_static
from .table import translates

_FAR = 2**63 - 1


@translates("operator.getitem")
def getitem(g: Writer, x: Any, index: Any) -> Any:
    if not isinstance(x, Value):
        return x[index]
    items = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(i, (list, np.ndarray)) for i in items):
        items = [g.constant(exchange.tensor(i)) if isinstance(i, (list, np.ndarray)) else i for i in items]
    items = [part for i in items for part in _expanded(g, i)]
    tensors = [isinstance(i, Value) and not i.is_size for i in items]
    rank = sum(i is not None and i is not Ellipsis for i in items)
    place = next((k for k, i in enumerate(items) if i is Ellipsis), len(items))
    items[place : place + 1] = [slice(None)] * (x.rank - rank)
    made, advanced = _basic(g, x, items)
    if not any(tensors):
        return made
    return index_by(g, made, advanced)


translates("basic_index")(lambda g, input, index: getitem(g, input, index))


def _basic(g: Writer, x: Value, items: list) -> tuple[Value, list]:
    """Apply the numbers, slices and None of an index, one for each dimension. Returns the rest, with None where nothing
    is left.
    """
    starts, ends, steps, axes, gone, added, left = [], [], [], [], [], [], []
    shape: list[Any] = []
    dim = 0
    for item in items:
        if item is None:
            added.append(len(left))
            left.append(None)
            shape.append(1)
            continue
        if isinstance(item, slice):
            if item != slice(None):
                step = 1 if item.step is None else item.step
                starts.append((0 if step > 0 else _FAR) if item.start is None else item.start)
                ends.append((_FAR if step > 0 else -_FAR) if item.stop is None else item.stop)
                steps.append(step)
                axes.append(dim)
            left.append(None)
            shape.append(x.shape[dim] if item == slice(None) else None)
        elif isinstance(item, Value) and not item.is_size:
            left.append(item)
            shape.append(x.shape[dim])
        else:
            starts.append(item)
            ends.append(_after(g, item))
            steps.append(1)
            axes.append(dim)
            gone.append(dim)
        dim += 1
    if axes:
        x = g.slice(x, starts, ends, axes, steps if any(s != 1 for s in steps) else None)
    x = g.Squeeze(x, gone) if gone else x
    x = g.Unsqueeze(x, added) if added else x
    if axes or added:
        x.shape = tuple(shape)
    return x, left


def _after(g: Writer, place: Any) -> Any:
    if isinstance(place, Value):
        made = g.Where(g.Equal(place, -1), g.constant(_FAR), g.Add(place, 1), dtype=int64)
        made.is_size = True
        return made
    return _FAR if place == -1 else place + 1


@translates("Tensor.index")
def index(g: Writer, input: Value, indices: Sequence) -> Value:
    return index_by(g, input, indices)


def index_by(g: Writer, x: Value, indices: Sequence) -> Value:
    """``x`` with some dimensions indexed by tensors."""
    indices = [part for i in indices for part in _expanded(g, i)]
    dims = [d for d, i in enumerate(indices) if i is not None]
    given = [_places(g, indices[d]) for d in dims]
    if len(dims) == 1:
        return g.Gather(x, given[0], axis=dims[0])
    rest = [d for d in range(x.rank) if d not in dims]
    stacked, rank = _stacked(g, given)
    made = g.GatherND(g.transpose(x, [*dims, *rest]), stacked)
    made.shape = [None] * (rank + len(rest))
    if dims != list(range(dims[0], dims[-1] + 1)) or not dims[0]:
        return made
    return g.transpose(made, [*range(rank, rank + dims[0]), *range(rank), *range(rank + dims[0], made.rank)])


def _places(g: Writer, index: Value) -> Value:
    return g.cast(index, int64)


def _is_mask(x: Any) -> bool:
    return isinstance(x, Value) and not x.is_size and x.dtype in (bool_, uint8)


def _expanded(g: Writer, index: Any) -> list:
    """A mask as the places of its true elements, one tensor for each of its dimensions; another index as it is."""
    if not _is_mask(index):
        return [index]
    if not index.rank:
        raise Unsupported("an index by a truth value; use where")
    places = g.NonZero(g.cast(index, bool_))
    return [g.Gather(places, g.constant(i), axis=0, shape=(None,)) for i in range(index.rank)]


def _stacked(g: Writer, given: list[Value]) -> tuple[Value, int]:
    """Tensors of places, broadcast, with a last dimension that numbers them; and the rank of the broadcast tensors."""
    rank = max(i.rank for i in given)
    if len({(i.rank, str(i.shape)) for i in given}) > 1:
        total = given[0]
        for i in given[1:]:
            total = g.Add(total, i)
        shape = g.Shape(total)
        given = [g.Expand(i, shape) for i in given]
    return g.Concat(*(g.Unsqueeze(i, [-1]) for i in given), axis=-1), rank


@translates("index_put")
def index_put(g: Writer, input: Value, indices: Sequence, values: Value, accumulate: bool = False) -> Value:
    one = is_static(values.shape) and math.prod(map(int, values.shape)) == 1
    if one and _is_mask(indices[0]) and all(i is None for i in indices[1:]):
        return _put_mask(g, input, indices[0], values, accumulate)
    indices = [part for i in indices for part in _expanded(g, i)]
    dims = [d for d, i in enumerate(indices) if i is not None]
    given = [_places(g, indices[d]) for d in dims]
    rest = [d for d in range(input.rank) if d not in dims]
    stacked, rank = _stacked(g, given)
    order = [*dims, *rest]
    x = g.transpose(input, order)
    adjacent = dims == list(range(dims[0], dims[-1] + 1))
    before = dims[0] if adjacent else 0
    tail = g.Gather(g.Shape(x), g.constant(list(range(len(dims), input.rank))))
    outer = g.slice(g.Shape(stacked), [0], [-1], [0])
    values = g.cast(values, input.dtype)
    if before and values.rank > len(rest) - before:  # their dimensions before the places' go after them
        whole = rank + len(rest)
        values = g.unsqueeze(values, list(range(whole - values.rank)))
        values = g.transpose(values, [*range(before, before + rank), *range(before), *range(before + rank, whole)])
    elif before:
        pass  # broadcasting over the dimensions before does it
    updates = g.Expand(values, g.Concat(outer, tail, axis=0) if rest else outer)
    made = g.ScatterND(x, stacked, updates, reduction="add" if accumulate else None, shape=x.shape)
    return g.transpose(made, [order.index(d) for d in range(input.rank)])


def _put_mask(g: Writer, x: Value, mask: Value, values: Value, accumulate: bool) -> Value:
    """One number written where the mask, of the first dimensions, is true."""
    mask = g.cast(g.unsqueeze(mask, list(range(mask.rank, x.rank))), bool_)
    value = g.cast(g.reshape(values, ()), x.dtype)
    return g.Where(mask, g.Add(x, value) if accumulate else value, x, dtype=x.dtype)


# ---- along one dimension ---------------------------------------------------------------------------------------------


@translates("index_select")
def index_select(g: Writer, input: Value, dim: int, index: Value) -> Value:
    places = index if index.rank else g.unsqueeze(index, [0])
    if not input.rank:
        return g.Squeeze(g.Gather(g.unsqueeze(input, [0]), places, axis=0), [0])
    return g.Gather(input, places, axis=dim)


translates("embedding")(lambda g, weight, indices, *options, **more: g.Gather(weight, indices, axis=0))


@translates("gather")
def gather(g: Writer, input: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Value:
    if not input.rank or not index.rank:
        line = input if input.rank else g.unsqueeze(input, [0])
        places = index if index.rank else g.unsqueeze(index, [0])
        made = g.GatherElements(line, g.cast(places, int64), axis=0)
        return made if index.rank else g.Squeeze(made, [0])
    if is_static(index.shape) and 0 in tuple(map(int, index.shape)):
        return g.Expand(g.constant(0, input.dtype), g.ints(index.shape))
    return g.GatherElements(_cut(g, input, index.shape, dim), g.cast(index, int64), axis=dim)


@translates("take_along_dim")
def take_along_dim(g: Writer, input: Value, indices: Value, dim: int | None = None) -> Value:
    if dim is None:
        return g.GatherElements(g.Reshape(input, [-1]), g.Reshape(indices, [-1]), axis=0)
    at = dim % input.rank
    one = g.slice(input, [0], [1], [at]), g.slice(indices, [0], [1], [at])
    shape = g.Shape(g.Add(*(g.Mul(g.cast(x, float32), 0.0) for x in one)))
    before, after = g.slice(shape, [0], [at], [0]), g.slice(shape, [at + 1], [_FAR], [0])
    x, places = (
        g.Expand(v, g.Concat(before, g.Shape(v, start=at, end=at + 1), after, axis=0)) for v in (input, indices)
    )
    return g.GatherElements(x, places, axis=at)


def _cut(g: Writer, x: Value, shape: Sequence, dim: int | None = None) -> Value:
    """``x`` with no more elements than ``shape`` along each dimension but ``dim``."""
    axes = [
        d for d in range(x.rank) if (dim is None or d != dim % x.rank) and str(x.shape[d]) != str(shape[d])
    ]  # fmt: skip
    if not axes:
        return x
    if not is_static([shape[d] for d in axes]):
        raise Unsupported("gather or scatter of sizes that are not fixed; expand the index to them")
    made = g.slice(x, [0] * len(axes), [int(shape[d]) for d in axes], axes)
    made.shape = [shape[d] if d in axes else n for d, n in enumerate(x.shape)]
    return made


def scattered(g: Writer, x: Value, dim: int, index: Value, src: Any, reduction: str | None = None) -> Value:
    """``x`` with ``src`` at places along ``dim``, combined by ``reduction`` where there is one."""
    if reduction in ("max", "min") and g.opset < 18:
        raise Unsupported("ScatterElements has max and min from opset 18 on; pass opset_version=18")
    flat = not x.rank
    if flat or not index.rank:
        x = g.unsqueeze(x, [0]) if flat else x
        index = index if index.rank else g.unsqueeze(index, [0])
    if not isinstance(src, Value) or (src.rank == 0 and not flat):
        src = g.Expand(g.cast(src, x.dtype), g.sizes_of(index))
    else:
        src = g.unsqueeze(src, [0]) if not src.rank else _cut(g, src, index.shape)
    given = (g.cast(x, int32), g.cast(src, int32)) if _is_small(x, reduction) else (x, src)
    made = g.ScatterElements(given[0], g.cast(index, int64), given[1], axis=dim, reduction=reduction)
    return g.Squeeze(made, [0]) if flat else made


def _is_small(x: Value, reduction: str | None) -> bool:
    return reduction is not None and x.dtype in (bool_, int8, uint8, int16)


@translates("scatter")
def scatter(
    g: Writer, input: Value, dim: int, index: Value, src: Any = None, *, reduce: Any = None, value: Any = None
) -> Value:
    kind = {"add": "add", "multiply": "mul", None: None}[reduce]
    return scattered(g, input, dim, index, value if src is None else src, kind)


translates("scatter_add")(lambda g, input, dim, index, src: scattered(g, input, dim, index, src, "add"))


_NEUTRAL = {"sum": 0, "mean": 0, "prod": 1, "amax": -math.inf, "amin": math.inf}
_REDUCTIONS = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}


@translates("scatter_reduce")
def scatter_reduce(
    g: Writer, input: Value, dim: int, index: Value, src: Value, reduce: str, *, include_self: bool = True
) -> Value:
    x, kind = input, _REDUCTIONS[reduce]
    if not include_self:
        neutral = _NEUTRAL[reduce]
        if math.isinf(neutral) and not x.dtype.is_floating_point:
            info = iinfo(x.dtype)
            neutral = info.min if neutral < 0 else info.max
        x = scattered(g, x, dim, index, neutral)
        x.shape = input.shape
    made = scattered(g, x, dim, index, src, kind)
    if reduce != "mean":
        return made
    ones = g.Expand(g.constant(1, int64), g.sizes_of(input))
    ones.shape = input.shape
    base = ones if include_self else scattered(g, ones, dim, index, 0)
    base.shape = input.shape
    count = g.Max(scattered(g, base, dim, index, 1, "add"), 1)
    made = g.Div(made, g.cast(count, made.dtype))
    return made if made.dtype.is_floating_point else g.Floor(made)


def _spread(g: Writer, x: Value, dim: int, index: Value) -> tuple[Value, int]:
    """A line of places as an index of the rank of ``x``, the sizes of a source along ``dim``."""
    dim = dim % max(x.rank, 1)
    index = index if index.rank else g.unsqueeze(index, [0])
    if x.rank <= 1:
        return index, dim
    shape = [1] * x.rank
    shape[dim] = index.shape[0]
    line = g.reshape(index, shape)
    sizes = [index.shape[0] if d == dim else n for d, n in enumerate(x.shape)]
    return g.expand(line, sizes, [g.size(index, 0) if d == dim else g.size(x, d) for d in range(x.rank)]), dim


@translates("index_add")
def index_add(g: Writer, input: Value, dim: int, index: Value, source: Value, *, alpha: Any = 1) -> Value:
    places, dim = _spread(g, input, dim, index)
    source = g.cast(source, input.dtype)
    shape = source.shape
    source = source if alpha == 1 else g.Mul(source, g.cast(alpha, input.dtype))
    source.shape = shape
    return scattered(g, input, dim, places, source, "add")


@translates("index_copy")
def index_copy(g: Writer, input: Value, dim: int, index: Value, source: Value) -> Value:
    places, dim = _spread(g, input, dim, index)
    return scattered(g, input, dim, places, source)


@translates("index_fill")
def index_fill(g: Writer, input: Value, dim: int, index: Value, value: Any) -> Value:
    places, dim = _spread(g, input, dim, index)
    return scattered(g, input, dim, places, value)


@translates("index_reduce")
def index_reduce(
    g: Writer, input: Value, dim: int, index: Value, source: Value, reduce: str, *, include_self: bool = True
) -> Value:
    places, dim = _spread(g, input, dim, index)
    return scatter_reduce(g, input, dim, places, source, reduce, include_self=include_self)


@translates("nonzero argwhere")
def nonzero(g: Writer, input: Value, *, as_tuple: bool = False) -> Value:
    return g.Transpose(g.NonZero(input), perm=[1, 0])


@translates("nonzero_static")
def nonzero_static(g: Writer, input: Value, *, size: int, fill_value: int = -1) -> Value:
    """The first rows, and as many more as there may be missing."""
    if not input.rank:
        return g.constant(zeros(size, 0, dtype=int64))
    rest = g.Expand(fill_value, [size, input.rank])
    return g.slice(g.Concat(nonzero(g, input), rest, axis=0), [0], [size], [0])
