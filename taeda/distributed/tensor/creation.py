"""New DTensors: of numbers, and of random numbers, which are those that one process draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import taeda

from ..device_mesh import DeviceMesh, current_mesh
from .dtensor import DTensor, wrap
from .layout import Layout, check_placements, replicated
from .moves import redistribute
from .placement_types import Partial, Placement

__all__ = ["empty", "full", "ones", "rand", "randn", "zeros"]


def _sizes(size: tuple) -> tuple[int, ...]:
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)


def _layout(size: tuple, mesh: DeviceMesh | None, placements: Sequence[Placement] | None) -> Layout:
    mesh = mesh if mesh is not None else current_mesh()
    places = check_placements(mesh, placements, len(size))
    if any(isinstance(p, Partial) for p in places):
        raise RuntimeError("a new DTensor is cut or replicated; expected Shard or Replicate, got Partial")
    return Layout(mesh, places, size)


def _of_parts(make: Callable) -> Callable:
    def new(
        *size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None,
        device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
    ) -> DTensor:  # fmt: skip
        lies = _layout(_sizes(size), device_mesh, placements)
        return wrap(make(lies.local_shape(), dtype=dtype), lies).requires_grad_(requires_grad)

    new.__name__ = new.__qualname__ = make.__name__
    new.__doc__ = f"``taeda.{make.__name__}`` as a DTensor: each process makes its part."
    return new


def _of_whole(make: Callable) -> Callable:
    def new(
        *size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None,
        device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
    ) -> DTensor:  # fmt: skip
        lies = _layout(_sizes(size), device_mesh, placements)
        whole = lies._replace(placements=replicated(lies.mesh))
        part = redistribute(make(lies.shape, dtype=dtype), whole, lies.placements)
        return wrap(part, lies).requires_grad_(requires_grad)

    new.__name__ = new.__qualname__ = make.__name__
    new.__doc__ = (
        f"``taeda.{make.__name__}`` as a DTensor. Every process draws the numbers of the whole, so generators have to "
        f"be in the same state everywhere, and stay so."
    )
    return new


zeros, ones, empty = _of_parts(taeda.zeros), _of_parts(taeda.ones), _of_parts(taeda.empty)
rand, randn = _of_whole(taeda.rand), _of_whole(taeda.randn)


def full(
    size: Any, fill_value: Any, *, requires_grad: bool = False, dtype: Any = None, layout: Any = None,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """``taeda.full`` as a DTensor: each process makes its part."""
    lies = _layout(_sizes((size,)), device_mesh, placements)
    return wrap(taeda.full(lies.local_shape(), fill_value, dtype=dtype), lies).requires_grad_(requires_grad)
