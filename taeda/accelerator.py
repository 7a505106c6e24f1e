"""The device that computes beside the CPU, of which there is none."""

from __future__ import annotations

from typing import Any

from ._refuse import refused_class

__all__ = ["Event", "Stream", "current_accelerator", "device_count", "is_available"]

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
