"""Ops that work element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..._core import bool_, float64, int8, int16, int32, int64, uint8, uint16
from ..pairs import BINARY, FLOATING, UNARY
from ..writer import Value, Writer
from .table import translates

_NARROW = (bool_, int8, uint8, int16, uint16)


def floating(g: Writer, x: Any) -> Value:
    """``x`` as a floating-point value."""
    return g.promoted(x, floating=True)[0]


def wide(g: Writer, *xs: Any) -> list[Value]:
    """Values and numbers as values of a dtype that ONNX's arithmetic is done in."""
    dtype = g.common(*xs)
    if dtype in _NARROW:
        dtype = int32
    return [g.cast(x, dtype) for x in xs]


def _unary(names: str, kind: str, prepare: Callable) -> None:
    @translates(names)
    def translator(g: Writer, input: Value) -> Value:
        return g.op(kind, *prepare(g, input))


def _binary(name: str, kind: str) -> None:
    @translates(name)
    def translator(g: Writer, input: Any, other: Any) -> Value:
        return g.op(kind, *wide(g, input, other))


for _kind, _function in FLOATING.items():
    _unary(_function.__name__, _kind, lambda g, x: [floating(g, x)])
for _kind, _function in UNARY.items():
    _unary(_function.__name__, _kind, wide)
for _kind, _function in BINARY.items():
    _binary(_function.__name__, _kind)
for _name, _kind in {"maximum": "Max", "minimum": "Min", "eq": "Equal"}.items():
    _binary(_name, _kind)


# ---- arithmetic ------------------------------------------------------------------------------------------------------


@translates("add")
def add(g: Writer, input: Any, other: Any, *, alpha: Any = 1) -> Value:
    a, b = wide(g, input, other)
    if g.common(input, other) is bool_:
        return g.cast(g.Add(a, b), bool_)
    return g.Add(a, b if alpha == 1 else g.Mul(b, g.cast(alpha, b.dtype)))


@translates("sub")
def sub(g: Writer, input: Any, other: Any, *, alpha: Any = 1) -> Value:
    a, b = wide(g, input, other)
    return g.Sub(a, b if alpha == 1 else g.Mul(b, g.cast(alpha, b.dtype)))


@translates("rsub")
def rsub(g: Writer, input: Any, other: Any, *, alpha: Any = 1) -> Value:
    a, b = wide(g, input, other)
    return g.Sub(b, a if alpha == 1 else g.Mul(a, g.cast(alpha, a.dtype)))


@translates("true_divide")
def true_divide(g: Writer, input: Any, other: Any) -> Value:
    return g.Div(*g.promoted(input, other, floating=True))


def floor_divide(g: Writer, input: Any, other: Any) -> Value:
    a, b = wide(g, input, other)
    if a.dtype.is_floating_point:
        return g.Floor(g.Div(a, b))
    return g.Div(g.Sub(a, g.Mod(a, b)), b)


@translates("div")
def div(g: Writer, input: Any, other: Any, *, rounding_mode: str | None = None) -> Value:
    if rounding_mode is None:
        return true_divide(g, input, other)
    if rounding_mode == "floor":
        return floor_divide(g, input, other)
    a, b = wide(g, input, other)
    return trunc(g, g.Div(a, b)) if a.dtype.is_floating_point else g.Div(a, b)


@translates("remainder")
def remainder(g: Writer, input: Any, other: Any) -> Value:
    a, b = wide(g, input, other)
    if not a.dtype.is_floating_point:
        return g.Mod(a, b)
    rest = g.Mod(a, b, fmod=1)
    other_sign = g.And(g.Not(g.Equal(rest, 0.0)), g.Xor(g.Less(rest, 0.0), g.Less(b, 0.0)))
    return g.Where(other_sign, g.Add(rest, b), rest, dtype=a.dtype)


translates("fmod")(lambda g, input, other: g.Mod(*wide(g, input, other), fmod=1))


@translates("pow")
def power(g: Writer, input: Any, exponent: Any) -> Value:
    if exponent in (2, 3) and isinstance(exponent, (int, float)):
        (x,) = wide(g, input)
        return g.Mul(x, x if exponent == 2 else g.Mul(x, x))
    if isinstance(exponent, float) and exponent == 0.5:
        return g.Sqrt(floating(g, input))
    return g.Pow(*wide(g, input, exponent))


@translates("rsqrt")
def rsqrt(g: Writer, input: Value) -> Value:
    return g.Reciprocal(g.Sqrt(floating(g, input)))


@translates("clamp")
def clamp(g: Writer, input: Value, min: Any = None, max: Any = None) -> Value:
    dtype = g.result.dtype
    (x,) = wide(g, g.cast(input, dtype))
    if not any(isinstance(bound, Value) for bound in (min, max)) and dtype not in _NARROW:
        return g.Clip(x, *(None if m is None else g.constant(m, x.dtype) for m in (min, max)))
    x = x if min is None else g.Max(x, g.cast(min, x.dtype))
    return x if max is None else g.Min(x, g.cast(max, x.dtype))


# ---- rounding --------------------------------------------------------------------------------------------------------


def _rounding(name: str, kind: str) -> None:
    @translates(name)
    def translator(g: Writer, input: Value) -> Value:
        return g.op(kind, input) if input.dtype.is_floating_point else input


for _name, _kind in {"floor": "Floor", "ceil": "Ceil"}.items():
    _rounding(_name, _kind)


@translates("round")
def round_(g: Writer, input: Value, *, decimals: int = 0) -> Value:
    if not decimals:
        return g.Round(input) if input.dtype.is_floating_point else input
    ten = 10.0 ** abs(decimals)
    if decimals > 0:
        return g.Div(g.Round(g.Mul(input, ten)), ten)
    return g.Mul(g.Round(g.Div(input, ten)), ten)


@translates("trunc")
def trunc(g: Writer, input: Value) -> Value:
    return g.Mul(g.Sign(input), g.Floor(g.Abs(input))) if input.dtype.is_floating_point else input


# ---- exponentials ----------------------------------------------------------------------------------------------------


@translates("expm1")
def expm1(g: Writer, input: Value) -> Value:
    """``tanh(x / 2) * (exp(x) + 1)``, exact near 0."""
    x = floating(g, input)
    exact = g.Mul(g.Tanh(g.Mul(x, 0.5)), g.Add(g.Exp(x), 1.0))
    return g.Where(g.Less(g.Abs(x), 1.0), exact, g.Sub(g.Exp(x), 1.0), dtype=x.dtype)


@translates("log1p")
def log1p(g: Writer, input: Value) -> Value:
    """``log(y) - ((y - 1) - x) / y`` for ``y = 1 + x``: what rounding ``y`` took is given back."""
    x = floating(g, input)
    y = g.Add(x, 1.0)
    exact = g.Sub(g.Log(y), g.Div(g.Sub(g.Sub(y, 1.0), x), y))
    return g.Where(g.Less(g.Abs(x), 1.0), exact, g.Log(y), dtype=x.dtype)


translates("log2")(lambda g, input: g.Mul(g.Log(floating(g, input)), 1 / math.log(2)))


@translates("log10")
def log10(g: Writer, input: Value) -> Value:
    return g.Mul(g.Log(floating(g, input)), 1 / math.log(10))


@translates("logaddexp")
def logaddexp(g: Writer, input: Value, other: Value) -> Value:
    a, b = g.promoted(input, other, floating=True)
    high = g.Max(a, b)
    near = g.Add(high, log1p(g, g.Exp(g.Neg(g.Abs(g.Sub(a, b))))))
    return g.Where(g.And(g.Equal(a, b), g.IsInf(high)), high, near, dtype=a.dtype)


@translates("hypot")
def hypot(g: Writer, input: Value, other: Value) -> Value:
    a, b = g.promoted(input, other, floating=True)
    return g.Sqrt(g.Add(g.Mul(a, a), g.Mul(b, b)))


@translates("angle")
def angle(g: Writer, input: Value) -> Value:
    x = floating(g, input)
    made = g.Where(g.Less(x, 0.0), g.constant(math.pi, x.dtype), g.constant(0.0, x.dtype), dtype=x.dtype)
    return g.Where(g.IsNaN(x), x, made, dtype=x.dtype)


@translates("atan2")
def atan2(g: Writer, input: Value, other: Value) -> Value:
    y, x = g.promoted(input, other, floating=True)
    dtype = y.dtype
    angle = g.Atan(g.Div(y, x))
    behind = g.Where(_negative(g, y), g.Sub(angle, math.pi), g.Add(angle, math.pi), dtype=dtype)
    at_zero = g.Where(_negative(g, x), g.constant(math.pi, dtype), g.constant(0.0, dtype), dtype=dtype)
    at_zero = g.Where(_negative(g, y), g.Neg(at_zero), at_zero, dtype=dtype)
    made = g.Where(g.Less(x, 0.0), behind, angle, dtype=dtype)
    return g.Where(g.And(g.Equal(x, 0.0), g.Equal(y, 0.0)), at_zero, made, dtype=dtype)


def _negative(g: Writer, x: Value) -> Value:
    """Whether a number has a minus sign, 0 too: ``1 / -0`` is less than 0."""
    return g.Or(g.Less(x, 0.0), g.Less(g.Reciprocal(x), 0.0))


@translates("copysign")
def copysign(g: Writer, input: Value, other: Any) -> Value:
    a, b = g.promoted(input, other, floating=True)
    return g.Where(_negative(g, b), g.Neg(g.Abs(a)), g.Abs(a), dtype=a.dtype)


@translates("signbit")
def signbit(g: Writer, input: Value) -> Value:
    return _negative(g, input) if input.dtype.is_floating_point else g.Less(*wide(g, input, 0))


@translates("erfc")
def erfc(g: Writer, input: Value) -> Value:
    x = floating(g, input)
    return g.Sub(g.constant(1.0, x.dtype), g.Erf(x))


# ---- whole numbers ---------------------------------------------------------------------------------------------------


@translates("gcd")
def gcd(g: Writer, input: Any, other: Any) -> Value:
    """Euclid's algorithm as a Loop, until all remainders are 0."""
    a, b = wide(g, input, other)
    a, b = g.Add(a, g.Mul(b, 0)), g.Add(b, g.Mul(a, 0))  # broadcast
    inner = Writer(g.opset, g)
    count, before = Value(g.name("i"), int64, ()), Value(g.name("go_on"), bool_, ())
    states = [Value(g.name("carried"), x.dtype) for x in (a, b)]
    ended = inner.Equal(states[1], 0)
    rest = inner.Mod(states[0], inner.Where(ended, inner.constant(1, a.dtype), states[1], dtype=a.dtype))
    first = inner.Where(ended, states[0], states[1], dtype=a.dtype)
    second = inner.Where(ended, inner.constant(0, a.dtype), rest, dtype=a.dtype)
    go_on = inner.Cast(inner.reduce("ReduceMax", inner.Abs(second)), to=9, dtype=bool_)
    body = inner.graph(g.name("body"), [count, before, *states], [go_on, first, second])
    return g.Loop(None, g.constant(True), g.Abs(a), g.Abs(b), body=body, outputs=2, dtype=a.dtype)[0]


@translates("lcm")
def lcm(g: Writer, input: Any, other: Any) -> Value:
    a, b = wide(g, input, other)
    return g.Abs(g.Mul(a, g.Div(b, g.Max(gcd(g, a, b), 1))))


@translates("frexp")
def frexp(g: Writer, input: Value) -> tuple:
    """The exponent by the logarithm, which may be one off; powers of two in two factors, as one may overflow."""
    x = g.cast(input, float64)
    plain = g.Or(g.Or(g.IsNaN(x), g.IsInf(x)), g.Equal(x, 0.0))
    safe = g.Where(plain, g.constant(1.0, x.dtype), x, dtype=x.dtype)
    exponent = g.Add(g.Floor(g.Mul(g.Log(g.Abs(safe)), 1 / math.log(2))), 1.0)
    half = g.Floor(g.Mul(exponent, -0.5))
    two = g.constant(2.0, x.dtype)
    mantissa = g.Mul(g.Mul(safe, g.Pow(two, half)), g.Pow(two, g.Sub(g.Neg(exponent), half)))
    for off, step in ((g.GreaterOrEqual(g.Abs(mantissa), 1.0), 1.0), (g.Less(g.Abs(mantissa), 0.5), -1.0)):
        mantissa = g.Where(off, g.Mul(mantissa, 2.0**-step), mantissa, dtype=x.dtype)
        exponent = g.Where(off, g.Add(exponent, step), exponent, dtype=x.dtype)
    exponent = g.Where(plain, g.constant(0.0, x.dtype), exponent, dtype=x.dtype)
    return g.Where(plain, x, mantissa, dtype=x.dtype), exponent
