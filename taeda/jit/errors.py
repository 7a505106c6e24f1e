"""Errors of programs, with the line of the source and a caret."""

from __future__ import annotations

import ast
from typing import Any


class CompileError(RuntimeError):
    """A program, or part of one, cannot be compiled."""


class FrontendError(CompileError):
    """The source has something that scripts do not."""


class NotSupportedError(FrontendError):
    """A part of Python that scripts do not have."""


class UnsupportedNodeError(NotSupportedError):
    """A kind of expression or statement that scripts do not have."""


class Source:
    """Text that is compiled: its name and where in a file its first line is."""

    def __init__(self, text: str, name: str = "<string>", first: int = 1, indent: int = 0) -> None:
        self.lines, self.name, self.first, self.indent = text.splitlines(), name, first, indent

    def excerpt(self, node: Any) -> str:
        """The lines around a node, with its place marked."""
        line = getattr(node, "lineno", 0)
        if not 0 < line <= len(self.lines):
            return ""
        start = getattr(node, "col_offset", 0)
        end = node.end_col_offset if getattr(node, "end_lineno", line) == line else len(self.lines[line - 1])
        mark = " " * start + "~" * max(end - start, 1) + " <--- HERE"
        above = self.lines[max(0, line - 4) : line]
        return "\n".join([f'  File "{self.name}", line {self.first + line - 1}', *above, mark])

    def fail(self, node: Any, message: str, kind: type[Exception] = CompileError) -> Any:
        """Raise ``kind`` with the place of ``node``."""
        raise kind(f"\n{message.rstrip('.')}:\n{self.excerpt(node)}") from None


_NAMES = {
    ast.Try: "try blocks", ast.AsyncFunctionDef: "async functions", ast.Await: "await", ast.Yield: "yield",
    ast.YieldFrom: "yield from", ast.Global: "global variables", ast.Nonlocal: "nonlocal variables",
    ast.ClassDef: "class definitions", ast.Import: "import statements", ast.ImportFrom: "import statements",
    ast.Lambda: "lambda expressions", ast.NamedExpr: "assignment expressions", ast.SetComp: "set comprehensions",
    ast.GeneratorExp: "generator expressions", ast.Set: "sets", ast.Starred: "starred expressions",
    ast.FunctionDef: "function definitions",
}  # fmt: skip


def unsupported(source: Source, node: ast.AST) -> Any:
    """Raise for a kind of node that scripts do not have."""
    what = _NAMES.get(type(node), f"{type(node).__name__} nodes")
    source.fail(node, f"{what} aren't supported", UnsupportedNodeError)
