"""Signatures of custom ops in PyTorch's form: ``mylib::scale(Tensor x, float s, SymInt n=2) -> Tensor``."""

from __future__ import annotations

import ast
import collections.abc
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from . import _core
from ._core import Tensor

_KINDS = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", _core.dtype: "ScalarType",
    _core.device: "Device",
}  # fmt: skip
_LISTED = ("Tensor", "SymInt", "float", "bool", "Scalar")
_RETURNED = ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar")


def _kind(hint: Any, listed: bool = True) -> str | None:
    """The word for a type; None if PyTorch has none."""
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
        prototype_function: the function.
        mutates_args: names of arguments that it writes to, or ``"unknown"``: all tensors.
        op_name: a name to put in front.

    Raises:
        ValueError: a hint is missing, or an op cannot have an argument or a result of this type.

    Examples:
        >>> def scaled(x: taeda.Tensor, by: float = 2.0) -> taeda.Tensor:
        ...     return x * by
        >>> taeda.library.infer_schema(scaled, mutates_args=())
        '(Tensor x, float by=2.0) -> Tensor'
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


# ---- reading them, and checking arguments by them --------------------------------------------------------------------


class Argument(NamedTuple):
    """A parameter in a signature, or a result."""

    name: str
    kind: str  #: ``"Tensor"``, ``"int"``, ``"float"``, ``"bool"``, ``"str"``, ``"Scalar"``, ``"ScalarType"``, ...
    optional: bool  #: whether None is taken
    listed: bool  #: whether it is a list
    inner_optional: bool  #: whether None is taken in the list
    default: Any  #: ``inspect.Parameter.empty`` where there is none
    keyword_only: bool
    type: str  #: ``"int[2]?"``
    alias: str  #: what it shares memory with: ``"a"``; ``"a!"`` if it is written to; ``"a -> *"`` if a list keeps it

    @property
    def mutated(self) -> bool:
        """Whether it is written to."""
        return "!" in self.alias

    @property
    def spelled(self) -> str:
        """The type in the form that errors use: ``Optional[List[int]]``."""
        name = "number" if self.kind == "Scalar" else self.kind
        name = f"Optional[{name}]" if self.inner_optional else name
        name = f"List[{name}]" if self.listed else name
        return f"Optional[{name}]" if self.optional else name


class Schema(NamedTuple):
    """A signature that was read."""

    name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]
    text: str  #: without the name
    variadic: bool  #: whether further arguments may follow

    @property
    def mutated(self) -> tuple[str, ...]:
        """The names of the arguments that are written to."""
        return tuple(a.name for a in self.arguments if a.mutated)

    @property
    def outs(self) -> tuple[str, ...]:
        """The names of the tensors that it puts its results into: those that are written to, and go by name alone."""
        return tuple(a.name for a in self.arguments if a.mutated and a.keyword_only)


_TYPE = re.compile(r"(\w+)(\?)?(\[\d*\])?(\?)?")
_NOTE = re.compile(r"\(\s*([a-e]\d*(?:\|[a-e]\d*)*!?(?:\s*->\s*\S+)?|\*)\s*\)|(?<=Tensor)\(([^()]*)\)")
_KNOWN = "Tensor int SymInt float bool str Scalar ScalarType Device Layout MemoryFormat Generator Dimname".split()
_WORDS = {"None": None, "True": True, "False": False, "inf": float("inf"), "Mean": 1, "Sum": 2}


def _default_value(text: str, kind: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if kind in ("ScalarType", "Layout", "MemoryFormat") and not text.isdigit():
        return getattr(_core, text.strip("'\""))
    value = ast.literal_eval(text)
    return float(value) if kind == "float" and type(value) is int else value


def _argument(text: str, keyword_only: bool) -> Argument:
    notes = _NOTE.search(text)
    body, equals, default = _NOTE.sub("", text).partition("=")
    named = re.fullmatch(r"(.*\S)\s+(\w+)\s*", body, re.S)
    whole, name = (named[1], named[2]) if named else (body.strip(), "")
    shape = _TYPE.fullmatch(whole)
    words: tuple[Any, ...] = shape.groups() if shape else (whole, None, None, None)
    kind, inner, sized, optional = words
    listed, kind = sized is not None, "int" if kind == "SymInt" else kind
    return Argument(
        name, kind, bool(optional if listed else inner), listed, listed and bool(inner),
        _default_value(default.strip(), kind) if equals else inspect.Parameter.empty, keyword_only,
        whole.replace("SymInt", "int"), (notes[1] or notes[2]).strip() if notes else "",
    )  # fmt: skip


@functools.lru_cache(maxsize=1024)
def parse_schema(text: str) -> Schema:
    """Read ``name(Tensor(a!) x, float s, *, int n=2) -> Tensor(a!)``, of any types; the name may be left out.

    Raises:
        RuntimeError: it cannot be read.
    """

    def fail(why: str) -> RuntimeError:
        return RuntimeError(f"schema {text!r}: {why}; expected one like 'name(Tensor x, float s, int n=2) -> Tensor'")

    found = re.fullmatch(r"\s*([\w:.]*)\s*\((.*)\)\s*->\s*(.*?)\s*", text, re.S)
    if found is None:
        raise fail("it has no '(arguments) -> results'")
    name, inside, result = found.groups()
    arguments, keyword_only, variadic = [], False, False
    for part in _parts(inside):
        keyword_only, variadic = keyword_only or part == "*", variadic or part == "..."
        if part not in ("*", "..."):
            try:
                arguments.append(_argument(part, keyword_only))
            except (ValueError, SyntaxError, AttributeError):
                raise fail(f"cannot read the default in {part!r}") from None
            if not arguments[-1].name:
                raise fail(f"cannot read {part!r}")
    results = _parts(result[1:-1]) if result.startswith("(") and result.endswith(")") else [result]
    if len({a.name for a in arguments}) < len(arguments):
        raise fail("two arguments have one name")
    returns = tuple(_argument(part, False) for part in results)
    return Schema(name, tuple(arguments), returns, text[text.index("(") :].strip(), variadic)


@functools.lru_cache(maxsize=1024)
def read_schema(text: str) -> Schema:
    """:func:`parse_schema` of an op of the program's own."""
    read = parse_schema(text)
    for a in (*read.arguments, *read.returns):
        if a.kind not in _KNOWN:
            raise RuntimeError(f"schema {text!r}: unknown type in '{a.type} {a.name}' (known are {', '.join(_KNOWN)})")
    return read


def _parts(text: str) -> list[str]:
    """The texts between commas that are in no brackets or quotes."""
    parts, depth, start, quote = [], 0, 0, ""
    for at, c in enumerate(text):
        if quote or c in "\"'":
            quote = "" if c == quote else quote or c
            continue
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def _as_number(x: Any, kinds: str) -> Any:
    """A NumPy number or a tensor of one element as a Python number, if it is of one of these kinds; else None."""
    if isinstance(x, Tensor) and type(x) is Tensor and x.numel() == 1 and not x.is_meta:
        x = x.item()
        return x if kinds != "iub" or isinstance(x, (int, bool)) else None
    return x.item() if _is_numpy(x) and getattr(x, "shape", None) == () and x.dtype.kind in kinds else None


def _is_numpy(x: Any) -> bool:
    """Whether ``x`` is an array or a number of NumPy's."""
    return type(x).__module__ == "numpy" and hasattr(x, "dtype")


def _converted(x: Any, kind: str) -> Any:
    """``x`` as an argument of the kind takes it; ``_WRONG`` where it does not."""
    if kind == "Tensor":
        return x if isinstance(x, Tensor) else _WRONG
    if kind == "str":
        return x if isinstance(x, str) else _WRONG
    if kind in ("int", "float", "bool", "Scalar"):
        number = x if isinstance(x, (int, float, complex)) else _as_number(x, "iub" if kind == "int" else "iubf")
        if number is None:
            symbolic = hasattr(x, "__index__") or hasattr(x, "__float__")  # sizes and numbers of a program on record
            return x if symbolic and not isinstance(x, Tensor) and not _is_numpy(x) else _WRONG
        if kind == "int":
            return int(number) if isinstance(number, int) and type(number) in (int, bool) else (
                number if isinstance(number, int) else _WRONG
            )  # fmt: skip
        if kind == "float":
            return _WRONG if isinstance(number, complex) else float(number) if type(number) in (int, bool) else number
        if kind == "bool":
            return bool(number) if type(number) in (int, bool) else _WRONG
        return number
    if kind == "ScalarType":
        return x if isinstance(x, (_core.dtype, int)) else _WRONG
    if kind == "Device":
        return x if isinstance(x, (_core.device, str, int)) else _WRONG
    return x


_WRONG = object()


def checked(qualname: str, schema: Schema, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments of a call, as the op takes them: those with names in their places, except for those that go by name
    alone; defaults are not filled in."""

    def declared() -> str:
        return f"Declaration: {qualname}{schema.text}"

    places = [a for a in schema.arguments if not a.keyword_only]
    if len(args) > len(places):
        raise RuntimeError(
            f"{qualname}() expected at most {len(places)} argument(s) but received {len(args)} argument(s). "
            f"{declared()}"
        )
    given = {a.name: x for a, x in zip(places, args, strict=False)}
    for name, x in kwargs.items():
        if name in given:
            raise RuntimeError(f"{qualname}(): argument '{name}' is given by position and by name. {declared()}")
        given[name] = x
    placed: list = []
    named: dict[str, Any] = {}
    late = False  # an argument before was left to its default: those after it go by name
    for a in schema.arguments:
        if a.name not in given:
            if a.default is inspect.Parameter.empty:
                raise RuntimeError(f"{qualname}() is missing value for argument '{a.name}'. {declared()}")
            late = True
            continue
        x = given.pop(a.name)
        if x is not None or not (a.optional or (a.kind == "Tensor" and not a.listed)):
            x = _checked_argument(qualname, a, x, declared)
        if a.keyword_only or late:
            named[a.name] = x
        else:
            placed.append(x)
    if given:
        raise RuntimeError(f"{qualname}(): unknown keyword argument '{next(iter(given))}'. {declared()}")
    return tuple(placed), named


def _checked_argument(qualname: str, a: Argument, x: Any, declared: Callable[[], str]) -> Any:
    if not a.listed:
        made = _converted(x, a.kind)
    elif isinstance(x, (list, tuple)):
        items = [y if y is None and a.inner_optional else _converted(y, a.kind) for y in x]
        made = _WRONG if any(y is _WRONG for y in items) else items
    else:
        made = _WRONG
    if made is _WRONG:
        raise RuntimeError(
            f"{qualname}() Expected a value of type '{a.spelled}' for argument '{a.name}' but instead found type "
            f"'{type(x).__name__}'. {declared()}"
        )
    return made


def takes(schema: Schema) -> tuple[str, ...]:
    """The kinds of the positional arguments, in the words of ``_core.custom.TAKES``."""
    plain = {"Tensor", "int", "float", "bool", "str"}
    return tuple(
        ("Tensor[]" if a.kind == "Tensor" and not a.inner_optional else "?") if a.listed
        else a.kind if a.kind in plain else "?"
        for a in schema.arguments if not a.keyword_only
    )  # fmt: skip
