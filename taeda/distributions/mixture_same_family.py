"""Mixtures of distributions of one family."""

from __future__ import annotations

import copy
import math
from typing import Any, ClassVar

from .._core import Tensor
from ..autograd import no_grad
from ..ops.indexing import where
from . import constraints
from .discrete import Categorical
from .distribution import Distribution
from .utils import all_true, formula

__all__ = ["MixtureSameFamily"]


def _unchecked(distribution: Distribution) -> Distribution:
    """The same distribution, and those that it is made of, without a check of values."""
    made: Any = copy.copy(distribution)
    made._validate_args = False
    if isinstance(getattr(made, "base_dist", None), Distribution):
        made.base_dist = _unchecked(made.base_dist)
    return made


class MixtureSameFamily(Distribution):
    """A sample of one of ``k`` components, which is drawn first: ``p(x) = sum over i of w[i] * p[i](x)``.

    Args:
        mixture_distribution: a :class:`Categorical` over ``k``, with a batch shape that fits that of the components.
        component_distribution: a batch whose last dimension is ``k``.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: the numbers of components differ, or the first is no ``Categorical``.

    Examples:
        >>> weights = taeda.distributions.Categorical(probs=taeda.tensor([0.5, 0.5]))
        >>> parts = taeda.distributions.Normal(taeda.tensor([-3.0, 3.0]), 1.0)
        >>> d = taeda.distributions.MixtureSameFamily(weights, parts)
        >>> d.mean, d.variance, d.sample((4,)).shape
        (tensor(0.), tensor(10.), taeda.Size([4]))
    """

    arg_constraints: ClassVar[dict] = {}
    has_rsample = False

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                f"The Mixture distribution needs to be a Categorical, got {type(mixture_distribution).__name__}"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                f"The Component distribution needs to be a Distribution, got {type(component_distribution).__name__}"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        batch = component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(mixture_distribution.batch_shape), reversed(batch), strict=False):
            if a != b and a != 1 and b != 1:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({tuple(mixture_distribution.batch_shape)}) is not compatible "
                    f"with `component_distribution.batch_shape`({tuple(batch)})"
                )
        self._num_component = mixture_distribution.logits.shape[-1]
        if self._num_component != component_distribution.batch_shape[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({self._num_component}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({component_distribution.batch_shape[-1]})"
            )
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(batch, component_distribution.event_shape, validate_args=validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = formula(lambda self: self._mixture_distribution, "Which component.")
    component_distribution = formula(lambda self: self._component_distribution, "The components.")

    def _average(self, values: Tensor) -> Tensor:
        """The mean over the components of what has their shape."""
        probs = self._mixture_distribution.probs
        probs = probs.reshape((*probs.shape, *[1] * self._event_ndims))
        return (probs * values).sum(-1 - self._event_ndims)

    mean = formula(lambda self: self._average(self._component_distribution.mean))

    @property
    def variance(self) -> Tensor:
        components = self._component_distribution
        return self._average(components.variance) + self._average((components.mean - self._pad(self.mean)) ** 2)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def cdf(self, value: Tensor) -> Tensor:
        return (self._component_distribution.cdf(self._pad(value)) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return (self._log_probs(value) + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def _log_probs(self, value: Tensor) -> Tensor:
        """The logarithm of each component's density, -inf outside of its region."""
        components = self._component_distribution
        if not self._validate_args or not components._validate_args:
            return components.log_prob(self._pad(value))
        within = self.support.check_components(value)
        if not all_true(within):
            components = _unchecked(components)
        return where(within, components.log_prob(self._pad(value)), -math.inf)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            which = self._mixture_distribution.sample(sample_shape)
            samples = self._component_distribution.sample(sample_shape)
            dim = len(sample_shape) + len(self._batch_shape)
            index = which.reshape((*which.shape, 1, *[1] * self._event_ndims))
            index = index.expand((*samples.shape[:dim], 1, *samples.shape[dim + 1 :]))
            return samples.gather(dim, index).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
