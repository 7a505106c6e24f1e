"""``torch._dynamo.utils``: questions to PyTorch's tracer."""

from __future__ import annotations

import functools
import sys
import warnings
from typing import Any

from taeda import Tensor, allclose
from taeda.graph.capture import counters
from taeda.graph.options import Patch

from . import config

__all__ = ["counters", "disable_cache_limit", "is_compile_supported", "same", "warn_once"]


def disable_cache_limit() -> Patch:
    """A block in which the settings allow any number of recompilations; they have no effect."""
    return config.patch(recompile_limit=sys.maxsize, accumulated_recompile_limit=sys.maxsize)


@functools.cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn, the first time."""
    warnings.warn(msg, stacklevel=stacklevel + 1)


def is_compile_supported(device_type: Any) -> bool:
    """True of the CPU."""
    return str(device_type).partition(":")[0] == "cpu"


def same(ref: Any, res: Any, *args: Any, tol: float = 1e-4, equal_nan: bool = False, **options: Any) -> bool:
    """Whether two results have the same structure, and tensors of the same sizes and dtypes that differ by ``tol``."""
    if isinstance(ref, (list, tuple)):
        alike = isinstance(res, (list, tuple)) and len(ref) == len(res)
        return alike and all(same(a, b, tol=tol, equal_nan=equal_nan) for a, b in zip(ref, res, strict=True))
    if isinstance(ref, dict):
        alike = isinstance(res, dict) and ref.keys() == res.keys()
        return alike and all(same(ref[key], res[key], tol=tol, equal_nan=equal_nan) for key in ref)
    if not isinstance(ref, Tensor):
        return type(ref) is type(res) and bool(ref == res)
    if not isinstance(res, Tensor) or ref.shape != res.shape or ref.dtype is not res.dtype:
        return False
    return ref.equal(res) or allclose(ref, res, atol=tol, rtol=tol, equal_nan=equal_nan)
