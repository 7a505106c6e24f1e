"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import full
from .._core import Tensor
from ._half import Half
from .cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The absolute value of a Cauchy number around 0.

    Args:
        scale: its scale.
        validate_args: see :class:`Distribution`.
    """

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), math.inf, dtype=self.scale.dtype)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
