"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import taeda
from taeda import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters flattened and joined."""
    return taeda.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give each parameter its piece of ``vec`` as data."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected taeda.Tensor, but got: {type(vec).__name__}")
    at = 0
    for p in parameters:
        n = p.numel()
        p.data = vec[at : at + n].view(p.shape).detach()
        at += n
