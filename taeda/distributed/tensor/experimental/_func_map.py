"""``local_map``: a function of plain tensors, called with the parts of DTensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from taeda.utils import _pytree as pytree

from ...._typed import Tensor
from ...device_mesh import DeviceMesh
from ..dtensor import DTensor

__all__ = ["local_map"]


def local_map(
    func: Callable | None = None, out_placements: Any = None, in_placements: Any = None, in_grad_placements: Any = None,
    device_mesh: DeviceMesh | None = None, *, redistribute_inputs: bool = False,
) -> Callable:  # fmt: skip
    """A function that takes DTensors, calls ``func`` with their parts, and makes DTensors of the results.

    Args:
        func: a function of plain tensors. Without it, this is a decorator.
        out_placements: those of each output; None for what is no tensor. One list where there is one output.
        in_placements: those that each argument has to have; None for what is no DTensor. Default: any.
        in_grad_placements: how the gradient of each part lies: ``Partial()`` for a replicated argument of which each
            process uses something else. Default: as the argument.
        device_mesh: the processes; by default those of the first DTensor that comes.
        redistribute_inputs: bring arguments to ``in_placements``, rather than fail.
    Raises:
        ValueError: an argument has other placements, or the number of placements is not that of arguments or outputs.
        RuntimeError: an argument lies on another mesh.
    """
    if func is None:
        return functools.partial(
            local_map, out_placements=out_placements, in_placements=in_placements,
            in_grad_placements=in_grad_placements, device_mesh=device_mesh, redistribute_inputs=redistribute_inputs,
        )  # fmt: skip
    inner = func

    @functools.wraps(inner)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        values, form = pytree.tree_flatten(args)
        wanted = _each(in_placements, values, "in_placements")
        back = _each(in_grad_placements, values, "in_grad_placements")
        mesh = device_mesh or next((x.device_mesh for x in values if isinstance(x, DTensor)), None)
        parts = [
            _part(x, places, grad, mesh, redistribute_inputs) if isinstance(x, DTensor) else _plain(x, places)
            for x, places, grad in zip(values, wanted, back, strict=True)
        ]
        made = inner(*pytree.tree_unflatten(parts, form), **kwargs)
        return made if mesh is None else _wrapped(made, out_placements, mesh)

    return mapped


def _each(given: Any, values: list, name: str) -> list:
    if given is None:
        return [None] * len(values)
    if len(given) != len(values):
        raise ValueError(
            f"local_map: {name} length {len(given)} does not match the number of input args {len(values)}!"
        )
    return list(given)


def _plain(x: Any, places: Any) -> Any:
    if places is not None and not isinstance(x, Tensor):
        raise ValueError(f"local_map: non-Tensor input {x!r} expects None placements but received {places}!")
    return x


def _part(x: DTensor, places: Any, grad: Any, mesh: Any, redistribute: bool) -> Tensor:
    if x.device_mesh != mesh:
        raise RuntimeError(f"local_map: expected DTensors on {mesh}, got one on {x.device_mesh}")
    if places is not None and x.placements != tuple(places):
        if not redistribute:
            raise ValueError(
                f"local_map: an argument has the placements {x.placements}, expected {tuple(places)}; set "
                "redistribute_inputs=True to have it brought to them"
            )
        x = x.redistribute(placements=places)
    return x.to_local(grad_placements=grad)


def _wrapped(made: Any, placements: Any, mesh: DeviceMesh) -> Any:
    outputs, form = pytree.tree_flatten(made)
    each = placements if isinstance(placements, tuple) else (placements,)
    if len(each) != len(outputs):
        raise ValueError(
            f"local_map requires one PlacementType be provided for each output value, received {len(each)} "
            f"out_placements but {len(outputs)} is expected!"
        )
    for x, places in zip(outputs, each, strict=True):
        if isinstance(x, DTensor) or (places is not None and not isinstance(x, Tensor)):
            raise ValueError(f"local_map: expected a plain tensor for {places}, got {type(x).__name__}")
    wrapped = [
        DTensor.from_local(x, mesh, places) if isinstance(x, Tensor) else x
        for x, places in zip(outputs, each, strict=True)
    ]
    return pytree.tree_unflatten(wrapped, form)
