"""Collectives that can be differentiated."""

# ruff: noqa: I001 - lists of names are paragraphs

from ..groups import group
from ..reduction import ReduceOp
from .functional import (
    all_gather, all_reduce, all_to_all, all_to_all_single, broadcast, gather, reduce, reduce_scatter, scatter,
)  # fmt: skip

__all__ = [
    "ReduceOp", "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "group", "reduce",
    "reduce_scatter", "scatter",
]  # fmt: skip
