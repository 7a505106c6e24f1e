"""The signatures of PyTorch's native ops, and of the ops of TorchScript's language (``schemas.txt``)."""

from __future__ import annotations

import functools
from importlib import resources

from .._schema import Schema, parse_schema


@functools.cache
def signatures() -> dict[str, list[str]]:
    """``{"aten::relu": ["aten::relu(Tensor self) -> Tensor"]}``: the overloads of each op, as text."""
    table: dict[str, list[str]] = {}
    for line in resources.files(__package__).joinpath("schemas.txt").read_text().splitlines():
        table.setdefault(line[: line.index("(")].partition(".")[0], []).append(line)
    return table


@functools.cache
def signature(name: str, overload: str = "default") -> Schema | None:
    """The signature of a native op, with the arguments that it writes to; None if there is none of that name.

    An overload that PyTorch has not is read as the op's first one that gives new results.
    """
    label = f"aten::{name}" if overload in ("", "default") else f"aten::{name}.{overload}"
    found = [parse_schema(line) for line in signatures().get(f"aten::{name}", ())]
    exact = [s for s in found if s.name == label]
    return next(iter([*exact, *(s for s in found if not s.outs)]), None)
