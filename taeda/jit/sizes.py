"""Sizes that Python reads off tensors in a trace: numbers that remember where they are from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import Tensor
from . import ir


class TracedSize(int):
    """A size, or what was computed of sizes, in a trace: where an op is given it, the trace computes it again.

    As a condition, an index of Python's or a float it is the number of the example.
    """

    recorder: Any
    build: Callable[[], ir.Expr]

    def __new__(cls, value: int, recorder: Any, build: Callable[[], ir.Expr]) -> TracedSize:
        made = super().__new__(cls, value)
        made.recorder, made.build = recorder, build
        return made

    def __reduce__(self) -> tuple:
        return int, (int(self),)

    def __neg__(self) -> TracedSize:
        return self._computed(int.__neg__(self), "aten::neg", self)

    def _computed(self, value: int, op: str, *operands: int) -> TracedSize:
        recorder = self.recorder
        return TracedSize(
            value, recorder, lambda: recorder.front.op(op, [recorder.express(x) for x in operands], {}, recorder.node)
        )


def _arithmetic(name: str, op: str) -> None:
    def forward(self: TracedSize, other: Any) -> Any:
        value = getattr(int, f"__{name}__")(self, other)
        return self._computed(value, op, self, other) if type(other) in (int, TracedSize) else value

    def backward(self: TracedSize, other: Any) -> Any:
        value = getattr(int, f"__r{name}__")(self, other)
        return self._computed(value, op, other, self) if type(other) in (int, TracedSize) else value

    setattr(TracedSize, f"__{name}__", forward)
    setattr(TracedSize, f"__r{name}__", backward)


for _name, _op in {
    "add": "aten::add", "sub": "aten::sub", "mul": "aten::mul", "floordiv": "aten::floordiv", "mod": "aten::remainder",
}.items():  # fmt: skip
    _arithmetic(_name, _op)


def reads(x: Any) -> bool:
    """Whether there is a tensor, or a size of one, in arguments of a call."""
    if isinstance(x, (Tensor, TracedSize)):
        return True
    if isinstance(x, (tuple, list)):
        return any(map(reads, x))
    return isinstance(x, dict) and any(map(reads, x.values()))
