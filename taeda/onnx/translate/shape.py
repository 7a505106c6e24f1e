"""Ops that change sizes, or the places of elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _core
from ..._core import bool_, int8, int16, int32, int64, uint8, uint16
from ..writer import Unsupported, Value, Writer, is_static
from .table import translates

_FAR = 2**63 - 1  # as an end: to the end


def flat(sizes: tuple) -> Sequence:
    """Sizes that come one by one, or as one sequence."""
    return sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes


def channels_first(g: Writer, x: Value, rank: int) -> Value:
    """A vector with a number for each channel, to be broadcast with tensors of ``rank`` dimensions."""
    return g.reshape(x, [1, x.shape[0]] + [1] * (rank - 2)) if rank > 1 else x


def static_size(x: Value, dim: int, what: str) -> int:
    """A size that must be known.

    Args:
        x: a value.
        dim: which of its sizes.
        what: of what it is, for messages.

    Returns:
        The size.

    Raises:
        Unsupported: it is not.
    """
    if not is_static(x.shape[dim : dim + 1] if dim >= 0 else [x.shape[dim]]):
        raise Unsupported(f"{what} needs size {dim} of its input to be fixed; leave it out of dynamic_shapes")
    return int(x.shape[dim])


@translates("reshape Tensor.view")
def reshape(g: Writer, input: Value, *given: Any, shape: Any = None, size: Any = None, dtype: Any = None) -> Value:
    if any(isinstance(n, _core.dtype) for n in given) or dtype is not None:
        raise Unsupported("view(dtype) reads memory as another dtype; use .to(dtype)")
    sizes = flat(given) if given else size if shape is None else shape
    return g.reshape(input, g.result.shape, sizes)


@translates("clone identity Tensor.contiguous detach resolved real conj conj_physical conjugated conjugated_view")
def same(g: Writer, input: Value, *args: Any, **options: Any) -> Value:
    if input.dtype.is_complex:
        raise Unsupported("ONNX's ops have no complex numbers; keep real and imaginary parts in a last dimension")
    return input


translates("copy")(lambda g, input, src, non_blocking=False: expand(g, g.cast(src, input.dtype), g.result.shape))
translates("Tensor.to Tensor.type Tensor.type_as")(lambda g, input, *args, **options: g.cast(input, g.result.dtype))
translates("permute")(lambda g, input, *given, dims=(): g.transpose(input, flat(given or (dims,))))


@translates("squeeze")
def squeeze(g: Writer, input: Value, dim: Any = None) -> Value:
    dims = range(input.rank) if dim is None else dim if isinstance(dim, (tuple, list)) else [dim]
    axes = sorted({d % input.rank for d in dims if input.rank and str(input.shape[d]) == "1"})
    return g.squeeze(input, axes)


translates("unsqueeze")(lambda g, input, dim: g.unsqueeze(input, [dim]))


@translates("expand")
def expand(g: Writer, input: Value, *given: Any, size: Any = (), implicit: bool = False) -> Value:
    return g.expand(input, g.result.shape, flat(given or (size,)))


@translates("repeat")
def repeat(g: Writer, input: Value, *given: Any, repeats: Any = ()) -> Value:
    times = flat(given or (repeats,))
    return g.Tile(g.unsqueeze(input, list(range(len(times) - input.rank))), g.ints(times))


@translates("cat")
def cat(g: Writer, tensors: Sequence[Value], dim: int = 0) -> Value:
    kept = [x for x in tensors if not (x.rank == 1 and is_static(x.shape) and x.shape[0] == 0)] or tensors[:1]
    return g.Concat(*(g.cast(x, g.result.dtype) for x in kept), axis=dim)


@translates("functional.split")
def split(g: Writer, tensor: Value, split_size_or_sections: Any = None, dim: int = 0, split_size: Any = None) -> tuple:
    split_size_or_sections = split_size if split_size_or_sections is None else split_size_or_sections
    if isinstance(split_size_or_sections, (list, tuple)):
        return g.split(tensor, split_size_or_sections, dim)
    if isinstance(split_size_or_sections, Value):
        raise Unsupported("split by a size that is not fixed; pass the sizes of the parts")
    size, dim = split_size_or_sections, dim % tensor.rank
    starts = [i * size for i in range(len(g.result))]
    return tuple(g.slice(tensor, [i], [i + size if i != starts[-1] else _FAR], [dim]) for i in starts)


translates("split_with_sizes")(lambda g, input, split_sizes, dim=0: g.split(input, split_sizes, dim))


@translates("select")
def select(g: Writer, input: Value, dim: int, index: Any) -> Value:
    return g.Gather(input, g.scalar(index) if isinstance(index, Value) else g.constant(int(index)), axis=dim)


@translates("diagonal")
def diagonal(g: Writer, input: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    rows, columns = (static_size(input, d, "diagonal") for d in (dim1, dim2))
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    rest = [d for d in range(input.rank) if d not in (dim1 % input.rank, dim2 % input.rank)]
    shape = [input.shape[d] for d in rest]
    x = g.transpose(input, [*rest, dim1, dim2])
    x = g.reshape(x, [*shape, rows * columns], [0] * len(rest) + [rows * columns])
    places = (np.arange(count) + max(-offset, 0)) * columns + np.arange(count) + max(offset, 0)
    return g.Gather(x, g.constant(places.astype(np.int64)), axis=len(rest))


@translates("flip")
def flip(g: Writer, input: Value, *given: Any, dims: Any = ()) -> Value:
    dims = flat(given or (dims,))
    if not dims or not input.rank:
        return input
    return g.slice(input, [-1] * len(dims), [-_FAR] * len(dims), dims, [-1] * len(dims))


@translates("Tensor.unfold")
def unfold(g: Writer, input: Value, dimension: int, size: int, step: int) -> Value:
    x = input if input.rank else g.unsqueeze(input, [0])
    dim = dimension % x.rank
    n = g.size(x, dim)
    if isinstance(n, Value):
        count: Any = None
        last = g.Squeeze(g.Add(g.Sub(n, size), 1), [0])
        starts = g.Range(0, last, step, dtype=int64)
        places = g.Add(g.Unsqueeze(starts, [1]), g.constant(list(range(size)), int64))
    else:
        count = (n - size) // step + 1
        places = g.constant((np.arange(count)[:, None] * step + np.arange(size)).astype(np.int64))
    made = g.Gather(x, places, axis=dim)
    made.shape = [*x.shape[:dim], count, size, *x.shape[dim + 1 :]]
    order = [*range(dim + 1), *range(dim + 2, made.rank), dim + 1]
    made = g.transpose(made, order)
    return made if input.rank else g.reshape(made, [size])


@translates("as_strided")
def as_strided(g: Writer, input: Value, size: Sequence, stride: Sequence, storage_offset: Any = None) -> Value:
    """The elements are named one by one, as if ``input`` were dense."""
    if not is_static((*size, *stride, *input.shape, storage_offset or 0)):
        raise Unsupported("as_strided of sizes that are not fixed; use slices and unfold")
    places = np.full(tuple(map(int, size)), int(storage_offset or 0), np.int64)
    for dim, (n, step) in enumerate(zip(size, stride, strict=True)):
        places += (np.arange(n) * step).reshape([-1] + [1] * (len(size) - dim - 1))
    if places.size and places.max() >= math.prod(input.shape):
        raise Unsupported("as_strided reads outside the tensor that it is given")
    return g.Gather(g.reshape(input, [math.prod(input.shape)]), g.constant(places), axis=0)


translates("tril")(lambda g, input, diagonal=0: _triangle(g, input, diagonal, 0))
translates("triu")(lambda g, input, diagonal=0: _triangle(g, input, diagonal, 1))


def _triangle(g: Writer, x: Value, diagonal: Any, upper: int) -> Value:
    narrow = x.dtype in (bool_, int8, uint8, int16)
    k = g.scalar(diagonal) if isinstance(diagonal, Value) else g.constant(int(diagonal))
    return g.Trilu(g.cast(x, int32) if narrow else x, k, upper=upper)


translates("constant_pad_nd")(lambda g, input, pad, value=0: padded(g, input, pad, "constant", value))


@translates("edge_pad")
def edge_pad(g: Writer, input: Value, pad: Sequence, mode: str) -> Value:
    return padded(g, input, pad, {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])


@translates("nn.functional.pad")
def pad(g: Writer, input: Value, pad: Sequence, mode: str = "constant", value: Any = None) -> Value:
    kind = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    return padded(g, input, pad, kind, value or 0)


def padded(g: Writer, x: Value, pad: Sequence, mode: str = "constant", value: Any = 0) -> Value:
    """``x`` with these numbers of elements before and after, the last dimension first."""
    count = len(pad) // 2
    before = [0] * (x.rank - count) + list(pad[0::2])[::-1]
    after = [0] * (x.rank - count) + list(pad[1::2])[::-1]
    if not any(isinstance(n, Value) or n for n in (*before, *after)):
        return x
    if mode != "constant" and any(n < 0 for n in (*before, *after)):
        more, less = [max(n, 0) for n in pad], [min(n, 0) for n in pad]
        if mode == "wrap":  # of what is left
            return padded(g, padded(g, x, less), more, mode)
        return padded(g, padded(g, x, more, mode), less)
    if mode == "wrap":
        return _wrapped(g, x, before, after)
    given = g.cast(x, int32) if x.dtype in (int16, uint16) else x
    shape: list[Any] = [None] * x.rank
    if is_static((*x.shape, *before, *after)):
        shape = [int(n) + b + a for n, b, a in zip(x.shape, before, after, strict=True)]
    fill = g.cast(value, given.dtype) if mode == "constant" else None
    return g.Pad(given, g.ints([*before, *after]), fill, mode=mode, shape=shape)


def _wrapped(g: Writer, x: Value, before: list, after: list) -> Value:
    """The padding on one side is copied from the other."""
    for dim, (n, m) in enumerate(zip(before, after, strict=True)):
        left = [g.slice(x, [-n], [_FAR], [dim])] if n else []
        right = [g.slice(x, [0], [m], [dim])] if m else []
        if left or right:
            x = g.Concat(*left, x, *right, axis=dim, shape=[None] * x.rank)
    return x
