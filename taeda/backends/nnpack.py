"""NNPACK, which is not used."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ._flags import flags_of

__all__ = ["flags", "is_available", "set_flags"]

enabled = True


def is_available() -> bool:
    """Whether NNPACK is used: False."""
    return False


def set_flags(_enabled: bool) -> tuple:
    """Set the switch; gives it as it was."""
    global enabled
    before, enabled = enabled, bool(_enabled)
    return (before,)


def flags(enabled: bool = False) -> AbstractContextManager:
    """Within the block the switch has this value."""
    return flags_of(__name__, enabled=enabled)
