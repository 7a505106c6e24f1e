"""``torch._dynamo.utils``: questions to PyTorch's tracer."""

from __future__ import annotations

import functools
import warnings
from typing import Any

__all__ = ["is_compile_supported", "warn_once"]


@functools.cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn, the first time."""
    warnings.warn(msg, stacklevel=stacklevel + 1)


def is_compile_supported(device_type: Any) -> bool:
    """False."""
    return False
