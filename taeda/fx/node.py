"""``Node``; see :mod:`taeda.fx`."""

from __future__ import annotations

from typing import Any

from . import Node

__all__ = ["Node", "has_side_effect", "map_arg"]


def has_side_effect(fn: Any) -> Any:
    """Gives ``fn`` back."""
    return fn


def map_arg(a: Any, fn: Any) -> Any:
    """``a`` with ``fn`` applied to the Nodes in it, of which there are none."""
    return a
