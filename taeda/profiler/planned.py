"""Time and memory that a program would take, from a run on device meta, which computes nothing and uses no memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._core.memory import memory_stats, reset_peak_memory_stats
from ..utils.flop_counter import FlopCounterMode

__all__ = ["Planned", "plan"]


@dataclass(frozen=True)
class Planned:
    """The result of :func:`plan`.

    Args:
        result: the function's result, tensors on device meta.
        flops: floating-point operations of products, convolutions and attention, a multiplication and an addition each
            one.
        flops_by_op: the same by the op's name.
        bytes_before: bytes of the tensors on meta that there were when the function was called.
        bytes_after: those when it returned.
        peak_bytes: the most that there were at a time in between.

    Examples:
        >>> with taeda.device("meta"):
        ...     x = taeda.zeros(1000, 1000)
        >>> taeda.profiler.plan(lambda: x @ x).flops_by_op
        {'mm': 2000000000}
    """

    result: Any
    flops: int
    flops_by_op: dict[str, int]
    bytes_before: int
    bytes_after: int
    peak_bytes: int


def plan(function: Callable, *args: Any, **kwargs: Any) -> Planned:
    """Call a function on tensors on device meta, and report the cost of the call on a device with memory.

    Ops run their own code for sizes, algorithms and temporaries, and derivatives are those of the ops; kernels are left
    out. So the peak counts what the call allocates, work space inside of kernels aside, and a step of a model that no
    machine here could hold is planned in seconds.

    Args:
        function: called once, with the other arguments.
        *args: its arguments.
        **kwargs: its keyword arguments.

    Returns:
        A :class:`Planned`.

    Examples:
        >>> with taeda.device("meta"):
        ...     layer, x = nn.Linear(10_000, 10_000), taeda.zeros(100, 10_000)
        >>> planned = taeda.profiler.plan(lambda: layer(x).sum().backward())
        >>> planned.peak_bytes > 4 * 10_000**2  # the gradient of the weight alone
        True
    """
    before = memory_stats()["planned"]
    reset_peak_memory_stats()
    counter = FlopCounterMode(display=False)
    with counter:
        result = function(*args, **kwargs)
    stats = memory_stats()
    by_op = {str(name).removeprefix("aten."): n for name, n in counter.get_flop_counts().get("Global", {}).items()}
    return Planned(result, counter.get_total_flops(), by_op, before, stats["planned"], stats["peak_planned"])
