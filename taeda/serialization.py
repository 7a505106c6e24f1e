"""Saving and loading, and what files may name beyond plain data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .io.checkpoint import load, save
from .io.pickling import allow, allowed, forget

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let files make instances of these classes and call these functions.

    Args:
        safe_globals: classes and functions, or pairs of one and the full name under which files know it.
    """
    allow(safe_globals)


def get_safe_globals() -> list[Any]:
    """What was added with :func:`add_safe_globals`."""
    return allowed()


def clear_safe_globals() -> None:
    """Take everything that was added with :func:`add_safe_globals` away."""
    forget()


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """As :func:`add_safe_globals`, within the block."""
    before = allowed()
    allow(safe_globals)
    try:
        yield
    finally:
        forget()
        allow(before)
