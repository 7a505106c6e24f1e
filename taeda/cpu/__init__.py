"""The CPU as a device: its memory, and the questions that PyTorch programs ask of any device."""

from __future__ import annotations

from typing import Any

from .._core.memory import empty_cache, memory_stats, reset_peak_memory_stats, set_cache_limit, set_memory_limit

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_cache_limit",
    "set_memory_limit",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is a CPU: True."""
    return True


def device_count() -> int:
    """The number of CPU devices: 1."""
    return 1


def current_device() -> str:
    """The name of the current CPU device."""
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Wait for work that is under way: on the CPU there is none, since ops return when they are done."""


def memory_allocated() -> int:
    """Bytes that tensors use, each block rounded up to its size class."""
    return memory_stats()["allocated"]


def memory_reserved() -> int:
    """Bytes held from the system: in use, or kept for the next tensor."""
    return memory_stats()["reserved"]


def max_memory_allocated() -> int:
    """The highest :func:`memory_allocated` since the start or :func:`reset_peak_memory_stats`."""
    return memory_stats()["peak_allocated"]


def max_memory_reserved() -> int:
    """The highest :func:`memory_reserved` since the start or :func:`reset_peak_memory_stats`."""
    return memory_stats()["peak_reserved"]
