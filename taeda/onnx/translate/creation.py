"""Ops that make tensors of sizes that are given."""

from __future__ import annotations

from typing import Any

import numpy as np

import taeda

from ..writer import CODES, Unsupported, Value, Writer, is_static
from .shape import flat
from .table import translates


def filled(g: Writer, sizes: Any, value: Any, dtype: Any) -> Value:
    """A tensor of these sizes that has ``value`` everywhere."""
    shape = g.ints(sizes) if not isinstance(sizes, Value) else sizes
    if isinstance(value, Value):
        return g.Expand(g.cast(value, dtype), shape)
    from onnx import helper, numpy_helper

    array = np.array([value]).astype("float64" if dtype.is_floating_point else "bool" if dtype is taeda.bool else "int64")
    proto = numpy_helper.from_array(array)
    if proto.data_type != CODES[dtype]:
        proto = helper.make_tensor("value", CODES[dtype], [1], array.tolist())
    return g.ConstantOfShape(shape, value=proto, dtype=dtype)


def _form(g: Writer, sizes: Any) -> Any:
    return g.result.shape if is_static(g.result.shape) else sizes


@translates("full")
def full(g: Writer, size: Any, fill_value: Any, **options: Any) -> Value:
    return filled(g, _form(g, size), fill_value, g.result.dtype)


@translates("zeros empty")
def zeros(g: Writer, *size: Any, **options: Any) -> Value:
    return filled(g, _form(g, flat(size) if size else options["size"]), 0, g.result.dtype)


@translates("ones")
def ones(g: Writer, *size: Any, **options: Any) -> Value:
    return filled(g, _form(g, flat(size) if size else options["size"]), 1, g.result.dtype)


@translates("zeros_like empty_like")
def zeros_like(g: Writer, input: Value, **options: Any) -> Value:
    return filled(g, g.sizes_of(input), 0, g.result.dtype)


@translates("ones_like")
def ones_like(g: Writer, input: Value, **options: Any) -> Value:
    return filled(g, g.sizes_of(input), 1, g.result.dtype)


@translates("full_like")
def full_like(g: Writer, input: Value, fill_value: Any, **options: Any) -> Value:
    return filled(g, g.sizes_of(input), fill_value, g.result.dtype)


@translates("fill")
def fill(g: Writer, input: Value, value: Any) -> Value:
    return filled(g, g.sizes_of(input), value, input.dtype)


@translates("Tensor.new_zeros Tensor.new_empty")
def new_zeros(g: Writer, input: Value, *size: Any, **options: Any) -> Value:
    return filled(g, _form(g, flat(size) if size else options["size"]), 0, g.result.dtype)


@translates("Tensor.new_ones")
def new_ones(g: Writer, input: Value, *size: Any, **options: Any) -> Value:
    return filled(g, _form(g, flat(size) if size else options["size"]), 1, g.result.dtype)


@translates("Tensor.new_full")
def new_full(g: Writer, input: Value, size: Any, fill_value: Any, **options: Any) -> Value:
    return filled(g, _form(g, size), fill_value, g.result.dtype)


@translates("scalar_tensor")
def scalar_tensor(g: Writer, s: Any, **options: Any) -> Value:
    return g.cast(s, g.result.dtype)


@translates("arange")
def arange(g: Writer, *args: Any, **options: Any) -> Value:
    start, end, step = _bounds(args, options)
    dtype = g.result.dtype
    if is_static(g.result.shape) and not any(isinstance(x, Value) for x in (start, end, step)):
        count = int(g.result.shape[0])
        if not dtype.is_floating_point:
            return g.constant(taeda.arange(start, end, step, dtype=dtype))
        line = g.cast(g.Range(g.constant(0), g.constant(count), g.constant(1)), dtype)
        return g.Add(g.Mul(line, step), g.constant(start, dtype))
    kind = dtype if dtype in (taeda.float32, taeda.float64, taeda.int32, taeda.int64) else taeda.int64
    return g.Range(*(g.cast(x, kind) for x in (start, end, step)))


def _bounds(args: tuple, options: dict) -> tuple:
    named = [options.get(n) for n in ("start", "end", "step")]
    if len(args) == 1 and named[1] is None:
        return 0, args[0], 1 if named[2] is None else named[2]
    given = [*args, None, None, None][:3]
    start, end, step = (a if a is not None else b for a, b in zip(given, named, strict=True))
    return 0 if start is None else start, end, 1 if step is None else step


@translates("linspace")
def linspace(g: Writer, start: Any, end: Any, steps: int, **options: Any) -> Value:
    dtype = g.result.dtype
    if isinstance(start, Value) or isinstance(end, Value):
        line = g.constant(np.linspace(0.0, 1.0, steps), taeda.float64)
        a, b = g.cast(start, taeda.float64), g.cast(end, taeda.float64)
        return g.cast(g.Add(a, g.Mul(line, g.Sub(b, a))), dtype)
    return g.constant(taeda.linspace(start, end, steps, dtype=dtype))


@translates("logspace")
def logspace(g: Writer, start: Any, end: Any, steps: int, base: float = 10.0, **options: Any) -> Value:
    exponents = g.cast(linspace(g, start, end, steps), taeda.float64)
    return g.cast(g.Pow(g.constant(float(base), taeda.float64), exponents), g.result.dtype)


@translates("eye")
def eye(g: Writer, n: Any, m: Any = None, **options: Any) -> Value:
    m = n if m is None else m
    return g.EyeLike(filled(g, [n, m], 0, g.result.dtype), dtype=g.result.dtype)


@translates("tril_indices")
def tril_indices(g: Writer, row: int, col: int, offset: int = 0, **options: Any) -> Value:
    return g.constant(np.stack(np.tril_indices(row, offset, col)), g.result.dtype)


@translates("triu_indices")
def triu_indices(g: Writer, row: int, col: int, offset: int = 0, **options: Any) -> Value:
    return g.constant(np.stack(np.triu_indices(row, offset, col)), g.result.dtype)


# ---- random numbers --------------------------------------------------------------------------------------------------


@translates("rand Tensor.uniform_")
def rand(g: Writer, *size: Any, **options: Any) -> Value:
    return _drawn(g, "RandomUniformLike", high=1.0, low=0.0)


@translates("randn")
def randn(g: Writer, *size: Any, **options: Any) -> Value:
    return _drawn(g, "RandomNormalLike", mean=0.0, scale=1.0)


@translates("rand_like")
def rand_like(g: Writer, input: Value, **options: Any) -> Value:
    return g.RandomUniformLike(g.cast(input, g.result.dtype), high=1.0, low=0.0)


@translates("randn_like")
def randn_like(g: Writer, input: Value, **options: Any) -> Value:
    return g.RandomNormalLike(g.cast(input, g.result.dtype), mean=0.0, scale=1.0)


def _drawn(g: Writer, kind: str, **bounds: float) -> Value:
    if not is_static(g.result.shape):
        raise Unsupported("random tensors need fixed sizes; use rand_like or randn_like of a tensor")
    return g.op(kind, filled(g, g.result.shape, 0, g.result.dtype), **bounds)


@translates("randint")
def randint(g: Writer, *args: Any, **options: Any) -> Value:
    low, high = (args[0], args[1]) if len(args) > 2 or isinstance(args[1], int) else (0, args[0])
    return g.Floor(g.RandomUniformLike(filled(g, g.result.shape, 0, taeda.float32), low=float(low), high=float(high)))


@translates("randint_like")
def randint_like(g: Writer, input: Value, *bounds: int, **options: Any) -> Value:
    low, high = bounds if len(bounds) == 2 else (0, *bounds)
    like = filled(g, g.sizes_of(input), 0, taeda.float32)
    return g.Floor(g.RandomUniformLike(like, low=float(low), high=float(high)))


@translates("randperm")
def randperm(g: Writer, n: int, **options: Any) -> Value:
    return g.TopK(g.RandomUniformLike(filled(g, [n], 0, taeda.float32)), [n], outputs=2)[1]


@translates("normal")
def normal(g: Writer, mean: Any = 0, std: Any = 1, *size: Any, **options: Any) -> Value:
    like = next((x for x in (mean, std) if isinstance(x, Value)), None)
    base = filled(g, _form(g, flat(size)), 0, g.result.dtype) if like is None else g.Add(*g.promoted(mean, std))
    drawn = g.RandomNormalLike(base, mean=0.0, scale=1.0)
    return g.Add(g.Mul(drawn, g.cast(std, drawn.dtype)), g.cast(mean, drawn.dtype))


@translates("bernoulli")
def bernoulli(g: Writer, input: Value, p: Any = None, *, generator: Any = None) -> Value:
    chance = input if p is None else filled(g, g.sizes_of(input), p, taeda.float32)
    return g.Bernoulli(chance)


@translates("multinomial")
def multinomial(g: Writer, input: Value, num_samples: int, replacement: bool = False, **options: Any) -> Value:
    if not replacement and num_samples > 1:
        raise Unsupported("Multinomial of ONNX draws with replacement; pass replacement=True")
    x = g.Log(input if input.rank == 2 else g.unsqueeze(input, [0]))
    made = g.Multinomial(x, sample_size=num_samples, dtype=taeda.int64)
    return made if input.rank == 2 else g.Squeeze(made, [0])


@translates("nn.functional.dropout dropout")
def dropout(g: Writer, input: Value, p: float = 0.5, training: Any = True, *args: Any, train: Any = None) -> Value:
    if not (training if train is None else train):
        return input
    return g.Dropout(input, g.constant(float(p), taeda.float32), g.constant(True), outputs=2)[0]
