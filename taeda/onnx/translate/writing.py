"""Views that are written, and other elements that are put at places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core import bool_, int64
from ..writer import Unsupported, Value, Writer, is_static
from .table import translates

_FAR = 2**63 - 1


def _written(g: Writer, x: Value, places: np.ndarray, src: Value) -> Value:
    """``x`` with ``src`` at places of its elements, counted in its memory."""
    if not is_static(x.shape):
        raise Unsupported("writing to a view of sizes that are not fixed; use where, cat or index_put")
    flat = g.Reshape(x, [-1])
    values = g.Reshape(g.Expand(g.cast(src, x.dtype), g.ints(places.shape)), [-1])
    made = g.ScatterElements(flat, g.constant(places.reshape(-1)), values, axis=0)
    return g.Reshape(made, g.sizes_of(x))


def _places_of(x: Value) -> np.ndarray:
    if not is_static(x.shape):
        raise Unsupported("writing to a view of sizes that are not fixed; use where, cat or index_put")
    return np.arange(math.prod(map(int, x.shape))).reshape([int(n) for n in x.shape])


def _sized(g: Writer, x: Value, dim: int) -> Value:
    n = g.size(x, dim)
    return n if isinstance(n, Value) else g.constant(n)


def _along(g: Writer, x: Value, src: Value, dim: int, places: Value) -> Value:
    """``x`` with ``src`` at places along ``dim``."""
    order = [dim, *(d for d in range(x.rank) if d != dim)]
    transposed = g.transpose(g.cast(src, x.dtype), order)
    made = g.ScatterND(g.transpose(x, order), g.Reshape(places, [-1, 1]), transposed, shape=[x.shape[d] for d in order])
    return g.transpose(made, [order.index(d) for d in range(x.rank)])


@translates("select_scatter Tensor.select_scatter")
def select_scatter(g: Writer, input: Value, src: Value, dim: int, index: Any) -> Value:
    dim = dim % input.rank
    if isinstance(index, Value):
        return _along(g, input, g.unsqueeze(src, [dim]), dim, index)
    value = g.unsqueeze(g.cast(src, input.dtype), [dim])
    after = [g.slice(input, [index + 1], [_FAR], [dim])] if index != -1 else []
    return g.Concat(g.slice(input, [0], [index], [dim]), value, *after, axis=dim)


@translates("slice_scatter Tensor.slice_scatter")
def slice_scatter(
    g: Writer, input: Value, src: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Value:
    dim = dim % input.rank
    ends = [x for x in (start, end) if x is not None]
    fixed = step == 1 and not any(isinstance(x, Value) for x in ends)
    if not fixed or (len(ends) == 2 and ((start < 0) != (end < 0) or start > end)):
        line = g.Range(g.constant(0), g.scalar(_sized(g, input, dim)), g.constant(1))
        places = g.slice(line, [0 if start is None else start], [_FAR if end is None else end], [0], [step])
        return _along(g, input, src, dim, places)
    parts = [g.cast(src, input.dtype)]
    if start not in (0, None):
        parts.insert(0, g.slice(input, [0], [start], [dim]))
    if end is not None and end < _FAR:
        parts.append(g.slice(input, [end], [_FAR], [dim]))
    return g.Concat(*parts, axis=dim) if len(parts) > 1 else parts[0]


@translates("as_strided_scatter Tensor.as_strided_scatter")
def as_strided_scatter(
    g: Writer, input: Value, src: Value, size: Sequence, stride: Sequence, storage_offset: Any = None
) -> Value:
    if not is_static((*size, *stride)):
        raise Unsupported("as_strided_scatter of sizes that are not fixed; use index_put")
    places = np.full([int(n) for n in size], int(storage_offset or 0), np.int64)
    for dim, (n, step) in enumerate(zip(size, stride, strict=True)):
        places += (np.arange(n) * step).reshape([-1] + [1] * (len(size) - dim - 1))
    return _written(g, input, places, src)


@translates("masked_scatter")
def masked_scatter(g: Writer, input: Value, mask: Value, source: Value) -> Value:
    """The place in the source is how many elements of the mask were true before."""
    sizes = g.Shape(g.Add(input, g.cast(mask, input.dtype))) if input.dtype is not bool_ else g.sizes_of(input)
    mask = g.Expand(g.cast(mask, bool_), sizes)
    count = g.CumSum(g.cast(g.Reshape(mask, [-1]), int64), g.constant(0))
    line = g.Reshape(source, [-1])
    last = g.Sub(g.Size(line), g.constant(1))
    places = g.Min(g.Max(g.Sub(count, g.constant(1)), g.constant(0)), last)
    return g.Where(mask, g.Reshape(g.Gather(line, places), sizes), input, dtype=input.dtype)


def _unpooled(count: int) -> None:
    @translates(f"nn.functional.max_unpool{count}d")
    def max_unpool(
        g: Writer, input: Value, indices: Value, kernel_size: Any, stride: Any = None, padding: Any = 0,
        output_size: Any = None,
    ) -> Value:  # fmt: skip
        if not is_static(g.result.shape[-count:]):
            raise Unsupported("max_unpool to sizes that are not fixed")
        lead = input.rank - count
        out = [int(n) for n in g.result.shape[-count:]]
        rows, places = (g.Reshape(x, [*([0] * lead), -1]) for x in (input, indices))
        shape = g.Concat(g.slice(g.Shape(input), [0], [lead], [0]), g.ints([math.prod(out)]), axis=0)
        zeros = g.Expand(g.constant(0, input.dtype), shape)
        made = g.ScatterElements(zeros, places, rows, axis=-1)
        return g.Reshape(made, [*([0] * lead), *out])


for _count in (1, 2, 3):
    _unpooled(_count)


@translates("max_pool2d_with_indices_backward")
def max_pool2d_with_indices_backward(
    g: Writer, grad_output: Value, input: Value, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool, indices: Value,
) -> Value:  # fmt: skip
    lead = [0] * (input.rank - 2)
    zeros = g.Reshape(g.Mul(input, 0.0), [*lead, -1])
    rows, places = (g.Reshape(x, [*lead, -1]) for x in (grad_output, indices))
    made = g.ScatterElements(zeros, places, rows, axis=-1, reduction="add")
    return g.Reshape(made, g.sizes_of(input))
