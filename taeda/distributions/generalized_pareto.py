"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .. import rand, where
from .._core import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Survival ``(1 + concentration * z) ** (-1 / concentration)`` with ``z = (x - loc) / scale``; ``exp(-z)`` for 0.

    Args:
        loc: the lower end.
        scale: positive.
        concentration: the shape; where it is negative the support has an upper end.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints: ClassVar[dict] = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, where(self.concentration < 0, end, math.inf))

    def _shape(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is 0, and the concentration with 1 there."""
        zero = self.concentration.isclose(self.concentration.new_zeros(()))
        return zero, self.concentration.masked_fill(zero, 1.0)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.loc.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        zero, c = self._shape()
        power = 1 / c + 1
        tail = where(power == 0, power, power * (c * z).log1p())
        return -self.scale.log() - where(zero, z, tail)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Logarithm of the probability of more than ``value``."""
        self._check(value)
        z = (value - self.loc) / self.scale
        zero, c = self._shape()
        return where(zero, -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Logarithm of the probability of at most ``value``."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        survival = (-value).log1p()
        zero, c = self._shape()
        return where(zero, self.loc - self.scale * survival, self.loc + self.scale / c * (-c * survival).expm1())

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return where(c < 1, self.loc + self.scale / (1 - where(c < 1, c, 0.5)), math.nan)

    @property
    def variance(self) -> Tensor:
        valid = self.concentration < 0.5
        c = where(valid, self.concentration, 0.25)
        return where(valid, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
