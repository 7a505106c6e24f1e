"""The level of checks in ``taeda.distributed``: set by ``TORCH_DISTRIBUTED_DEBUG`` or by a program."""

from __future__ import annotations

import enum
import os

__all__ = ["DebugLevel", "get_debug_level", "set_debug_level", "set_debug_level_from_env"]


class DebugLevel(enum.IntEnum):
    """With ``DETAIL``, groups made from then on compare the processes' calls by MPI too; ``gloo`` always does."""

    OFF = 0
    INFO = 1
    DETAIL = 2

    __str__ = enum.Enum.__str__


def _from_environment() -> DebugLevel:
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG") or "OFF"
    if name.upper() not in DebugLevel.__members__:
        raise ValueError(f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL, got {name!r}")
    return DebugLevel[name.upper()]


_level: DebugLevel | None = None


def get_debug_level() -> DebugLevel:
    """The level that was set, else the environment's.

    Returns:
        The level.

    Raises:
        ValueError: the environment names another.
    """
    return _from_environment() if _level is None else _level


def set_debug_level(level: DebugLevel) -> None:
    """Take ``level`` from now on.

    Args:
        level: the new level.

    Raises:
        TypeError: it is none.
    """
    global _level
    if not isinstance(level, DebugLevel):
        raise TypeError(f"set_debug_level: expected a DebugLevel, got {type(level).__name__}")
    _level = level


def set_debug_level_from_env() -> None:
    """Set the level to the environment's present one.

    Raises:
        ValueError: the environment names another.
    """
    set_debug_level(_from_environment())
