"""The signatures of PyTorch's native ops, and of the ops of TorchScript's language (``schemas.txt``)."""

from __future__ import annotations

import functools
from importlib import resources


@functools.cache
def signatures() -> dict[str, list[str]]:
    """``{"aten::relu": ["aten::relu(Tensor self) -> Tensor"]}``: the overloads of each op, as text."""
    table: dict[str, list[str]] = {}
    for line in resources.files(__package__).joinpath("schemas.txt").read_text().splitlines():
        table.setdefault(line[: line.index("(")].partition(".")[0], []).append(line)
    return table
