"""``torch._dynamo.utils``: questions to PyTorch's tracer."""

from __future__ import annotations

from typing import Any

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: Any) -> bool:
    """False."""
    return False
