"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .. import where
from .._core import Tensor
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """A normal number divided by the root of a chi-squared one over its degrees of freedom.

    Args:
        df: degrees of freedom.
        loc: the middle.
        scale: positive.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints: ClassVar[dict] = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        df = self.df
        finite = self.scale**2 * df / (where(df > 2, df, 3.0) - 2)
        return where(df > 2, finite, math.inf).masked_fill(df <= 1, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        above = _standard_normal(self._extended_shape(sample_shape), self.df.dtype)
        below = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * above * (below / self.df).rsqrt()

    def _log_normalizer(self) -> Tensor:
        """Logarithm of ``sqrt(df) * B(1/2, df/2)``."""
        half = 0.5 * self.df
        return 0.5 * self.df.log() + 0.5 * math.log(math.pi) + half.lgamma() - (half + 0.5).lgamma()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1.0) * (z * z / self.df).log1p() - self.scale.log() - self._log_normalizer()

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        slope = (half + 0.5).digamma() - half.digamma()
        return self.scale.log() + (half + 0.5) * slope + self._log_normalizer()
