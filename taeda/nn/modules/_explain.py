"""Adds to an exception that leaves a module where it happened: the module's path and the user's line.

In anomaly mode it also follows which modules are being called, for errors that are found later.
"""

from __future__ import annotations

import linecache
import threading
from typing import Any

from ..._core.callbacks import callbacks
from ..._core.module import follow
from ..._warn import caller, is_own
from ...autograd.anomaly import is_anomaly_enabled

_REWRITTEN = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)


def _line(frame, number: int) -> str:
    code = frame.f_code
    text = linecache.getline(code.co_filename, number, frame.f_globals).strip()
    where = f"{code.co_filename}:{number}, in {code.co_name}"
    return f"{where}: {text}" if text else where


def _user_line(failure: BaseException) -> tuple[str, bool]:
    """The innermost line that is not ours, and whether the exception was raised by our code."""
    frames = []
    traceback = failure.__traceback__
    while traceback is not None:
        frames.append((traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    raised_here = bool(frames) and is_own(frames[-1][0].f_code.co_filename)
    for frame, number in reversed(frames):
        if not is_own(frame.f_code.co_filename):
            return _line(frame, number), raised_here
    outside = caller()
    return "" if outside is None else _line(outside, outside.f_lineno), raised_here


def path_to(parent, child: int) -> str | None:
    """The dotted name of the module whose id is ``child`` under ``parent``."""
    stack, seen = [("", parent)], set()
    while stack:
        prefix, module = stack.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        for name, sub in module._modules.items():
            if sub is None:
                continue
            if id(sub) == child:
                return f"{prefix}{name}"
            stack.append((f"{prefix}{name}.", sub))
    return None


def describe(module) -> str:
    """The class of a module, with its settings where it has no children."""
    name = module._get_name()
    return name if module._modules else f"{name}({module.extra_repr()})"


def where(path: str, leaf: str, outer) -> str:
    """The line of a message that names the module ``leaf`` at ``path`` of ``outer``."""
    return f"module: {path} = {leaf} of {outer._get_name()}" if path else f"module: {leaf}"


def explain(module, failure: Exception) -> None:
    """Record that ``failure`` has just left ``module``. Called once per module on the way out; never raises.

    An error of an op gets its place in its own text. Other exceptions get a note, and their text stays as it is.
    """
    if isinstance(failure, (StopIteration, StopAsyncIteration)):
        return
    try:
        state = failure.__dict__.get("_taeda_where")
        if state is None:
            line, ours = _user_line(failure)
            rewrite = ours and type(failure) in _REWRITTEN and len(failure.args) == 1 and type(failure.args[0]) is str
            state = {
                "child": id(module), "path": "", "leaf": describe(module), "line": line,
                "text": failure.args[0] if rewrite else None, "note": None,
            }  # fmt: skip
        else:
            name = path_to(module, state["child"])
            if name is not None:
                state["path"] = f"{name}.{state['path']}" if state["path"] else name
                state["child"] = id(module)
        path, leaf = state["path"], state["leaf"]
        place = where(path, leaf, module)
        if state["line"]:
            place += f"\n  line: {state['line']}"
        if state["text"] is not None:
            failure.args = (f"{state['text']}\n  {place}",)
        else:
            notes = failure.__dict__.setdefault("__notes__", [])
            if state["note"] in notes:
                notes.remove(state["note"])
            state["note"] = f"  {place}"
            notes.append(state["note"])
        failure.__dict__["_taeda_where"] = state
    except Exception:  # explaining must not hide the failure itself
        return


# ---- anomaly mode ----------------------------------------------------------------------------------------------------


class _Stack(threading.local):
    def __init__(self) -> None:
        self.modules: list[Any] = []


_stack = _Stack()


def _follow(on: bool) -> None:
    """Begin or end to follow the calls of modules."""
    follow(_stack if on else None)


def _under_way() -> tuple:
    modules = _stack.modules
    return (modules[0], modules[-1]) if modules else ()


def _describe(outer: Any = None, inner: Any = None) -> str:
    """The line of a message that names ``inner`` by its path from ``outer``; empty outside of modules."""
    return "" if outer is None else f"  {where(path_to(outer, id(inner)) or '', describe(inner), outer)}"


callbacks.follow_modules = _follow
callbacks.modules_under_way = _under_way
callbacks.describe_modules = _describe
_follow(is_anomaly_enabled())
