"""Subclasses of Tensor with a ``__torch_dispatch__``: below ``__torch_function__`` and the graph, each op goes to it.

An op that a gradient is wanted of is recorded as if it had run here: its derivative is written in ops, which go to the
class again in the backward pass.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from .. import _core
from .._core import DISPATCHING, Composite, Op, Tensor
from ..aten import packet
from ..autograd import no_grad
from ..ops.table import OPS
from ..overrides import DisableTorchFunctionSubclass
from ._python_dispatch import TorchDispatchMode, Unrecorded, native_call, parts_of, seen_whole

__all__ = ["ask", "dispatch"]


def _tensors(x: Any) -> Iterator[Tensor]:
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, (tuple, list)):
        for y in x:
            yield from _tensors(y)


def _ask(func: Any, args: tuple, kwargs: dict) -> Any:
    """The result of an op of the native library from the innermost mode, else from the first class that handles it: a
    subclass before its base."""
    kinds: list[Any] = []
    for x in _tensors((args, *kwargs.values())):
        kind = type(x)
        if kind in DISPATCHING and kind not in kinds:
            kinds.insert(next((i for i, other in enumerate(kinds) if issubclass(kind, other)), len(kinds)), kind)
    modes = _core.mode_stack()
    if modes and isinstance(modes[-1], TorchDispatchMode):
        with _core.modes(modes[:-1]):
            result = modes[-1].__torch_dispatch__(func, tuple(kinds), args, kwargs)
        if result is not NotImplemented:
            return result
    for kind in kinds:
        result = kind.__torch_dispatch__(func, tuple(kinds), args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned NotImplemented: {kinds}"
    )


def ask(name: str, x: Tensor) -> Any:
    """``aten.<name>`` of a tensor whose class is asked."""
    with no_grad(), DisableTorchFunctionSubclass():
        return _ask(packet(name).default, (x,), {})


def ask_for(func: Any, args: tuple, kwargs: dict) -> Any:
    """The result of a native op that parts of another call.

    Raises:
        Unrecorded: a gradient of what a class would give is wanted.
    """
    given = list(_tensors((args, *kwargs.values())))
    if not any(type(x) in DISPATCHING for x in given):
        return func(*args, **kwargs)
    if _core.is_recorded() and any(x.requires_grad for x in given):
        raise Unrecorded
    with no_grad():
        return _ask(func, args, kwargs)


#: Functions that are seen whole, as the op that is recorded.
_RECORDED: dict[str, Callable] = {
    "t": lambda x: (OPS["transpose"], (x, 0, 1)) if x.dim() == 2 else (OPS["view"], (x, x.shape))
}


@functools.cache
def _is_factory(function: Any) -> bool:
    """Whether ``function`` makes a tensor that no gradient comes through, so that it may be asked for one."""
    return isinstance(function, Composite) and "requires_grad" in inspect.signature(function.function).parameters


def dispatch(function: Any, args: tuple, kwargs: dict) -> Any:
    """The call of ``function`` with tensors among its arguments whose class has a ``__torch_dispatch__``."""
    if not isinstance(function, (Op, Composite)):
        return function(*args, **kwargs)
    with DisableTorchFunctionSubclass():
        try:
            result = parts_of(function, args, kwargs)
        except Unrecorded:
            result = NotImplemented
        if result is not NotImplemented:
            return result
        if not seen_whole(function, args, kwargs):
            return function.unwatched(args, kwargs)
        given = list(_tensors((args, *kwargs.values())))
        factory = _is_factory(function)
        wanted = _core.is_recorded() and not factory and any(x.requires_grad for x in given)
        leaf = factory and kwargs.get("requires_grad", False)
        if factory:
            kwargs = {k: v for k, v in kwargs.items() if k != "requires_grad"}
        op: Any = function
        recorded = args
        if wanted and function.name in _RECORDED:
            op, recorded = _RECORDED[function.name](*args)
        elif wanted and isinstance(function, Composite):
            return function.unwatched(args, kwargs)
        if wanted and getattr(op, "writes", False):
            raise NotImplementedError(
                f"{op.name}(): writes in place to a {type(given[0]).__name__} that requires grad, which is not "
                "recorded for classes with __torch_dispatch__; use the op that gives a new tensor, or no_grad"
            )
        func, native, named = native_call(function, args, kwargs)
        with no_grad():
            result = _ask(func, native, named)
        if leaf:
            return result.requires_grad_()
        if not wanted or any(x is y for x in _tensors(result) for y in given):
            return result
        return _core.recall(op, recorded, kwargs if op is function else {}, result)
