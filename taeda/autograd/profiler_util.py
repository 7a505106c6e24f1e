"""PyTorch's older path to the events of the profiler, which lie above this layer: :mod:`taeda.profiler.events`."""

from __future__ import annotations

from .._namespaces import names_of

__getattr__ = names_of("profiler.events", __name__)
