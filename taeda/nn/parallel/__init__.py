"""Data parallelism inside one process: DataParallel, which on a single device runs its module as it is."""

from __future__ import annotations

from .data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
