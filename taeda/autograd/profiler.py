"""PyTorch's older path to the profiler, which lies above this layer: :mod:`taeda.profiler.legacy`."""

from __future__ import annotations

from .._namespaces import names_of

__getattr__ = names_of("profiler.legacy", __name__)
