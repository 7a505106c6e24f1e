"""The binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import arange, no_grad
from .._core import Tensor
from ..ops.variates import binomial
from . import constraints
from ._binary import ProbsOrLogits

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits):
    """How often an event happens in ``total_count`` trials.

    Args:
        total_count: trials; a whole number.
        probs: the probability of the event.
        logits: or its log-odds.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints: ClassVar[dict] = {
        "total_count": constraints.nonnegative_integer,
        **ProbsOrLogits.arg_constraints,
    }
    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        (count,) = self._take(probs, logits, total_count)
        self.total_count = count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n, logits = self.total_count, self.logits
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        # log(1 + exp(logits)), with one half of the derivative from each side at 0
        soft = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2 + (-logits.abs()).exp().log1p()
        return ways + value * logits - n * soft

    def _count(self, what: str) -> int:
        count = int(self.total_count.max())
        if int(self.total_count.min()) != count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return count

    def entropy(self) -> Tensor:
        self._count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(arange(1 + self._count("enumerate_support"), dtype=self._param.dtype), expand)
