"""Parameters that are given either as probabilities or as log-odds."""

from __future__ import annotations

from typing import Any, ClassVar

from .._core import Size, Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


def exactly_one(probs: Any, logits: Any) -> None:
    """Raise ValueError unless one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class ProbsOrLogits(Distribution):
    """A distribution with ``probs``, or ``logits``, of one event: the other is computed when asked for."""

    arg_constraints: ClassVar[dict] = {"probs": constraints.unit_interval, "logits": constraints.real}
    _batched: ClassVar[dict[str, int]] = {"_param": 0}

    def _take(self, probs: Any, logits: Any, *others: Any) -> tuple[Tensor, ...]:
        """Set what is given, broadcast with ``others``, which are returned."""
        exactly_one(probs, logits)
        self._param, *others = broadcast_all(logits if probs is None else probs, *others)  # type: ignore[assignment]
        setattr(self, "logits" if probs is None else "probs", self._param)
        return tuple(others)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new_empty(*args, **kwargs)

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._param.shape
