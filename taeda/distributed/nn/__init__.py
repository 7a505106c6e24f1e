"""Collectives that can be differentiated."""

from .functional import all_gather, all_reduce, broadcast, reduce_scatter

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce_scatter"]
