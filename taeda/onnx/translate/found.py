"""Numbers, and sizes of results, that only a run finds: ``item``, ``nonzero``, masks, ``unique``, ``bincount``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._core import bool_, float32, float64, int64
from ..writer import Value, Writer
from .indexing import scattered
from .table import translates


@translates("step.item")
def item(g: Writer, x: Value) -> Value:
    """The element of a tensor as a number: an int64, float64 or bool tensor of one element."""
    dtype = x.dtype
    if dtype is not bool_:
        dtype = float64 if dtype.is_floating_point else int64
    made = g.cast(g.Reshape(x, [1], shape=(1,)), dtype)
    made.is_size = True
    return made


@translates("nonzero argwhere")
def nonzero(g: Writer, input: Value, *, as_tuple: bool = False, out: Any = None) -> Any:
    flags = g.cast(input, bool_)
    places = g.NonZero(flags if input.rank else g.Reshape(flags, [1]))
    if not as_tuple:
        places = g.Transpose(places, perm=[1, 0])
        return places if input.rank else g.slice(places, [0], [0], [1])
    return tuple(g.Gather(places, g.constant(i), axis=0, shape=(None,)) for i in range(input.rank or 1))


@translates("masked_select")
def masked_select(g: Writer, input: Value, mask: Value) -> Value:
    mask = g.cast(mask, bool_)
    whole = g.Where(mask, input, input, dtype=input.dtype)  # both broadcast
    mask = g.Expand(mask, g.Shape(whole))
    return g.Compress(g.Reshape(whole, [-1]), g.Reshape(mask, [-1]))


# ---- unique ----------------------------------------------------------------------------------------------------------


def _plain(g: Writer, x: Value) -> Value:
    """``x`` in a dtype that runtimes have ``Unique`` and comparisons for."""
    if x.dtype in (float32, float64, int64):
        return x
    return g.cast(x, float32 if x.dtype.is_floating_point else int64)


def _chosen(made: Sequence, inverse: bool, counts: bool) -> Any:
    found = tuple(x for x, wanted in zip(made, (True, inverse, counts), strict=True) if wanted)
    return found if len(found) > 1 else found[0]


@translates("unique")
def unique(
    g: Writer, input: Value, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: Any = None,
) -> Any:  # fmt: skip
    x = _plain(g, input)
    values, _, inverse, counts = g.Unique(x, axis=dim, sorted=1, outputs=4)
    for made in (inverse, counts):
        made.dtype = int64
    if dim is None:
        inverse = g.Reshape(inverse, g.sizes_of(input))
    return _chosen((values, inverse, counts), return_inverse, return_counts)


@translates("unique_consecutive")
def unique_consecutive(
    g: Writer, input: Value, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    x = _plain(g, input)
    axis = 0 if dim is None else dim % x.rank
    x = g.Reshape(x, [-1], shape=(None,)) if dim is None else x
    changed = g.Not(g.Equal(g.slice(x, [1], [2**63 - 1], [axis]), g.slice(x, [0], [-1], [axis])))
    changed.shape = x.shape
    others = [d for d in range(x.rank) if d != axis]
    if others:
        whole = g.cast(changed, int64)
        changed = g.cast(g.reduce("ReduceMax", whole, others), bool_)
    first = g.slice(g.Shape(x), [axis], [axis + 1], [0])  # one, or none where there is nothing
    starts = g.Concat(filled_with(g, g.Min(first, g.constant([1])), True), changed, axis=0)
    values = g.Compress(x, starts, axis=axis)
    inverse = g.Sub(g.CumSum(g.cast(starts, int64), g.constant(0)), 1)
    if dim is None:
        inverse = g.Reshape(inverse, g.sizes_of(input))
    places = g.Squeeze(g.NonZero(starts), [0])
    ends = g.Concat(g.slice(places, [1], [2**63 - 1], [0]), g.slice(first, [0], [1], [0]), axis=0)
    counts = g.Sub(g.slice(ends, [0], [_counted(g, places)], [0]), places)
    return _chosen((values, inverse, counts), return_inverse, return_counts)


def _counted(g: Writer, x: Value) -> Value:
    made = g.Shape(x)
    made.is_size = True
    return made


def filled_with(g: Writer, sizes: Value, value: Any) -> Value:
    """A tensor of one dimension, as ``sizes`` has one element, that has a number or truth value everywhere."""
    return g.Expand(g.constant([value]), sizes, shape=(None,))


# ---- counts ----------------------------------------------------------------------------------------------------------


@translates("bincount")
def bincount(g: Writer, input: Value, weights: Any = None, minlength: int = 0) -> Value:
    x = g.cast(input, int64)
    least = g.Concat(x, g.constant([int(minlength) - 1]), axis=0)
    size = g.Add(g.reduce("ReduceMax", least, [0], keepdim=True), 1)
    dtype = g.result.dtype
    zeros = g.cast(filled_with(g, size, 0), dtype)
    zeros.shape = (None,)
    ones = g.cast(filled_with(g, g.Shape(x), 1), dtype) if weights is None else g.cast(weights, dtype)
    return scattered(g, zeros, 0, x, ones, "add")


def repeated_by(g: Writer, input: Value | None, repeats: Value, dim: Any) -> Value:
    """``repeat_interleave`` by a tensor of numbers; the places alone where there is no input."""
    many = g.cast(repeats, int64)
    if input is not None:
        x = g.Reshape(input, [-1], shape=(None,)) if dim is None else input
        axis = 0 if dim is None else dim % x.rank
        many = g.Expand(many, g.slice(g.Shape(x), [axis], [axis + 1], [0]))
    many.shape = (None,)
    ends = g.CumSum(many, g.constant(0), shape=(None,))
    total = g.reduce("ReduceSum", many, [0], keepdim=True)
    marks = filled_with(g, g.Add(total, 1), 0)
    marks.shape = (None,)
    marks = scattered(g, marks, 0, ends, filled_with(g, g.Shape(ends), 1), "add")
    total.is_size = True
    places = g.slice(g.CumSum(marks, g.constant(0)), [0], [total], [0])  # how many ends are at or before each place
    return places if input is None else g.Gather(x, places, axis=axis)


@translates("repeat_interleave")
def repeat_interleave(
    g: Writer, input: Value, repeats: Any = None, dim: Any = None, *, output_size: Any = None
) -> Value:
    if repeats is None or isinstance(repeats, Value):
        return repeated_by(g, *((None, input) if repeats is None else (input, repeats)), dim)
    x = g.Reshape(input, [-1], shape=(math.prod(input.shape),)) if dim is None else input
    place = 0 if dim is None else dim % x.rank
    wide = g.unsqueeze(x, [place + 1])
    many = g.Tile(wide, g.ints([repeats if d == place + 1 else 1 for d in range(wide.rank)]))
    return g.Reshape(many, [*([0] * place), -1, *map(int, x.shape[place + 1 :])])
