"""``torch._dynamo``: PyTorch's tracer of bytecode, for programs that register backends, look at graphs or ask whether
it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from taeda._compiled import OptimizedModule
from taeda._core import Tensor
from taeda.compiler import (
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    is_compiling,
    list_backends,
    nonstrict_trace,
    register_backend,
    set_stance,
    substitute_in_graph,
)  # fmt: skip
from taeda.graph import backends as _backends
from taeda.graph.options import Patch
from taeda.nn import Module

from . import config, utils

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disable_nested_graph_breaks",
    "disallow_in_graph", "dont_skip_tracing", "explain", "forbid_in_graph", "graph_break", "is_compiling",
    "list_backends", "lookup_backend", "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic",
    "nonstrict_trace", "optimize", "optimize_assert", "override_cudagraphs", "patch_dynamo_config", "register_backend",
    "reset", "run", "set_recursion_limit", "set_stance", "step_unsupported", "substitute_in_graph", "utils",
]  # fmt: skip


def reset() -> None:
    """Forget the graphs that backends were given, and the counters."""
    from taeda import compiler

    compiler.reset()
    utils.counters.clear()


def lookup_backend(compiler_fn: Any) -> Callable:
    """The function ``(graph_module, example_inputs) -> callable`` of the backend of that name; a function as it is.

    Raises:
        InvalidBackend: there is none.
    """
    found = _backends.lookup_backend(compiler_fn)
    if not isinstance(found, str):
        return found
    if found in _backends.EAGER:
        return lambda module, inputs: module.forward
    return lambda module, inputs: compile(module.forward, backend=found)


def optimize(
    backend: Any = "inductor", *, nopython: bool = False, dynamic: bool | None = None, disable: bool = False
) -> Any:
    """A decorator that compiles: see ``compile``."""
    return compile(backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable)


def optimize_assert(backend: Any, *, dynamic: bool | None = None) -> Any:
    """A decorator that compiles to one graph."""
    return compile(backend=backend, fullgraph=True, dynamic=dynamic)


def run(fn: Callable) -> Callable:
    """``fn``, which compiles nothing new."""
    return set_stance("eager_on_recompile")(fn)


def graph_break(msg: str = "") -> None:
    """End the graph that is being recorded on this thread, if there is one."""
    from taeda.graph.capture import call_outside

    call_outside(lambda: None, (), {}, f"Call to `torch._dynamo.graph_break()` {msg}".rstrip())


step_unsupported = graph_break
patch_dynamo_config = config.patch


def _without_effect(fn: Any = None, **kwargs: Any) -> Any:
    """``fn`` as it is; without one a context manager, or a decorator, that does nothing: no code is traced."""
    return Patch({}, None, None, {}) if fn is None or isinstance(fn, bool) else fn


disable_nested_graph_breaks = dont_skip_tracing = _without_effect


def override_cudagraphs(fwd: bool | None = None, bwd: bool | None = None) -> Any:
    """A context manager, or a decorator, that does nothing: there are no CUDA graphs."""
    return _without_effect()


def set_recursion_limit(limit: int) -> None:
    """Nothing: there is no recursion over a program's code.

    Raises:
        ValueError: it is neither positive nor -1.
    """
    if limit < 1 and limit != -1:
        raise ValueError(f"recursion limit must be >= 1, or -1 to reset, got {limit}")


def mark_dynamic(t: Tensor, index: Any, **kwargs: Any) -> None:
    """Let graphs that are given to backends take any size of ``t`` along the dimensions ``index``."""
    dims = index if isinstance(index, (list, tuple)) else [index]
    found: Any = t
    found._dynamo_dynamic_indices = {*getattr(t, "_dynamo_dynamic_indices", ()), *(d % max(t.dim(), 1) for d in dims)}


def mark_static(t: Any, index: Any = None, **kwargs: Any) -> None:
    """Nothing: sizes are fixed unless they are marked."""


maybe_mark_dynamic = mark_dynamic
mark_static_address = mark_static
forbid_in_graph = disallow_in_graph = allow_in_graph


def is_dynamo_supported() -> bool:
    """True."""
    return True


@dataclass
class ExplainOutput:
    """The graphs of a function and the reasons why they ended."""

    graphs: list
    graph_count: int
    graph_break_count: int
    break_reasons: list
    op_count: int
    ops_per_graph: list
    out_guards: list
    compile_times: str = ""

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}", "Break Reasons:",
        ]  # fmt: skip
        for i, found in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {i}:", f"    Reason: {found.reason}", "    User Stack:"]
            lines += [f"      {line}" for line in found.user_stack]
        lines.append("Ops per Graph:")
        for i, ops in enumerate(self.ops_per_graph, 1):
            lines += [f"  Ops {i}:", *(f"    {op}" for op in ops)]
        return "\n".join([*lines, "Out Guards:", f"Compile Times: {self.compile_times}"])


def explain(f: Callable, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """``explain(f)(*args)`` runs ``f`` once and tells its graphs."""

    def inner(*args: Any, **kwargs: Any) -> ExplainOutput:
        graphs: list = []

        def keep(module: Any, inputs: list) -> Callable:
            graphs.append(module)
            return module.forward

        compiled: Any = compile(f.__call__ if isinstance(f, Module) else f, backend=keep)
        compiled(*args, **kwargs)
        ops = [[n.target for n in graph.graph.nodes if n.op.startswith("call")] for graph in graphs]
        return ExplainOutput(
            graphs, len(graphs), max(len(graphs) - 1, 0), compiled.runner.breaks, sum(map(len, ops)), ops, []
        )

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner


@contextlib.contextmanager
def error_on_graph_break(error_on_graph_break: bool) -> Any:
    """Accepted: ``compile(fullgraph=True)`` asks for that."""
    yield
