"""Which kernel of attention a GPU would use: kept for programs that say, and otherwise without effect."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """Kernels of attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[dict]:
    """Within the block these kernels may be used; on the CPU there is one, and it is used.

    Raises:
        AssertionError: ``backends`` is neither an SDPBackend nor a list of them.
    """
    given = [backends] if isinstance(backends, SDPBackend) else list(backends)
    assert all(isinstance(item, SDPBackend) for item in given), (
        "Backend must be an instance of SDPBackend or a list of them"
    )
    yield {}
