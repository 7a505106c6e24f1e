"""Static replay: calls of a function are replayed without its Python code.

The first call with arguments of one form runs as usual. The next calls are observed: they run, and their launches are
recorded (``taeda/_core/trace_record.pyx``). After two calls that did the same, later calls replay these launches.

A trace is used only if it is valid for the call: the arguments have the same forms, equal numbers, the same other
objects; the objects that the function's code leads to have not changed (:func:`guard`); and the same leaves have
gradients. Otherwise the function runs, and is observed again. A function that reads elements, or does anything else
that is not a launch, runs as usual from then on; ``refusals`` says why, and at which line.

Side effects of the Python code (printing, writing to files, reading the time) are not repeated. A call that changes an
attribute, a list or a dict that the function's code leads to is not replayed: the change would be lost.
"""

from __future__ import annotations

import dis
import functools
import random
import sys
import types
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from taeda._core.guard import Guard, key_of
from taeda._core.recorder import on_refusal
from taeda._core.replay import Repeated, Trace
from taeda._core.trace_record import record_trace

from .._core import fusion, settings
from .._typed import Tensor
from .._warn import caller_line
from ..nn import Module
from ..nn.modules import _hooks
from ..optim import Optimizer, optimizer
from .tuning import VARIANTS, Contest

__all__ = ["Static", "guard"]

#: Limits: traces of one form of arguments, observed calls without a trace, forms.
_TRACES, _TRIES, _FORMS = 4, 8, 64
#: Types whose state is not checked.
_HIDING = (bytearray, array, deque, random.Random)
#: Hooks on all modules and optimisers.
_HOOKS = [
    _hooks.forward_hooks, _hooks.forward_pre_hooks, _hooks.backward_hooks, _hooks.backward_pre_hooks,
    optimizer._global_pre_hooks, optimizer._global_post_hooks,
]  # fmt: skip


on_refusal(caller_line)


def _drawn() -> tuple:
    """The states of the random generators of Python and NumPy."""
    found = sys.modules.get("numpy.random")
    return random.getstate(), repr(found.get_state()) if found is not None else None


# ---- the values that a function reads --------------------------------------------------------------------------------


def _is_foreign(name: str | None) -> bool:
    """Whether a module is the user's: of neither this package, nor Python's library, nor NumPy."""
    top = (name or "").partition(".")[0]
    return top not in ("taeda", "numpy", "builtins") and top not in sys.stdlib_module_names


@functools.lru_cache(1024)
def _names(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The globals that code and the functions inside it name, and all its names."""
    names, every = {x.argval for x in dis.get_instructions(code) if x.opname == "LOAD_GLOBAL"}, set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)[0]
            every |= _names(constant)[1]
    return frozenset(names), frozenset(every)


class _Walk:
    """Walks from a function to all objects that its code, and the code that it calls, can name."""

    def __init__(self, roots: Iterable[Any], names: set[str]):
        self.guard, self.options = Guard(), Guard()  # optimisers' options, which may change
        self.names = names
        self.hidden: str | None = None  # the type of an object whose state cannot be checked
        self.seen: dict[int, Any] = {}
        self.guard.keep_dict(vars(settings), ["deterministic", "fill_uninitialized"], False)
        stack = [*roots, *_HOOKS]
        while stack:
            x = stack.pop()
            if id(x) not in self.seen:
                self.seen[id(x)] = x
                stack.extend(self.visit(x))

    def visit(self, x: Any) -> Iterable[Any]:
        """Guard what ``x`` holds; the objects that it leads to."""
        if x is None or type(x) in (int, float, bool, str, bytes, complex):
            return ()
        if isinstance(x, Tensor):
            self.guard.keep_tensor(x)
            return ()
        if isinstance(x, types.FunctionType):
            return self.function(x) if _is_foreign(x.__module__) else ()
        if isinstance(x, types.MethodType):
            return x.__self__, x.__func__
        if isinstance(x, functools.partial):
            return x.func, x.args, x.keywords
        if isinstance(x, Static):
            return (x.function,)
        if isinstance(x, Optimizer):
            return self.optimizer(x)
        if isinstance(x, dict):
            return self.entries(x, list(x), whole=True)
        if isinstance(x, list):
            self.guard.keep_sequence(x)
            return tuple(x)
        if isinstance(x, tuple):
            return x
        if isinstance(x, (set, frozenset)):
            if isinstance(x, set):
                self.guard.keep_set(x)
            return tuple(x)
        if isinstance(x, (staticmethod, classmethod)):
            return (x.__func__,)
        return (x.fget,) if isinstance(x, property) else self.other(x)

    def entries(self, where: dict, names: list, whole: bool) -> tuple:
        """Guard entries of a dict."""
        self.guard.keep_dict(where, names, whole)
        return tuple(where[name] for name in names)

    def function(self, f: types.FunctionType) -> Iterable[Any]:
        """Closure, globals and defaults of a function."""
        found: list[Any] = [f.__defaults__, f.__kwdefaults__]
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            try:
                found.append(cell.cell_contents)
            except ValueError:  # the cell is empty
                continue
            self.guard.keep_cell(cell, name)
        names, every = _names(f.__code__)
        self.names |= every
        found.extend(self.entries(f.__globals__, [name for name in names if name in f.__globals__], whole=False))
        return found

    def optimizer(self, x: Any) -> Iterable[Any]:
        """The parameters of an optimiser and its hooks. Its options are read at every step."""
        self.guard.keep_sequence(x.param_groups)
        found: list[Any] = [x._optimizer_step_pre_hooks, x._optimizer_step_post_hooks]
        for group in x.param_groups:
            self.options.keep_dict(group, list(group), True)
            found.append(group["params"])
        return found

    def other(self, x: Any) -> Iterable[Any]:
        """All attributes of an object of this package or of a module; of a user's object or file those that code
        names."""
        if isinstance(x, types.ModuleType):
            named = [name for name in self.names if name in vars(x)] if _is_foreign(x.__name__) else []
            return self.entries(vars(x), named, whole=False)
        if isinstance(x, type):
            return self.class_(x)
        if isinstance(x, _HIDING) or hasattr(type(x), "__next__") or type(x).__module__.startswith("numpy"):
            self.hidden = type(x).__name__
        attributes = getattr(x, "__dict__", None)
        classes = [vars(c) for c in type(x).__mro__ if _is_foreign(c.__module__)]
        if any(type(c.get(name)) is types.MemberDescriptorType for c in classes for name in self.names):
            self.hidden = type(x).__name__
        if type(attributes) is not dict:
            return ()
        if isinstance(x, Module) or type(x).__module__.startswith("taeda."):
            methods = [value for c in classes for value in c.values() if callable(value) or isinstance(value, property)]
            return (*methods, *self.entries(attributes, list(attributes), whole=True))
        if not classes:
            return ()
        methods = [c[name] for c in classes for name in (*self.names, "__call__") if name in c]
        return (type(x), *methods, *self.entries(attributes, [n for n in self.names if n in attributes], whole=False))

    def class_(self, x: type) -> Iterable[Any]:
        """The attributes that code names, of a class from a user's file."""
        found: list[Any] = []
        for c in x.__mro__:
            names = [name for name in self.names if name in vars(c)] if _is_foreign(c.__module__) else []
            self.guard.keep_class(c, names)
            found.extend(vars(c)[name] for name in names)
        return found


def guard(roots: Iterable[Any]) -> _Walk:
    """A guard of the objects that the code of ``roots``, functions and modules, leads to, as they are now."""
    roots, names, known = list(roots), set[str](), -1
    walk = _Walk(roots, names)
    while known != len(names):
        known = len(names)
        walk = _Walk(roots, names)
    return walk


# ---- the callable ----------------------------------------------------------------------------------------------------


class _Form:
    """The traces and observations of calls with arguments of one form."""

    def __init__(self, others: list):
        self.others = others  # the key has their identities
        self.roots: list[Any] = []
        self.traces: list[Trace | Contest] = []
        self.pending: list[Trace] = []
        self.calls = self.tries = 0
        self.refused: str | None = None


class Static(Repeated):
    """``function``, whose calls are replayed without its Python code once two have done the same.

    Args:
        function: a function, method or module.
        fullgraph: raise an error if a call cannot be replayed, rather than run as usual from then on.
        tunes: measure which variant of the replay is fastest (``tuning.py``).

    ``refusals`` lists why calls are not replayed, with file and line.
    """

    def __init__(self, function: Callable, fullgraph: bool = False, tunes: bool = False):
        functools.update_wrapper(self, function, updated=())
        self.function, self.fullgraph, self.tunes = function, fullgraph, tunes
        self.refusals: list[str] = []
        self._forms: dict[bytes, _Form] = {}

    def __reduce__(self) -> tuple:
        return type(self), (self.function, self.fullgraph, self.tunes)  # a copy starts without traces

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def call_anew(self, found: tuple | None, args: tuple, kwargs: dict) -> Any:
        """A call without a valid trace. ``found`` is the result of :func:`key_of`."""
        if found is None:
            return fusion.call(self.function, *args, **kwargs)
        key, tensors, others = found
        form = self._forms.get(key)
        if form is None:
            if len(self._forms) >= _FORMS:
                self._forms.clear()
            form = self._forms[key] = _Form(others)
        form.calls += 1
        if form.calls == 1 or form.refused is not None:
            return fusion.call(self.function, *args, **kwargs)
        return self._observe(form, key, tensors, args, kwargs)

    def _observe(self, form: _Form, key: bytes, tensors: list, args: tuple, kwargs: dict) -> Any:
        contest = next((x for x in form.traces if isinstance(x, Contest) and x.wants(tensors)), None)
        variant = "usual" if contest is None else contest.variant
        walk = guard([self.function, *form.others, *form.roots])
        before = _drawn()
        result, trace = record_trace(functools.partial(VARIANTS[variant], self.function), args, kwargs, tensors)
        why, for_good = self._refusal(form, walk, tensors, trace)
        if why is None and before != _drawn():
            why, for_good = "the call draws random numbers from Python or NumPy", True
        again = key_of(args, kwargs)
        if why is None and (again is None or again[0] != key):
            why = "a call changes its arguments"
        if contest is not None:
            contest.add(trace if why is None else None)
            return result
        form.tries = _TRIES if for_good else form.tries + 1
        why = self._met_twice(form, trace) if why is None else why
        if why is not None and form.tries >= _TRIES:
            form.refused = why
            self.refusals.append(why)
            if self.fullgraph:
                raise RuntimeError(f"compile(fullgraph=True): {self.function!r} cannot be repeated: {why}")
        return result

    @staticmethod
    def _refusal(form: _Form, walk: _Walk, tensors: list, trace: Any) -> tuple[str | None, bool]:
        """Why an observed call cannot be replayed, if it cannot, and whether no other call need be tried."""
        if not isinstance(trace, Trace):
            why, place = trace
            return (why, False) if place is None else (f"{why}, at {place}", True)
        if walk.hidden is not None:
            return f"the call reads a {walk.hidden}, whose changes cannot be noticed", True
        changed = walk.guard.differs() or walk.options.differs()
        if changed is not None:
            form.pending.clear()
            return f"a call changes {changed}", False
        if walk.guard.shares(tensors):
            return "an argument shares memory with a tensor that the function reads elsewhere", False
        unknown = [update.optimizer for update in trace.updates if id(update.optimizer) not in walk.seen]
        if unknown:
            form.roots = unknown
            return "the optimiser is new", False
        trace.guard = walk.guard
        return None, False

    def _met_twice(self, form: _Form, trace: Trace) -> str | None:
        """Replay ``trace`` from now on if another call did the same; else the reason why not yet."""
        for other in form.pending:
            if other.signature == trace.signature:
                form.pending.remove(other)
                form.traces = [*form.traces[-_TRACES + 1 :], Contest(trace) if self.tunes else trace]
                form.tries = 0
                return None
        form.pending = [*form.pending[-_TRACES + 1 :], trace]
        return "no two calls do the same"
