"""Finds the op of a model that cannot be a launch, by running the model again once it is known that one cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from taeda._core import Tensor
from taeda._core.recorder import on_refusal
from taeda._core.replay import launches_so_far
from taeda._core.trace_record import record_trace
from taeda._warn import caller_line
from taeda.autograd.modes import no_grad
from taeda.overrides import TorchFunctionMode


class _Names(TorchFunctionMode):
    """Keeps the name of the op that runs, and up to which launch each has run."""

    _sees_ops_alone = True

    def __init__(self) -> None:
        super().__init__()
        self.now, self.ends = "", list[tuple[str, int]]()

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        self.now = getattr(func, "__name__", str(func))
        result = func(*args, **(kwargs or {}))
        self.ends.append((self.now, launches_so_far()))
        self.now = ""
        return result


def op_of_refusal(call: Callable, tensors: Sequence[Tensor]) -> str:
    """The op at which an observed call is refused, as ``", by op"``; nothing where it is not known."""
    found: list[str] = []

    def here() -> str:
        found.append(names.now)
        return caller_line()

    with _Names() as names, no_grad():
        on_refusal(here)
        try:
            record_trace(call, tuple(tensors), {}, list(tensors))
        finally:
            on_refusal(caller_line)
    return f", by {found[0]}" if found and found[0] else ""


def op_of_launch(call: Callable, tensors: Sequence[Tensor], launch: int) -> str:
    """The op of a launch by its number, as ``"op: "``; nothing where it is not known."""
    with _Names() as names, no_grad():
        record_trace(call, tuple(tensors), {}, list(tensors))
    return next((f"{name}: " for name, end in names.ends if end > launch), "")
