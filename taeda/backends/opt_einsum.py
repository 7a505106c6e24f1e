"""The order in which ``einsum`` contracts its operands."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ..ops.contraction import planner, read_settings_from
from ._libraries import flags_of

__all__ = ["enabled", "flags", "get_opt_einsum", "is_available", "strategy"]

enabled = True
strategy: str | None = "auto"
read_settings_from(lambda: (enabled, strategy))


def is_available() -> bool:
    """Whether the package ``opt_einsum`` is installed."""
    return planner() is not None


def get_opt_einsum() -> Any:
    """The package ``opt_einsum``, or None."""
    return planner()


def flags(enabled: bool | None = None, strategy: str | None = None) -> AbstractContextManager:
    """Within the block the switches have these values."""
    return flags_of(__name__, enabled=enabled, strategy=strategy)
