"""``compile`` and the questions that PyTorch programs ask of a compiler.

``compile`` gives a callable that does what it was given does. Nothing is fused yet: the ops are the same, one by one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ._core import current_mode

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling",
    "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance", "substitute_in_graph", "wrap_numpy",
]  # fmt: skip


class _Options:
    """Settings of :func:`compile` that programs read and write: any name may be set."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


config = _Options()


def compile(
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "inductor",
    mode: str | None = None, options: dict | None = None, disable: bool = False,
) -> Any:  # fmt: skip
    """``model`` (a function or Module) with the same behaviour; also a decorator, with or without arguments.

    Args:
        model: what to compile. A Module gives a Module that shares its parameters, with the original as ``_orig_mod``, as
            in PyTorch.
        fullgraph, dynamic, mode, options: accepted; there is nothing that they would choose.
        backend: its name, or a callable: the latter gets no graph to compile and is not called.
        disable: give ``model`` itself back.
    Raises:
        RuntimeError: both ``mode`` and ``options`` are given.
    """
    if mode is not None and options is not None:
        raise RuntimeError("compile: either mode or options can be given, but both were")
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if disable:
        return model
    from .nn import Module

    if isinstance(model, Module):
        from ._compiled import OptimizedModule

        return OptimizedModule(model)
    if not callable(model):
        raise RuntimeError(f"compile: expected a function or a Module, got {type(model).__name__}")

    @functools.wraps(model)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    return compiled


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """``fn`` as it is; also a decorator with arguments."""
    return fn if fn is not None else lambda function: function


def allow_in_graph(fn: Any) -> Any:
    """``fn`` as it is."""
    return fn


nonstrict_trace = assume_constant_result = wrap_numpy = allow_in_graph


def substitute_in_graph(original_fn: Callable, **kwargs: Any) -> Callable:
    """Decorator that gives the function back: the original is not replaced."""
    return lambda function: function


def is_exporting() -> bool:
    """Whether this runs while ``export`` records a program."""
    return hasattr(current_mode(), "control_flow")


is_compiling = is_dynamo_compiling = is_exporting  # nothing else is recorded


def reset() -> None:
    """Forget what was compiled: nothing."""


def cudagraph_mark_step_begin() -> None:
    """Nothing."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names of compilers: none yet."""
    return []


@contextmanager
def _stance() -> Iterator[None]:
    yield


def set_stance(stance: str = "default", **kwargs: Any) -> Any:
    """Accepted, also as a context manager."""
    return _stance()
