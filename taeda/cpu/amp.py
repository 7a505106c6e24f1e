"""Mixed precision on the CPU under its older names; see :mod:`taeda.amp`."""

from __future__ import annotations

from typing import Any

from .._core import bfloat16
from ..amp import GradScaler as _GradScaler
from ..amp import autocast as _autocast

__all__ = ["GradScaler", "autocast"]


class autocast(_autocast):
    """``taeda.autocast("cpu")``."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__(
            "cpu", dtype=bfloat16 if dtype is None else dtype, enabled=enabled, cache_enabled=cache_enabled
        )


class GradScaler(_GradScaler):
    """``taeda.amp.GradScaler("cpu")``."""

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
