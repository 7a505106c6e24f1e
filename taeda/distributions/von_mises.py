"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .. import empty, no_grad, rand, special, where
from .._core import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles with density proportional to ``exp(concentration * cos(x - loc))``, from -pi to pi.

    Args:
        loc: the mean, in radians.
        concentration: positive.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints: ClassVar[dict] = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        # i0e(x) = exp(-x) * i0(x): nothing overflows
        normalizer = special.i0e(self.concentration).log() + self.concentration
        return self.concentration * (value - self.loc).cos() - math.log(2 * math.pi) - normalizer

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The parameter of the wrapped Cauchy distribution that samples are proposed from, in float64."""
        kappa = self.concentration.double()
        tau = 1 + (1 + 4 * kappa * kappa).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho * rho) / (2 * rho))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """By rejection from a wrapped Cauchy distribution (Best & Fisher 1979), in float64."""
        with no_grad():
            loc, kappa, r = self.loc.double(), self.concentration.double(), self._proposal_r
            x = empty(self._extended_shape(sample_shape), dtype=loc.dtype)
            done = x.new_zeros(x.shape).bool()
            while not bool(done.all()):
                u1, u2, u3 = rand((3, *x.shape), dtype=loc.dtype).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accepted = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                x = where(accepted, (u3 - 0.5).sign() * f.acos(), x)  # also where one was accepted before, as PyTorch
                done = done | accepted
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)
