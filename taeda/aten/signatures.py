"""The signatures of PyTorch's native ops, and of the ops of TorchScript's language (``schemas.txt``)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any

from .. import _core
from .._core import Tensor
from .._schema import Argument, Schema, parse_schema

#: Arguments that say where a result is, or that hold by themselves.
PLACES = frozenset(
    "device layout pin_memory requires_grad memory_format non_blocking out inplace implicit sparse_grad".split()
)
#: The signatures of functions that have other names here, and the ops that take numbers in the place of tensors.
_OTHERWISE = {"power": ("pow",), "true_divide": ("div",), "split": ("split.Tensor", "split_with_sizes")}
_WRAPPING = frozenset("add sub mul div".split())
_TYPES: dict[str, tuple[type, ...]] = {
    "Tensor": (Tensor,), "int": (int,), "float": (int, float), "Scalar": (int, float, complex), "bool": (bool,),
    "str": (str,), "ScalarType": (_core.dtype,),
}  # fmt: skip


@functools.cache
def signatures() -> dict[str, list[str]]:
    """``{"aten::relu": ["aten::relu(Tensor self) -> Tensor"]}``: the overloads of each op, as text."""
    table: dict[str, list[str]] = {}
    for line in _lines():
        text = line.removeprefix("~")
        table.setdefault(text[: text.index("(")].partition(".")[0], []).append(text)
    return table


def _lines() -> list[str]:
    return resources.files(__package__).joinpath("schemas.txt").read_text().splitlines()


@functools.cache
def composites() -> frozenset[str]:
    """The ops that PyTorch always computes by other ops, such as ``"aten::linear"``, ``"aten::real"``."""
    return frozenset(line[1 : line.index("(")] for line in _lines() if line.startswith("~"))


@functools.cache
def signature(name: str, overload: str = "default") -> Schema | None:
    """The signature of a native op, with the arguments that it writes to; None if there is none of that name.

    An overload that PyTorch has not is read as the op's first one that gives new results.
    """
    label = f"aten::{name}" if overload in ("", "default") else f"aten::{name}.{overload}"
    found = [parse_schema(line) for line in signatures().get(f"aten::{name}", ())]
    exact = [s for s in found if s.name == label]
    return next(iter([*exact, *(s for s in found if not s.outs)]), None)


@functools.cache
def _overloads(name: str) -> tuple[Schema, ...]:
    """The signatures that may be the function ``name``, of those that give new results."""
    names = _OTHERWISE.get(name, (name, f"special_{name}"))
    lines = [
        line
        for n in names
        for line in signatures().get(f"aten::{n.partition('.')[0]}", ())
        if "." not in n or line.startswith(f"aten::{n}(")
    ]
    read = [parse_schema(line) for line in lines]
    return tuple(s for s in read if not s.outs and not (names[0] in _WRAPPING and ".Scalar" in s.name))


def matched(
    name: str, ours: Sequence[str], given: Mapping[str, Any], value_of: Callable[[Any], Any] = lambda x: x
) -> tuple[Schema, dict[str, Any]] | None:
    """The first signature of an op that takes a call's arguments, and the arguments by its names.

    Args:
        name: the name of the function here.
        ours: its parameters. One that the op does not have stands for the op's in the same place.
        given: the arguments by the names of the function here.
        value_of: gives an argument's value, for steps of graphs.

    Returns:
        The signature and the arguments; None where no signature takes them.
    """
    wrapping = _OTHERWISE.get(name, (name,))[0] in _WRAPPING
    for schema in _overloads(name):
        names, left, found = {a.name for a in schema.arguments}, dict(given), {}
        for i, a in enumerate(schema.arguments):
            key = a.name
            if key not in given and i < len(ours) and ours[i] not in names and ours[i] not in PLACES:
                key = ours[i]
            if key not in left and a.optional and a.default is inspect.Parameter.empty:
                left[key] = None  # an argument that the native op requires, such as a bias of None
            if a.name in PLACES or (key not in left and a.default is not inspect.Parameter.empty):
                continue
            value = left.pop(key, _MISSING)
            if isinstance(value, (tuple, list)) and len(value) == 1 and isinstance(value[0], (tuple, list)):
                value = value[0]
            if a.listed and not a.type.endswith(("[]", "[]?")) and not isinstance(value, (tuple, list)):
                value = [value] * int(a.type[a.type.index("[") + 1 : a.type.index("]")])
            if not _fits(value, a, value_of, wrapping):
                break
            found[a.name] = value
        else:
            if all(k in PLACES or v is False for k, v in left.items()):
                return schema, found
    return None


_MISSING = object()


def _fits(value: Any, a: Argument, value_of: Callable[[Any], Any], wrapping: bool) -> bool:
    """Whether ``value`` can be the argument ``a``."""
    if value is None:
        return a.optional
    if a.listed:
        return isinstance(value, (tuple, list)) and all(
            (v is None and a.inner_optional) or _is(value_of(v), a.kind) for v in value
        )
    value = value_of(value)
    return _is(value, a.kind) or (wrapping and a.kind == "Tensor" and _is(value, "Scalar"))


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES.get(kind, ())) and (kind in ("bool", "Scalar") or not isinstance(value, bool))
