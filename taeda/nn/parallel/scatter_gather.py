"""Batches split among devices and joined again, modules copied to devices, and calls on each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..._core import Tensor
from ...ops.joining import cat

__all__ = ["gather", "parallel_apply", "replicate", "scatter", "scatter_kwargs"]


def _is_named(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(x, "_fields")


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """The part of each device: tensors are cut along ``dim``, other things are given to all as they are.

    Args:
        inputs: tensors, or tuples, lists and dicts of them.
        target_gpus: devices; None or none at all: whatever holds ``inputs``.
        dim: the dimension of the batch.
    Returns:
        The parts, a list or tuple.
    """
    devices = list(target_gpus or ())
    if not devices:
        return [inputs]

    def parts(x: Any) -> list:
        if isinstance(x, Tensor):
            cut = x.chunk(len(devices), dim) if len(devices) > 1 else (x,)
            return [part.to(device) for part, device in zip(cut, devices, strict=False)]
        if _is_named(x):
            return [type(x)(*items) for items in zip(*map(parts, x), strict=False)]
        if isinstance(x, (tuple, list)) and x:
            return [type(x)(items) for items in zip(*map(parts, x), strict=False)]
        if isinstance(x, dict) and x:
            return [type(x)(items) for items in zip(*map(parts, x.items()), strict=False)]
        return [x for _ in devices]

    return parts(inputs)


def scatter_kwargs(inputs: tuple, kwargs: dict | None, target_gpus: Any, dim: int = 0) -> tuple[tuple, tuple]:
    """:func:`scatter` of positional and keyword arguments: as many of each."""
    rows = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    if target_gpus and not rows and not named:
        return ((),), ({},)
    count = max(len(rows), len(named), 1)
    return (
        tuple(tuple(row) for row in [*rows, *[()] * (count - len(rows))]),
        tuple([*named, *({} for _ in range(count - len(named)))]),
    )


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Results of several devices as one on ``target_device``.

    Tensors are concatenated along ``dim``, dicts and sequences item by item.
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        if all(t.dim() == 0 for t in outputs) and dim == 0:
            if len(outputs) > 1:
                warnings.warn(
                    "Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze "
                    "and return a vector.",
                    stacklevel=2,
                )
            outputs = [t.reshape(1) for t in outputs]
        if target_device is not None:
            outputs = [t.to(target_device) for t in outputs]
        return cat(list(outputs), dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(o) != len(first) for o in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([o[key] for o in outputs], target_device, dim)) for key in first)
    joined = [gather(list(items), target_device, dim) for items in zip(*outputs, strict=True)]
    return type(first)(*joined) if _is_named(first) else type(first)(joined)


def replicate(network: Any, devices: Any, detach: bool = False) -> list:
    """A copy of ``network`` on each device, whose parameters are copies of its own in the graph.

    Args:
        network: a module.
        devices: the first is that of the module's own parameters and buffers.
        detach: leave the graph out.
    Returns:
        The copies.
    """
    return [_replica(network, device, detach, {}) for device in devices] if devices else [network]


def _replica(module: Any, device: Any, detach: bool, made: dict) -> Any:
    if id(module) in made:
        return made[id(module)]
    copy = made[id(module)] = module._replicate_for_data_parallel()
    there: Callable = lambda t: None if t is None else (t.detach() if detach else t).to(device)  # noqa: E731
    copy.__dict__["_parameters"] = {}
    copy.__dict__["_buffers"] = {name: there(t) for name, t in module._buffers.items()}
    copy.__dict__["_modules"] = {
        name: None if child is None else _replica(child, device, detach, made)
        for name, child in module._modules.items()
    }
    copy.__dict__["_former_parameters"] = {name: there(t) for name, t in module._parameters.items()}
    copy.__dict__.update(copy.__dict__["_former_parameters"])  # part of the graph, and so no parameters
    return copy


def parallel_apply(modules: Sequence, inputs: Sequence, kwargs_tup: Any = None, devices: Any = None) -> list:
    """Each module called on its own inputs. Work on devices is queued, so it goes on side by side."""
    kwargs_tup = [{}] * len(modules) if kwargs_tup is None else kwargs_tup
    calls = zip(modules, inputs, kwargs_tup, strict=True)
    return [module(*(x if isinstance(x, (tuple, list)) else (x,)), **(kwargs or {})) for module, x, kwargs in calls]
