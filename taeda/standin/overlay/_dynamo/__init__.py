"""``torch._dynamo``: PyTorch's tracer of bytecode, for programs that switch it off or ask whether it runs."""

from __future__ import annotations

from typing import Any

from taeda._compiled import OptimizedModule
from taeda.compiler import allow_in_graph, assume_constant_result, config, disable, is_compiling, nonstrict_trace, reset

__all__ = [
    "allow_in_graph", "assume_constant_result", "config", "disable", "graph_break", "is_compiling", "mark_dynamic",
    "mark_static", "nonstrict_trace", "reset",
]  # fmt: skip


def graph_break(msg: str = "") -> None:
    """Nothing."""


def mark_dynamic(t: Any, index: Any = None, **kwargs: Any) -> None:
    """Nothing: sizes are never fixed."""


mark_static = mark_static_address = maybe_mark_dynamic = mark_dynamic
forbid_in_graph = disallow_in_graph = allow_in_graph


def is_dynamo_supported() -> bool:
    """False."""
    return False
