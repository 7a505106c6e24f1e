"""Replacements during tracing: calls and attributes of modules, and functions that become calls.

The replaced functions are the process's, and so are the replacements. They act on the thread that
traces alone. A replacement stays while any trace needs it. Then everything is as it was, whatever trace ends first.
"""

from __future__ import annotations

import builtins
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from taeda._core.module import ModuleBase, quicken
from taeda.kernels.forks import free_in_children
from taeda.nn import Module

from .node import map_aggregate
from .proxy import Proxy

_MISSING = object()

#: Functions that programs wrapped: (id of the globals of their module, name) -> the globals.
wrapped_functions: dict[tuple[int, str], dict[str, Any]] = {}
#: Methods that taeda's own packages wrapped.
wrapped_methods: list[tuple[type, str]] = []


# ---- calls and attributes of modules ---------------------------------------------------------------------------------


class _Thread(threading.local):
    def __init__(self) -> None:
        #: For the traces of this thread, the innermost last: how they treat calls of modules and their attributes.
        self.traces: list[tuple[Callable, Callable]] = []


_thread = _Thread()


def is_tracing() -> bool:
    """Whether a Tracer is at work on this thread."""
    return bool(_thread.traces)


def plain_call(module: Any, *args: Any, **kwargs: Any) -> Any:
    """The call of a module as it is outside of tracing."""
    return ModuleBase.__call__(module, *args, **kwargs)


def plain_getattr(module: Any, name: str) -> Any:
    """A parameter, buffer or child of a module."""
    return ModuleBase.__getattr__(module, name)


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    return _thread.traces[-1][0](self, args, kwargs) if _thread.traces else plain_call(self, *args, **kwargs)


def _getattr(self: Any, name: str) -> Any:
    return _thread.traces[-1][1](self, name) if _thread.traces else plain_getattr(self, name)


def _quicken_again(cls: Any) -> None:
    """Give a class and those below it their fast access to attributes again."""
    quicken(cls)
    for sub in cls.__subclasses__():
        _quicken_again(sub)


# ---- functions that become calls -------------------------------------------------------------------------------------


def find_proxy(*objects: Any) -> Proxy | None:
    """The first Proxy in ``objects``."""
    found: list[Proxy] = []

    def look(x: Any) -> Any:
        if isinstance(x, Proxy):
            found.append(x)
        return x

    map_aggregate(objects, look)
    return found[0] if found else None


def recorded(function: Callable, method: str | None = None) -> Callable:
    """``function``, but a call with a Proxy becomes a Node, which calls ``method`` if that is given."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        if method is not None:
            return proxy.tracer.create_proxy("call_method", method, args, kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


# ---- replacing and putting back --------------------------------------------------------------------------------------


class _Replaced:
    """One replacement: the original, and how many traces need it."""

    def __init__(self, owner: Any, name: str, before: Any) -> None:
        self.owner, self.name, self.before, self.users = owner, name, before, 0

    def put(self, value: Any) -> None:
        """Let ``owner`` have ``value`` under the name, or nothing."""
        if isinstance(self.owner, dict):
            if value is _MISSING:
                self.owner.pop(self.name, None)
            else:
                self.owner[self.name] = value
        elif value is _MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, value)

    def put_back(self) -> None:
        """Let ``owner`` be as it was."""
        self.put(self.before)
        if self.owner is Module and self.name == "__getattribute__":
            _quicken_again(Module)


_lock = free_in_children(threading.RLock())
_replaced: dict[tuple[int, str], _Replaced] = {}


def functions_in(names: dict[str, Any]) -> list[tuple[str, Callable]]:
    """The public functions of a module, as they are outside of traces, with their names."""
    with _lock:
        found = [(name, _replaced.get((id(names), name)), value) for name, value in list(names.items())]
    functions = [(name, value if held is None else held.before) for name, held, value in found]
    return [(name, value) for name, value in functions if not name.startswith("_") and callable(value)]


class Patches:
    """The replacements that one trace needs."""

    def __init__(self) -> None:
        self._keys: list[tuple[int, str]] = []
        self._seen: set[int] = set()

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Let ``owner``, a dict or a class, have ``value`` under ``name``, unless a trace has replaced it already."""
        key = id(owner), name
        with _lock:
            names = owner if isinstance(owner, dict) else vars(owner)
            held = _replaced.setdefault(key, _Replaced(owner, name, names.get(name, _MISSING)))
            held.users += 1
            self._keys.append(key)
            if held.users == 1:
                held.put(value)

    def take_back(self) -> None:
        """Restore the originals that no other trace has replaced."""
        with _lock:
            while self._keys:
                key = self._keys.pop()
                _replaced[key].users -= 1
                if not _replaced[key].users:
                    _replaced.pop(key).put_back()

    def replace_wrapped(self) -> None:
        """Let the functions that programs wrapped become calls."""
        for (_, name), names in list(wrapped_functions.items()):
            function = names.get(name, getattr(builtins, name, None))
            if function is not None:
                self.replace(names, name, recorded(function))
        for cls, name in wrapped_methods:
            self.replace(cls, name, recorded(getattr(cls, name), name))

    def visit_once(self, names: dict[str, Any]) -> bool:
        """Whether this is the first visit to ``names``."""
        first = id(names) not in self._seen
        self._seen.add(id(names))
        return first

    def autowrap(self, names: dict[str, Any], functions: set[int]) -> None:
        """Let those of ``functions`` (by id) that a module has among its names become calls."""
        if not self.visit_once(names):
            return
        for name, function in functions_in(names):
            if id(function) in functions:
                self.replace(names, name, recorded(function))


class Patcher(Patches):
    """The replacements of a tracer that replaces the methods of modules itself. The last one is taken back first."""

    def __init__(self) -> None:
        super().__init__()
        self._stack: list[_Replaced] = []

    def patch(self, frame_dict: dict[str, Any], name: str, new_fn: Callable, deduplicate: bool = True) -> None:
        """Let a name of a module, or a builtin there, mean ``new_fn``.

        Args:
            deduplicate: accepted; one replacement may replace another, as in PyTorch.
        """
        if name not in frame_dict and not hasattr(builtins, name):
            raise KeyError(name)
        self._put(frame_dict, name, new_fn)

    def patch_method(self, cls: type, name: str, new_fn: Callable, deduplicate: bool = True) -> None:
        """Let a method of ``cls`` be ``new_fn``.

        Args:
            deduplicate: accepted.
        """
        if cls is Module and name == "__getattr__":
            self._put(Module, "__getattribute__", object.__getattribute__)  # for the same reason as in tracing()
        self._put(cls, name, new_fn)

    def _put(self, owner: Any, name: str, new: Callable) -> None:
        names = owner if isinstance(owner, dict) else vars(owner)
        with _lock:
            self._stack.append(_Replaced(owner, name, names.get(name, _MISSING)))
            self._stack[-1].put(new)

    def __enter__(self) -> Patcher:
        return self

    def __exit__(self, *exc: object) -> None:
        with _lock:
            while self._stack:
                self._stack.pop().put_back()
        self.take_back()
        self._seen.clear()


def patch_wrapped(patcher: Patches) -> None:
    """Let the functions that programs wrapped become calls."""
    patcher.replace_wrapped()


def autowrap_in(patcher: Patches, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Let those functions (by id) that a module has among its names become calls."""
    patcher.autowrap(frame_dict, function_ids)


@contextmanager
def tracing(call: Callable, look_up: Callable) -> Iterator[Patches]:
    """Within it, on this thread, ``call(module, args, kwargs)`` is the call of a module, and ``look_up(module, name)``
    finds its parameters, buffers and children."""
    patches = Patches()
    depth = len(_thread.traces)
    try:
        _thread.traces.append((call, look_up))
        patches.replace(Module, "__call__", _call)
        # Python's own lookup, so that other attributes than plain ones come to __getattr__
        patches.replace(Module, "__getattribute__", object.__getattribute__)
        patches.replace(Module, "__getattr__", _getattr)
        patches.replace_wrapped()
        yield patches
    finally:
        del _thread.traces[depth:]
        patches.take_back()
