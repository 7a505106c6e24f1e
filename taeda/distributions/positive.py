"""Distributions of positive numbers, and Student's t."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .. import special
from .._core import Tensor
from ..ops.creation import ones_like
from ..ops.elementary import xlogy
from ..ops.exchange import as_tensor
from ..ops.indexing import where
from ..ops.variates import _standard_gamma
from ..types import finfo
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .real import Cauchy, Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform, AffineTransform, ExpTransform, PowerTransform
from .utils import _standard_normal, broadcast_all, euler_constant, formula

__all__ = [
    "Chi2", "Exponential", "FisherSnedecor", "Gamma", "HalfCauchy", "HalfNormal", "InverseGamma", "LogNormal",
    "Pareto", "StudentT", "Weibull",
]  # fmt: skip


class Gamma(ExponentialFamily):
    """The gamma distribution: density ``rate ** a * x ** (a - 1) * exp(-rate * x) / gamma(a)``, ``a = concentration``.

    The mean is ``a / rate``. The support is ``x >= 0``. The batch shape is that to which the parameters broadcast; the
    event shape is ``()``.

    Args:
        concentration: the shape ``a``, above 0.
        rate: above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Examples:
        >>> d = taeda.distributions.Gamma(2.0, 4.0)
        >>> d.mean, d.variance, d.log_prob(taeda.tensor(0.5))
        (tensor(0.5000), tensor(0.1250), tensor(0.0794))
    """

    arg_constraints: ClassVar[dict] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    mean = formula(lambda self: self.concentration / self.rate)
    mode = formula(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = formula(lambda self: self.concentration / self.rate**2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.data.clamp_(min=finfo(value.dtype).tiny)  # the density of 0 may be infinite; no gradient of this
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check(value)
        a, b = self.concentration, self.rate
        return xlogy(a, b) + xlogy(a - 1, value) - b * value - a.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    _natural_params = formula(lambda self: (self.concentration - 1, -self.rate))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return (x + 1).lgamma() - (x + 1) * (-y).log()


class Exponential(ExponentialFamily):
    """The time until an event: density ``rate * exp(-rate * x)``.

    The support is ``x >= 0``. The batch shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        rate: events per time, above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Examples:
        >>> d = taeda.distributions.Exponential(2.0)
        >>> d.mean, d.cdf(taeda.tensor(1.0))
        (tensor(0.5000), tensor(0.8647))
    """

    arg_constraints: ClassVar[dict] = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate: Any, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = formula(lambda self: self.rate.reciprocal())
    mode = formula(lambda self: self.rate.new_zeros(self.rate.shape))
    stddev = formula(lambda self: self.rate.reciprocal())
    variance = formula(lambda self: self.rate**-2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - self.rate.log()

    _natural_params = formula(lambda self: (-self.rate,))

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return -(-x).log()


class Chi2(Gamma):
    """The sum of the squares of ``df`` standard normal numbers: :class:`Gamma` with concentration ``df / 2`` and rate
    1/2.

    The support is ``x >= 0``. The batch shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        df: degrees of freedom, above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Examples:
        >>> taeda.distributions.Chi2(3.0).mean
        tensor(3.)
    """

    arg_constraints: ClassVar[dict] = {"df": constraints.positive}
    _batched: ClassVar[dict[str, int]] = {"concentration": 0, "rate": 0}

    def __init__(self, df: Any, validate_args: bool | None = None):
        (df,) = broadcast_all(df)
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    df = formula(lambda self: self.concentration * 2, "Degrees of freedom.")


class FisherSnedecor(Distribution):
    """The F distribution: the ratio of two chi-squared numbers, each over its degrees of freedom.

    The support is ``x > 0``. The batch shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        df1: degrees of freedom of the numerator, above 0.
        df2: degrees of freedom of the denominator, above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Examples:
        >>> taeda.distributions.FisherSnedecor(2.0, 6.0).mean  # df2 / (df2 - 2)
        tensor(1.5000)
    """

    arg_constraints: ClassVar[dict] = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    mean = formula(lambda self: (self.df2 / (self.df2 - 2)).masked_fill(self.df2 <= 2, math.nan))

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        variance = 2 * b**2 * (a + b - 2) / (a * (b - 2) ** 2 * (b - 4))
        return variance.masked_fill(b <= 4, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        above = self._gamma1.rsample(sample_shape)
        below = self._gamma2.rsample(sample_shape)
        tiny = finfo(below.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        constant = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return constant + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()


class StudentT(Distribution):
    """Student's t: density proportional to ``(1 + z ** 2 / df) ** (-(df + 1) / 2)`` with ``z = (x - loc) / scale``.

    A standard normal number over the root of a chi-squared one per degree of freedom; heavier tails than
    :class:`Normal`. The support is the real numbers. The batch shape is that to which the parameters broadcast; the
    event shape is ``()``.

    Args:
        df: degrees of freedom, above 0.
        loc: the middle.
        scale: above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Examples:
        >>> d = taeda.distributions.StudentT(3.0)
        >>> d.mean, d.variance, d.log_prob(taeda.tensor(0.0))
        (tensor(0.), tensor(3.), tensor(-1.0009))
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

    mean = formula(lambda self: self.loc.masked_fill(self.df <= 1, math.nan))
    mode = formula(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        df = self.df
        finite = self.scale**2 * df / (where(df > 2, df, 3.0) - 2)
        return where(df > 2, finite, math.inf).masked_fill(df <= 1, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        above = _standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
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


class InverseGamma(TransformedDistribution):
    """The reciprocal of a :class:`Gamma` number: density proportional to ``x ** (-concentration - 1) * exp(-rate /
    x)``.

    The support is ``x > 0``. The batch shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        concentration: the shape, above 0.
        rate: above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: a parameter is not in its region; in ``log_prob``, a value is not in the support.

    Examples:
        >>> taeda.distributions.InverseGamma(3.0, 4.0).mean  # rate / (concentration - 1)
        tensor(2.)
    """

    arg_constraints: ClassVar[dict] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    concentration = formula(lambda self: self.base_dist.concentration, "The shape.")
    rate = formula(lambda self: self.base_dist.rate, "The rate of the gamma number.")

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return where(a > 1, self.rate / (a - 1), math.inf)

    mode = formula(lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return where(a > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class Half(TransformedDistribution):
    """``|x|`` for ``x`` of a distribution that is symmetric around 0 and has a ``scale``."""

    arg_constraints: ClassVar[dict] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, whole: Any, validate_args: bool | None = None):
        super().__init__(whole, AbsTransform(), validate_args=validate_args)

    scale = formula(lambda self: self.base_dist.scale, "The scale of the whole distribution.")
    mode = formula(lambda self: self.scale.new_zeros(self.scale.shape))

    def log_prob(self, value: Tensor) -> Tensor:
        value = as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        self._check(value)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfCauchy(Half):
    """The absolute value of a Cauchy number around 0: density ``2 / (pi * scale * (1 + (x / scale) ** 2))``.

    The support is ``x >= 0``. The batch shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        scale: its scale, above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: a parameter is not in its region; in ``log_prob``, a value is not in the support.

    Examples:
        >>> taeda.distributions.HalfCauchy(1.0).cdf(taeda.tensor(1.0))
        tensor(0.5000)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    mean = formula(lambda self: self.scale.new_full(self._extended_shape(), math.inf))
    variance = formula(lambda self: self.base_dist.variance)


class HalfNormal(Half):
    """The absolute value of a normal number with mean 0: density ``2 * exp(-(x / scale) ** 2 / 2) / (scale * sqrt(2 *
    pi))``.

    The support is ``x >= 0``. The batch shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        scale: standard deviation of the normal number, above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: a parameter is not in its region; in ``log_prob``, a value is not in the support.

    Examples:
        >>> taeda.distributions.HalfNormal(1.0).mean  # sqrt(2 / pi)
        tensor(0.7979)
    """

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    mean = formula(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = formula(lambda self: self.scale**2 * (1 - 2 / math.pi))


class LogNormal(TransformedDistribution):
    """The exponential of a normal number: density ``exp(-z ** 2 / 2) / (x * scale * sqrt(2 * pi))``, ``z = (log(x) -
    loc) / scale``.

    The support is ``x > 0``. The batch shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        loc: mean of the logarithm.
        scale: standard deviation of the logarithm, above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: a parameter is not in its region; in ``log_prob``, a value is not in the support.

    Examples:
        >>> taeda.distributions.LogNormal(0.0, 1.0).mean  # exp(loc + scale^2 / 2)
        tensor(1.6487)
    """

    arg_constraints: ClassVar[dict] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    loc = formula(lambda self: self.base_dist.loc, "Mean of the logarithm.")
    scale = formula(lambda self: self.base_dist.scale, "Standard deviation of the logarithm.")
    mean = formula(lambda self: (self.loc + self.scale**2 / 2).exp())
    mode = formula(lambda self: (self.loc - self.scale**2).exp())

    @property
    def variance(self) -> Tensor:
        square = self.scale**2
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class Pareto(TransformedDistribution):
    """A power law: ``P(X > x) = (scale / x) ** alpha``.

    The support is ``x >= scale``. The batch shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        scale: the lower end, above 0.
        alpha: the exponent, above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: a parameter is not in its region; in ``log_prob``, a value is not in the support.

    Examples:
        >>> d = taeda.distributions.Pareto(1.0, 3.0)
        >>> d.mean, d.cdf(taeda.tensor(2.0))
        (tensor(1.5000), tensor(0.8750))
    """

    arg_constraints: ClassVar[dict] = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    mode = formula(lambda self: self.scale)

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + 1 / self.alpha


class Weibull(TransformedDistribution):
    """The time until something fails: ``P(X > x) = exp(-(x / scale) ** concentration)``.

    With concentration 1 it is :class:`Exponential`; above 1 failures become more frequent with age. The support is ``x
    > 0``. The batch shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        scale: above 0.
        concentration: the exponent, above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: a parameter is not in its region; in ``log_prob``, a value is not in the support.

    Examples:
        >>> taeda.distributions.Weibull(1.0, 2.0).mean  # gamma(3 / 2)
        tensor(0.8862)
    """

    arg_constraints: ClassVar[dict] = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _batched: ClassVar[dict[str, int]] = {"concentration_reciprocal": 0}

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """The mean of ``(x / scale) ** n``."""
        return (1 + n * self.concentration_reciprocal).lgamma().exp()

    mean = formula(lambda self: self.scale * self._moment(1))

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    variance = formula(lambda self: self.scale**2 * (self._moment(2) - self._moment(1) ** 2))

    def entropy(self) -> Tensor:
        k = self.concentration_reciprocal
        return euler_constant * (1 - k) + (self.scale * k).log() + 1
