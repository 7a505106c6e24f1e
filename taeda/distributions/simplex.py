"""Distributions on the unit interval and the simplex."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .._core import Tensor
from ..nn.functional import binary_cross_entropy_with_logits
from ..ops.creation import full_like
from ..ops.elementary import xlogy
from ..ops.exchange import as_tensor
from ..ops.indexing import where
from ..ops.joining import stack
from ..ops.random import rand
from ..ops.variates import _sample_dirichlet
from . import constraints
from .discrete import OfCategorical
from .distribution import ExponentialFamily, ProbsOrLogits
from .real import Normal, Uniform
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform, PowerTransform, SigmoidTransform, StickBreakingTransform
from .utils import all_true, broadcast_all, clamp_probs, euler_constant, formula, lazy_property, logits_to_probs

__all__ = [
    "Beta", "ContinuousBernoulli", "Dirichlet", "ExpRelaxedCategorical", "Kumaraswamy", "LogisticNormal",
    "LogitRelaxedBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical",
]  # fmt: skip


class Dirichlet(ExponentialFamily):
    """Probabilities of ``n`` classes: density proportional to ``prod(x ** (concentration - 1))``.

    The support is the simplex: vectors of positive numbers that add up to 1. The batch shape is that of the parameter
    without its last dimension; the event shape is ``(n,)``.

    Args:
        concentration: ``(*, n)``, above 0: large for vectors near the mean, below 1 for corners.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: ``concentration`` has no dimensions, or is out of its range, if that is checked.

    Examples:
        >>> d = taeda.distributions.Dirichlet(taeda.tensor([1.0, 2.0, 5.0]))
        >>> d.mean, d.sample((7,)).shape
        (tensor([0.1250, 0.2500, 0.6250]), taeda.Size([7, 3]))
    """

    arg_constraints: ClassVar[dict] = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return _sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a = self.concentration
        return xlogy(a - 1.0, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    mean = formula(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        # where all concentrations are below 1 the density is infinite at every corner: the first
        corner = mode.new_zeros(mode.shape)
        corner[..., 0] = 1.0
        return corner.where((self.concentration < 1).all(-1, True), mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total * total * (total + 1))

    def entropy(self) -> Tensor:
        a = self.concentration
        n, total = a.size(-1), a.sum(-1)
        normalizer = a.lgamma().sum(-1) - total.lgamma()
        return normalizer - (n - total) * total.digamma() - ((a - 1.0) * a.digamma()).sum(-1)

    _natural_params = formula(lambda self: (self.concentration,))

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()


class Beta(ExponentialFamily):
    """A probability: density proportional to ``x ** (concentration1 - 1) * (1 - x) ** (concentration0 - 1)``.

    What is known of a coin after ``concentration1 - 1`` heads and ``concentration0 - 1`` tails. The support is ``[0,
    1]``. The batch shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        concentration1: above 0.
        concentration0: above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Examples:
        >>> d = taeda.distributions.Beta(3.0, 1.0)
        >>> d.mean, d.log_prob(taeda.tensor(0.5)).exp()  # 3 x^2
        (tensor(0.7500), tensor(0.7500))
    """

    arg_constraints: ClassVar[dict] = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        both = stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    concentration1 = formula(lambda self: self._dirichlet.concentration[..., 0], "The first parameter.")
    concentration0 = formula(lambda self: self._dirichlet.concentration[..., 1], "The second parameter.")
    mean = formula(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = formula(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total * total * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._dirichlet.log_prob(stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    _natural_params = formula(lambda self: (self.concentration1, self.concentration0))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return x.lgamma() + y.lgamma() - (x + y).lgamma()


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers such as pixels: density ``c * probs ** x * (1 - probs) ** (1 - x)``, where ``c`` makes it integrate to 1.

    Source: Loaiza-Ganem & Cunningham 2019, "The continuous Bernoulli: fixing a pervasive error in variational
    autoencoders". The support is ``[0, 1]``. The batch shape is that to which the parameters broadcast; the event shape
    is ``()``.

    Args:
        probs: in ``(0, 1)``; or give ``logits``.
        logits: its log-odds.
        lims: between these, around 1/2, Taylor series replace formulas that cancel there.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: both of ``probs`` and ``logits`` are given, or neither, or they are out of their range, if that is
            checked.

    Examples:
        >>> d = taeda.distributions.ContinuousBernoulli(probs=taeda.tensor(0.9))
        >>> d.mean, d.log_prob(taeda.tensor([0.0, 1.0])).exp()
        (tensor(0.6699), tensor([0.2747, 2.4719]))
    """

    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ):  # fmt: skip
        self._take(probs, logits)
        if probs is not None:
            if validate_args is not None and not all_true(constraints.unit_interval.check(self._param)):
                raise ValueError(f"The parameter probs has invalid values: expected [0, 1], got {self._param}")
            self.probs = self._param = clamp_probs(self._param)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter of the shape, kept away from 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _stable(self) -> Tensor:
        """A mask that is true where the closed formulas do not cancel."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        """``probs`` where formulas are stable, some other stable value elsewhere."""
        return where(self._stable(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """Logarithm of ``2 atanh(1 - 2 p) / (1 - 2 p)``."""
        p = self._cut_probs()
        exact = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        x = (self.probs - 0.5) ** 2
        return where(self._stable(), exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        p = self._cut_probs()
        exact = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return where(self._stable(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x * x) * x)

    @property
    def variance(self) -> Tensor:
        p = self._cut_probs()
        exact = p * (p - 1.0) / (1.0 - 2.0 * p) ** 2 + 1.0 / ((-p).log1p() - p.log()) ** 2
        x = (self.probs - 0.5) ** 2
        return where(self._stable(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return self._cont_bern_log_norm() - binary_cross_entropy_with_logits(logits, value, reduction="none")

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        p = self._cut_probs()
        exact = (p**value * (1.0 - p) ** (1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = where(self._stable(), exact, value)
        return inside.masked_fill(value <= 0.0, 0.0).masked_fill(value >= 1.0, 1.0)

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut_probs()
        other = (-p).log1p()
        exact = ((-p + value * (2.0 * p - 1.0)).log1p() - other) / (p.log() - other)
        return where(self._stable(), exact, value)

    def entropy(self) -> Tensor:
        other = (-self.probs).log1p()
        return self.mean * (other - self.probs.log()) - self._cont_bern_log_norm() - other

    _natural_params = formula(lambda self: (self.logits,))

    def _log_normalizer(self, x: Tensor) -> Tensor:
        stable = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = where(stable, x, self._lims[0] - 0.5)
        series = 0.5 * x + x**2 / 24.0 - x**4 / 2880.0
        return where(stable, cut.expm1().abs().log() - cut.abs().log(), series)


class Kumaraswamy(TransformedDistribution):
    """Like :class:`Beta`, with a simple distribution function: ``P(X <= x) = 1 - (1 - x ** concentration1) **
    concentration0``.

    The support is ``[0, 1]``. The batch shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        concentration1: above 0.
        concentration0: above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: a parameter is not in its region; in ``log_prob``, a value is not in the support.

    Examples:
        >>> taeda.distributions.Kumaraswamy(2.0, 1.0).cdf(taeda.tensor(0.5))
        tensor(0.2500)
    """

    arg_constraints: ClassVar[dict] = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        a, b = self.concentration1, self.concentration0
        base = Uniform(full_like(b, 0), full_like(b, 1), validate_args=validate_args)
        transforms = [PowerTransform(b.reciprocal()), AffineTransform(1.0, -1.0), PowerTransform(a.reciprocal())]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """The mean of ``x ** n``: ``b * B(1 + n / a, b)``."""
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * (a.lgamma() + b.lgamma() - (a + b).lgamma()).exp()

    mean = formula(lambda self: self._moment(1))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mode = (-b).log1p() / b - (-b * a).log1p()
        return log_mode.masked_fill((b < 1) | (a < 1), math.nan).exp()

    variance = formula(lambda self: self._moment(2) - self._moment(1) ** 2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return 1 - 1 / b + (1 - 1 / a) * harmonic - a.log() - b.log()


class LogisticNormal(TransformedDistribution):
    """A point of the simplex with ``n + 1`` coordinates, from ``n`` normal numbers by :class:`StickBreakingTransform`.

    The batch shape is that of the parameters without their last dimension; the event shape is ``(n + 1,)``.

    Args:
        loc: ``(*, n)``, means.
        scale: ``(*, n)``, standard deviations, above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: a parameter is not in its region; in ``log_prob``, a value is not in the support.

    Examples:
        >>> x = taeda.distributions.LogisticNormal(taeda.zeros(2), taeda.ones(2)).sample()
        >>> x.shape, round(x.sum().item(), 4)
        (taeda.Size([3]), 1.0)
    """

    arg_constraints: ClassVar[dict] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = formula(lambda self: self.base_dist.base_dist.loc, "Means of the normal numbers.")
    scale = formula(lambda self: self.base_dist.base_dist.scale, "Standard deviations of the normal numbers.")


class LogitRelaxedBernoulli(ProbsOrLogits):
    """The log-odds of a :class:`RelaxedBernoulli`: a logistic number, shifted and divided by the temperature.

    Args:
        temperature: positive.
        probs: the probability of 1.
        logits: or its log-odds.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.
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
        u = clamp_probs(rand(shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        z = logits - value * self.temperature
        return as_tensor(self.temperature, dtype=z.dtype, device=z.device).log() + z - 2 * z.exp().log1p()


class _Relaxed(TransformedDistribution):
    has_rsample = True

    temperature = formula(lambda self: self.base_dist.temperature, "The temperature.")
    logits = formula(lambda self: self.base_dist.logits, "Their logarithms, or the log-odds of one.")
    probs = formula(lambda self: self.base_dist.probs, "The probabilities.")


class RelaxedBernoulli(_Relaxed):
    """A number in (0, 1) near 0 or 1, by which one can differentiate: ``sigmoid((logits + log(u) - log(1 - u)) /
    temperature)``.

    Sources: Maddison et al. 2016, "The Concrete Distribution"; Jang et al. 2016. The support is ``(0, 1)``. The batch
    shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        temperature: above 0; the smaller, the nearer to 0 and 1.
        probs: the probability of 1; or give ``logits``.
        logits: its log-odds.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: a parameter is not in its region; in ``log_prob``, a value is not in the support.

    Examples:
        >>> probs = taeda.tensor([0.1, 0.9], requires_grad=True)
        >>> x = taeda.distributions.RelaxedBernoulli(0.5, probs=probs).rsample()
        >>> x.shape, x.requires_grad
        (taeda.Size([2]), True)
    """

    arg_constraints: ClassVar[dict] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)


class ExpRelaxedCategorical(OfCategorical):
    """The logarithm of a :class:`RelaxedOneHotCategorical`.

    Args:
        temperature: positive.
        probs: (..., n): probabilities, up to a factor.
        logits: or their logarithms, up to a constant.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = clamp_probs(rand(self._extended_shape(sample_shape), dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature  # a Gumbel number is added to each
        return scores - scores.logsumexp(-1, True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self._event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        score = logits - value * self.temperature
        score = (score - score.logsumexp(-1, True)).sum(-1)
        return (
            score + math.lgamma(n) + (n - 1) * as_tensor(self.temperature, dtype=score.dtype, device=score.device).log()
        )


class RelaxedOneHotCategorical(_Relaxed):
    """A point of the simplex near a corner, by which one can differentiate: ``softmax((logits + g) / temperature)``,
    ``g`` Gumbel.

    Sources: Maddison et al. 2016, "The Concrete Distribution"; Jang et al. 2016. The batch shape is that of the
    parameters without their last dimension; the event shape is ``(n,)``.

    Args:
        temperature: above 0; the smaller, the nearer to a corner.
        probs: ``(*, n)``, probabilities, up to a factor; or give ``logits``.
        logits: ``(*, n)``, their logarithms, up to a constant.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: a parameter is not in its region; in ``log_prob``, a value is not in the support.

    Examples:
        >>> d = taeda.distributions.RelaxedOneHotCategorical(0.5, logits=taeda.zeros(3))
        >>> round(d.rsample().sum().item(), 4)
        1.0
    """

    arg_constraints: ClassVar[dict] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
