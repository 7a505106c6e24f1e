"""Reductions, running results, and order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core import bool_, float32, int32, int64
from ...types import finfo, iinfo
from ..writer import CODES, Unsupported, Value, Writer, is_static
from .elementwise import floating, logaddexp, power, wide
from .shape import static_size
from .table import translates


def axes_of(x: Value, dim: Any) -> list[int] | None:
    """Dimensions as a list; None if there is none to name."""
    if dim is None or dim == () or dim == [] or not x.rank:
        return None
    return [d % x.rank for d in (dim if isinstance(dim, (tuple, list)) else [dim])]


@translates("sum")
def sum_(g: Writer, input: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Value:
    return g.reduce("ReduceSum", *wide(g, g.cast(input, g.result.dtype)), axes_of(input, dim), keepdim)


@translates("mean")
def mean(g: Writer, input: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Value:
    return _mean(g, g.cast(input, g.result.dtype), axes_of(input, dim), keepdim)


def _mean(g: Writer, x: Value, axes: Any, keepdim: bool = False) -> Value:
    """The mean; NaN where it is of nothing, of which onnxruntime gives 0."""
    made = g.reduce("ReduceMean", x, axes, keepdim)
    empty = is_static(x.shape) and 0 in tuple(map(int, x.shape))
    return g.Add(made, g.constant(math.nan, x.dtype)) if empty else made


@translates("prod")
def prod(g: Writer, input: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Value:
    return g.reduce("ReduceProd", *wide(g, g.cast(input, g.result.dtype)), axes_of(input, dim), keepdim)


@translates("amax")
def amax(g: Writer, input: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return g.reduce("ReduceMax", *wide(g, input), axes_of(input, dim), keepdim)


@translates("amin")
def amin(g: Writer, input: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return g.reduce("ReduceMin", *wide(g, input), axes_of(input, dim), keepdim)


def _all_or_dim(name: str, reduce: Callable, index: str) -> None:
    @translates(name)
    def translator(g: Writer, input: Value, other: Any = ..., keepdim: Any = False, *, dim: Any = ...) -> Any:
        if isinstance(other, Value):
            return g.op(name.capitalize(), *wide(g, input, other))
        dim = other if dim is ... else dim
        if dim is ...:
            return reduce(g, input)
        keepdim = keepdim is True
        return reduce(g, input, dim, keepdim), extreme(g, index, input, dim, keepdim)


_all_or_dim("max", amax, "ArgMax")
_all_or_dim("min", amin, "ArgMin")


def extreme(g: Writer, kind: str, input: Value, dim: int | None, keepdim: bool) -> Value:
    """The place of the largest or smallest element."""
    if dim is None or not input.rank:
        made = g.op(kind, g.Reshape(input, [-1]), axis=0, keepdims=0)
        return g.Reshape(made, [1] * input.rank) if keepdim and input.rank else made
    return g.op(kind, *wide(g, input), axis=dim, keepdims=int(keepdim))


translates("argmax")(lambda g, input, dim=None, keepdim=False: extreme(g, "ArgMax", input, dim, keepdim))
translates("argmin")(lambda g, input, dim=None, keepdim=False: extreme(g, "ArgMin", input, dim, keepdim))


@translates("any")
def any_(g: Writer, input: Value, dim: Any = None, keepdim: bool = False) -> Value:
    flags = g.cast(g.cast(input, bool_), int32)
    return g.Greater(g.reduce("ReduceSum", flags, axes_of(input, dim), keepdim), 0)


# ---- moments and norms -----------------------------------------------------------------------------------------------


def moments(g: Writer, x: Value, dim: Any, correction: float, keepdim: bool) -> tuple[Value, Value]:
    """Variance and mean."""
    axes = axes_of(x, dim)
    x = floating(g, x)
    center = _mean(g, x, axes, True)
    off = g.Sub(x, center)
    total = g.reduce("ReduceSum", g.Mul(off, off), axes, keepdim)
    sizes = [x.shape[a] for a in (range(x.rank) if axes is None else axes)]
    if is_static(sizes):
        left = max(0.0, math.prod(map(int, sizes)) - correction)
        variance = g.Div(total, left)
    else:
        chosen = g.Shape(x) if axes is None else g.Gather(g.Shape(x), list(axes))
        count = g.cast(g.reduce("ReduceProd", chosen), x.dtype)
        variance = g.Div(total, g.Max(g.Sub(count, float(correction)), 0.0))
    return variance, center if keepdim else _mean(g, x, axes)


@translates("var")
def var(
    g: Writer, input: Value, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Value:
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased in (None, True) else 0
    return moments(g, input, dim, correction, keepdim)[0]


@translates("_vector_norm")
def _vector_norm(g: Writer, input: Value, ord: Any, dim: Any, keepdim: bool) -> Value:
    return norm_of(g, g.cast(input, g.result.dtype), ord, axes_of(input, dim), keepdim)


def norm_of(g: Writer, x: Value, ord: Any, axes: Any, keepdim: bool) -> Value:
    """The norm of order ``ord`` along ``axes``."""
    if ord in (1, 2):
        return g.reduce(f"ReduceL{int(ord)}", x, axes, keepdim)
    if ord == 0:
        return g.reduce("ReduceSum", g.cast(g.cast(x, bool_), x.dtype), axes, keepdim)
    if math.isinf(ord):
        return g.reduce("ReduceMax" if ord > 0 else "ReduceMin", g.Abs(x), axes, keepdim)
    total = g.reduce("ReduceSum", power(g, g.Abs(x), float(ord)), axes, keepdim)
    return g.Pow(total, g.constant(1 / ord, x.dtype))


@translates("cdist")
def cdist(g: Writer, x1: Value, x2: Value, p: float = 2.0, compute_mode: Any = None) -> Value:
    return norm_of(g, g.Sub(g.unsqueeze(x1, [-2]), g.unsqueeze(x2, [-3])), p, [-1], False)


@translates("pdist")
def pdist(g: Writer, input: Value, p: float = 2.0) -> Value:
    n = static_size(input, 0, "pdist")
    rows, columns = (g.Gather(input, g.constant(i), axis=0) for i in np.triu_indices(n, 1))
    return norm_of(g, g.Sub(rows, columns), p, [-1], False)


# ---- running results -------------------------------------------------------------------------------------------------


@translates("cumsum")
def cumsum(g: Writer, input: Value, dim: int, *, dtype: Any = None) -> Value:
    (x,) = wide(g, g.cast(input, g.result.dtype))
    return g.CumSum(x, g.constant(dim)) if x.rank else x


def running(g: Writer, x: Value, dim: int, start: list[Value], step: Callable) -> list[Value]:
    """States along ``dim`` as a Scan: ``step(inner, states, row)`` gives the next states."""
    dim = dim % x.rank
    if is_static(x.shape) and 0 in tuple(map(int, x.shape)):
        return [g.cast(x, s.dtype) for s in start]
    inner = Writer(g.opset, g)
    shape = [n for d, n in enumerate(x.shape) if d != dim]
    states = [Value(g.name("state"), s.dtype, shape) for s in start]
    row = Value(g.name("row"), x.dtype, shape)
    made = step(inner, states, row)
    body = inner.graph(g.name("step"), [*states, row], [*made, *made])
    for value in body.output:
        value.type.tensor_type.ClearField("shape")
    results = g.Scan(
        *start, x, body=body, num_scan_inputs=1, scan_input_axes=[dim], scan_output_axes=[dim] * len(start),
        outputs=2 * len(start),
    )  # fmt: skip
    kept = list(results[len(start) :])
    for value, state in zip(kept, start, strict=True):
        value.dtype = state.dtype
    return kept


def _start(g: Writer, x: Value, dim: int, value: Any, dtype: Any) -> Value:
    rows = g.reduce("ReduceMax", g.cast(x, float32), [dim % x.rank])
    shape = g.sizes_of(rows, [n for d, n in enumerate(x.shape) if d != dim % x.rank])
    return g.Expand(g.constant(value, dtype), shape)


@translates("cumprod")
def cumprod(g: Writer, input: Value, dim: int, *, dtype: Any = None) -> Value:
    (x,) = wide(g, g.cast(input, g.result.dtype))
    if not x.rank:
        return x
    return running(g, x, dim, [_start(g, x, dim, 1, x.dtype)], lambda h, s, row: [h.Mul(s[0], row)])[0]


@translates("logcumsumexp _logcumsumexp")
def logcumsumexp(g: Writer, input: Value, dim: int) -> Value:
    if not input.rank:
        return input
    start = [_start(g, input, dim, -math.inf, input.dtype)]
    return running(g, input, dim, start, lambda h, s, row: [logaddexp(h, s[0], row)])[0]


def _running_extreme(name: str, kind: str) -> None:
    @translates(name)
    def translator(g: Writer, input: Value, dim: int) -> Any:
        (x,) = wide(g, input)
        if not x.rank:
            return x, g.constant(0)
        low = (-math.inf if kind == "Max" else math.inf) if x.dtype.is_floating_point else None
        if low is None:
            info = iinfo(x.dtype)
            low = info.min if kind == "Max" else info.max

        def step(h: Writer, states: list[Value], row: Value) -> list[Value]:
            best, place, now = states
            later = h.LessOrEqual(best, row) if kind == "Max" else h.GreaterOrEqual(best, row)
            return [h.op(kind, best, row), h.Where(later, now, place, dtype=int64), h.Add(now, 1)]

        start = [_start(g, x, dim, low, x.dtype), *(_start(g, x, dim, 0, int64) for _ in range(2))]
        best, place, _ = running(g, x, dim, start, step)
        return best, place


_running_extreme("cummax", "Max")
_running_extreme("cummin", "Min")


# ---- order -----------------------------------------------------------------------------------------------------------


def top(g: Writer, x: Value, k: Any, dim: int, largest: bool = True) -> tuple[Value, Value]:
    """The first elements in order, and their places."""
    (wider,) = wide(g, x)
    values, places = g.TopK(wider, g.ints([k]), axis=dim, largest=int(largest), sorted=1, outputs=2)
    places.dtype = int64
    return values, places


@translates("topk")
def topk(g: Writer, input: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple:
    return top(g, input, k, dim, largest) if input.rank else (input, g.constant(0))


@translates("sort")
def sort(g: Writer, input: Value, dim: int = -1, descending: bool = False, stable: Any = None) -> tuple:
    return top(g, input, g.size(input, dim), dim, descending) if input.rank else (input, g.constant(0))


@translates("kthvalue")
def kthvalue(g: Writer, input: Value, k: int, dim: int = -1, keepdim: bool = False) -> tuple:
    if not input.rank:
        return input, g.constant(0)
    return tuple(_last(g, x, dim, k - 1, keepdim) for x in top(g, input, k, dim, False))


@translates("median_dim")
def median_dim(g: Writer, input: Value, dim: int, keepdim: bool = False) -> tuple:
    if not input.rank:
        return input, g.constant(0)
    return kthvalue(g, input, (static_size(input, dim, "median") + 1) // 2, dim, keepdim)


@translates("median_all")
def median_all(g: Writer, input: Value) -> Value:
    line = g.Reshape(input, [-1], shape=(math.prod(input.shape),))
    return median_dim(g, line, 0)[0]


def _last(g: Writer, x: Value, dim: int, place: int, keepdim: bool) -> Value:
    made = g.slice(x, [place], [place + 1], [dim])
    return made if keepdim else g.Squeeze(made, [dim])


@translates("searchsorted")
def searchsorted(
    g: Writer, sorted_sequence: Value, input: Any, *, out_int32: bool = False, right: bool = False, side: Any = None,
    sorter: Any = None,
) -> Value:  # fmt: skip
    """The number of elements that are less: all are compared."""
    if sorter is not None:
        raise Unsupported("searchsorted with sorter; gather the sequence by it first")
    a, x = g.promoted(sorted_sequence, input)
    x.shape = input.shape if isinstance(input, Value) else ()
    rows = g.unsqueeze(x, [-1])
    line = sorted_sequence.rank == 1
    (rows,) = wide(g, rows)
    (a,) = wide(g, a)
    a = a if line else g.Unsqueeze(a, [-2])
    less = g.LessOrEqual(a, rows) if right or side == "right" else g.Less(a, rows)
    return g.reduce("ReduceSum", g.Cast(less, to=CODES[int64], dtype=int64), [-1])


@translates("nanmedian_dim")
def nanmedian_dim(g: Writer, input: Value, dim: int, keepdim: bool = False) -> tuple:
    """In ascending order NaNs are last. The result is the middle of the others."""
    if not input.rank:
        return input, g.constant(0)
    n = static_size(input, dim, "nanmedian")
    known = g.cast(g.Not(g.IsNaN(input)), int64)
    lifted = g.Where(g.IsNaN(input), g.constant(math.inf, input.dtype), input, dtype=input.dtype)
    count = g.reduce("ReduceSum", known, [dim], True)
    place = g.Max(g.Div(g.Sub(count, 1), 2), 0)
    values, places = top(g, lifted, n, dim, False)
    chosen, where = g.GatherElements(values, place, axis=dim), g.GatherElements(places, place, axis=dim)
    chosen = g.Where(g.Equal(count, 0), g.constant(math.nan, input.dtype), chosen, dtype=input.dtype)
    return (chosen, where) if keepdim else (g.Squeeze(chosen, [dim]), g.Squeeze(where, [dim]))


@translates("nanmedian_all")
def nanmedian_all(g: Writer, input: Value) -> Value:
    return nanmedian_dim(g, g.Reshape(input, [-1], shape=(math.prod(input.shape),)), 0)[0]


@translates("mode")
def mode(g: Writer, input: Value, dim: int = -1, keepdim: bool = False) -> tuple:
    """Each element is compared with each; of those found most often the smallest, and its last place."""
    if not input.rank:
        return input, g.constant(0)
    order = [d for d in range(input.rank) if d != dim % input.rank]
    (x,) = wide(g, g.transpose(input, [*order, dim % input.rank]))
    counts = g.reduce("ReduceSum", g.cast(g.Equal(g.Unsqueeze(x, [-1]), g.Unsqueeze(x, [-2])), int64), [-1])
    most = g.Equal(counts, g.reduce("ReduceMax", counts, [-1], True))
    info = finfo(x.dtype) if x.dtype.is_floating_point else iinfo(x.dtype)
    value = g.reduce("ReduceMin", g.Where(most, x, g.constant(info.max, x.dtype), dtype=x.dtype), [-1], True)
    hit = g.cast(g.Equal(x, value), int32)
    place = g.ArgMax(hit, axis=-1, keepdims=0, select_last_index=1)
    value = g.Squeeze(value, [-1])
    return (g.Unsqueeze(value, [dim]), g.Unsqueeze(place, [dim])) if keepdim else (value, place)


@translates("histc")
def histc(g: Writer, input: Value, bins: int = 100, min: Any = 0, max: Any = 0) -> Value:
    """The number of elements in each of the bins. Without bounds, the elements' own are used."""
    x = g.Reshape(input, [-1])
    if min == max:
        low, high = (g.reduce(kind, x) for kind in ("ReduceMin", "ReduceMax"))
        same = g.Equal(low, high)
        low, high = (
            g.Where(same, g.Add(b, float(d)), b, dtype=x.dtype) for b, d in ((low, -1), (high, 1))
        )  # fmt: skip
    else:
        low, high = g.constant(float(min), x.dtype), g.constant(float(max), x.dtype)
    place = g.Floor(g.Div(g.Mul(g.Sub(x, low), float(bins)), g.Sub(high, low)))
    place = g.Where(g.Equal(x, high), g.constant(float(bins - 1), x.dtype), place, dtype=x.dtype)
    hits = g.Equal(g.Unsqueeze(place, [-1]), g.constant([float(b) for b in range(bins)], x.dtype))
    return g.reduce("ReduceSum", g.cast(hits, x.dtype), [0])
