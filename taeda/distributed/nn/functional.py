"""Collectives that can be differentiated. All are functions of what they are given."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor
from taeda.autograd import Function

from .. import collectives
from ..groups import get_rank, get_world_size
from ..reduction import ReduceOp

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce_scatter", "sync_batch_norm"]


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        result = tensor.clone()
        collectives.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, g)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> tuple:
        ctx.group = group
        slots = [taeda.empty_like(tensor) for _ in range(get_world_size(group))]
        collectives.all_gather(slots, tensor.contiguous(), group)
        return tuple(slots)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        whole = taeda.stack(grads)
        collectives.all_reduce(whole, ReduceOp.SUM, ctx.group)
        return None, whole[get_rank(ctx.group)]


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        result = tensor.clone()
        collectives.broadcast(result, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        whole = g.clone()
        collectives.reduce(whole, ctx.src, ReduceOp.SUM, ctx.group)
        return None, None, whole if get_rank() == ctx.src else taeda.zeros_like(g)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Tensor, *parts: Tensor) -> Tensor:
        ctx.group = group
        result = taeda.empty_like(output)
        collectives.reduce_scatter(result, list(parts), op, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        slots = [taeda.empty_like(g) for _ in range(get_world_size(ctx.group))]
        collectives.all_gather(slots, g.contiguous(), ctx.group)
        return None, None, None, *slots


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all processes, combined; its gradients are combined in the same way."""
    return _AllReduce.apply(op, group, tensor)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes; the gradients that each has for one are added up."""
    return _AllGather.apply(group, tensor)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of process ``src``, whose gradient is the sum of all."""
    return _Broadcast.apply(src, group, tensor)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """This process's part of the combined lists, of the form of ``output``."""
    return _ReduceScatter.apply(op, group, output, *input_list)


def sync_batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None, bias: Tensor | None,
    momentum: float, eps: float, group: Any = None,
) -> Tensor:  # fmt: skip
    """Batch normalisation by the mean and variance of the batches of all processes, which may differ in size.

    Args:
        input: ``(batch, channels, *)``.
        running_mean, running_var: ``(channels,)``, moved towards the batch's by ``momentum``; or None.
        weight, bias: ``(channels,)`` or None.
        eps: added to the variance.
        group: the processes, all by default.
    """
    dims = [d for d in range(input.dim()) if d != 1]
    shape = [-1 if d == 1 else 1 for d in range(input.dim())]
    x = input.float() if input.element_size() < 4 else input
    count = taeda.tensor(float(input.numel() // input.shape[1]), dtype=taeda.float64)
    collectives.all_reduce(count, group=group)
    n = count.item()
    if n <= 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(input.shape)}")
    mean = all_reduce(x.sum(dims), group=group) / n
    centred = x - mean.reshape(shape)
    var = all_reduce(centred.square().sum(dims), group=group) / n
    with taeda.no_grad():
        for running, value in ((running_mean, mean), (running_var, var * (n / (n - 1)))):
            if running is not None:
                running.lerp_(value.to(running.dtype), momentum)
    made = centred * (var + eps).rsqrt().reshape(shape)
    if weight is not None:
        made = made * weight.reshape(shape)
    if bias is not None:
        made = made + bias.reshape(shape)
    return made.to(input.dtype)
