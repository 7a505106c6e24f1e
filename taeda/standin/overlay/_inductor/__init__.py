"""``torch._inductor``: PyTorch's compiler, for programs that set its options."""

from __future__ import annotations

from typing import Any

from taeda.graph.options import MODES, OPTIONS

from . import config

__all__ = ["config", "list_mode_options", "list_options"]


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """The options of each mode, or of ``mode``."""
    return MODES if mode is None else MODES[mode]


def list_options() -> list[str]:
    """The options that ``compile`` takes."""
    return sorted(OPTIONS)
