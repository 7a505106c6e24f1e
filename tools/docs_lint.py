"""Reads the docstrings of the sources as griffe does, and prints what it warns of: exit code 1 where there is anything.

    python tools/docs_lint.py

griffe reads sources without running them: it is what mkdocstrings and other makers of reference pages use. It warns of
parameters that a docstring names and the function does not have, of parameters without a type, and of sections that
cannot be read. Bodies of ops have no types in their sources. There they are those that tools/stubs.py writes.

pydoclint checks the other direction, that docstrings name what functions have: its settings are in pyproject.toml.
"""

from __future__ import annotations

import ast
import inspect
import logging
import re
from pathlib import Path
from typing import Any

import griffe
from stubs import parameter_type

ROOT = Path(__file__).resolve().parent.parent
#: Modules whose parameters get their types by name and default.
OPS = re.compile(r"taeda\.(ops\.|nn\.lower\b|linalg\b)")


class _Kept(logging.Handler):
    """Keeps the texts of warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def _default(text: Any) -> Any:
    """The value of a parameter's default; None: there is none."""
    if text is None:
        return inspect.Parameter.empty
    try:
        return ast.literal_eval(str(text))
    except (ValueError, SyntaxError):
        return ...


def _type_ops(function: griffe.Function) -> None:
    """Give a function of ops the types that its stub has."""
    for parameter in function.parameters:
        if parameter.annotation is None:
            parameter.annotation = parameter_type(parameter.name, _default(parameter.default))
    function.returns = function.returns or "Tensor"


def _read(item: Any) -> None:
    """Let griffe parse the docstring of ``item`` and of all that is in it."""
    if item.is_alias:
        return
    if item.is_function and OPS.match(item.path):
        _type_ops(item)
    if item.docstring:
        item.docstring.parsed  # noqa: B018
    for member in item.members.values():
        _read(member)


def warnings(root: Path = ROOT) -> list[str]:
    """What griffe warns of in the sources of taeda below ``root``."""
    kept, log = _Kept(), logging.getLogger("griffe")
    log.addHandler(kept)
    log.propagate = False
    try:
        _read(
            griffe.load(
                "taeda",
                search_paths=[root],
                docstring_parser=griffe.Parser.google,
                allow_inspection=False,
                try_relative_path=False,
            )
        )
    finally:
        log.removeHandler(kept)
    return [text.replace(f"{root}/", "") for text in kept.texts]


if __name__ == "__main__":
    found = warnings()
    print("\n".join(found) or "griffe has no warnings")
    raise SystemExit(bool(found))
