"""``symbolic_trace`` and ``wrap``; the Tracer is in ``_tracer.py``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from taeda.nn import Module

from . import _patch
from ._patch import is_tracing as is_fx_tracing
from ._tracer import PH, PHBase, PHWithMeta, ProxyableClassMeta, Tracer, _assert_is_none
from .graph_module import GraphModule

__all__ = [
    "PH", "PHBase", "PHWithMeta", "ProxyableClassMeta", "Tracer", "is_fx_symbolic_tracing", "is_fx_tracing",
    "symbolic_trace", "wrap",
]  # fmt: skip

is_fx_symbolic_tracing = is_fx_tracing

for _public in (PHBase, PHWithMeta, ProxyableClassMeta, Tracer, _assert_is_none):
    _public.__module__ = __name__  # code and pickles name them here, as PyTorch's do


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Let a function of this module, or a builtin such as ``len``, be a call in traces. Gives its argument back.

    Call it at the top of the module, or use it as a decorator there."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    caller = None if frame is None else frame.f_back
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _patch.wrapped_functions[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module whose code is the trace of ``root``.

    Args:
        root: a module or a function.
        concrete_args: values for some parameters.
    Returns:
        A GraphModule: ``.graph`` is the Graph, ``.code`` its Python.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root._get_name() if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
