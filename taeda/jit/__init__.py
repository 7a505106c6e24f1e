"""``taeda.jit``: programs that leave Python. ``script`` compiles source, ``trace`` records ops, ``save`` and
``load`` write and read PyTorch's archives.

See ``docs/jit.md``.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ..futures import Future
from . import frontend
from .archive import load
from .builtins import ScriptError as Error
from .freezing import freeze, optimize_for_inference, run_frozen_optimizations
from .marks import (
    Attribute,
    _overload,
    _overload_method,
    _unwrap_optional,
    annotate,
    export,
    fork,
    ignore,
    interface,
    is_scripting,
    is_tracing,
    script_if_tracing,
    script_method,
    unused,
    wait,
)  # fmt: skip
from .marks import isinstance_of as isinstance
from .modules import RecursiveScriptModule, ScriptFunction, ScriptModule, TopLevelTracedModule, TracedModule
from .script import script
from .tracing import TracerWarning, TracingCheckError, _get_trace_graph, trace, trace_module
from .unit import CompilationUnit
from .writing import save

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Final", "Future", "ScriptFunction", "ScriptModule", "annotate",
    "enable_onednn_fusion", "export", "fork", "freeze", "fuser", "ignore", "interface", "is_scripting", "is_tracing",
    "isinstance", "load", "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution",
    "run_frozen_optimizations", "save", "script", "script_if_tracing", "script_method", "set_fusion_strategy",
    "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip

_fork, _wait, _script_if_tracing = fork, wait, script_if_tracing


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Changes nothing: scripts run in one way."""
    yield


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """Changes nothing: scripts run in one way."""
    yield


class strict_fusion:
    """Changes nothing: scripts run in one way, and no part of them has to be fused. For a ``with`` in a script."""

    def __init__(self) -> None:
        if not is_scripting():
            warnings.warn("strict_fusion: only works in a script", stacklevel=2)

    def __enter__(self) -> None:
        pass

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        pass


def set_fusion_strategy(strategy: list) -> list:
    """Changes nothing. Gives the previous strategy, which is empty."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Changes nothing: there is no oneDNN."""


def onednn_fusion_enabled() -> bool:
    """False."""
    return False
