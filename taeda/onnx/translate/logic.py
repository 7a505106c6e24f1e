"""Comparisons, logic, bits, and choices between elements."""

from __future__ import annotations

from typing import Any

from ..._core import bool_, float32, float64
from ..writer import Unsupported, Value, Writer
from .elementwise import floor_divide, wide
from .table import translates

translates("ne")(lambda g, input, other: g.Not(g.Equal(*wide(g, input, other))))


def _logic(name: str, kind: str) -> None:
    @translates(f"logical_{name}")
    def logical(g: Writer, input: Value, other: Any) -> Value:
        return g.op(kind, g.cast(input, bool_), g.cast(other, bool_))

    @translates(f"bitwise_{name}")
    def bitwise(g: Writer, input: Any, other: Any) -> Value:
        a, b = g.promoted(input, other)
        if a.dtype is bool_:
            return g.op(kind, a, b)
        if g.opset < 18:
            raise Unsupported(f"Bitwise{kind} is from opset 18 on; pass opset_version=18")
        return g.op(f"Bitwise{kind}", a, b)


for _name in ("and", "or", "xor"):
    _logic(_name, _name.capitalize())


translates("logical_not")(lambda g, input: g.Not(g.cast(input, bool_)))


@translates("bitwise_not")
def bitwise_not(g: Writer, input: Value) -> Value:
    if input.dtype is bool_:
        return g.Not(input)
    (x,) = wide(g, input)
    return g.Sub(g.constant(-1, x.dtype), x)


@translates("bitwise_left_shift")
def bitwise_left_shift(g: Writer, input: Value, other: Any) -> Value:
    a, b = wide(g, input, other)
    return g.Mul(a, g.Pow(g.constant(2, a.dtype), b))


@translates("bitwise_right_shift")
def bitwise_right_shift(g: Writer, input: Value, other: Any) -> Value:
    a, b = wide(g, input, other)
    return floor_divide(g, a, g.Pow(g.constant(2, a.dtype), b))


@translates("isnan")
def isnan(g: Writer, input: Value) -> Value:
    return g.IsNaN(input) if input.dtype.is_floating_point else _filled(g, input, False)


@translates("isinf")
def isinf(g: Writer, input: Value) -> Value:
    return g.IsInf(_infinite(g, input)) if input.dtype.is_floating_point else _filled(g, input, False)


def _infinite(g: Writer, x: Value) -> Value:
    return x if g.opset >= 20 or x.dtype in (float32, float64) else g.cast(x, float32)


def _filled(g: Writer, x: Value, value: bool) -> Value:
    return g.Expand(g.constant(value), g.sizes_of(x))


@translates("where_select where")
def where(g: Writer, condition: Value, input: Any = None, other: Any = None) -> Any:
    if input is None:
        from .found import nonzero

        return nonzero(g, condition, as_tuple=True)
    a, b = g.promoted(input, other)
    return g.Where(g.cast(condition, bool_), a, b, dtype=a.dtype)
