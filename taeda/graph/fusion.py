"""Calls whose pointwise ops are put off and computed together (``taeda/_core/fusion.pyx``,
docs/notes/0015-fusion.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core


def call(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``; tensors in what it gives, and what it wrote to, are computed when it returns."""
    before = _core.put_off_ops(True)
    try:
        return _core.compute_now(function(*args, **kwargs))
    finally:
        _core.put_off_ops(before)
        if not before:
            _core.compute_written()
