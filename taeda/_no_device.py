"""What a namespace of a kind of device answers where there is none of the kind: ``taeda.mps``, ``taeda.xpu``."""

from __future__ import annotations

from typing import Any

__all__ = [
    "current_allocated_memory", "device_count", "empty_cache", "is_available", "is_bf16_supported", "is_initialized",
    "manual_seed", "manual_seed_all", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Whether tensors can be put on one: False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether one computes in bfloat16: False."""
    return False


def device_count() -> int:
    """The number of such devices: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Seed their generators: nothing."""
    int(seed)


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Give their unused memory back: nothing."""


def synchronize(device: Any = None) -> None:
    """Wait for them: nothing."""


def current_allocated_memory() -> int:
    """Bytes in use: 0."""
    return 0


def is_initialized() -> bool:
    """Whether one is in use: False."""
    return False
