"""``torch._dynamo.utils``: questions to PyTorch's tracer."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from taeda.graph.capture import counters

__all__ = ["counters", "is_compile_supported", "warn_once"]


@functools.cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn, the first time."""
    warnings.warn(msg, stacklevel=stacklevel + 1)


def is_compile_supported(device_type: Any) -> bool:
    """True of the CPU."""
    return str(device_type).partition(":")[0] == "cpu"
