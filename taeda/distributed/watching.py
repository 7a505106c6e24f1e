"""Watchers of each collective and of each op on DTensors."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any, Protocol

from .._core.settings import within

__all__ = ["WATCHERS", "Watcher", "functional", "is_functional"]


class Watcher(Protocol):
    """An entry of :data:`WATCHERS`."""

    def collective(self, doing: str) -> None:
        """A collective begins; ``doing`` is its name with its arguments in brackets."""

    def op(self, op: Any, args: tuple, kwargs: dict) -> None:
        """An op on DTensors is called."""


WATCHERS: list[Watcher] = []
_here = threading.local()


def functional() -> AbstractContextManager:
    """Within the block, collectives come from functions that return new tensors, or from DTensors."""
    return within(_here, functional=True)


def is_functional() -> bool:
    """Whether :func:`functional` holds."""
    return bool(getattr(_here, "functional", False))
