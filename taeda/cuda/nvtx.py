"""Marks for NVIDIA's profilers. Without a GPU they have no effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def range_push(msg: str) -> int:
    """Begin a range: nothing, and its depth is 0."""
    return 0


def range_pop() -> int:
    """End a range: nothing."""
    return 0


def range_start(msg: str) -> int:
    """Begin a range that another thread may end: nothing, and its number is 0."""
    return 0


def range_end(range_id: int) -> None:
    """End a range of :func:`range_start`: nothing."""


def mark(msg: str) -> None:
    """Mark a moment: nothing."""


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range over the block: nothing."""
    yield
