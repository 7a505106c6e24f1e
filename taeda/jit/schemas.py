"""Signatures of ops, and which op a call with arguments of given types means."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable
from typing import Any

from .._core import Tensor
from ..aten.signatures import signatures
from ..aten.spellings import function_of
from .builtins import PRIMITIVES, SCALARS, TENSORS, member
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
    """What computes the op ``space::name.overload``, or None. Names that this knows are the whole list: nothing else is
    looked up."""
    if space == "prim":
        return PRIMITIVES.get(name)
    if space != "aten":
        return None
    found = TENSORS.get(name) or function_of(name, overload) or SCALARS.get(name)
    return found or (None if name.startswith("_") or not hasattr(Tensor, name) else member(name))


class Schema:
    """One signature: ``space::name.overload``, its parameters and its result."""

    __slots__ = ("function", "name", "overload", "parameters", "result", "space", "text", "variadic")

    def __init__(self, text: str) -> None:
        self.text = text
        head, _, rest = text.partition("(")
        self.space, _, name = head.partition("::")
        self.name, _, self.overload = name.partition(".")
        at = _closing(rest)
        self.variadic = False
        self.parameters: list[Parameter] = []
        keyword = False
        for part in _split(rest[:at]):
            if part == "*":
                keyword = True
            elif part == "...":
                self.variadic = True
            else:
                self.parameters.append(_parameter(part, keyword))
        self.result = _result(self.name, rest[at + 1 :].replace("->", "", 1).strip())
        self.function = self._function()

    def _function(self) -> Callable:
        named = f"{self.name}.{self.overload}"
        if self.space == "aten":
            special_form = TENSORS.get(named) or SCALARS.get(named)
            if special_form is not None:
                return special_form
            if self.name in SCALARS and not any(p.type == TENSOR for p in self.parameters):
                return SCALARS[self.name]
        function = find_function(self.space, self.name, self.overload)
        assert function is not None, self.text
        return function

    @property
    def qualified(self) -> str:
        """``aten::add``."""
        return f"{self.space}::{self.name}"

    def __str__(self) -> str:
        return self.text


def _closing(text: str) -> int:
    """Where the parenthesis that is open ends."""
    depth = 0
    for at, c in enumerate(text):
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
            if depth < 0:
                return at
    raise ValueError(text)


def _split(text: str) -> list[str]:
    """At the commas outside of brackets and quotes."""
    parts, depth, start, quoted = [], 0, 0, False
    for at, c in enumerate(text):
        quoted ^= c == '"'
        if quoted:
            continue
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _parameter(text: str, keyword: bool) -> Parameter:
    body, equals, default = text.partition("=")
    kind, _, name = body.rpartition(" ")
    match = re.match(r"(\w+)\[(\d+)\]\??$", kind)
    convert = next((n for n in _NUMBERS_OF_THINGS if kind.rstrip("?") == n), "")
    return Parameter(
        name, type_of_text(kind), _default(default, kind) if equals else REQUIRED, keyword,
        int(match[2]) if match else 0, convert,
    )  # fmt: skip


def _default(text: str, kind: str) -> Any:
    words = {"None": None, "True": True, "False": False, "inf": float("inf")}
    if text in words:
        return words[text]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):  # Mean, contiguous_format: the numbers that enums have
        return {"Mean": 1, "contiguous_format": 0}.get(text)
    return float(value) if kind == "float" and type(value) is int else value


@functools.cache
def type_of_text(text: str) -> Type:
    """The type that a signature writes as ``text``: ``Tensor?``, ``int[2]``, ``Dict(k, t)[]``, ``(str, t)``."""
    text = text.strip()
    if text.endswith("?"):
        return optional(type_of_text(text[:-1]))
    if text.endswith("]"):
        return list_of(type_of_text(text[: text.rindex("[")]))
    if text.startswith("("):
        return tuple_of(*map(type_of_text, _split(text[1:-1])))
    name, paren, inner = text.partition("(")
    if paren:
        return Type(name, *map(type_of_text, _split(inner[:-1])))
    if name in PLAIN:
        return PLAIN[name]
    if name in _NUMBERS_OF_THINGS:
        return INT
    return Var(name) if name[0].islower() else Type(name)


def _result(name: str, text: str) -> Type:
    if not text.startswith("(") or text.endswith("]"):
        return type_of_text(text) if text != "..." else ANY
    types, names = [], []
    for part in _split(text[1:-1]):
        kind, _, field = part.rpartition(" ")
        types.append(type_of_text(kind or part))
        names.append(field if kind else "")
    if not types:
        return NONE
    if all(names) and len(types) > 1:
        return NamedTupleType(name, names, types, {}, cls=tuple)
    return types[0] if len(types) == 1 else tuple_of(*types)


@functools.cache
def _lines() -> dict[str, list[str]]:
    own = ("prim::StoreOut(Tensor self, Tensor value) -> Tensor", "prim::OldDiv(Tensor self, Any other) -> Tensor")
    # f(..., out=self), and division before PyTorch 1.6
    return signatures() | {line[: line.index("(")]: [line] for line in own}


@functools.cache
def overloads(qualified: str) -> tuple[Schema, ...]:
    """The signatures of ``aten::add``; none where there is no such op. Those of integers are tried first."""
    found = [Schema(line) for line in _lines().get(qualified, ())]
    return tuple(sorted(found, key=lambda s: _FIRST.index(s.overload) if s.overload in _FIRST else len(_FIRST)))


_FIRST = ("int", "float", "int_float", "float_int")


def names() -> list[str]:
    """All ops."""
    return list(_lines())


# ---- which one a call means ------------------------------------------------------------------------------------------
class NoMatch(Exception):
    """The arguments do not fit; the message says why."""


#: How an argument becomes what is wanted, where it is not that already.
AS_IT_IS, WRAP_INT, TO_LIST, IMPLICIT, SPREAD = "", "wrap", "list", "implicit", "spread"
_INTS = list_of(INT)


def match_type(wanted: Type, given: Type, found: dict[str, Type], implicit: bool, broadcast: int = 0) -> str | None:
    """How ``given`` fits ``wanted``, or None: it does not. Open types are noted in ``found``."""
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

    A value comes from an argument, by its number or name, or is the default (None).

    Raises:
        NoMatch: the arguments do not fit.
    """
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
