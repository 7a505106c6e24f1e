"""Docstrings of classes, completed when they are read with what their bases say of arguments, shapes and errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from inspect import CO_VARARGS, cleandoc

_POINTER = re.compile(r"[;,] (?:further )?arguments:? (?:see|as)\s+(?::class:`)?([A-Z_]\w*)`?")
_ARGUMENT = re.compile(r"^ {4}\*{0,2}(\w[\w, *]*):.*\n?(?: {5,}.*\n?)*", re.MULTILINE)
#: The sections of a docstring, in the order in which they stand.
_SECTIONS = ("", "Args", "Shape", "Returns", "Raises", "Examples")
_INHERITED = ("Shape", "Raises")


def _sections(doc: str | None) -> list[tuple[str, str]]:
    """The parts of a docstring: text, with an empty name, and sections with their names."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in cleandoc(doc or "").split("\n"):
        name = line[:-1] if line.endswith(":") else ""
        if name and name in _SECTIONS:
            parts.append((name, []))
        elif parts[-1][0] and line[:1].strip():
            parts.append(("", [line]))
        else:
            parts[-1][1].append(line)
    return [(name, "\n".join(lines).strip("\n").rstrip()) for name, lines in parts]


def _arguments_of(doc: str | None) -> list[tuple[str, str]]:
    """The names and the text of each entry of a docstring's list of arguments."""
    text = dict(_sections(doc)).get("Args", "")
    return [(part[1], part[0].rstrip()) for part in _ARGUMENT.finditer(text)]


def _completed(kind: type, doc: str) -> str:
    found = _POINTER.search(doc)
    others = [getattr(sys.modules[kind.__module__], found[1])] if found else list(kind.__mro__[1:-1])
    texts = [t for t in (getattr(other, "__doc__", None) for other in others) if t and ":\n" in t]
    code = getattr(kind.__init__, "__code__", None)  # type: ignore[misc]
    if not texts or code is None:
        return doc
    own = _sections(_POINTER.sub("", doc))
    takes = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    every = bool(code.co_flags & CO_VARARGS)
    entries: dict[str, str] = {}
    for t in (doc, *texts):
        for names, text in _arguments_of(t):
            listed = names.replace("*", "").split(", ")
            inherited = not text.lstrip().startswith("*") if every else not set(listed).isdisjoint(takes)
            if (t is doc or inherited) and entries.keys().isdisjoint(listed):
                entries |= dict.fromkeys(listed, text)
    order = [*(name for name in takes if name in entries), *entries]
    added = {"Args": "\n".join(dict.fromkeys(entries[name] for name in order))}
    for t in texts:
        added |= {n: text for n, text in _sections(t) if n in _INHERITED and n not in added}
    parts = [(name, added.pop(name) if name == "Args" else text) for name, text in own]
    present = {name for name, _ in own}
    for name, text in added.items():
        if text and name not in present:
            later = _SECTIONS[_SECTIONS.index(name) + 1 :]
            at = next((i for i, (n, _) in enumerate(parts) if n in later), len(parts))
            parts.insert(at, (name, text))
    return "\n\n".join(f"{name}:\n{text}" if name else text for name, text in parts if text)


class _Docstring:
    """A docstring that is completed when it is read: completing all of them would make the import slower."""

    def __init__(self, kind: type, doc: str) -> None:
        self.kind, self.doc = kind, doc

    def __get__(self, instance: object, owner: type | None = None) -> str:
        return _completed(self.kind, self.doc)


def complete_docstrings(kinds: Iterable[type]) -> None:
    """Complete the docstring of each class: with the arguments that it takes and does not describe, and with the
    sections ``Shape`` and ``Raises`` where it has none. They come from the class that its docstring names, as in
    "arguments as :class:`Other`", else from its bases."""
    for kind in kinds:
        doc = kind.__dict__.get("__doc__")
        if isinstance(doc, str):
            kind.__doc__ = _Docstring(kind, doc)  # type: ignore[assignment]
