"""Helpers of the layers: an int as a tuple, reversed padding."""

from __future__ import annotations

import collections.abc
import itertools
import re
import sys
from collections.abc import Iterable
from inspect import CO_VARARGS, cleandoc

import taeda

from ..parameter import Parameter

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse"):
    """A function that repeats one value ``n`` times and makes any iterable a tuple."""

    def parse(x):
        return tuple(x) if isinstance(x, collections.abc.Iterable) else tuple(itertools.repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _make_parameters(module, device, dtype, **shapes) -> None:
    """Uninitialised parameters of ``module`` by name and shape; where the shape is None there is none."""
    for name, shape in shapes.items():
        made = None if shape is None else Parameter(taeda.empty(shape, device=device, dtype=dtype))
        module.register_parameter(name, made)


def _reverse_repeat_tuple(t, n: int) -> tuple:
    """Each element ``n`` times, last first: padding per dimension as ``functional.pad`` wants it."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _unless(module, **defaults) -> str:
    """For ``extra_repr``: ``, name=value`` of each of these attributes that is not what it is by default."""
    found = ((name, getattr(module, name), default) for name, default in defaults.items())
    return "".join(
        f", {name}={value}"
        for name, value, default in found
        if (value is not default if isinstance(default, bool) else value != default)
    )


_POINTER = re.compile(r"[;,] (?:further )?arguments:? (?:see|as)\s+(?::class:`)?([A-Z_]\w*)`?")
_ARGUMENTS = re.compile(r"^Args:\n((?: {4}.*\n?)+)", re.MULTILINE)
_ARGUMENT = re.compile(r"^ {4}(\w[\w, ]*):.*\n?(?: {5,}.*\n?)*", re.MULTILINE)


def _arguments_of(doc: str | None) -> list[tuple[str, str]]:
    """The names and the text of each entry of a docstring's list of arguments."""
    section = _ARGUMENTS.search(cleandoc(doc or ""))
    return [(part[1], part[0].rstrip()) for part in _ARGUMENT.finditer(section[1] if section else "")]


def _completed(kind: type, doc: str) -> str:
    found = _POINTER.search(doc)
    bases = [c for c in kind.__mro__[1:] if c.__name__.startswith("_") and "Args:" in (c.__doc__ or "")]
    others = [getattr(sys.modules[kind.__module__], found[1])] if found else bases
    code = getattr(kind.__init__, "__code__", None)  # type: ignore[misc]
    if not others or code is None:
        return doc
    takes = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    every = bool(code.co_flags & CO_VARARGS)
    parts = [part for other in others for part in _arguments_of(other.__doc__)]
    kept = [text for names, text in parts if every or not set(names.split(", ")).isdisjoint(takes)]
    return "\n".join([_POINTER.sub("", cleandoc(doc)).rstrip(), "", "Args:", *kept]) if kept else doc


class _Docstring:
    """A docstring that is completed when it is read: completing all of them would make the import slower."""

    def __init__(self, kind: type, doc: str) -> None:
        self.kind, self.doc = kind, doc

    def __get__(self, instance: object, owner: type | None = None) -> str:
        return _completed(self.kind, self.doc)


def complete_docstrings(kinds: Iterable[type]) -> None:
    """Give each class without a list of arguments those that it takes of the classes that have one: of the class that
    its docstring names, as in "arguments as :class:`Other`", else of its private bases."""
    for kind in kinds:
        doc = kind.__doc__
        if doc is not None and "Args:" not in doc:
            kind.__doc__ = _Docstring(kind, doc)  # type: ignore[assignment]


def consume_prefix_in_state_dict_if_present(state_dict: dict, prefix: str) -> None:
    """Strip ``prefix`` from the keys of ``state_dict`` in place (and from its metadata)."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        for key in list(metadata):
            if key == prefix.rstrip("."):
                metadata[""] = metadata.pop(key)
            elif key.startswith(prefix):
                metadata[key[len(prefix) :]] = metadata.pop(key)
