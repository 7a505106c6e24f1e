"""``taeda._assert``: ``assert`` as a function, so that a Graph of ``taeda.fx`` can have it."""

from __future__ import annotations

from typing import Any

from . import overrides


def _assert(condition: Any, message: str) -> None:
    """``assert condition, message``."""
    if overrides.has_torch_function((condition,)):
        overrides.handle_torch_function(_assert, (condition,), condition, message)
    elif not condition:
        raise AssertionError(message)
