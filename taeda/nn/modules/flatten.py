"""Flatten and Unflatten."""

from __future__ import annotations

from taeda import Tensor

from .module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Joins dimensions ``start_dim`` to ``end_dim`` into one."""

    __constants__ = ("start_dim", "end_dim")
    _shown = ("start_dim", "end_dim")

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    """Splits dimension ``dim`` into several: ``Unflatten(1, (2, 5))`` makes ``(N, 2, 5)`` of ``(N, 10)``.

    Args:
        dim: which dimension; negative ones count from the end.
        unflattened_size: the sizes in its place; one may be -1 and follows from the others.
    """

    __constants__ = ("dim", "unflattened_size")
    _shown = ("dim", "unflattened_size")

    def __init__(self, dim: int | str, unflattened_size) -> None:
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
