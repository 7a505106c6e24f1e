"""Ops that make tensors of sizes that are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import bool_, float32, float64, int32, int64
from ...ops import creation
from ..writer import CODES, Unsupported, Value, Writer, is_static
from .shape import flat
from .table import translates


def filled(g: Writer, sizes: Any, value: Any, dtype: Any) -> Value:
    """A tensor of these sizes that has ``value`` everywhere."""
    shape = g.ints(sizes) if not isinstance(sizes, Value) else sizes
    if isinstance(value, Value):
        return g.Expand(g.cast(value, dtype), shape)
    from onnx import helper, numpy_helper

    array = np.array([value]).astype("float64" if dtype.is_floating_point else "bool" if dtype is bool_ else "int64")
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


@translates("full_like")
def full_like(g: Writer, input: Value, fill_value: Any, **options: Any) -> Value:
    return filled(g, g.sizes_of(input), fill_value, g.result.dtype)


translates("fill")(lambda g, input, value: filled(g, g.sizes_of(input), value, input.dtype))


@translates("empty_strided Tensor.new_empty_strided")
def empty_strided(g: Writer, *args: Any, **options: Any) -> Value:
    return filled(g, g.result.shape, 0, g.result.dtype)


translates("scalar_tensor")(lambda g, s, **options: g.cast(s, g.result.dtype))


@translates("arange")
def arange(g: Writer, *args: Any, **options: Any) -> Value:
    start, end, step = _bounds(args, options)
    dtype = g.result.dtype
    if is_static(g.result.shape) and not any(isinstance(x, Value) for x in (start, end, step)):
        count = int(g.result.shape[0])
        if not dtype.is_floating_point:
            return g.constant(creation.arange(start, end, step, dtype=dtype))
        line = g.cast(g.Range(g.constant(0), g.constant(count), g.constant(1)), dtype)
        return g.Add(g.Mul(line, step), g.constant(start, dtype))
    kind = dtype if dtype in (float32, float64, int32, int64) else int64
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
    _fixed("linspace", steps)
    if isinstance(start, Value) or isinstance(end, Value):
        line = g.constant(np.linspace(0.0, 1.0, steps), float64)
        a, b = g.cast(start, float64), g.cast(end, float64)
        return g.cast(g.Add(a, g.Mul(line, g.Sub(b, a))), dtype)
    return g.constant(creation.linspace(start, end, steps, dtype=dtype))


def _fixed(name: str, *sizes: Any) -> None:
    if not is_static(sizes):
        raise Unsupported(f"{name} of sizes that are not fixed; leave them out of dynamic_shapes")
