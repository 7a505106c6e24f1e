"""Apple's GPUs, of which there are none: questions are answered so, and work on one is refused."""

from __future__ import annotations

from ._no_device import (
    current_allocated_memory,
    device_count,
    empty_cache,
    is_available,
    is_bf16_supported,
    is_initialized,
    manual_seed,
    manual_seed_all,
    synchronize,
)
from ._refuse import refused_class

__all__ = [
    "current_allocated_memory",
    "device_count",
    "empty_cache",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "synchronize",
]

Event = refused_class("mps.Event", "there is no such device")
Stream = refused_class("mps.Stream", "there is no such device")
