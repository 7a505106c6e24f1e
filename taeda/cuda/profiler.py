"""The start and the end of what NVIDIA's profilers record, which is not there yet; see :mod:`taeda.profiler`."""

from __future__ import annotations

from . import _lacking

__all__ = ["profile", "start", "stop"]

start, stop = (_lacking.refused(__name__, name) for name in ("start", "stop"))
profile = _lacking.refused(__name__, "profile")
