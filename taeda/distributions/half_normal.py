"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from .._core import Tensor
from ._half import Half
from .normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """The absolute value of a normal number with mean 0.

    Args:
        scale: its standard deviation.
        validate_args: see :class:`Distribution`.
    """

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (1 - 2 / math.pi)
