"""Marks for Intel's profilers. They have no effect here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """False."""
    return False


def range_push(msg: str) -> None:
    """Do nothing."""


def range_pop() -> None:
    """Do nothing."""


def mark(msg: str) -> None:
    """Do nothing."""


@contextlib.contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """Run the block unchanged."""
    yield
