"""Signatures of ops, and which op a call with arguments of given types means."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

from .._core import Tensor
from .._schema import Argument, _parts, parse_schema
from ..aten import DECLARED
from ..aten.signatures import signatures
from ..aten.spellings import function_of
from .builtins import PRIMITIVES, SCALARS, TENSORS, member
from .dtypes import number
from .types import (
    ANY,
    BOOL,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    NUMBERS,
    PLAIN,
    REQUIRED,
    STR,
    TENSOR,
    NamedTupleType,
    Parameter,
    Type,
    Var,
    dict_of,
    is_subtype,
    is_tuple,
    list_of,
    optional,
    tuple_of,
    unify,
)  # fmt: skip

_NUMBERS_OF_THINGS = ("ScalarType", "Layout", "MemoryFormat")


def find_function(space: str, name: str, overload: str = "") -> Callable | None:
    """The function that computes the op ``space::name.overload``, or None. Only names on its own list are looked up,
    and ops that the program declared.
    """
    if space == "prim":
        return PRIMITIVES.get(name)
    if space != "aten":
        return DECLARED.get(f"{space}::{name}")
    named = f"{name}.{overload}"
    found = TENSORS.get(named) or SCALARS.get(named) or TENSORS.get(name) or function_of(name, overload)
    found = found or SCALARS.get(name)
    return found or (None if name.startswith("_") or not hasattr(Tensor, name) else member(name))


class Schema:
    """One signature: ``space::name.overload``, its parameters and its result."""

    __slots__ = ("function", "name", "overload", "parameters", "result", "space", "text", "variadic")

    def __init__(self, text: str) -> None:
        self.text, read = text, parse_schema(text)
        self.space, _, name = read.name.partition("::")
        self.name, _, self.overload = name.partition(".")
        self.variadic = read.variadic
        self.parameters = [_parameter(a) for a in read.arguments]
        self.result = _result(self.name, read.returns)
        self.function = self._function()

    def _function(self) -> Callable:
        named = f"{self.name}.{self.overload}"
        if self.space == "aten" and self.name in SCALARS and not any(p.type == TENSOR for p in self.parameters):
            return TENSORS.get(named) or SCALARS.get(named) or SCALARS[self.name]
        function = find_function(self.space, self.name, self.overload)
        assert function is not None, self.text
        return _with_a_list(function) if self.result == list_of(TENSOR) else function

    @property
    def qualified(self) -> str:
        """``aten::add``."""
        return f"{self.space}::{self.name}"

    def __str__(self) -> str:
        return self.text


def _with_a_list(function: Callable) -> Callable:
    """``function``, whose result is a list where it is a tuple: scripts have tensors in lists."""

    def run(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return list(result) if isinstance(result, tuple) else result

    return run


def _parameter(a: Argument) -> Parameter:
    match = re.match(r"\w+\[(\d+)\]", a.type)
    convert = a.kind if a.kind in _NUMBERS_OF_THINGS else ""
    code = number(a.default)
    default = REQUIRED if a.default is inspect.Parameter.empty else a.default if code is None else code
    return Parameter(
        a.name, type_of_text(a.type), default, a.keyword_only, int(match[1]) if match else 0, convert
    )  # fmt: skip


@functools.cache
def type_of_text(text: str) -> Type:
    """The type that a signature writes as ``text``: ``Tensor?``, ``int[2]``, ``Dict(k, t)[]``, ``(str, t)``."""
    text = text.strip()
    if text.endswith("?"):
        return optional(type_of_text(text[:-1]))
    if text.endswith("]"):
        return list_of(type_of_text(text[: text.rindex("[")]))
    if text.startswith("("):
        return tuple_of(*map(type_of_text, _parts(text[1:-1])))
    name, paren, inner = text.partition("(")
    if paren:
        return Type(name, *map(type_of_text, _parts(inner[:-1])))
    if name in PLAIN:
        return PLAIN[name]
    if name in _NUMBERS_OF_THINGS:
        return INT
    return Var(name) if name[0].islower() else Type(name)


def _result(name: str, returns: tuple[Argument, ...]) -> Type:
    if not returns:
        return NONE
    types = [ANY if r.type == "..." else type_of_text(r.type) for r in returns]
    names = [r.name for r in returns]
    if all(names) and len(types) > 1:
        return NamedTupleType(name, names, types, {}, cls=tuple)
    return types[0] if len(types) == 1 else tuple_of(*types)


@functools.cache
def _lines() -> dict[str, list[str]]:
    own = ("prim::StoreOut(Tensor self, Tensor value) -> Tensor", "prim::OldDiv(Tensor self, Any other) -> Tensor")
    # f(..., out=self), and division before PyTorch 1.6
    return signatures() | {line[: line.index("(")]: [line] for line in own}


def overloads(qualified: str) -> tuple[Schema, ...]:
    """The signatures of ``aten::add`` that return new results, without ``out``; none if there is no such op. Integers'
    signatures come first. An op of the program has the one that it was declared with.
    """
    own = DECLARED.get(qualified)
    return _overloads(qualified) if own is None else (Schema(qualified + own._schema),)


@functools.cache
def _overloads(qualified: str) -> tuple[Schema, ...]:
    read = [parse_schema(line) for line in _lines().get(qualified, ())]
    found = [Schema(s.name + s.text) for s in read if not s.outs]
    return tuple(sorted(found, key=lambda s: _FIRST.index(s.overload) if s.overload in _FIRST else len(_FIRST)))


_FIRST = ("int", "float", "int_float", "float_int")


def names() -> list[str]:
    """All ops."""
    return list(_lines())


# ---- which one a call means ------------------------------------------------------------------------------------------
class NoMatch(Exception):
    """The arguments do not fit; the message says why."""


#: How an argument is converted to the parameter's type, unless it has that type already.
AS_IT_IS, WRAP_INT, TO_LIST, IMPLICIT, SPREAD = "", "wrap", "list", "implicit", "spread"
_INTS = list_of(INT)


def match_type(wanted: Type, given: Type, found: dict[str, Type], implicit: bool, broadcast: int = 0) -> str | None:
    """The way in which ``given`` fits ``wanted``; None if it does not. Open types are noted in ``found``."""
    if isinstance(wanted, Var):
        known = found.get(wanted.name)
        if known is None:
            found[wanted.name] = given
            return AS_IT_IS
        if is_subtype(given, known):
            return AS_IT_IS
        joined = unify(known, given)
        if joined is None or joined.name == "Optional":
            return None
        found[wanted.name] = joined
        return AS_IT_IS
    if wanted == given or wanted is ANY:
        return AS_IT_IS
    if has_var(wanted):
        if wanted.name == given.name and len(wanted.args) == len(given.args):
            whole = [match_type(w, g, found, False) for w, g in zip(wanted.args, given.args, strict=True)]
            return AS_IT_IS if all(w == AS_IT_IS for w in whole) else None
        if wanted.name == "Optional":
            return AS_IT_IS if given is NONE else match_type(wanted.element, given, found, implicit)
        if wanted.name == "List" and is_tuple(given) and given.args:
            found_one = match_type(wanted, list_of(given.args[0]), found, implicit)
            return TO_LIST if found_one == AS_IT_IS and len(set(given.args)) == 1 else None
        return None
    if is_subtype(given, wanted):
        return AS_IT_IS
    if wanted.name == "Optional":
        return match_type(wanted.element, given, found, implicit, broadcast)
    if wanted.name == "List":
        element = wanted.element
        if broadcast and is_subtype(given, element):
            return WRAP_INT
        if is_tuple(given) and all(is_subtype(t, element) for t in given.args):
            return TO_LIST
        if given.name == "List" and element.name == "Optional" and is_subtype(given.element, element):
            return AS_IT_IS  # read only, as ops do with their lists
        if given.name == "List" and element is NUMBER and given.element in NUMBERS:
            return AS_IT_IS
        return None
    if implicit:
        if given == TENSOR and wanted in (INT, FLOAT, NUMBER):
            return IMPLICIT
        if given is STR and wanted is DEVICE:
            return IMPLICIT
        if given is NUMBER and wanted in (INT, FLOAT):
            return IMPLICIT
        if given is INT and wanted is FLOAT:
            return IMPLICIT
        if given is BOOL and wanted in (INT, FLOAT, NUMBER):
            return IMPLICIT
    return None


def has_var(t: Type) -> bool:
    """Whether a type is left open, or a part of it."""
    return isinstance(t, Var) or any(map(has_var, t.args))


def fill(t: Type, found: dict[str, Type]) -> Type:
    """``t`` with its open types filled in."""
    if isinstance(t, Var):
        if t.name not in found:
            raise NoMatch(f"the type {t} is left open")
        return found[t.name]
    if not has_var(t):
        return t
    args = [fill(a, found) for a in t.args]
    if t.name == "Optional":
        return optional(args[0])
    return dict_of(*args) if t.name == "Dict" else Type(t.name, *args)


def bind(
    parameters: list[Parameter], args: list[Type], keywords: dict[str, Type], implicit: bool, variadic: bool = False
) -> tuple[list[tuple[int | str | None, str]], dict[str, Type]]:  # fmt: skip
    """For each parameter where its value comes from and how it is converted; and the open types.

    A value comes from an argument, by its number or name, or is the default (None)."""
    found: dict[str, Type] = {}
    sources: list[tuple[int | str | None, str]] = []
    used, names_used = 0, set()
    for i, p in enumerate(parameters):
        source: int | str | None = None
        if not p.keyword and used < len(args):
            source, given = used, args[used]
            used += 1
            if p.name in keywords:
                raise NoMatch(f"argument {p.name} specified twice")
            last = i + 1 == len(parameters) or parameters[i + 1].keyword
            if last and p.type == _INTS and not p.broadcast and all(t == INT for t in args[i:]):
                sources.append((source, SPREAD))  # `x.view(2, 3)` for `view(int[] size)`
                used = len(args)
                continue
        elif p.name in keywords:
            source, given = p.name, keywords[p.name]
            names_used.add(p.name)
        elif p.default is REQUIRED:
            raise NoMatch(f"Argument {p.name} not provided.")
        else:
            sources.append((None, AS_IT_IS))
            continue
        how = match_type(p.type, given, found, implicit, p.broadcast)
        if how is None:
            raise NoMatch(
                f"Expected a value of type '{p.type}' for argument '{p.name}' but instead found type '{given}'."
            )
        sources.append((source, how))
    if used < len(args) and not variadic:
        raise NoMatch(f"Expected at most {used} arguments but found {len(args)} positional arguments.")
    unknown = set(keywords) - names_used
    if unknown:
        raise NoMatch(f"Unknown keyword argument '{sorted(unknown)[0]}'.")
    return sources, found
