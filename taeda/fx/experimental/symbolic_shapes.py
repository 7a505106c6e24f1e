"""Questions about sizes that are not known yet: sizes are always numbers here."""

from __future__ import annotations

from typing import Any

__all__ = ["guard_or_false", "guard_or_true", "guard_size_oblivious", "statically_known_true"]


def guard_size_oblivious(expr: Any) -> bool:
    """``bool(expr)``."""
    return bool(expr)


guard_or_false = guard_or_true = statically_known_true = guard_size_oblivious
