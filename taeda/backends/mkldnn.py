"""oneDNN, which is not used."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ._flags import flags_of

__all__ = ["enabled", "flags", "is_available", "set_flags"]

enabled = True
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether oneDNN is used: False."""
    return False


def set_flags(
    _enabled: bool | None = None, _deterministic: bool | None = None, _allow_tf32: bool | None = None
) -> tuple:
    """Set the switches that are not None; gives all of them as they were."""
    before = (enabled, deterministic, allow_tf32)
    for name, value in (("enabled", _enabled), ("deterministic", _deterministic), ("allow_tf32", _allow_tf32)):
        if value is not None:
            globals()[name] = value
    return before


def flags(enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True) -> AbstractContextManager:
    """Within the block the switches have these values."""
    return flags_of(__name__, enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32)
