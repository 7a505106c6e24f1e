"""Batches split among devices and joined again; here there is one device."""

from __future__ import annotations

from typing import Any

from ..._core import Tensor
from ...ops.joining import cat

__all__ = ["gather", "parallel_apply", "replicate", "scatter", "scatter_kwargs"]


def _one(name: str, devices: Any) -> None:
    if devices is not None and len(devices) > 1:
        raise ValueError(f"{name}: expected at most one device, got {list(devices)}")


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> list:
    """``[inputs]``: the part of the one device.

    Raises:
        ValueError: there are several.
    """
    _one("scatter", target_gpus)
    return [inputs]


def scatter_kwargs(inputs: tuple, kwargs: dict | None, target_gpus: Any, dim: int = 0) -> tuple[tuple, tuple]:
    """:func:`scatter` of positional and keyword arguments."""
    _one("scatter_kwargs", target_gpus)
    return (tuple(inputs),), (kwargs or {},)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Results of several devices as one: of tensors the concatenation, of dicts and sequences item by item."""
    first = outputs[0]
    if isinstance(first, Tensor):
        return cat([t.reshape(1) if t.dim() == 0 else t for t in outputs], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        return type(first)((key, gather([o[key] for o in outputs], target_device, dim)) for key in first)
    return type(first)(gather(list(items), target_device, dim) for items in zip(*outputs, strict=True))


def replicate(network: Any, devices: Any, detach: bool = False) -> list:
    """``[network]``: the copy of the one device."""
    _one("replicate", devices)
    return [network]


def parallel_apply(modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None) -> list:
    """Each module called on its own inputs, one after the other."""
    kwargs_tup = [{}] * len(modules) if kwargs_tup is None else kwargs_tup
    calls = zip(modules, inputs, kwargs_tup, strict=True)
    return [module(*(x if isinstance(x, (tuple, list)) else (x,)), **kwargs) for module, x, kwargs in calls]
