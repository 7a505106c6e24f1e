"""``torch._jit_internal``: decorators of scripted code."""

from __future__ import annotations

from typing import Any, Final

from taeda.jit import _overload, _overload_method, export, ignore, is_scripting, unused

__all__ = [
    "BroadcastingList2", "Final", "_overload", "_overload_method", "boolean_dispatch", "export", "ignore",
    "is_scripting", "unused", "weak_module",
]  # fmt: skip


class _Broadcasting:
    def __getitem__(self, item: Any) -> Any:
        return Any


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _Broadcasting()


def weak_module(x: Any) -> Any:
    """Gives its argument back."""
    return x


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, module_name: str, func_name: str
) -> Any:
    """A function that calls ``if_true`` or ``if_false``, as one of its arguments says."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        flag = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    return fn
