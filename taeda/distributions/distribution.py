"""The base classes of probability distributions: shapes, validation, expanding, printing."""

from __future__ import annotations

import sys
import warnings
from typing import Any, ClassVar, Generic, Self, TypeVar

from .. import autograd
from .._core import Size, Tensor
from ..autograd import no_grad
from . import constraints
from .utils import _sum_rightmost, all_true, broadcast_all, formula, lazy_property, logits_to_probs, probs_to_logits

__all__ = [
    "Distribution", "ExponentialFamily", "Independent",
]  # fmt: skip


class Distribution:
    """A probability distribution, or a batch of them.

    A subclass sets its parameters as attributes, names them in ``arg_constraints``, and hands its shapes to this class.
    It defines ``log_prob``, and ``rsample`` where samples have gradients by the parameters, else ``sample``.

    Args:
        batch_shape: the shape of the batch: a distribution for each element.
        event_shape: the shape of one sample of one distribution.
        validate_args: whether parameters and values are checked. Default: what :meth:`set_default_validate_args` says.

    Shape:
        sample(s): ``s + batch_shape + event_shape``, in the parameters' floating-point dtype.
        log_prob(x): for ``x`` of that shape ``s + batch_shape``.

    Raises:
        ValueError: a parameter is not in its region; in ``log_prob``, a value is not in the support.

    Examples:
        >>> normals = taeda.distributions.Normal(taeda.zeros(3), 1.0)  # a batch of three
        >>> normals.batch_shape, normals.event_shape, normals.sample((5,)).shape
        (taeda.Size([3]), taeda.Size([]), taeda.Size([5, 3]))
        >>> vectors = taeda.distributions.Independent(normals, 1)  # one of vectors
        >>> vectors.batch_shape, vectors.event_shape, vectors.log_prob(taeda.zeros(3)).shape
        (taeda.Size([]), taeda.Size([3]), taeda.Size([]))
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__
    #: Tensors of an instance, besides those in ``arg_constraints``, that have the batch's dimensions, with how many
    #: dimensions they have besides. What is in neither is kept as it is when a distribution is expanded.
    _batched: ClassVar[dict[str, int]] = {}

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments, unless they are told otherwise."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected a bool, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None):
        self._batch_shape = Size(batch_shape) if type(batch_shape) is tuple else batch_shape
        self._event_shape = Size(event_shape) if type(event_shape) is tuple else event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        try:
            regions = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize "
                "the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        for name, region in regions.items():
            if constraints.is_dependent(region):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # not given, but made of what is
            value = getattr(self, name)
            if not all_true(region.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {region!r}, but found invalid values:\n{value}"
                )

    # ---- shapes ------------------------------------------------------------------------------------------------------
    batch_shape = formula(lambda self: self._batch_shape, "The shape of the batch of distributions.")
    event_shape = formula(lambda self: self._event_shape, "The shape of one sample of one of them.")

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """The same distribution with the batch's dimensions expanded; no memory is copied.

        Args:
            batch_shape: the new shape of the batch.
            _instance: of a subclass with a constructor of its own: a new instance, to be filled.
        Returns:
            The distribution.
        Raises:
            NotImplementedError: a subclass has a constructor of its own, and neither ``_instance`` is given nor this
                method overridden.
        """
        family: Any = self._family()
        new = self._get_checked_instance(family, _instance)
        set_by_subclass = () if _instance is None else tuple(vars(new))
        batch_shape = Size(batch_shape)
        regions = family.arg_constraints  # a subclass may name others
        regions = (family.arg_constraints.fget(self) if isinstance(regions, property) else regions).items()
        extra = {name: 0 if constraints.is_dependent(r) else r.event_dim for name, r in regions} | self._batched
        for name, value in vars(self).items():
            if isinstance(value, Tensor) and name in extra:
                value = value.expand(Size((*batch_shape, *value.shape[value.dim() - extra[name] :])))
            elif isinstance(value, Distribution):
                value = value.expand(Size((*batch_shape, *value.batch_shape[len(self._batch_shape) :])))
            elif name in set_by_subclass or isinstance(getattr(type(self), name, None), lazy_property):
                continue
            new.__dict__[name] = value
        new._batch_shape = batch_shape
        new._validate_args = self._validate_args
        return new

    @classmethod
    def _family(cls) -> type:
        """The class of this package that an instance belongs to."""
        return next(
            c for c in cls.__mro__ if getattr(sys.modules.get(c.__module__), "__package__", None) == __package__
        )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        """The shape of samples: ``sample_shape + batch_shape + event_shape``."""
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    # ---- what a family defines ---------------------------------------------------------------------------------------
    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The regions of the parameters, by name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The region of the samples."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    stddev = formula(lambda self: self.variance.sqrt(), "The standard deviation, of ``batch_shape + event_shape``.")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples without gradients.

        Args:
            sample_shape: how many.
        Returns:
            ``sample_shape + batch_shape + event_shape``.
        """
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Samples that are differentiable in the parameters; shapes as of :meth:`sample`."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """As ``sample((n,))``, its successor."""
        warnings.warn("sample_n(n) will be deprecated. Use .sample((n,)) instead", FutureWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Logarithm of the density or probability at ``value``.

        Args:
            value: a shape that broadcasts with ``batch_shape + event_shape``.
        Returns:
            A tensor of the batch's shape, to which ``value`` broadcasts.
        Raises:
            ValueError: the shapes do not fit, or a value is outside the support (if arguments are validated).
            NotImplementedError: the distribution has no density.
        """
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Probability of at most ``value``; arguments as of :meth:`log_prob`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of :meth:`cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Every value of a discrete distribution, along a new first dimension.

        Args:
            expand: whether the batch's dimensions are expanded or of size 1.

        Returns:
            ``(n,)`` followed by the batch's and the event's shape.

        Raises:
            NotImplementedError: the distribution is not discrete, or has no end of values.
        """
        raise NotImplementedError

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def entropy(self) -> Tensor:
        """The entropy, in nats; ``batch_shape``."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    # ---- values ------------------------------------------------------------------------------------------------------
    def _check(self, value: Any) -> None:
        """Validate ``value``, if arguments are validated."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        """Raise ValueError unless ``value`` has a shape that fits and lies in the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape, n = value.shape, len(self._event_shape)
        if tuple(shape[len(shape) - n :]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {tuple(shape)} vs {tuple(self._event_shape)}."
            )
        expected = self._extended_shape()
        for have, want in zip(reversed(shape), reversed(expected), strict=False):
            if have != want and have != 1 and want != 1:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {tuple(shape)} vs {tuple(expected)}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        if not all_true(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        found = [(name, self.__dict__[name]) for name in self.arg_constraints if name in self.__dict__]
        shown = ", ".join(f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in found)
        return f"{type(self).__name__}({shown})"


class ExponentialFamily(Distribution):
    """Base class of densities ``exp(<t(x), theta> - F(theta) + k(x))`` with natural parameters ``theta`` and
    log-normaliser ``F``.

    A subclass gives ``_natural_params``, ``_log_normalizer(*natural_params)`` and ``_mean_carrier_measure``, the mean
    of ``k``. Entropy and divergence follow from ``F`` and its gradient. Source: Nielsen & Nock 2010, "Entropies and
    cross-entropies of exponential families".

    Examples:
        >>> isinstance(taeda.distributions.Gamma(1.0, 1.0), taeda.distributions.ExponentialFamily)
        True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def _normalizer_and_slopes(self) -> tuple[list[Tensor], Tensor, Any]:
        """Natural parameters, F at them, and its gradient, all differentiable."""
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        value = self._log_normalizer(*natural)
        return natural, value, autograd.grad(value.sum(), natural, create_graph=True)

    def entropy(self) -> Tensor:
        """``F(theta) - <theta, F'(theta)> - E[k]``."""
        natural, value, slopes = self._normalizer_and_slopes()
        result = value - self._mean_carrier_measure
        for theta, slope in zip(natural, slopes, strict=True):
            result = result - (theta * slope).reshape((*self._batch_shape, -1)).sum(-1)
        return result


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

    param_shape = formula(lambda self: self._param.shape, "The shape of the parameter that was given.")


D = TypeVar("D", bound=Distribution)


class Independent(Distribution, Generic[D]):
    """The last dimensions of a batch taken together as one event of independent parts: ``log_prob`` is summed over
    them.

    Args:
        base_distribution: the batch.
        reinterpreted_batch_ndims: how many of its dimensions.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: the batch has fewer dimensions.

    Examples:
        >>> batch = taeda.distributions.Normal(taeda.zeros(2, 3), 1.0)
        >>> d = taeda.distributions.Independent(batch, 1)
        >>> d.batch_shape, d.event_shape
        (taeda.Size([2]), taeda.Size([3]))
        >>> batch.log_prob(taeda.zeros(2, 3)).shape, d.log_prob(taeda.zeros(2, 3)).shape
        (taeda.Size([2, 3]), taeda.Size([2]))
    """

    arg_constraints: ClassVar[dict] = {}

    def __init__(self, base_distribution: D, reinterpreted_batch_ndims: int, validate_args: bool | None = None):
        n = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > n:
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {n}"
            )
        shape = base_distribution._extended_shape()
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        n -= reinterpreted_batch_ndims
        super().__init__(shape[:n], shape[n:], validate_args=validate_args)

    has_rsample = formula(lambda self: self.base_dist.has_rsample)

    @property
    def has_enumerate_support(self) -> bool:
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        region = self.base_dist.support
        n = self.reinterpreted_batch_ndims
        return constraints.independent(region, n) if n else region

    mean = formula(lambda self: self.base_dist.mean)
    mode = formula(lambda self: self.base_dist.mode)
    variance = formula(lambda self: self.base_dist.variance)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
