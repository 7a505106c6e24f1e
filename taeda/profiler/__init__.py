"""Times of a program: ops, nodes of the graph, ranges and modules, and the kernels below them.

PyTorch's ``torch.profiler``, and more: every op knows the bytes and the arithmetic that it cannot do without, so that
``prof.key_averages().table(floors=True)`` says how near it comes to what the machine can do (:func:`measure_floors`),
and ``prof.kernel_averages()`` has the runs of the kernels themselves. ``docs/profiling.md`` teaches it.
"""

from . import itt
from .events import DeviceType, EventList, FunctionEvent, FunctionEventAvg
from .floors import Floors, measure_floors
from .legacy import ExecutionTraceObserver, emit_itt, emit_nvtx
from .planned import Planned, plan
from .profiler import (
    ProfilerAction,
    ProfilerActivity,
    kineto_available,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)
from .recording import record_function

__all__ = [
    "DeviceType", "EventList", "ExecutionTraceObserver", "Floors", "FunctionEvent", "FunctionEventAvg", "Planned",
    "ProfilerAction", "ProfilerActivity", "emit_itt", "emit_nvtx", "itt", "kineto_available", "measure_floors",
    "plan", "profile", "record_function", "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip
