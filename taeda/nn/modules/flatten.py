"""Flatten and Unflatten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._typed import Tensor
from .module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Dimensions ``start_dim`` to ``end_dim`` as one: between convolutions and a linear layer.

    Args:
        start_dim: the first.
        end_dim: the last; negative ones count from the end.

    Shape:
        input: ``(N, *)``, any dtype.
        output: ``(N, n)``, where ``n`` is the product of the sizes.

    Raises:
        IndexError: in a call, a dimension is out of range.

    Examples:
        >>> nn.Flatten()(taeda.randn(8, 3, 4, 5)).shape
        taeda.Size([8, 60])
    """

    __constants__ = ("start_dim", "end_dim")
    _shown = ("start_dim", "end_dim")

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    """One dimension as several: the opposite of :class:`Flatten`.

    Args:
        dim: which dimension; negative ones count from the end. Or its name.
        unflattened_size: the sizes in its place; one may be -1 and follows from the others.

    Shape:
        input: ``(*, n, *)``, any dtype.
        output: ``(*, *unflattened_size, *)``.

    Raises:
        TypeError: the sizes are no tuple of ints.
        RuntimeError: in a call, the sizes do not multiply to ``n``.

    Examples:
        >>> nn.Unflatten(1, (2, 5))(taeda.randn(8, 10)).shape
        taeda.Size([8, 2, 5])
    """

    __constants__ = ("dim", "unflattened_size")
    _shown = ("dim", "unflattened_size")

    def __init__(self, dim: int | str, unflattened_size: Sequence[Any]) -> None:
        super().__init__()
        if isinstance(dim, str):
            raise TypeError(
                "Unflatten: expected an integer dim, got a name; named dimensions are not part of taeda: give the "
                "dimension's index"
            )
        if not isinstance(dim, int):
            raise TypeError("invalid argument type for dim parameter")
        if isinstance(unflattened_size, list):
            unflattened_size = tuple(unflattened_size)
        if not isinstance(unflattened_size, tuple):
            raise TypeError(f"unflattened_size must be tuple, but found type {type(unflattened_size).__name__}")
        for i, n in enumerate(unflattened_size):
            if not isinstance(n, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(n).__name__} at pos {i}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)
