"""The kernels' scalar mathematics as nodes: a function of ``taeda.kernels.scalar``, run on values of a graph.

The parts of a function stay as they are, polynomials and loops included. Its innermost parts, which take floats apart
by their bits, become ONNX's ops. Everything is computed in float64, because ONNX has no fused operations that would
make up for less.
"""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable, Sequence
from typing import Any

from taeda.kernels import scalar
from taeda.kernels.ir import BOOL, F64
from taeda.kernels.scalar import basic, exponential, gamma_ratios, trigonometric

from ..._core import bool_, float64, int64
from ..writer import Value, Writer
from .elementwise import expm1, log1p


class Number:
    """A value of the graph where a kernel has a number: it has the operators of these."""

    lanes = 1

    def __init__(self, fn: Graph, value: Value) -> None:
        self.fn, self.value = fn, value
        self.type = BOOL if value.dtype is bool_ else F64

    def to(self, _: Any) -> Number:
        """Itself: all numbers are of one type."""
        return self

    def __invert__(self) -> Number:
        return self.fn.op("Not", self)

    def __neg__(self) -> Number:
        return self.fn.op("Neg", self)

    __hash__ = None  # type: ignore[assignment]


def _operators(**kinds: str) -> None:
    for name, kind in kinds.items():
        setattr(Number, f"__{name}__", lambda a, b, kind=kind: a.fn.op(kind, a, b))
        setattr(Number, f"__r{name}__", lambda a, b, kind=kind: a.fn.op(kind, b, a))


_operators(add="Add", sub="Sub", mul="Mul", truediv="Div", lt="Less", le="LessOrEqual", gt="Greater")
_operators(ge="GreaterOrEqual", eq="Equal", **{"and": "And", "or": "Or"})
Number.__ne__ = lambda a, b: ~(a == b)  # type: ignore[assignment, method-assign]


class Graph:
    """Replaces the kernel's function. ``sizes``: the result's sizes, as a value."""

    vector_bytes = 0

    def __init__(self, g: Writer, operands: Sequence[Value]) -> None:
        self.g, self.operands = g, operands
        self._sizes: Value | None = None

    def op(self, kind: str, *inputs: Any, **attributes: Any) -> Number:
        """A node of numbers."""
        first = next((x for x in inputs if isinstance(x, Number) and x.type is F64), None)
        given = [self.value(x) for x in inputs]
        dtype = float64 if first is not None and kind not in _TESTS else bool_
        return Number(self, getattr(self.g, kind)(*given, dtype=dtype, **attributes))

    def value(self, x: Any) -> Value:
        return x.value if isinstance(x, Number) else self.const(None, x).value

    def const(self, _: Any, value: Any, lanes: int = 1) -> Number:
        dtype = bool_ if isinstance(value, bool) else float64
        return Number(self, self.g.constant(value if dtype is bool_ else float(value), dtype))

    def select(self, condition: Number, a: Any, b: Any) -> Number:
        return Number(self, _where(self.g, condition.value, self.value(a), self.value(b)))

    def while_(self, carry: Sequence[Number]) -> _Loop:
        """A loop; see :meth:`taeda.kernels.ir.Function.while_`. A bool that it carries is one for all elements."""
        if self._sizes is None:
            total = self.operands[0]
            for x in self.operands[1:]:
                total = self.g.Add(total, x)
            self._sizes = self.g.Shape(total)
        return _Loop(self, [x.value if x.type is BOOL else self.g.Expand(x.value, self._sizes) for x in carry])


_TESTS = frozenset("Less LessOrEqual Greater GreaterOrEqual Equal And Or Not".split())


def _where(g: Writer, condition: Value, a: Value, b: Value) -> Value:
    if a.dtype is bool_:  # onnxruntime has no Where of bools
        return g.Or(g.And(condition, a), g.And(g.Not(condition), b))
    return g.Where(condition, a, b, dtype=a.dtype)


class _Loop:
    """A Loop: ``carry`` are its values, :meth:`test` says whether it goes on."""

    def __init__(self, fn: Graph, start: list[Value]) -> None:
        self.fn, self.start = fn, start

    def __enter__(self) -> _Loop:
        self.outer = self.fn.g
        self.fn.g = inner = Writer(self.outer.opset, self.outer)
        self.states = [Value(inner.name("carried"), x.dtype, () if x.dtype is bool_ else None) for x in self.start]
        self.carry: Sequence[Number] = [Number(self.fn, x) for x in self.states]
        return self

    def test(self, condition: Number) -> None:
        """Go on where ``condition``, one bool, holds; else the values stay."""
        self.condition = condition.value

    def __exit__(self, *_: Any) -> None:
        inner, outer = self.fn.g, self.outer
        self.fn.g = outer
        made = [_where(inner, self.condition, new.value, old) for new, old in zip(self.carry, self.states, strict=True)]
        count, before = Value(inner.name("i"), int64, ()), Value(inner.name("go_on"), bool_, ())
        body = inner.graph(inner.name("body"), [count, before, *self.states], [self.condition, *made])
        results = outer.op("Loop", None, outer.constant(True), *self.start, body=body, outputs=len(made))
        for x, old in zip(results, self.states, strict=True):
            x.dtype = old.dtype
        self.carry = [Number(self.fn, x) for x in results]


# ---- the innermost functions -----------------------------------------------------------------------------------------


def _node(kind: str) -> Callable:
    return lambda x, *_: x.fn.op(kind, x)


def _translated(function: Callable) -> Callable:
    return lambda x, *_: Number(x.fn, function(x.fn.g, x.value))


def _copysign(x: Any, y: Number) -> Number:
    size = _node("Abs")(x)
    return y.fn.select((y < 0) | (y.fn.op("Equal", y, 0) & (1.0 / y < 0)), -size, size)


def _any(x: Number) -> Number:
    g = x.fn.g
    count = g.reduce("ReduceSum", g.Cast(x.value, to=7, dtype=int64))
    return Number(x.fn, g.Greater(count, 0, shape=()))


def _half_turns(x: Number) -> tuple[Number, Number]:
    """``(r, k)`` with ``x = k * pi + r``: pi is two numbers, so that the difference keeps its digits."""
    k = _node("Round")(x * (1 / math.pi))
    return (x - k * math.pi) - k * 1.2246467991473532e-16, k


def _flip(x: Number, k: Number) -> Number:
    return x.fn.select(k - _node("Floor")(k * 0.5) * 2.0 == 1.0, -x, x)


def _trunc(x: Number) -> Number:
    return _node("Floor")(_node("Abs")(x)) * _node("Sign")(x)


_exp, _log = _node("Exp"), _node("Log")
_NODES: dict[Any, Callable] = {
    basic.like: lambda x, value: x.fn.const(None, value),
    basic.select: lambda condition, a, b: condition.fn.select(condition, a, b),
    basic.fma: lambda a, b, c: a * b + c,
    basic.any_lane: _any, basic.abs: _node("Abs"), basic.floor: _node("Floor"), basic.ceil: _node("Ceil"),
    basic.round: _node("Round"), basic.trunc: _trunc, basic.copysign: _copysign,
    basic.at_least: lambda x, limit: x.fn.select(x < limit, limit, x),
    basic.at_most: lambda x, limit: x.fn.select(x > limit, limit, x),
    exponential.sqrt: _node("Sqrt"), exponential.exp: _exp, exponential.exp_negative: _exp, exponential.log: _log,
    exponential.pow: lambda x, y: (x if isinstance(x, Number) else y).fn.op("Pow", x, y),
    exponential.expm1: _translated(expm1), exponential.log1p: _translated(log1p),
    exponential._exp_pair: lambda x: (_exp(x), 0.0, None), exponential.scale: lambda x, n: x,
    exponential._log_double: lambda x: (_log(x), 0.0),
    trigonometric.sin: _node("Sin"), trigonometric.cos: _node("Cos"),
    trigonometric.tan: lambda x: _node("Sin")(x) / _node("Cos")(x),
    trigonometric.half_turns: _half_turns, trigonometric._flip: _flip,
    gamma_ratios._where_wanted: lambda wanted, value, function: wanted.fn.select(wanted, function(), value),
    basic.rarely: lambda condition, usual, other: [
        condition.fn.select(condition, a, b) for a, b in zip(other(), usual, strict=True)
    ],
}  # fmt: skip


class _Functions:
    """Stands for the module of scalar functions."""

    def __getattr__(self, name: str) -> Any:
        return _of_nodes(getattr(scalar, name))


@functools.cache
def _of_nodes(function: Any) -> Any:
    """``function`` and the functions that it calls, with nodes for the innermost functions."""
    found = _NODES.get(function)
    return found if found is not None else _copied(function, {})


def _copied(function: types.FunctionType, known: dict[Any, Any]) -> Any:
    if function in known:
        return known[function]
    scope = dict(function.__globals__)
    cells = tuple(types.CellType(c.cell_contents) for c in function.__closure__ or ())
    made = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    known[function] = made

    def other(x: Any) -> Any:
        if isinstance(x, types.FunctionType) and (x in _NODES or x.__module__.startswith(scalar.__name__)):
            return _NODES[x] if x in _NODES else _copied(x, known)
        return x

    for cell in cells:
        cell.cell_contents = other(cell.cell_contents)
    for name in _names(function.__code__):
        if name in scope:
            scope[name] = other(scope[name])
    return made


def _names(code: types.CodeType) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def write(g: Writer, op: Any, *operands: Any) -> Value:
    """The op's expression of ``operands``, in float64."""
    values = [g.cast(x, float64) for x in g.promoted(*operands, floating=True)]
    expression = op.__wrapped__
    body = types.FunctionType(expression.__code__, {**expression.__globals__, "s": _Functions()})
    fn = Graph(g, values)
    return fn.value(body(*(Number(fn, x) for x in values)))
