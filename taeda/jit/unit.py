"""``CompilationUnit``: functions from text."""

from __future__ import annotations

import ast
import builtins
import sys
import textwrap
from collections import ChainMap
from collections.abc import Mapping
from typing import Any

from . import ir
from .archive import ArchiveFrontend, Space, Unit, parse_file
from .errors import Source
from .frontend import FunctionRef, Sugar, Value
from .modules import ScriptFunction
from .python import SourceFrontend
from .source import annotate, write_slices
from .types import Type


class _Unit(Unit):
    """The functions of a text, and what names mean where it is defined."""

    names: Mapping[str, Any] = {}


class _Frontend(ArchiveFrontend, SourceFrontend):
    """Looks a name up in the unit, then where the text is defined, then in the language."""

    unit: _Unit

    def __init__(self, function: ir.Function, unit: _Unit, source: Source) -> None:
        SourceFrontend.__init__(self, function, source, unit.names.__getitem__)
        self.unit = unit

    def global_name(self, name: str, node: ast.AST) -> Value:
        """The value of a name that is no variable; None if it has no value."""
        found = self.unit.find(f"__torch__.{name}")
        if isinstance(found, ir.Function):
            return FunctionRef(found)
        value = SourceFrontend.global_name(self, name, node)
        return super().global_name(name, node) if value is None else value

    def attribute_of(self, value: Sugar, name: str, node: ast.AST) -> Value:
        """An attribute of a module or class of Python, or a part of a qualified name of the language."""
        kind = ArchiveFrontend if isinstance(value, Space) else SourceFrontend
        return kind.attribute_of(self, value, name, node)

    def type_of_sugar(self, value: Sugar, node: ast.AST) -> Type | None:
        """The type that a name stands for."""
        return SourceFrontend.type_of_sugar(self, value, node)


class CompilationUnit:
    """Functions in the language of scripts, from their text: attributes by their names.

    Names mean the same as to the caller: modules such as ``taeda``, functions, constants.

    Args:
        lang: text of functions.
    Raises:
        RuntimeError: it is not the language of scripts, or types do not fit.
    """

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        self._unit = _Unit(lambda name: None, tuple)
        self._unit.frontend = _Frontend
        self._unit.files["__torch__"] = {}
        if lang is not None:
            self.define(lang, _frames_up=_frames_up + 1)

    def define(self, lang: str, rcb: Any = None, _frames_up: int = 0) -> None:
        """Add functions."""
        definitions = parse_file(textwrap.dedent(lang), "__torch__")
        for node, source in definitions.values():
            if isinstance(node, ast.FunctionDef):
                annotate(source, node)
                write_slices(node)
        known = self._unit.files["__torch__"]
        assert known is not None
        known.update(definitions)
        frame = sys._getframe(_frames_up + 1)
        self._unit.names = ChainMap(frame.f_locals, frame.f_globals, vars(builtins))
        try:
            for name in definitions:
                found = self._unit.find(f"__torch__.{name}")
                if isinstance(found, ir.Function):
                    found.define()
        finally:
            self._unit.names = {}  # the caller's variables can go

    def __getattr__(self, name: str) -> ScriptFunction:
        found = self.__dict__["_unit"].find(f"__torch__.{name}") if "_unit" in self.__dict__ else None
        if not isinstance(found, ir.Function):
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'")
        return ScriptFunction(found)
