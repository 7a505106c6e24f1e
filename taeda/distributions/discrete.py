"""Distributions of counts and choices."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .._core import Tensor
from ..autograd import no_grad
from ..nn.functional import binary_cross_entropy_with_logits, logsigmoid, one_hot
from ..ops.creation import arange, eye, ones_like
from ..ops.elementary import xlogy
from ..ops.random import bernoulli, multinomial, poisson
from ..ops.variates import binomial
from ..ops.views import broadcast_tensors
from ..types import finfo
from . import constraints
from .distribution import Distribution, ExponentialFamily, ProbsOrLogits, exactly_one
from .positive import Gamma
from .utils import all_true, broadcast_all, formula, lazy_property, logits_to_probs, probs_to_logits

__all__ = [
    "Bernoulli", "Binomial", "Categorical", "Geometric", "Multinomial", "NegativeBinomial", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Poisson",
]  # fmt: skip


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """1 with probability ``probs``, else 0: ``P(x) = probs ** x * (1 - probs) ** (1 - x)``.

    The support is 0 and 1. The batch shape is that to which the parameters broadcast; the event shape is ``()``.

    Args:
        probs: the probability of 1; or give ``logits``.
        logits: its log-odds, ``log(probs / (1 - probs))``.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Examples:
        >>> d = taeda.distributions.Bernoulli(probs=taeda.tensor([0.1, 0.5]))
        >>> d.log_prob(taeda.tensor(1.0)), d.entropy()
        (tensor([-2.3026, -0.6931]), tensor([0.3251, 0.6931]))
        >>> d.sample((1000,)).unique()
        tensor([0., 1.])
    """

    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    mean = formula(lambda self: self.probs)
    mode = formula(lambda self: (self.probs >= 0.5).to(self.probs.dtype).masked_fill(self.probs == 0.5, math.nan))
    variance = formula(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(arange(2, dtype=self._param.dtype, device=self._param.device), expand)

    _natural_params = formula(lambda self: (self.probs.logit(),))

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp().log1p()


class Binomial(ProbsOrLogits):
    """The number of successes in ``n`` trials: ``P(k) = n! / (k! * (n - k)!) * probs ** k * (1 - probs) ** (n -
    k)``.

    The support is the whole numbers from 0 to ``total_count``. The batch shape is that to which the parameters
    broadcast; the event shape is ``()``.

    Args:
        total_count: ``n``, a whole number.
        probs: the probability of the event; or give ``logits``.
        logits: its log-odds.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Examples:
        >>> d = taeda.distributions.Binomial(4, probs=taeda.tensor(0.5))
        >>> d.log_prob(taeda.arange(5.0)).exp()
        tensor([0.0625, 0.2500, 0.3750, 0.2500, 0.0625])
    """

    arg_constraints: ClassVar[dict] = {"total_count": constraints.nonnegative_integer, **ProbsOrLogits.arg_constraints}
    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        (count,) = self._take(probs, logits, total_count)
        self.total_count = count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    mean = formula(lambda self: self.total_count * self.probs)
    mode = formula(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = formula(lambda self: self.total_count * self.probs * (1 - self.probs))

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
        return self._enumerated(
            arange(1 + self._count("enumerate_support"), dtype=self._param.dtype, device=self._param.device), expand
        )


class Geometric(ProbsOrLogits):
    """The number of failures before the first success: ``P(k) = (1 - probs) ** k * probs``.

    The support is the whole numbers from 0. The batch shape is that to which the parameters broadcast; the event shape
    is ``()``.

    Args:
        probs: the probability of success, in ``(0, 1]``; or give ``logits``.
        logits: its log-odds.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: both of ``probs`` and ``logits`` are given, or neither; or a parameter is out of its range, if they
            are checked.

    Examples:
        >>> d = taeda.distributions.Geometric(probs=taeda.tensor(0.5))
        >>> d.mean, d.log_prob(taeda.arange(3.0)).exp()
        (tensor(1.), tensor([0.5000, 0.2500, 0.1250]))
    """

    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not all_true(self.probs > 0):
            raise ValueError(
                f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of distribution {self!r} to be "
                f"positive but found invalid values:\n{self.probs[self.probs <= 0]}"
            )

    mean = formula(lambda self: 1.0 / self.probs - 1.0)
    mode = formula(lambda self: self.probs.new_zeros(self.probs.shape))
    variance = formula(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        # 0 failures of probability 0: 0 * log(0) counts as 0
        failure = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-failure).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class NegativeBinomial(ProbsOrLogits):
    """How many successes come before ``r`` failures: ``P(k) = gamma(k + r) / (k! * gamma(r)) * (1 - probs) ** r * probs
    ** k``.

    Counts that vary more than those of :class:`Poisson`. The support is the whole numbers from 0. The batch shape is
    that to which the parameters broadcast; the event shape is ``()``.

    Args:
        total_count: ``r``, a number of at least 0.
        probs: the probability of success, in ``[0, 1)``; or give ``logits``.
        logits: its log-odds.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Examples:
        >>> d = taeda.distributions.NegativeBinomial(3.0, probs=taeda.tensor(0.5))
        >>> d.mean, d.variance
        (tensor(3.), tensor(6.))
    """

    arg_constraints: ClassVar[dict] = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        (count,) = self._take(probs, logits, total_count)
        self.total_count = count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    mean = formula(lambda self: self.total_count * self.logits.exp())
    mode = formula(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = formula(lambda self: self.mean / (-self.logits).sigmoid())

    @lazy_property
    def _gamma(self) -> Gamma:
        """The distribution of the rates: a Poisson number with such a rate is negative binomial."""
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.total_count
        ways = (n + value).lgamma() - (1.0 + value).lgamma() - n.lgamma()
        ways = ways.masked_fill(n + value == 0, 0.0)
        return ways + n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)


class Poisson(ExponentialFamily):
    """The number of events, where ``rate`` are expected: ``P(k) = rate ** k * exp(-rate) / k!``.

    The support is the whole numbers from 0. The batch shape is that to which the parameters broadcast; the event shape
    is ``()``.

    Args:
        rate: the mean, at least 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Examples:
        >>> d = taeda.distributions.Poisson(2.0)
        >>> d.log_prob(taeda.arange(3.0)).exp()
        tensor([0.1353, 0.2707, 0.2707])
    """

    arg_constraints: ClassVar[dict] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = formula(lambda self: self.rate)
    mode = formula(lambda self: self.rate.floor())
    variance = formula(lambda self: self.rate)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return xlogy(value, rate) - rate - (value + 1).lgamma()

    _natural_params = formula(lambda self: (self.rate.log(),))

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp()


class Categorical(Distribution):
    """A class number: ``P(i) = probs[i] / sum(probs)``.

    The support is the whole numbers from 0 to ``n - 1``. The batch shape is that of the parameters without their last
    dimension; the event shape is ``()``.

    Args:
        probs: ``(*, n)``, probabilities, up to a factor; or give ``logits``.
        logits: ``(*, n)``, their logarithms, up to a constant, such as scores of a network.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Shape:
        sample(s): ``s + batch_shape``, int64.
        log_prob(x): for ``x`` of that shape the same, in the parameters' floating-point dtype.

    Raises:
        ValueError: both of ``probs`` and ``logits`` are given, or neither, or they have no dimensions; or they are out
            of their range, if that is checked.

    Examples:
        >>> d = taeda.distributions.Categorical(probs=taeda.tensor([0.5, 0.25, 0.25]))
        >>> d.log_prob(taeda.tensor([0, 1])).exp(), d.entropy()
        (tensor([0.5000, 0.2500]), tensor(1.0397))
        >>> d.sample((1000,)).bincount().shape
        taeda.Size([3])
    """

    arg_constraints: ClassVar[dict] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _batched: ClassVar[dict[str, int]] = {"_param": 1}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        exactly_one(probs, logits)
        given, name = (logits, "logits") if probs is None else (probs, "probs")
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        normal = given - given.logsumexp(-1, True) if probs is None else given / given.sum(-1, True)
        self._param = normal
        setattr(self, name, normal)
        self._num_events = normal.shape[-1]
        super().__init__(normal.shape[:-1], validate_args=validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new_empty(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    param_shape = formula(lambda self: self._param.shape, "(..., n).")
    mean = formula(lambda self: self.probs.new_full(self._extended_shape(), math.nan))
    mode = formula(lambda self: self.probs.argmax(-1))
    variance = formula(lambda self: self.mean)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        rows = self.probs.detach().reshape(-1, self._num_events)
        return multinomial(rows, math.prod(sample_shape), True).t().reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        index, log_probs = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return log_probs.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.logits.clamp(min=finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(arange(self._num_events, device=self._param.device), expand)


class OfCategorical(Distribution):
    """A distribution of vectors that has the parameters of a :class:`Categorical`."""

    arg_constraints: ClassVar[dict] = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._categorical = Categorical(probs, logits)
        shape = self.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    _param = formula(lambda self: self._categorical._param)
    probs = formula(lambda self: self._categorical.probs, "The probabilities.")
    logits = formula(lambda self: self._categorical.logits, "Logarithms of the probabilities.")
    param_shape = formula(lambda self: self._categorical.param_shape, "(..., n).")


class OneHotCategorical(OfCategorical):
    """A class as a vector of zeros with a one: :class:`Categorical` in another form.

    The batch shape is that of the parameters without their last dimension; the event shape is ``(n,)``.

    Args:
        probs: ``(*, n)``, probabilities, up to a factor; or give ``logits``.
        logits: ``(*, n)``, their logarithms, up to a constant.

    Examples:
        >>> d = taeda.distributions.OneHotCategorical(probs=taeda.tensor([0.5, 0.25, 0.25]))
        >>> d.sample().sum(), d.log_prob(taeda.tensor([0.0, 1.0, 0.0])).exp()
        (tensor(1.), tensor(0.2500))
    """

    support = constraints.one_hot
    has_enumerate_support = True

    mean = formula(lambda self: self.probs)
    mode = formula(lambda self: self._unit(self.probs.argmax(-1)))
    variance = formula(lambda self: self.probs * (1 - self.probs))

    def _unit(self, index: Tensor) -> Tensor:
        return one_hot(index, self._event_shape[0]).to(self.probs.dtype)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._unit(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n, batch = self._event_shape[0], self._batch_shape
        values = eye(n, dtype=self._param.dtype, device=self._param.device).reshape((n, *[1] * len(batch), n))
        return values.expand((n, *batch, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """As :class:`OneHotCategorical`; the gradient of a sample is that of the probabilities (Bengio et al. 2013).

    A network can draw a class and be trained through it.

    Examples:
        >>> logits = taeda.zeros(3, requires_grad=True)
        >>> d = taeda.distributions.OneHotCategoricalStraightThrough(logits=logits)
        >>> (d.rsample() * taeda.tensor([1.0, 2.0, 3.0])).sum().backward()
        >>> logits.grad
        tensor([-0.3333,  0.0000,  0.3333])
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(OfCategorical):
    """The count of each of ``n`` events in ``m`` draws: ``P(k) = m! / prod(k!) * prod(probs ** k)``.

    The support is vectors of whole numbers that add up to ``m``. The batch shape is that of the parameters without
    their last dimension; the event shape is ``(n,)``.

    Args:
        total_count: ``m``, an int.
        probs: ``(*, n)``, probabilities, up to a factor; or give ``logits``.
        logits: ``(*, n)``, their logarithms, up to a constant.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        NotImplementedError: ``total_count`` is no int.
        ValueError: both of ``probs`` and ``logits`` are given, or neither, or they are out of their range, if that is
            checked.

    Examples:
        >>> d = taeda.distributions.Multinomial(10, probs=taeda.tensor([0.5, 0.25, 0.25]))
        >>> d.mean, d.sample().sum()
        (tensor([5.0000, 2.5000, 2.5000]), tensor(10.))
    """

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        if not isinstance(total_count, int):
            raise NotImplementedError(
                f"inhomogeneous total_count is not supported: expected an int, got {type(total_count).__name__}"
            )
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    mean = formula(lambda self: self.probs * self.total_count)
    variance = formula(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        draws = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = draws.new_zeros(self._extended_shape(sample_shape))
        return counts.scatter_add(-1, draws, ones_like(draws)).to(self.probs.dtype)

    def entropy(self) -> Tensor:
        """From the binomial entropies of the counts: ``n H - log n! + sum E[log count!]``."""
        n = self.total_count
        counts = self._binomial.enumerate_support(expand=False)[1:]
        probs = self._binomial.log_prob(counts).exp()
        each = (probs * (counts + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - math.lgamma(n + 1) + each

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)  # no draw of probability 0 is certain
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return ways + (logits * value).sum(-1)
