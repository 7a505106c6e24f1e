"""The base class of probability distributions: shapes, validation, expanding, printing."""

from __future__ import annotations

import sys
import warnings
from typing import Any, ClassVar, Self

from .. import no_grad
from .._core import Size, Tensor
from . import constraints
from .utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A probability distribution, or a batch of them.

    A subclass sets its parameters as attributes, names them in ``arg_constraints``, and hands its shapes to this class.

    Args:
        batch_shape: the shape of the batch.
        event_shape: the shape of one sample.
        validate_args: whether parameters and values are checked. Default: what :meth:`set_default_validate_args` says.
    Raises:
        ValueError: a parameter is not in the region that ``arg_constraints`` says.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__
    #: Tensors of an instance that have the batch's dimensions, with how many dimensions they have besides. What is not
    #: named here and in ``arg_constraints`` (with none besides) is kept as it is when a distribution is expanded.
    _batched: ClassVar[dict[str, int]] = {}

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments, unless they are told otherwise."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected a bool, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None):
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        try:
            regions = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        for name, region in regions.items():
            if constraints.is_dependent(region):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # not given, but made of what is
            value = getattr(self, name)
            if not bool(region.check(value).all()):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {region!r}, but found invalid values:\n{value}"
                )

    # ---- shapes ------------------------------------------------------------------------------------------------------
    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one of them."""
        return self._event_shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """The same distribution with the batch's dimensions expanded; no memory is copied.

        Args:
            batch_shape: the new shape of the batch.
            _instance: of a subclass with a constructor of its own: a new instance, to be filled.
        Raises:
            NotImplementedError: a subclass has a constructor of its own, and neither ``_instance`` is given nor this
                method overridden.
        """
        new = self._get_checked_instance(self._family(), _instance)
        batch_shape = Size(batch_shape)
        extra = dict.fromkeys(self.arg_constraints, 0) | self._batched
        for name, value in vars(self).items():
            if isinstance(value, Tensor) and name in extra:
                value = value.expand(Size((*batch_shape, *value.shape[value.dim() - extra[name] :])))
            elif isinstance(value, Distribution):
                value = value.expand(Size((*batch_shape, *value.batch_shape[len(self._batch_shape) :])))
            elif isinstance(getattr(type(self), name, None), lazy_property):
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

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

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
        Raises:
            ValueError: the shapes do not fit, or a value is outside the support (if arguments are validated).
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
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        found = [(name, self.__dict__[name]) for name in self.arg_constraints if name in self.__dict__]
        shown = ", ".join(f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in found)
        return f"{type(self).__name__}({shown})"
