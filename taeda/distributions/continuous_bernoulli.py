"""The continuous Bernoulli distribution (Loaiza-Ganem & Cunningham 2019)."""

from __future__ import annotations

import math
from typing import Any

from .. import no_grad, rand, where
from .._core import Tensor
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from ._binary import ProbsOrLogits
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """On [0, 1], with density proportional to ``probs ** x * (1 - probs) ** (1 - x)``.

    Args:
        probs: in (0, 1).
        logits: or its log-odds.
        lims: between these, around 1/2, Taylor series replace formulas that cancel there.
        validate_args: see :class:`Distribution`.
    """

    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ):
        self._take(probs, logits)
        if probs is not None:
            if validate_args is not None and not bool(constraints.unit_interval.check(self._param).all()):
                raise ValueError(f"The parameter probs has invalid values: expected [0, 1], got {self._param}")
            self.probs = self._param = clamp_probs(self._param)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter of the shape, kept away from 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _stable(self) -> Tensor:
        """Where the closed formulas do not cancel."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        """``probs`` where formulas are stable, some other stable value elsewhere."""
        return where(self._stable(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """Logarithm of ``2 atanh(1 - 2 p) / (1 - 2 p)``."""
        p = self._cut_probs()
        exact = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        x = (self.probs - 0.5) ** 2
        return where(self._stable(), exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        p = self._cut_probs()
        exact = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return where(self._stable(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x * x) * x)

    @property
    def variance(self) -> Tensor:
        p = self._cut_probs()
        exact = p * (p - 1.0) / (1.0 - 2.0 * p) ** 2 + 1.0 / ((-p).log1p() - p.log()) ** 2
        x = (self.probs - 0.5) ** 2
        return where(self._stable(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.probs.dtype))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return self._cont_bern_log_norm() - binary_cross_entropy_with_logits(logits, value, reduction="none")

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        p = self._cut_probs()
        exact = (p**value * (1.0 - p) ** (1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = where(self._stable(), exact, value)
        return inside.masked_fill(value <= 0.0, 0.0).masked_fill(value >= 1.0, 1.0)

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut_probs()
        other = (-p).log1p()
        exact = ((-p + value * (2.0 * p - 1.0)).log1p() - other) / (p.log() - other)
        return where(self._stable(), exact, value)

    def entropy(self) -> Tensor:
        other = (-self.probs).log1p()
        return self.mean * (other - self.probs.log()) - self._cont_bern_log_norm() - other

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        stable = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = where(stable, x, self._lims[0] - 0.5)
        series = 0.5 * x + x**2 / 24.0 - x**4 / 2880.0
        return where(stable, cut.expm1().abs().log() - cut.abs().log(), series)
