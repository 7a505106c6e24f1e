"""Mixed precision on a GPU under its older names; see :mod:`taeda.amp`."""

from __future__ import annotations

import warnings
from typing import Any

from .._core import float16
from ..amp import GradScaler as _GradScaler
from ..amp import autocast as _autocast
from ..amp import custom_bwd as _custom_bwd
from ..amp import custom_fwd as _custom_fwd

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


def _warn_of_name(name: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cuda', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(_autocast):
    """``taeda.autocast("cuda")``: warns and does nothing without a GPU."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        _warn_of_name("autocast")
        super().__init__(
            "cuda", dtype=float16 if dtype is None else dtype, enabled=enabled, cache_enabled=cache_enabled
        )


class GradScaler(_GradScaler):
    """``taeda.amp.GradScaler("cuda")``: disabled, with a warning, without a GPU."""

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        _warn_of_name("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """:func:`taeda.amp.custom_fwd` for device "cuda"."""
    return _custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """:func:`taeda.amp.custom_bwd` for device "cuda"."""
    return _custom_bwd(bwd, device_type="cuda")
