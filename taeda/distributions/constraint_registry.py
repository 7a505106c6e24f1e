"""Transforms of unconstrained numbers into a region: ``biject_to`` gives a bijection, ``transform_to`` a simple one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import Tensor
from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Transforms from all real numbers to a region, by the class of the region: ``transform_to`` and ``biject_to`` are
    two.

    Optimisers work on free numbers. ``transform_to(region)`` gives a transform of them into the region;
    ``biject_to(region)`` gives one that is one to one and has a Jacobian, as samplers need. Called with a region;
    ``register`` adds a class of them.

    Raises:
        NotImplementedError: none is registered for its class.

    Examples:
        >>> t = taeda.distributions.transform_to(taeda.distributions.constraints.positive)
        >>> t(taeda.tensor([-1.0, 0.0]))  # positive, whatever an optimiser does
        tensor([0.3679, 1.0000])
        >>> taeda.distributions.biject_to(taeda.distributions.constraints.unit_interval)
        SigmoidTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable] = {}

    def register(self, constraint: Any, factory: Callable | None = None) -> Any:
        """Let ``factory(constraint)`` make the transforms for a class of regions; also a decorator.

        Args:
            constraint: a class of regions, or one of them.
            factory: from a region to a transform.
        Returns:
            ``factory``.
        Raises:
            TypeError: ``constraint`` is no region.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> transforms.Transform:
        """The transform into a region.

        Args:
            constraint: a region.

        Returns:
            A :class:`Transform` from tensors of real numbers, of any shape and floating-point dtype.

        Raises:
            NotImplementedError: none is registered for its class.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable:
    """Register a function in both registries, which it gets as its second argument."""

    def declare(factory: Callable) -> Callable:
        for registry in (biject_to, transform_to):
            for kind in kinds:
                registry.register(kind, lambda constraint, registry=registry: factory(constraint, registry))
        return factory

    return declare


@_both(constraints.real)
def _to_real(constraint: Any, registry: Any) -> Any:
    return transforms.identity_transform


@_both(constraints.independent)
def _to_independent(constraint: Any, registry: Any) -> Any:
    inner = registry(constraint.base_constraint)
    return transforms.IndependentTransform(inner, constraint.reinterpreted_batch_ndims)


def _above(bound: Any, sign: int = 1) -> Any:
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(bound, sign)])


# `positive` and `nonnegative` are instances of the classes below: both mean "above a bound", which is 0 there
@_both(constraints.greater_than, constraints.greater_than_eq)
def _to_above(constraint: Any, registry: Any) -> Any:
    return _above(constraint.lower_bound)


@_both(constraints.less_than)
def _to_below(constraint: Any, registry: Any) -> Any:
    return _above(constraint.upper_bound, -1)


@_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any, registry: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if not isinstance(low, Tensor) and not isinstance(high, Tensor) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


for _registry, _region, _transform in (
    (biject_to, constraints.simplex, transforms.StickBreakingTransform),
    (transform_to, constraints.simplex, transforms.SoftmaxTransform),
    (transform_to, constraints.lower_cholesky, transforms.LowerCholeskyTransform),
    (transform_to, constraints.positive_definite, transforms.PositiveDefiniteTransform),
    (transform_to, constraints.positive_semidefinite, transforms.PositiveDefiniteTransform),
    (biject_to, constraints.corr_cholesky, transforms.CorrCholeskyTransform),
    (transform_to, constraints.corr_cholesky, transforms.CorrCholeskyTransform),
):
    _registry.register(_region, lambda _, transform=_transform: transform())


@_both(constraints.cat)
def _to_cat(constraint: Any, registry: Any) -> Any:
    return transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)


@_both(constraints.stack)
def _to_stack(constraint: Any, registry: Any) -> Any:
    return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)
