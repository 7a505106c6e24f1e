"""``torch.autograd.profiler_util``: what a profiler would give."""

from .profiler import EventList, FunctionEvent

__all__ = ["EventList", "FunctionEvent"]
