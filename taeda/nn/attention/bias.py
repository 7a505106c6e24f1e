"""Masks of attention by what they mean: the causal ones, as tensors."""

from __future__ import annotations

import taeda
from taeda import Tensor

__all__ = ["causal_lower_right", "causal_upper_left"]


def causal_upper_left(*size: int) -> Tensor:
    """A bool mask ``(queries, keys)``: query ``i`` sees keys ``0..i``."""
    return taeda.ones(size, dtype=taeda.bool).tril()


def causal_lower_right(*size: int) -> Tensor:
    """A bool mask ``(queries, keys)`` in which the last query sees every key."""
    return taeda.ones(size, dtype=taeda.bool).tril(size[1] - size[0])
