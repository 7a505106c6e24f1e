"""What is replaced while a program is traced: calls and attributes of modules, and functions that are to be calls."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from taeda._core.module import ModuleBase, quicken
from taeda.nn import Module

from .node import map_aggregate
from .proxy import Proxy

_MISSING = object()

#: Functions that programs wrapped: (id of the globals of their module, name) -> the globals.
wrapped_functions: dict[tuple[int, str], dict[str, Any]] = {}
#: Methods that taeda's own packages wrapped.
wrapped_methods: list[tuple[type, str]] = []


class Patcher:
    """Replaces entries of dicts and attributes of classes, and puts them back."""

    def __init__(self) -> None:
        self.done: list[Callable[[], None]] = []
        self.seen: set[int] = set()

    def patch(self, names: dict[str, Any], name: str, value: Any) -> None:
        """Let ``names[name]`` be ``value``."""
        old = names.get(name, _MISSING)
        names[name] = value
        self.done.append(lambda: names.pop(name, None) if old is _MISSING else names.__setitem__(name, old))

    def patch_method(self, cls: type, name: str, value: Any) -> None:
        """Let ``cls.name`` be ``value``."""
        old = vars(cls).get(name, _MISSING)
        setattr(cls, name, value)
        self.done.append(lambda: delattr(cls, name) if old is _MISSING else setattr(cls, name, old))

    def visit_once(self, thing: Any) -> bool:
        """Whether ``thing`` was not seen before."""
        if id(thing) in self.seen:
            return False
        self.seen.add(id(thing))
        return True

    def revert(self) -> None:
        """Put everything back, the last first."""
        while self.done:
            self.done.pop()()


@contextmanager
def patched_modules(patcher: Patcher, call: Callable, getattribute: Callable) -> Iterator[None]:
    """Within it, ``call(module, args, kwargs)`` is the call of a module, and ``getattribute(module, name)`` looks up its
    parameters, buffers and children."""

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call(self, args, kwargs)

    patcher.patch_method(Module, "__call__", __call__)
    # Python's own lookup, so that what is no plain attribute comes to __getattr__
    patcher.patch_method(Module, "__getattribute__", object.__getattribute__)
    patcher.patch_method(Module, "__getattr__", getattribute)
    try:
        yield
    finally:
        patcher.revert()
        _quicken_again(Module)


def _quicken_again(cls: Any) -> None:
    """Give a class and those below it their fast access to attributes again."""
    quicken(cls)
    for sub in cls.__subclasses__():
        _quicken_again(sub)


def plain_call(module: Any, *args: Any, **kwargs: Any) -> Any:
    """The call of a module as it is outside of tracing."""
    return ModuleBase.__call__(module, *args, **kwargs)


def plain_getattr(module: Any, name: str) -> Any:
    """A parameter, buffer or child of a module."""
    return ModuleBase.__getattr__(module, name)


# ---- functions that become calls -----------------------------------------------------------------------------------------


def find_proxy(*objects: Any) -> Proxy | None:
    """The first Proxy in ``objects``."""
    found: list[Proxy] = []

    def look(x: Any) -> Any:
        if isinstance(x, Proxy):
            found.append(x)
        return x

    map_aggregate(objects, look)
    return found[0] if found else None


def recorded(function: Callable) -> Callable:
    """``function``, but a call with a Proxy among its arguments becomes a Node."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def _recorded_method(cls: type, name: str) -> Callable:
    function = getattr(cls, name)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def patch_wrapped(patcher: Patcher) -> None:
    """Let the functions that programs wrapped become calls."""
    for (_, name), names in list(wrapped_functions.items()):
        if name not in names and hasattr(builtins, name):
            function = getattr(builtins, name)
        else:
            function = names[name]
        patcher.patch(names, name, recorded(function))
    for cls, name in wrapped_methods:
        patcher.patch_method(cls, name, _recorded_method(cls, name))


def autowrap(patcher: Patcher, names: dict[str, Any], functions: set[int]) -> None:
    """Let those of ``functions`` (by id) that a module has among its names become calls."""
    if not patcher.visit_once(names):
        return
    for name, value in list(names.items()):
        if not name.startswith("_") and callable(value) and id(value) in functions:
            patcher.patch(names, name, recorded(value))


def functions_of(modules: tuple[ModuleType, ...]) -> list[Callable]:
    """The public functions of ``modules``."""
    return [v for module in modules for name, v in vars(module).items() if not name.startswith("_") and callable(v)]
