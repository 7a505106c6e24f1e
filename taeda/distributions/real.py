"""Distributions of real numbers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .. import special
from .._core import Tensor
from ..autograd import no_grad
from ..ops.creation import full_like, zeros
from ..ops.indexing import where
from ..ops.random import normal, rand
from ..types import finfo
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .utils import _standard_normal, broadcast_all, euler_constant, formula, lazy_property

__all__ = [
    "Cauchy", "GeneralizedPareto", "Gumbel", "Laplace", "Normal", "Uniform", "VonMises",
]  # fmt: skip


class _LocScale(Distribution):
    """Real numbers ``loc + scale * x`` with ``x`` of one distribution, whose mode is 0."""

    arg_constraints: ClassVar[dict] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mode = formula(lambda self: self.loc)


class Normal(_LocScale, ExponentialFamily):
    """The normal (Gauss's) distribution: density ``exp(-((x - loc) / scale) ** 2 / 2) / (scale * sqrt(2 * pi))``.

    The support is the real numbers. The batch shape is that to which the parameters broadcast; the event shape is
    ``()``.

    Args:
        loc: the mean.
        scale: the standard deviation, above 0.

    Examples:
        >>> d = taeda.distributions.Normal(taeda.tensor([0.0, 10.0]), 1.0)
        >>> d.log_prob(taeda.tensor(0.0))  # -log(sqrt(2 pi)) = -0.9189
        tensor([ -0.9189, -50.9189])
        >>> d.sample((1000,)).shape, d.cdf(taeda.tensor(0.0))[0]
        (taeda.Size([1000, 2]), tensor(0.5000))
        >>> taeda.distributions.kl_divergence(d, taeda.distributions.Normal(0.0, 1.0))
        tensor([ 0., 50.])
    """

    _mean_carrier_measure = 0

    mean = formula(lambda self: self.loc)
    stddev = formula(lambda self: self.scale)
    variance = formula(lambda self: self.scale**2)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return (
            self.loc
            + _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device) * self.scale
        )

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        return -0.5 * z * z - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 0.5 * (1 + ((value - self.loc) / (self.scale * math.sqrt(2))).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    _natural_params = formula(lambda self: (self.loc / self.scale**2, -0.5 / self.scale**2))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return -0.25 * x * x / y + 0.5 * (-math.pi / y).log()


class Cauchy(_LocScale):
    """The Cauchy (Lorentz) distribution: density ``1 / (pi * scale * (1 + z ** 2))`` with ``z = (x - loc) / scale``.

    Its tails are so heavy that it has no mean. The support is the real numbers. The batch shape is that to which the
    parameters broadcast; the event shape is ``()``.

    Args:
        loc: the median.
        scale: half the width at half of the maximum, above 0.

    Examples:
        >>> taeda.distributions.Cauchy(0.0, 1.0).log_prob(taeda.tensor([0.0, 1.0])).exp()
        tensor([0.3183, 0.1592])
    """

    mean = formula(lambda self: self.loc.new_full(self._extended_shape(), math.nan))
    variance = formula(lambda self: self.loc.new_full(self._extended_shape(), math.inf))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class Laplace(_LocScale):
    """The Laplace distribution: density ``exp(-abs(x - loc) / scale) / (2 * scale)``.

    The support is the real numbers. The batch shape is that to which the parameters broadcast; the event shape is
    ``()``.

    Args:
        loc: the mean.
        scale: the mean distance from it, above 0.

    Examples:
        >>> taeda.distributions.Laplace(0.0, 1.0).log_prob(taeda.tensor([0.0, 1.0])).exp()
        tensor([0.5000, 0.1839])
    """

    mean = formula(lambda self: self.loc)
    variance = formula(lambda self: 2 * self.scale**2)
    stddev = formula(lambda self: 2**0.5 * self.scale)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        low = finfo(self.loc.dtype).eps - 1
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(low, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * (-distance.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        u = value - 0.5
        return self.loc - self.scale * u.sign() * (-2 * u.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Uniform(Distribution):
    """The uniform distribution: density ``1 / (high - low)`` for ``low <= x < high``.

    The support is the interval. The batch shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        low: the lower end.
        high: the upper end, above it.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Examples:
        >>> d = taeda.distributions.Uniform(0.0, 4.0)
        >>> d.mean, d.log_prob(taeda.tensor(1.0)).exp()
        (tensor(2.), tensor(0.2500))
    """

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    mean = formula(lambda self: (self.high + self.low) / 2)
    mode = formula(lambda self: math.nan * self.high)
    stddev = formula(lambda self: (self.high - self.low) / 12**0.5)
    variance = formula(lambda self: (self.high - self.low) ** 2 / 12)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        inside = (self.low <= value) & (value < self.high)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class VonMises(Distribution):
    """The normal distribution of angles: density ``exp(concentration * cos(x - loc)) / (2 * pi * I0(concentration))``.

    ``I0`` is the modified Bessel function. The support is angles from -pi to pi. The batch shape is that to which the
    parameters broadcast; the event shape is ``()``.

    Args:
        loc: the mean, in radians.
        concentration: how narrow it is, above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Examples:
        >>> d = taeda.distributions.VonMises(0.0, 4.0)
        >>> d.mean, d.log_prob(taeda.tensor(0.0)).exp()
        (tensor(0.), tensor(0.7689))
    """

    arg_constraints: ClassVar[dict] = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

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
            x = zeros(self._extended_shape(sample_shape), dtype=loc.dtype, device=loc.device)
            done = x.new_zeros(x.shape).bool()
            while not bool(done.all()):
                u1, u2, u3 = rand((3, *x.shape), dtype=loc.dtype, device=loc.device).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accepted = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                x = where(accepted, (u3 - 0.5).sign() * f.acos(), x)  # also where one was accepted before, as PyTorch
                done = done | accepted
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    mean = formula(lambda self: self.loc)
    mode = formula(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)


class Gumbel(TransformedDistribution):
    """The limit of the largest of many numbers: ``loc - scale * log(-log(u))`` for uniform ``u``.

    The density is ``exp(-z - exp(-z)) / scale`` with ``z = (x - loc) / scale``. The support is the real numbers. The
    batch shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        loc: the mode.
        scale: above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: a parameter is not in its region; in ``log_prob``, a value is not in the support.

    Examples:
        >>> taeda.distributions.Gumbel(0.0, 1.0).mean  # Euler's constant
        tensor(0.5772)
    """

    arg_constraints: ClassVar[dict] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = finfo(self.loc.dtype)
        low, high = full_like(self.loc, limits.tiny), full_like(self.loc, 1 - limits.eps)
        log = ExpTransform().inv
        transforms = [log, AffineTransform(0, -1.0), log, AffineTransform(self.loc, -self.scale)]
        super().__init__(Uniform(low, high, validate_args=validate_args), transforms, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (self.loc - value) / self.scale
        return z - z.exp() - self.scale.log()

    mean = formula(lambda self: self.loc + self.scale * euler_constant)
    mode = formula(lambda self: self.loc)
    stddev = formula(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = formula(lambda self: self.stddev**2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)


class GeneralizedPareto(Distribution):
    """The excess over a high threshold: ``P(X > x) = (1 + concentration * z) ** (-1 / concentration)``, with ``z = (x -
    loc) / scale``.

    For concentration 0 it is ``exp(-z)``. The support is ``x >= loc``; for a negative concentration up to ``loc - scale
    / concentration``. The batch shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        loc: the lower end.
        scale: above 0.
        concentration: how heavy the tail is.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Examples:
        >>> d = taeda.distributions.GeneralizedPareto(0.0, 1.0, 0.5)
        >>> d.cdf(taeda.tensor([0.0, 2.0])), d.mean
        (tensor([0.0000, 0.7500]), tensor(2.))
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
        """Mask of concentrations that are 0, and the concentration with 1 there."""
        zero = self.concentration.isclose(self.concentration.new_zeros(()))
        return zero, self.concentration.masked_fill(zero, 1.0)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

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

    mode = formula(lambda self: self.loc)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
