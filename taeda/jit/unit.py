"""``CompilationUnit``: functions from text."""

from __future__ import annotations

import ast
from typing import Any

from . import ir
from .archive import ArchiveFrontend, Unit, parse_file
from .frontend import FunctionRef, Value
from .modules import ScriptFunction


class _Frontend(ArchiveFrontend):
    """As for archives, with the unit's functions under their plain names."""

    def global_name(self, name: str, node: ast.AST) -> Value:
        """A function of the unit, or what the language has."""
        found = self.unit.find(f"__torch__.{name}")
        return FunctionRef(found) if isinstance(found, ir.Function) else super().global_name(name, node)


class CompilationUnit:
    """Functions in the language of scripts, from their text: attributes by their names.

    Args:
        lang: text of functions.
    Raises:
        RuntimeError: it is not the language of scripts, or types do not fit.
    """

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        self._unit = Unit(lambda name: None, tuple)
        self._unit.frontend = _Frontend
        self._unit.files["__torch__"] = {}
        if lang is not None:
            self.define(lang)

    def define(self, lang: str, rcb: Any = None, _frames_up: int = 0) -> None:
        """Add functions."""
        definitions = parse_file(lang, "__torch__")
        known = self._unit.files["__torch__"]
        assert known is not None
        known.update(definitions)
        for name in definitions:
            found = self._unit.find(f"__torch__.{name}")
            if isinstance(found, ir.Function):
                found.define()

    def __getattr__(self, name: str) -> ScriptFunction:
        found = self.__dict__["_unit"].find(f"__torch__.{name}") if "_unit" in self.__dict__ else None
        if not isinstance(found, ir.Function):
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'")
        return ScriptFunction(found)
