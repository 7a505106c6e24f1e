"""Regions of parameters and samples: ``constraint.check(value)`` says of each event whether it lies in the region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import linalg
from ..ops.creation import full
from ..ops.joining import cat as join
from ..ops.joining import stack as pile
from ..types import finfo
from .utils import all_true, formula

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """Base class of regions, such as the positive numbers: ``check(value)`` says for each event whether it is inside.

    ``is_discrete`` says whether the region is discrete, ``event_dim`` how many dimensions on the right make one event.

    Examples:
        >>> class Even(taeda.distributions.constraints.Constraint):
        ...     is_discrete = True
        ...
        ...     def check(self, value):
        ...         return value % 2 == 0
        >>> Even().check(taeda.arange(4))
        tensor([ True, False,  True, False])
        >>> taeda.distributions.constraints.positive.check(taeda.tensor([-1.0, 2.0]))
        tensor([False,  True])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Any) -> Any:
        """A bool tensor: for each event whether it lies in the region."""
        raise NotImplementedError

    def _describe(self, *fields: str) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in fields)
        return f"{type(self).__name__[1:]}({shown})"

    def __repr__(self) -> str:
        return type(self).__name__[1:] + "()"


# ---- regions that depend on other things -----------------------------------------------------------------------------
class _Static:
    """A number or flag that is known before there is an instance, or not."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        if owner is None:
            return self
        value = getattr(owner, "_" + self.name)
        if value is NotImplemented:
            raise NotImplementedError(f".{self.name} cannot be determined statically")
        return value


class _Dependent(Constraint):
    """A region that depends on other parameters, and so cannot be checked by itself.

    Args:
        is_discrete: whether the region is discrete, where that is known.
        event_dim: how many dimensions make one event, where that is known.

    Raises:
        ValueError: in ``check``, always.

    Examples:
        >>> taeda.distributions.constraints.is_dependent(taeda.distributions.constraints.dependent)
        True
    """

    is_discrete = _Static("is_discrete")
    event_dim = _Static("event_dim")

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Any) -> Any:
        """Not possible without the other parameters."""
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether a region depends on other parameters, so that it cannot be checked by itself.

    Args:
        constraint: a region.

    Returns:
        A bool.

    Examples:
        >>> constraints = taeda.distributions.constraints
        >>> constraints.is_dependent(taeda.distributions.Uniform.support), constraints.is_dependent(constraints.real)
        (True, False)
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that gives a region; of the class, a region that cannot be checked yet.

    Args:
        fn: the method.
        is_discrete: whether the region is discrete, where that is known.
        event_dim: how many dimensions make one event, where that is known.

    Examples:
        >>> constraints = taeda.distributions.constraints
        >>> class Die:
        ...     def __init__(self, sides):
        ...         self.sides = sides
        ...
        ...     @constraints.dependent_property(is_discrete=True, event_dim=0)
        ...     def support(self):
        ...         return constraints.integer_interval(1, self.sides)
        >>> Die(6).support.check(taeda.tensor([0, 6]))
        tensor([False,  True])
    """

    def __init__(
        self, fn: Callable | None = None, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ):
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def _check_base(base: Any) -> None:
    if not isinstance(base, Constraint):
        raise AssertionError(f"base_constraint must be a Constraint, got {type(base).__name__}")


def _all_of_last(result: Any, keep: int, expected: int, got: int) -> Any:
    """Whether all is true beyond the first ``keep`` dimensions."""
    if keep < 0:
        raise ValueError(f"Expected value.dim() >= {expected} but got {got}")
    return result.reshape((*result.shape[:keep], -1)).all(-1)


class _IndependentConstraint(Constraint):
    """A region of every entry of an event that has more dimensions.

    Args:
        base_constraint: the region of an entry.
        reinterpreted_batch_ndims: how many dimensions more.

    Raises:
        AssertionError: one is of another type.
        ValueError: in ``check``, the value has too few dimensions.

    Examples:
        >>> positive_vector = taeda.distributions.constraints.independent(taeda.distributions.constraints.positive, 1)
        >>> positive_vector.check(taeda.tensor([[1.0, 2.0], [1.0, -1.0]]))
        tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        _check_base(base_constraint)
        if not isinstance(reinterpreted_batch_ndims, int) or reinterpreted_batch_ndims < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be an int >= 0, got {reinterpreted_batch_ndims!r}")
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    is_discrete = formula(lambda self: self.base_constraint.is_discrete)
    event_dim = formula(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value: Any) -> Any:
        result = self.base_constraint.check(value)
        return _all_of_last(result, result.dim() - self.reinterpreted_batch_ndims, self.event_dim, value.dim())

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The region of a mixture: a value must lie in the region of a component.

    Args:
        base_constraint: the region of the components.

    Examples:
        >>> positive = taeda.distributions.constraints.positive
        >>> taeda.distributions.constraints.MixtureSameFamilyConstraint(positive)
        MixtureSameFamilyConstraint(GreaterThan(lower_bound=0.0))
    """

    def __init__(self, base_constraint: Constraint):
        _check_base(base_constraint)
        self.base_constraint = base_constraint

    is_discrete = formula(lambda self: self.base_constraint.is_discrete)
    event_dim = formula(lambda self: self.base_constraint.event_dim)

    def check(self, value: Any) -> Any:
        return self.check_components(value).any(-1)

    def check_components(self, value: Any) -> Any:
        """Whether a value lies in the region of each component, which are the last dimension."""
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


# ---- numbers ---------------------------------------------------------------------------------------------------------
class _Bounded(Constraint):
    """Values between given bounds. The bounds are attributes, in the order of ``_bounds``."""

    _bounds: tuple[str, ...] = ()

    def __init__(self, *bounds: Any, **named: Any):
        given = dict(zip(self._bounds, bounds, strict=False)) | named
        if len(bounds) + len(named) != len(self._bounds) or given.keys() != set(self._bounds):
            raise TypeError(
                f"{type(self).__name__[1:]}: expected {' and '.join(self._bounds)}, got {len(bounds)} positional "
                f"arguments and {', '.join(named) or 'none by name'}"
            )
        self.__dict__.update(given)

    def __repr__(self) -> str:
        return self._describe(*self._bounds)


_BOUNDED = """{what}.

Args:
    *bounds: {bounds}: numbers, or tensors that broadcast.
    **named: the same by name.

Raises:
    TypeError: another number of bounds, or other names.

Examples:
    >>> taeda.distributions.constraints.{example}
"""


def _region(
    name: str, check: Callable, *bounds: str, is_discrete: bool = False, event_dim: int = 0, what: str = "",
    example: str = "",
) -> Any:  # fmt: skip
    """The class of a region: where ``check(value, *bounds)`` is true. ``what`` and ``example`` document it."""

    def of_instance(self: Any, value: Any) -> Any:
        return check(value, *(getattr(self, bound) for bound in bounds))

    parts = {"check": of_instance, "is_discrete": is_discrete, "event_dim": event_dim, "__module__": __name__}
    if not bounds:
        return type(name, (Constraint,), parts)
    listed = " and ".join(f"``{bound}``" for bound in bounds)
    doc = _BOUNDED.format(what=what, bounds=listed, example=example) if what else None
    return type(name, (_Bounded,), {**parts, "_bounds": bounds, "__doc__": doc})


def _whole(value: Any) -> Any:
    return value % 1 == 0


_LOW, _HIGH = "lower_bound", "upper_bound"
_Boolean = _region("_Boolean", lambda x: (x == 0) | (x == 1), is_discrete=True)
_Real = _region("_Real", lambda x: x == x)  # not nan
_GreaterThan = _region(
    "_GreaterThan", lambda x, low: low < x, _LOW, what="Numbers above a bound",
    example="greater_than(1).check(taeda.tensor([1, 2]))\n    tensor([False,  True])",
)  # fmt: skip
_GreaterThanEq = _region(
    "_GreaterThanEq", lambda x, low: low <= x, _LOW, what="Numbers of at least a bound",
    example="greater_than_eq(1).check(taeda.tensor([0, 1]))\n    tensor([False,  True])",
)  # fmt: skip
_LessThan = _region(
    "_LessThan", lambda x, high: x < high, _HIGH, what="Numbers below a bound",
    example="less_than(1).check(taeda.tensor([0, 1]))\n    tensor([ True, False])",
)  # fmt: skip
_Interval = _region(
    "_Interval", lambda x, low, high: (low <= x) & (x <= high), _LOW, _HIGH, what="Numbers between two, both included",
    example="interval(0, 1).check(taeda.tensor([0.5, 1.0, 1.5]))\n    tensor([ True,  True, False])",
)  # fmt: skip
_HalfOpenInterval = _region(
    "_HalfOpenInterval", lambda x, low, high: (low <= x) & (x < high), _LOW, _HIGH,
    what="Numbers between two, the lower one included",
    example="half_open_interval(0, 1).check(taeda.tensor([0.0, 1.0]))\n    tensor([ True, False])",
)  # fmt: skip
_IntegerInterval = _region(
    "_IntegerInterval", lambda x, low, high: _whole(x) & (low <= x) & (x <= high), _LOW, _HIGH, is_discrete=True,
    what="Whole numbers between two, both included",
    example="integer_interval(1, 6).check(taeda.tensor([0.0, 6.0, 2.5]))\n    tensor([False,  True, False])",
)  # fmt: skip
_IntegerLessThan = _region("_IntegerLessThan", lambda x, high: _whole(x) & (x <= high), _HIGH, is_discrete=True)
_IntegerGreaterThan = _region("_IntegerGreaterThan", lambda x, low: _whole(x) & (x >= low), _LOW, is_discrete=True)


# ---- vectors and matrices --------------------------------------------------------------------------------------------
_TOLERANCE = 1e-6  # of sums and symmetry, as PyTorch has it

_OneHot = _region("_OneHot", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), is_discrete=True, event_dim=1)
_Simplex = _region("_Simplex", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < _TOLERANCE), event_dim=1)
_Multinomial = _region(
    "_Multinomial", lambda x, high: (x >= 0).all(-1) & (x.sum(-1) <= high), _HIGH, is_discrete=True, event_dim=1,
    what="Vectors of counts, with at most that sum",
    example="multinomial(3).check(taeda.tensor([[1, 2], [4, 0]]))\n    tensor([ True, False])",
)  # fmt: skip
_Multinomial.__repr__ = Constraint.__repr__  # without its bound, as in PyTorch


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Any) -> Any:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Any) -> Any:
        tolerance = finfo(value.dtype).eps * value.size(-1) * 10  # an adjustable constant, as PyTorch has it
        return super().check(value) & ((linalg.vector_norm(value, dim=-1) - 1).abs() < tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return value.new_full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=full((), True).dtype)


class _Symmetric(_Square):
    def check(self, value: Any) -> Any:
        square = super().check(value)
        if not all_true(square):
            return square
        return value.isclose(value.mT, atol=_TOLERANCE).flatten(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        return linalg.eigvalsh(value).ge(0).all(-1) if all_true(symmetric) else symmetric


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        return linalg.cholesky_ex(value).info.eq(0) if all_true(symmetric) else symmetric


# ---- several side by side --------------------------------------------------------------------------------------------
def _check_all(constraints: Sequence[Any]) -> list[Constraint]:
    if not all(isinstance(c, Constraint) for c in constraints):
        raise AssertionError("All elements of cseq must be Constraint instances")
    return list(constraints)


def _check_size(name: str, value: Any, dim: int, size: int) -> None:
    if value.shape[dim] != size:
        raise AssertionError(
            f"constraints.{name}: expected size {size} in dimension {dim}, got shape {tuple(value.shape)}"
        )


class _Cat(Constraint):
    """One region after the other along a dimension.

    Args:
        cseq: the regions.
        dim: the dimension.
        lengths: of how many elements each; of one if None.

    Raises:
        AssertionError: something is no region, or in ``check`` the size is not the sum of ``lengths``.

    Examples:
        >>> constraints = taeda.distributions.constraints
        >>> both = constraints.cat([constraints.positive, constraints.real], lengths=[1, 2])
        >>> both.check(taeda.tensor([-1.0, -1.0, 2.0]))
        tensor([False,  True,  True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None):
        self.cseq = _check_all(cseq)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")
        self.dim = dim

    is_discrete = formula(lambda self: any(c.is_discrete for c in self.cseq))
    event_dim = formula(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value: Any) -> Any:
        _check_size("cat", value, self.dim, sum(self.lengths))
        parts = value.split(self.lengths, self.dim)
        return join([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(Constraint):
    """One region for each index of a dimension.

    Args:
        cseq: the regions.
        dim: the dimension, of their number.

    Raises:
        AssertionError: something is no region, or in ``check`` the size is not their number.

    Examples:
        >>> constraints = taeda.distributions.constraints
        >>> constraints.stack([constraints.positive, constraints.real]).check(taeda.tensor([-1.0, -1.0]))
        tensor([False,  True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        self.cseq = _check_all(cseq)
        self.dim = dim

    is_discrete = formula(lambda self: any(c.is_discrete for c in self.cseq))

    @property
    def event_dim(self) -> int:
        most = max(c.event_dim for c in self.cseq)
        return most + 1 if self.dim + most < 0 else most

    def check(self, value: Any) -> Any:
        _check_size("stack", value, self.dim, len(self.cseq))
        return pile([c.check(part) for c, part in zip(self.cseq, value.unbind(self.dim), strict=True)], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
