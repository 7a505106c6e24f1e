"""Transforms of parts of the input side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import Tensor
from . import constraints
from .transform import Transform
from .utils import _sum_rightmost, formula, lazy_property


class _Several(Transform):
    """Transforms of parts of the input along ``dim``."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int):
        super().__init__(cache_size)
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    bijective = formula(lambda self: all(t.bijective for t in self.transforms))

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _together(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _checked(self, x: Tensor, expected: int) -> None:
        if not -x.dim() <= self.dim < x.dim() or x.size(self.dim) != expected:
            raise AssertionError(
                f"{type(self).__name__}: expected size {expected} in dimension {self.dim}, got shape {tuple(x.shape)}"
            )

    def _call(self, x: Any) -> Any:
        return self._together([t(part) for t, part in zip(self.transforms, self._parts(x), strict=True)])

    def _inverse(self, y: Any) -> Any:
        return self._together([t.inv(part) for t, part in zip(self.transforms, self._parts(y), strict=True)])


class CatTransform(_Several):
    """One transform after the other along a dimension, each over some of the elements.

    Args:
        tseq: the transforms.
        dim: the dimension.
        lengths: of how many elements each; of one if None.
        cache_size: see :class:`Transform`.

    Raises:
        AssertionError: something is no transform; in a call, the sizes do not fit.

    Examples:
        >>> D = taeda.distributions
        >>> t = D.CatTransform([D.ExpTransform(), D.AffineTransform(0.0, 10.0)], lengths=[1, 2])
        >>> t(taeda.tensor([0.0, 1.0, 2.0]))
        tensor([ 1., 10., 20.])
    """

    _arguments = ("transforms", "dim", "lengths")

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    @lazy_property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The size of ``dim``."""
        return sum(self.lengths)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        self._checked(x, self.length)
        return x.split(self.lengths, self.dim)

    def _together(self, parts: list[Tensor]) -> Tensor:
        return constraints.join(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        parts = []
        for t, a, b in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            parts.append(_sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim))
        dim = (self.dim if self.dim < 0 else self.dim - x.dim()) + self.event_dim
        return constraints.join(parts, dim) if dim < 0 else sum(parts)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Several):
    """One transform for each index of a dimension.

    Args:
        tseq: the transforms.
        dim: the dimension, of their number.
        cache_size: see :class:`Transform`.

    Raises:
        AssertionError: something is no transform; in a call, the size is not their number.

    Examples:
        >>> D = taeda.distributions
        >>> D.StackTransform([D.ExpTransform(), D.AffineTransform(0.0, 10.0)])(taeda.tensor([0.0, 1.0]))
        tensor([ 1., 10.])
    """

    _arguments = ("transforms", "dim")

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(tseq, dim, cache_size)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        self._checked(x, len(self.transforms))
        return x.unbind(self.dim)

    def _together(self, parts: list[Tensor]) -> Tensor:
        return constraints.pile(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        pairs = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return self._together([t.log_abs_det_jacobian(a, b) for t, a, b in pairs])

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of a distribution: its samples become uniform.

    Args:
        distribution: of numbers, with ``cdf`` and ``icdf``.
        cache_size: see :class:`Transform`.

    Examples:
        >>> t = taeda.distributions.CumulativeDistributionTransform(taeda.distributions.Normal(0.0, 1.0))
        >>> t(taeda.tensor(0.0)), t.inv(taeda.tensor(0.5))
        (tensor(0.5000), tensor(0.))
    """

    _arguments = ("distribution",)
    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.distribution = distribution

    domain = formula(lambda self: self.distribution.support)

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)
