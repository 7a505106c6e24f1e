"""Watchers of each collective and of each op on DTensors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

__all__ = ["WATCHERS", "Watcher", "functional", "is_functional"]


class Watcher(Protocol):
    """An entry of :data:`WATCHERS`."""

    def collective(self, doing: str) -> None:
        """A collective begins; ``doing`` is its name with its arguments in brackets."""

    def op(self, op: Any, args: tuple, kwargs: dict) -> None:
        """An op on DTensors is called."""


WATCHERS: list[Watcher] = []
_here = threading.local()


@contextmanager
def functional() -> Iterator[None]:
    """Within the block, collectives come from functions that return new tensors, or from DTensors."""
    before, _here.functional = is_functional(), True
    try:
        yield
    finally:
        _here.functional = before


def is_functional() -> bool:
    """Whether :func:`functional` holds."""
    return getattr(_here, "functional", False)
