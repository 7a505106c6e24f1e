"""Signatures of ops of one's own in PyTorch's words: ``mylib::scale(Tensor x, float s, SymInt n=2) -> Tensor``."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

from . import _core
from ._core import Tensor

_KINDS = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", _core.dtype: "ScalarType",
    _core.device: "Device",
}  # fmt: skip
_LISTED = ("Tensor", "SymInt", "float", "bool", "Scalar")
_RETURNED = ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar")


def _kind(hint: Any, listed: bool = True) -> str | None:
    """The word for a type; None where PyTorch has none."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        left = tuple(arg for arg in args if arg is not type(None))
        optional = "?" if len(left) < len(args) else ""
        inner = "Scalar" if set(left) == {int, float, bool} else _kind(left[0], listed) if len(left) == 1 else None
        return inner and inner + optional
    if listed and origin in (list, collections.abc.Sequence):
        inner = _kind(args[0], False)
        return f"{inner}[]" if inner in (*_LISTED, "Tensor?") else None
    return _KINDS.get(hint)


def _default(value: Any) -> str:
    if value is None or isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).rpartition(".")[2] if isinstance(value, _core.dtype) else f'"{value}"'


def infer_schema(
    prototype_function: Callable, /, *, mutates_args: Any, op_name: str | None = None
) -> str:  # fmt: skip
    """The signature of a function with type hints, as ``(Tensor x, SymInt n=2) -> Tensor``.

    Args:
        mutates_args: names of arguments that it writes to, or ``"unknown"``: all tensors.
        op_name: a name to put in front.
    Raises:
        ValueError: a hint is missing, or an op cannot have an argument or a result of this type.
    """
    signature = inspect.signature(prototype_function)

    def fail(why: str) -> ValueError:
        return ValueError(f"infer_schema(func): {why} Got func with signature {signature}")

    hints = typing.get_type_hints(prototype_function)
    parts, starred, unknown = [], False, mutates_args == "unknown"
    for position, (name, p) in enumerate(signature.parameters.items()):
        if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            raise fail("We do not support positional-only args, varargs, or varkwargs.")
        if p.kind is p.KEYWORD_ONLY and not starred:
            starred = True
            parts.append("*")
        if name not in hints:
            raise fail(f"Parameter {name} must have a type annotation.")
        kind = _kind(hints[name])
        if kind is None:
            raise fail(f"Parameter {name} has unsupported type {hints[name]}.")
        if kind.startswith("Tensor") and (unknown or name in mutates_args):
            kind = f"Tensor(a{position}!){kind.removeprefix('Tensor')}"
        elif not unknown and name in mutates_args:
            raise fail(
                f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated."
            )
        parts.append(f"{kind} {name}" + ("" if p.default is p.empty else f"={_default(p.default)}"))
    if not unknown and not set(mutates_args) <= set(signature.parameters):
        raise fail(f"mutates_args should contain the names of all args that the op mutates, got {mutates_args}.")
    if "return" not in hints:
        raise fail("No return type annotation was provided. Please add one.")
    result = hints["return"]
    results = typing.get_args(result) if typing.get_origin(result) is tuple else (result,)
    words = [] if result in (None, type(None)) else [_kind(hint) for hint in results]
    if any(word not in _RETURNED for word in words):
        raise fail(f"Return has unsupported type {result}.")
    given = str(words[0]) if len(words) == 1 else f"({', '.join(map(str, words))})"
    return f"{op_name or ''}({', '.join(parts)}) -> {given}"
