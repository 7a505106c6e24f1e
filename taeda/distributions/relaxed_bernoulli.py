"""Continuous relaxations of the Bernoulli distribution (Maddison, Mnih & Teh 2017; Jang, Gu & Poole 2017)."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import as_tensor, rand
from .._core import Tensor
from . import constraints
from ._binary import ProbsOrLogits
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits):
    """The log-odds of a :class:`RelaxedBernoulli`: a logistic number, shifted and divided by the temperature.

    Args:
        temperature: positive.
        probs: the probability of 1.
        logits: or its log-odds.
        validate_args: see :class:`Distribution`.
    """

    support = constraints.real
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self.temperature = temperature
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(rand(shape, dtype=probs.dtype))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        z = logits - value * self.temperature
        return as_tensor(self.temperature, dtype=z.dtype).log() + z - 2 * z.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A number in (0, 1) that nears 0 or 1 as the temperature falls; differentiable in its parameters.

    Args:
        temperature: positive.
        probs: the probability of 1.
        logits: or its log-odds.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints: ClassVar[dict] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log-odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs
