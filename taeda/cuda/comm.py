"""Copies of tensors between GPUs, sums of them, and batches that are cut among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import Tensor
from .._core import device as device_of
from ..ops.joining import cat
from .devices import index_of

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def _device(device: Any) -> Any:
    return device_of("cuda", index_of(device))


def _either(name: str, devices: Any, out: Any) -> None:
    if (devices is None) == (out is None):
        raise RuntimeError(f"{name}: expected either devices or out, got devices={devices} and out={out}")


def broadcast(tensor: Tensor, devices: Any = None, *, out: Any = None) -> tuple:
    """Copies of ``tensor`` on each of ``devices``, or in the tensors ``out``."""
    _either("broadcast", devices, out)
    if out is not None:
        return tuple(t.copy_(tensor) for t in out)
    return tuple(tensor.detach().to(_device(d)) for d in devices)


def broadcast_coalesced(tensors: Sequence[Tensor], devices: Any, buffer_size: int = 10485760) -> list:
    """For each device a list of copies of ``tensors``."""
    return [list(copies) for copies in zip(*(broadcast(t, devices) for t in tensors), strict=True)]


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """The sum of tensors of several GPUs, on ``destination``, the current one by default.

    Args:
        inputs: a tensor for each GPU.
        destination: a GPU.

    Returns:
        The sum.

    Raises:
        ValueError: their sizes differ.
    """
    device = _device(destination)
    if any(t.shape != inputs[0].shape for t in inputs):
        raise ValueError(f"reduce_add: expected tensors of one size, got {[tuple(t.shape) for t in inputs]}")
    total = inputs[0].detach().to(device, copy=True)
    for t in inputs[1:]:
        total.add_(t.detach().to(device))
    return total


def reduce_add_coalesced(inputs: Sequence[Any], destination: Any = None, buffer_size: int = 10485760) -> tuple:
    """:func:`reduce_add` of each place of the lists ``inputs``, one list for each GPU."""
    return tuple(reduce_add(list(items), destination) for items in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor, devices: Any = None, chunk_sizes: Any = None, dim: int = 0, streams: Any = None, *, out: Any = None
) -> tuple:
    """The parts of ``tensor`` along ``dim`` on each of ``devices``, or in the tensors ``out``.

    Args:
        tensor: the whole.
        devices: the GPUs; not with ``out``.
        chunk_sizes: of the parts. Default: equal ones.
        dim: the dimension.
        streams: accepted; copies go on the current streams.
        out: tensors to write into, in place of ``devices``.

    Returns:
        The parts.
    """
    _either("scatter", devices, out)
    tensor = tensor.detach()
    if out is not None:
        return tuple(t.copy_(x) for t, x in zip(out, tensor.split([t.size(dim) for t in out], dim), strict=True))
    devices = list(devices)
    parts = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple(part.to(_device(d)) for part, d in zip(parts, devices, strict=False))


def gather(tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *, out: Any = None) -> Tensor:
    """The concatenation of tensors of several GPUs on ``destination``, the current one by default, or in ``out``."""
    if out is not None:
        return out.copy_(cat([t.detach().to(out.device) for t in tensors], dim))
    device = device_of("cpu") if destination in ("cpu", -1, device_of("cpu")) else _device(destination)
    return cat([t.detach().to(device) for t in tensors], dim)
