"""The device that computes beside the CPU, of which there is none."""

from __future__ import annotations

from typing import Any

from ._refuse import refused_class

__all__ = [
    "Event", "Stream", "current_accelerator", "current_device_idx", "current_device_index", "current_stream",
    "device_count", "device_index", "empty_cache", "get_memory_info", "is_available", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream", "synchronize",
]  # fmt: skip

_WHY = "there is no device beside the CPU, whose work is done when a call returns"

Event = refused_class("Event", _WHY)
Stream = refused_class("Stream", _WHY)


def is_available() -> bool:
    """Whether there is a device beside the CPU: False."""
    return False


def device_count() -> int:
    """The number of such devices: 0."""
    return 0


def current_accelerator(check_available: bool = False) -> Any:
    """That device: None."""
    return None


def synchronize(device: Any = None) -> None:
    """Wait for it: nothing."""


def empty_cache() -> None:
    """Give its unused memory back: nothing."""


def _none_here(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{name}: Cannot access accelerator device when none is available")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "A question to that device: a RuntimeError, since there is none."
    return function


(
    current_device_idx,
    current_device_index,
    current_stream,
    get_memory_info,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    set_device_idx,
    set_device_index,
    set_stream,
) = map(
    _none_here,
    (
        "current_device_idx current_device_index current_stream get_memory_info max_memory_allocated max_memory_reserved "
        "memory_allocated memory_reserved memory_stats reset_accumulated_memory_stats reset_peak_memory_stats "
        "set_device_idx set_device_index set_stream"
    ).split(),
)


class device_index:
    """A context manager for the device of an index: None does nothing."""

    def __init__(self, device: int | None) -> None:
        self.device = device

    def __enter__(self) -> None:
        if self.device is not None:
            set_device_index(self.device)

    def __exit__(self, *exc: Any) -> None:
        pass
