"""The classes of results that have several named parts: ``taeda.max(x, 0)`` is a ``taeda.return_types.max``."""

from __future__ import annotations

from .ops.table import RESULT_TYPES


def __getattr__(name: str) -> type:
    try:
        return RESULT_TYPES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted([*RESULT_TYPES, "all_return_types"])


all_return_types = list(RESULT_TYPES.values())
