"""Distributions of transformed random variables."""

from __future__ import annotations

from typing import Any, ClassVar

from .._core import Tensor
from ..autograd import no_grad
from . import constraints
from .distribution import Distribution, Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost, formula

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """``t(x)`` for ``x`` of a distribution: by the change of variables, ``log p(y) = log p(x) - log |dy/dx|``.

    Args:
        base_distribution: of ``x``.
        transforms: a transform, or a list of them, in the order in which they are applied.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: these are no transforms, or the distribution has too few dimensions for them.

    Examples:
        >>> base = taeda.distributions.Normal(0.0, 1.0)
        >>> d = taeda.distributions.TransformedDistribution(base, [taeda.distributions.ExpTransform()])  # log-normal
        >>> d.log_prob(taeda.tensor(1.0)), d.support
        (tensor(-0.9189), GreaterThan(lower_bound=0.0))
    """

    arg_constraints: ClassVar[dict] = {}

    def __init__(
        self, base_distribution: Distribution, transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ):  # fmt: skip
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
        whole = ComposeTransform(self.transforms)
        before, after = whole.domain.event_dim, whole.codomain.event_dim
        shape, event_dim = base_distribution._extended_shape(), len(base_distribution.event_shape)
        if len(shape) < before:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {before}, but got {tuple(shape)}."
            )
        image = whole.forward_shape(shape)
        needed = whole.inverse_shape(image)  # the transforms' parameters may have a larger batch
        if tuple(needed) != tuple(shape):
            base_distribution = base_distribution.expand(needed[: len(needed) - event_dim])
        if before > event_dim:
            base_distribution = Independent(base_distribution, before - event_dim)
        self.base_dist: Any = base_distribution
        cut = len(image) - max(after, event_dim + after - before)
        super().__init__(image[:cut], image[cut:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        region = self.transforms[-1].codomain
        missing = len(self._event_shape) - region.event_dim
        return constraints.independent(region, missing) if missing > 0 else region

    has_rsample = formula(lambda self: self.base_dist.has_rsample)

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        event_dim, y, volume = len(self._event_shape), value, 0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            jacobian = transform.log_abs_det_jacobian(x, y)
            volume = volume + _sum_rightmost(jacobian, event_dim - transform.domain.event_dim)
            y = x
        log_prob = self.base_dist.log_prob(y)
        return _sum_rightmost(log_prob, event_dim - len(self.base_dist.event_shape)) - volume

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """``1 - value`` where the transforms decrease."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._monotonize_cdf(value)))
