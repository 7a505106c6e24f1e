"""Numbers that follow from sizes of the inputs: int64 tensors of one element."""

from __future__ import annotations

import operator
from typing import Any

from ..._core import float64, int64
from ..writer import Unsupported, Value, Writer
from .table import translates

translates("step.sym_size")(lambda g, x, dim: g.size(x, dim))


@translates("step.assert_scalar step.set_grad_enabled")
def nothing(g: Writer, *args: Any) -> None:
    """Checks of sizes are not written: ONNX has none."""


def _number(g: Writer, x: Any, dtype: Any) -> Value:
    if isinstance(x, Value):
        made = x if x.dtype is dtype else g.Cast(x, to=11 if dtype is float64 else 7, dtype=dtype)
    else:
        made = g.constant([x], dtype)
    return _sized(made)


def _sized(x: Value) -> Value:
    x.is_size = True
    return x


def _arithmetic(name: str, function: Any, write: Any) -> None:
    @translates(f"operator.{name}")
    def translator(g: Writer, a: Any, b: Any) -> Any:
        if not isinstance(a, Value) and not isinstance(b, Value):
            return function(a, b)
        if any(isinstance(x, Value) and not x.is_size for x in (a, b)):
            raise Unsupported(f"operator.{name} of tensors")
        real = name in ("truediv", "pow") or any(
            isinstance(x, float) or (isinstance(x, Value) and x.dtype is float64) for x in (a, b)
        )
        whole = name == "pow" and isinstance(b, int) and not (isinstance(a, Value) and a.dtype is float64)
        dtype = float64 if real and not whole else int64
        return _sized(write(g, _number(g, a, dtype), _number(g, b, dtype)))


def _floor_divide(g: Writer, a: Value, b: Value) -> Value:
    return g.Floor(g.Div(a, b)) if a.dtype is float64 else g.Div(g.Sub(a, g.Mod(a, b)), b)


for _name, _write in {
    "add": lambda g, a, b: g.Add(a, b), "sub": lambda g, a, b: g.Sub(a, b), "mul": lambda g, a, b: g.Mul(a, b),
    "floordiv": _floor_divide, "truediv": lambda g, a, b: g.Div(a, b), "pow": lambda g, a, b: g.Pow(a, b),
    "mod": lambda g, a, b: g.Mod(a, b), "eq": lambda g, a, b: g.Equal(a, b), "lt": lambda g, a, b: g.Less(a, b),
    "le": lambda g, a, b: g.LessOrEqual(a, b), "gt": lambda g, a, b: g.Greater(a, b),
    "ge": lambda g, a, b: g.GreaterOrEqual(a, b), "ne": lambda g, a, b: g.Not(g.Equal(a, b)),
    "and_": lambda g, a, b: g.And(a, b),
}.items():  # fmt: skip
    _arithmetic(_name, getattr(operator, _name), _write)


@translates("operator.neg")
def neg(g: Writer, x: Any) -> Any:
    return _sized(g.Neg(x)) if isinstance(x, Value) else -x


translates("operator.abs")(lambda g, x: _sized(g.Abs(x)) if isinstance(x, Value) else abs(x))
translates("math.ceil")(lambda g, x: _number(g, g.Ceil(x), int64))


@translates("math.floor")
def floor(g: Writer, x: Value) -> Value:
    return _number(g, g.Floor(x), int64)
