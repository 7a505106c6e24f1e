"""``taeda.jit``: decorators of programs that PyTorch compiles. The Python code runs as it is, which gives the same values.

``script`` and ``trace`` give back what they were given; taeda has no compiled form to save, so ``save`` and ``load``
refuse. For weights use ``taeda.save`` of a ``state_dict``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from .. import nn
from .archive import load
from .writing import save
from .._refuse import refuse, refused_class, refused_function

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Final", "Future", "ScriptFunction", "ScriptModule", "annotate",
    "enable_onednn_fusion", "export", "fork", "freeze", "fuser", "ignore", "interface", "is_scripting", "is_tracing",
    "isinstance", "load", "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution",
    "run_frozen_optimizations", "save", "script", "script_if_tracing", "script_method", "set_fusion_strategy",
    "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip

T = TypeVar("T")
_WHY = "there is no TorchScript here: the Python code runs as it is. Save a state_dict with taeda.save"


class Error(Exception):
    """What PyTorch's interpreter of scripts raises; never raised here."""


class ScriptModule(nn.Module):
    """A module written to be scripted: an ordinary module here."""


#: What ``script`` would give for a function; nothing is one.
ScriptFunction = refused_class("jit.ScriptFunction", _WHY)
RecursiveScriptModule = refused_class("jit.RecursiveScriptModule", _WHY, (ScriptModule,))
TopLevelTracedModule = TracedModule = refused_class("jit.TracedModule", _WHY, (ScriptModule,))
CompilationUnit = refused_class("jit.CompilationUnit", _WHY)


class Attribute:
    """An attribute with its type: ``value`` and ``type``."""

    def __init__(self, value: Any, type: Any) -> None:
        self.value = value
        self.type = type

    def __iter__(self) -> Iterator[Any]:
        return iter((self.value, self.type))


def script(
    obj: T | None = None, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> T:
    """Gives ``obj`` (a function, class or module) back: it runs as Python."""
    return obj  # type: ignore[return-value]


def trace(
    func: T, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, *args: Any, **kwargs: Any,
) -> T:  # fmt: skip
    """Gives ``func`` back: unlike a trace, it keeps its control flow."""
    return func


def trace_module(mod: T, inputs: Any, *args: Any, **kwargs: Any) -> T:
    """Gives ``mod`` back."""
    return mod


def script_if_tracing(fn: T) -> T:
    """Gives ``fn`` back: nothing is ever traced."""
    return fn


def script_method(fn: T, _rcb: Any = None) -> T:
    """Gives ``fn`` back."""
    return fn


def export(fn: T) -> T:
    """Gives ``fn`` back."""
    return fn


def interface(obj: T) -> T:
    """Gives ``obj`` back."""
    return obj


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Decorator, with or without arguments: the function stays as it is."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn: T) -> T:
    """Gives ``fn`` back."""
    return fn


def _overload(fn: T) -> T:
    return fn


def _overload_method(fn: T) -> T:
    return fn


_script_if_tracing = script_if_tracing


def annotate(the_type: Any, the_value: T) -> T:
    """Gives ``the_value`` back."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """``isinstance`` that also knows ``List[int]`` and its kin; here by their plain class."""
    import builtins
    import typing

    kinds: tuple[Any, ...] = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return any(builtins.isinstance(obj, typing.get_origin(kind) or kind) for kind in kinds)


def is_scripting() -> bool:
    """Whether this runs as a script: False."""
    return False


def is_tracing() -> bool:
    """Whether this is being traced: False."""
    return False


def freeze(mod: T, preserved_attrs: Any = None, optimize_numerics: bool = True) -> T:
    """Gives ``mod`` back."""
    return mod


def optimize_for_inference(mod: T, other_methods: Any = None) -> T:
    """Gives ``mod`` back."""
    return mod


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True, preserved_methods: Any = None) -> None:
    """Nothing."""


class TracerWarning(Warning):
    """What PyTorch's tracer warns with; never here."""


_get_trace_graph = refused_function("jit._get_trace_graph", _WHY)


def fork(func: Callable, *args: Any, **kwargs: Any) -> Any:
    """Run ``func(*args, **kwargs)`` now; :func:`wait` gives its result."""
    future: Future = Future()
    try:
        future.set_result(func(*args, **kwargs))
    except Exception as error:
        future.set_exception(error)
    return future


def wait(future: Any) -> Any:
    """The result of :func:`fork`."""
    return future.result()


_fork, _wait = fork, wait


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Nothing."""
    yield


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """Nothing."""
    yield


strict_fusion = functools.partial(optimized_execution, True)


def set_fusion_strategy(strategy: list) -> list:
    """Nothing; gives the previous strategy, which is empty."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Nothing."""


def onednn_fusion_enabled() -> bool:
    """False."""
    return False
