"""cuDNN, which is not used: convolution is deterministic whatever ``deterministic`` and ``benchmark`` say."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ._flags import flags_of

__all__ = ["allow_tf32", "benchmark", "benchmark_limit", "deterministic", "enabled", "flags", "is_available", "version"]

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"


def is_available() -> bool:
    """Whether cuDNN is used: False."""
    return False


def version() -> int | None:
    """cuDNN's version: None."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN could work on ``tensor``: False."""
    return False


def set_flags(
    _enabled: Any = None,
    _benchmark: Any = None,
    _benchmark_limit: Any = None,
    _deterministic: Any = None,
    _allow_tf32: Any = None,
    _fp32_precision: Any = None,
) -> tuple:
    """Set the switches that are not None; gives all of them as they were."""
    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32", "fp32_precision")
    before = tuple(globals()[name] for name in names)
    values = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32, _fp32_precision)
    globals().update({name: value for name, value in zip(names, values, strict=True) if value is not None})
    return before


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> AbstractContextManager:
    """Within the block the switches have these values."""
    return flags_of(
        __name__,
        enabled=enabled,
        benchmark=benchmark,
        benchmark_limit=benchmark_limit,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
    )
