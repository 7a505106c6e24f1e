"""The kernels that attention may use."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager

from ...ops.attention import ALLOWED

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """Kernels of attention: ``MATH`` is the definition, in public ops; the others are fused."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_NAMES = {
    "cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
    "mem_efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH, "overrideable": SDPBackend.OVERRIDEABLE,
}  # fmt: skip


@contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict]:
    """Within the block attention may use these kernels alone.

    On the CPU the fused kernel is ``FLASH_ATTENTION``, and ``MATH`` is the definition. On a GPU each fused one stands
    for the fused kernel there; where there is none, the definition stands for all. A call for which no kernel is
    allowed is an error.

    Args:
        backends: a kernel, or a list of them.
        set_priority: accepted: a fused kernel goes before the definition.
    Yields:
        An empty dict.
    Raises:
        AssertionError: ``backends`` is neither an SDPBackend nor a list of them.
    Examples:
        >>> x = taeda.randn(1, 2, 5, 4)
        >>> with sdpa_kernel(SDPBackend.MATH):
        ...     y = F.scaled_dot_product_attention(x, x, x)
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            f"sdpa_kernel: expected an SDPBackend or a list of them as backends, got {type(backends).__name__}"
        )
    wanted = [backends] if isinstance(backends, SDPBackend) else backends
    before = dict(ALLOWED)
    ALLOWED.update((name, backend in wanted) for name, backend in _NAMES.items())
    try:
        yield {}
    finally:
        ALLOWED.update(before)
