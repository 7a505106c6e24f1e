"""Sizes that Python reads off tensors in a trace: numbers that remember where they are from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import Tensor
from . import ir


class Traced:
    """A number, of sizes or computed of them, in a trace: where an op is given it, the trace computes it again.

    As a condition, an index of Python's, an argument of ``math`` or after a float (``2.0 * n``) it is the number of the
    example.
    """

    recorder: Any
    build: Callable[[], ir.Expr]

    def __new__(cls, value: Any, recorder: Any, build: Callable[[], ir.Expr]) -> Any:
        made = super().__new__(cls, value)  # type: ignore[call-arg]
        made.recorder, made.build = recorder, build
        return made

    def __neg__(self) -> Any:
        return self._computed(super().__neg__(), "aten::neg", self)  # type: ignore[misc]

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return super().__pow__(other, modulus)  # type: ignore[misc]
        return self._power(_value("__pow__", self, other), self, other)

    def __rpow__(self, other: Any, modulus: Any = None) -> Any:
        return self._power(_value("__rpow__", self, other), other, self)

    def _power(self, value: Any, base: Any, exponent: Any) -> Any:
        power = self._computed(value, "aten::pow", base, exponent)
        return self._computed(value, "aten::Int", power) if isinstance(value, int) else power  # aten::pow is a float

    def _computed(self, value: Any, op: str, *operands: Any) -> Any:
        """``value``, which is ``op`` of the operands; the plain value where it is no number of the language's."""
        if type(value) not in (int, float) or not all(type(x) in _NUMBERS for x in operands):
            return value
        recorder = self.recorder
        kind = TracedSize if isinstance(value, int) else TracedFloat
        return kind(
            value, recorder, lambda: recorder.front.op(op, [recorder.express(x) for x in operands], {}, recorder.node)
        )


class TracedSize(Traced, int):
    def __reduce__(self) -> tuple:
        return int, (int(self),)


class TracedFloat(Traced, float):
    def __reduce__(self) -> tuple:
        return float, (float(self),)


_NUMBERS = (int, float, TracedSize, TracedFloat)


def _value(method: str, a: Any, b: Any) -> Any:
    """The number that Python computes from two numbers, one of which is traced."""
    value = getattr(super(Traced, a), method)(b)
    if value is NotImplemented and type(b) in _NUMBERS:  # an int with a float
        value = getattr(float(a), method)(b)
    return value


def _arithmetic(name: str, op: str) -> None:
    def forward(self: Any, other: Any) -> Any:
        value = _value(f"__{name}__", self, other)
        return self._computed(value, op, self, other)

    def backward(self: Any, other: Any) -> Any:
        value = _value(f"__r{name}__", self, other)
        return self._computed(value, op, other, self)

    setattr(Traced, f"__{name}__", forward)
    setattr(Traced, f"__r{name}__", backward)


for _name, _op in {
    "add": "aten::add", "sub": "aten::sub", "mul": "aten::mul", "floordiv": "aten::floordiv", "mod": "aten::remainder",
    "truediv": "aten::div",
}.items():  # fmt: skip
    _arithmetic(_name, _op)


def reads(x: Any) -> bool:
    """Whether there is a tensor, or a size of one, in arguments of a call."""
    if isinstance(x, (Tensor, Traced)):
        return True
    if isinstance(x, (tuple, list)):
        return any(map(reads, x))
    return isinstance(x, dict) and any(map(reads, x.values()))
