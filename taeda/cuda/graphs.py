"""CUDA graphs, which are not there yet: their names, which raise."""

from __future__ import annotations

from . import _lacking

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

graph_pool_handle, make_graphed_callables = (
    _lacking.refused(__name__, name) for name in ("graph_pool_handle", "make_graphed_callables")
)
CUDAGraph, graph = (_lacking.refused_class(__name__, name) for name in ("CUDAGraph", "graph"))


def is_current_stream_capturing() -> bool:
    """Whether a CUDA graph is being captured: False, there are none yet."""
    return False
