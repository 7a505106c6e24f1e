"""Marks that programs put on functions for the compiler, and functions that mean something to it."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from .._core.scripting import is_scripting
from ..futures import Future
from .hooks import HOOKS

T = TypeVar("T")
_MARK = "_torchscript_modifier"
#: The signatures that were declared for a function, by the name of its module and its own.
OVERLOADS: dict[tuple[str, str], list[Any]] = {}


class Attribute(NamedTuple):
    """An attribute with its type: ``value`` and ``type``."""

    value: Any
    type: Any


def key_of(fn: Any) -> tuple[str, str]:
    """The names of a function, for OVERLOADS."""
    return getattr(fn, "__module__", "") or "", getattr(fn, "__qualname__", "")


def _mark(fn: T, word: str) -> T:
    setattr(fn, _MARK, word)
    return fn


def _has(fn: Any, word: str) -> bool:
    return getattr(getattr(fn, "fget", fn), _MARK, None) == word


def is_exported(fn: Any) -> bool:
    """Whether :func:`export` marked it."""
    return _has(fn, "export")


def is_ignored(fn: Any) -> bool:
    """Whether :func:`ignore` marked it."""
    return _has(fn, "ignore")


def is_unused(fn: Any) -> bool:
    """Whether :func:`unused` marked it."""
    return _has(fn, "unused")


def export(fn: T) -> T:
    """Compile this method of a module too, though ``forward`` does not call it."""
    return _mark(fn, "export")


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Leave this function to Python: scripts call it, and cannot be saved. With ``drop=True`` as :func:`unused`."""
    if callable(drop):
        return _mark(drop, "ignore")
    return lambda fn: _mark(fn, "unused" if drop else "ignore")


def unused(fn: T) -> T:
    """Leave this function out: a script that calls it raises."""
    if isinstance(fn, property):
        _mark(fn.fget, "unused")
        return fn
    return _mark(fn, "unused")


def _overload(fn: T) -> T:
    """Declare a signature of the function of this name that follows."""
    OVERLOADS.setdefault(key_of(fn), []).append(fn)
    return fn


_overload_method = _overload


def interface(obj: T) -> T:
    """Declare a class to be an interface: any class with its methods may stand for it in scripts."""
    obj.__script_interface__ = True  # type: ignore[attr-defined]
    return obj


def enabled() -> bool:
    """Whether functions are compiled: the variable PYTORCH_JIT=0 leaves them to Python.

    Raises:
        ValueError: it has another value than 0 or 1.
    """
    value = os.environ.get("PYTORCH_JIT", "1").strip()
    if value[:1] not in ("0", "1"):
        raise ValueError(f"Unknown setting of PYTORCH_JIT. Try using 0 or 1, not {value!r}.")
    return value[0] == "1"


def script_method(fn: T, _rcb: Any = None) -> T:
    """Mark a method of a ScriptModule that is compiled."""
    return _mark(fn, "export")


def annotate(the_type: Any, the_value: T) -> T:
    """Gives ``the_value`` back; to the compiler it is of type ``the_type``."""
    return the_value


def _unwrap_optional(x: T | None) -> T:
    """``x``, which is not None."""
    assert x is not None, "Unwrapping null optional"
    return x


def isinstance_of(obj: Any, target_type: Any) -> bool:
    """``isinstance`` that also knows ``List[int]`` and similar types, by the container's elements."""
    import typing

    kinds: tuple[Any, ...] = target_type if isinstance(target_type, tuple) else (target_type,)
    for kind in kinds:
        origin, args = typing.get_origin(kind), typing.get_args(kind)
        if kind in (typing.List, typing.Dict, typing.Tuple):  # noqa: UP006
            name = str(kind).rpartition(".")[2]
            raise RuntimeError(f"Attempted to use {name} without a contained type. Please add one, e.g. {name}[int]")
        if origin is typing.Union:
            if isinstance_of(obj, args):
                return True
        elif isinstance(obj, origin or kind):
            if origin is list and not all(isinstance_of(x, args[0]) for x in obj):
                continue
            if origin is dict and not all(
                isinstance_of(k, args[0]) and isinstance_of(v, args[1]) for k, v in obj.items()
            ):
                continue
            if origin is tuple and not (len(args) == len(obj) and all(map(isinstance_of, obj, args))):
                continue
            return True
    return False


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


def script_if_tracing(fn: Callable) -> Callable:
    """Compile ``fn`` when it is called while something is traced; otherwise it is Python's."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            return fn(*args, **kwargs)
        return HOOKS["script"](fn)(*args, **kwargs)

    wrapper.__script_if_tracing_wrapper = True  # type: ignore[attr-defined]
    wrapper.__original_fn = fn  # type: ignore[attr-defined]
    return wrapper


def is_tracing() -> bool:
    """Whether this is being traced."""
    return HOOKS["recorder"]() is not None


#: Functions that the compiler has its own form of.
FORMS: dict[Any, str] = {annotate: "annotate", fork: "fork", wait: "wait", isinstance_of: "isinstance"}
#: Functions whose value the compiler knows.
CONSTANTS: dict[Any, bool] = {is_scripting: True, is_tracing: False}
