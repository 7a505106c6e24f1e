"""The base class of transforms, inverses, and transforms made of others (composed, reshaped, of more dimensions)."""

from __future__ import annotations

import math
import weakref
from typing import Any

from .._core import Size
from . import constraints
from .utils import _sum_rightmost, formula


class Transform:
    """Base class of invertible functions with a known Jacobian: ``t(x)``, ``t.inv(y)`` and ``t.log_abs_det_jacobian(x,
    y)``.

    A subclass defines ``_call``, ``_inverse`` and ``log_abs_det_jacobian``, and says its ``domain`` and ``codomain``.

    Args:
        cache_size: 1 remembers the last pair, so that inverting it costs nothing and loses nothing; 0 does not.

    Shape:
        x: ``(*)``, of the domain. Floating-point.
        y: ``(*)``, its shape and dtype unless the class says otherwise.

    Raises:
        ValueError: ``cache_size`` is neither 0 nor 1.

    Examples:
        >>> class Cubed(taeda.distributions.Transform):
        ...     domain = codomain = taeda.distributions.constraints.real
        ...     bijective = True
        ...
        ...     def _call(self, x):
        ...         return x**3
        ...
        ...     def _inverse(self, y):
        ...         return y.sign() * y.abs() ** (1 / 3)
        ...
        ...     def log_abs_det_jacobian(self, x, y):
        ...         return (3 * x**2).log()
        >>> t = Cubed()
        >>> y = t(taeda.tensor(2.0))
        >>> y, bool(taeda.isclose(t.inv(y), taeda.tensor(2.0)))
        (tensor(8.), True)
    """

    bijective: Any = False
    domain: Any
    codomain: Any
    #: The attributes that are the arguments of a class's own constructor.
    _arguments: tuple[str, ...]

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None  # a weak reference to the inverse
        self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()  # of a Module, if a transform is one too

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> int:
        """The number of dimensions that one application takes together."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Any:
        """1 where it increases, -1 where it decreases."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with another cache."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        made = next((c for c in type(self).__mro__ if "_arguments" in vars(c)), None)
        if made is None:
            raise NotImplementedError(f"{type(self)}.with_cache is not implemented")
        return made(*(getattr(self, name) for name in self._arguments), cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = object.__hash__

    def __call__(self, x: Any) -> Any:
        if self._cache_size == 0:
            return self._call(x)
        known_x, known_y = self._cached_x_y
        if x is known_x:
            return known_y
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size == 0:
            return self._inverse(y)
        known_x, known_y = self._cached_x_y
        if y is known_y:
            return known_x
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Logarithm of ``|det dy/dx|`` for ``y = t(x)``, without the event's dimensions."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        """The shape of ``t(x)`` for that of ``x``."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of ``t.inv(y)`` for that of ``y``."""
        return shape

    def __repr__(self) -> str:
        return type(self).__name__ + "()"


class _Plain(Transform):
    """A transform without parameters: all of its kind are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    __hash__ = Transform.__hash__


class _InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform):
        super().__init__(transform._cache_size)
        self._inv = transform  # itself: it lives as long as its inverse

    def __getstate__(self) -> dict:
        return self.__dict__

    domain = constraints.dependent_property(lambda self: self._inv.codomain, is_discrete=False)
    codomain = constraints.dependent_property(lambda self: self._inv.domain, is_discrete=False)
    bijective = formula(lambda self: self._inv.bijective)
    sign = formula(lambda self: self._inv.sign)
    inv = formula(lambda self: self._inv)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = Transform.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)


def _widened(region: Any, event_dim: int) -> Any:
    """``region`` with events of ``event_dim`` dimensions."""
    missing = event_dim - region.event_dim
    return constraints.independent(region, missing) if missing else region


class ComposeTransform(Transform):
    """One transform after the other.

    Args:
        parts: in the order in which they are applied.
        cache_size: of each.

    Examples:
        >>> D = taeda.distributions
        >>> t = D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.ExpTransform()])  # exp(1 + 2 x)
        >>> t(taeda.tensor(-0.5)), t.log_abs_det_jacobian(taeda.tensor(-0.5), taeda.tensor(1.0))
        (tensor(1.), tensor(0.6931))
    """

    _arguments = ("parts",)

    def __init__(self, parts: list[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim = max(event_dim + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _widened(self.parts[0].domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim = max(event_dim + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _widened(self.parts[-1].codomain, event_dim)

    bijective = formula(lambda self: all(part.bijective for part in self.parts))
    sign = formula(lambda self: math.prod((part.sign for part in self.parts), start=1))

    @property
    def inv(self) -> Transform:
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv = weakref.ref(inverse)
            inverse._inv = weakref.ref(self)
        return inverse

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return x.new_zeros(x.shape)
        event_dim, total = self.domain.event_dim, 0
        for part in self.parts:
            image = y if part is self.parts[-1] else part(x)
            total = total + _sum_rightmost(part.log_abs_det_jacobian(x, image), event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
            x = image
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n    " + ",\n    ".join(repr(part) for part in self.parts) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform with events of more dimensions, over which the Jacobian's logarithm is summed.

    Args:
        base_transform: the transform.
        reinterpreted_batch_ndims: how many dimensions more.
        cache_size: see :class:`Transform`.

    Examples:
        >>> D = taeda.distributions
        >>> t, x = D.IndependentTransform(D.ExpTransform(), 1), taeda.ones(3)
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor(3.)
    """

    _arguments = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    bijective = formula(lambda self: self.base_transform.bijective)
    sign = formula(lambda self: self.base_transform.sign)

    def _call(self, x: Any) -> Any:
        _need_dimensions(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        _need_dimensions(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


def _need_dimensions(shape: Any, n: int) -> None:
    if len(shape) < n:
        raise ValueError(f"Too few dimensions on input: expected at least {n}, got shape {tuple(shape)}")


class ReshapeTransform(Transform):
    """Another shape for the last dimensions.

    Args:
        in_shape: their sizes before.
        out_shape: their sizes after: as many elements.
        cache_size: see :class:`Transform`.

    Raises:
        ValueError: the numbers of elements differ.

    Examples:
        >>> taeda.distributions.ReshapeTransform((6,), (2, 3))(taeda.zeros(5, 6)).shape
        taeda.Size([5, 2, 3])
    """

    _arguments = ("in_shape", "out_shape")
    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(
                f"in_shape, out_shape have different numbers of elements: {tuple(self.in_shape)}, "
                f"{tuple(self.out_shape)}"
            )

    domain = constraints.dependent_property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Any) -> Any:
        return x.reshape((*x.shape[: x.dim() - len(self.in_shape)], *self.out_shape))

    def _inverse(self, y: Any) -> Any:
        return y.reshape((*y.shape[: y.dim() - len(self.out_shape)], *self.in_shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    @staticmethod
    def _exchange(shape: Any, old: Size, new: Size) -> Size:
        _need_dimensions(shape, len(old))
        cut = len(shape) - len(old)
        if tuple(shape[cut:]) != tuple(old):
            raise ValueError(f"Shape mismatch: expected {tuple(shape[cut:])} but got {tuple(old)}")
        return Size((*shape[:cut], *new))

    def forward_shape(self, shape: Any) -> Any:
        return self._exchange(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._exchange(shape, self.out_shape, self.in_shape)
