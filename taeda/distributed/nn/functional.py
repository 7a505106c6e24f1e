"""Collectives that can be differentiated. They return new tensors."""

from __future__ import annotations

from typing import Any

from taeda.autograd import Function

from ..._core import float64
from ..._typed import Tensor
from ...autograd import no_grad
from ...ops import exchange
from ...ops.creation import empty_like, zeros_like
from ...ops.joining import stack
from .. import collectives
from ..groups import get_rank, get_world_size
from ..reduction import ReduceOp

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter", "sync_batch_norm",
]  # fmt: skip


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
        slots = [empty_like(tensor) for _ in range(get_world_size(group))]
        collectives.all_gather(slots, tensor.contiguous(), group)
        return tuple(slots)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        whole = stack(grads)
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
        return None, None, whole if get_rank() == ctx.src else zeros_like(g)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Tensor, *parts: Tensor) -> Tensor:
        ctx.group = group
        result = empty_like(output)
        collectives.reduce_scatter(result, list(parts), op, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        slots = [empty_like(g) for _ in range(get_world_size(ctx.group))]
        collectives.all_gather(slots, g.contiguous(), ctx.group)
        return None, None, None, *slots


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, count: int, *tensors: Tensor) -> tuple:
        outputs, inputs = tensors[:count], [t.contiguous() for t in tensors[count:]]
        ctx.group, ctx.shapes = group, [t.shape for t in inputs]
        made = [empty_like(t) for t in outputs]
        collectives.all_to_all(made, inputs, group)
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        places = [grads[0].new_empty(shape) for shape in ctx.shapes]
        back = _AllToAll.apply(ctx.group, len(places), *places, *grads)
        return None, None, *[None] * len(grads), *back


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, rows: int, sizes_out: Any, sizes_in: Any, tensor: Tensor) -> Tensor:
        ctx.group, ctx.rows, ctx.sizes = group, tensor.shape[0], (sizes_in, sizes_out)
        result = tensor.new_empty((rows, *tensor.shape[1:]))
        collectives.all_to_all_single(result, tensor.contiguous(), sizes_out, sizes_in, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, ctx.rows, *ctx.sizes, g)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        result = tensor.clone()
        collectives.reduce(result, dst, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, g)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> tuple:
        ctx.dst, ctx.group = dst, group
        slots = [zeros_like(tensor) for _ in range(get_world_size(group))]
        collectives.gather(tensor.contiguous(), slots if get_rank() == dst else None, dst, group)
        return tuple(slots)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        result = empty_like(tensors[0])
        parts = [t.contiguous() for t in tensors] if get_rank() == src else None
        collectives.scatter(result, parts, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return None, None, *_Gather.apply(ctx.src, ctx.group, g)


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


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all processes combined, at process ``dst``, from which the gradient comes; the others keep
    theirs."""
    return _Reduce.apply(dst, op, group, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes, at process ``dst``; zeros at the others."""
    return _Gather.apply(dst, group, tensor)


def scatter(tensors: list[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """This process's one of the ``tensors`` of process ``src``; the others give some of the same form."""
    return _Scatter.apply(src, group, *tensors)


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None) -> tuple:
    """Tensor ``j`` of process ``i`` becomes tensor ``i`` of process ``j``; they have the forms of
    ``output_tensor_list``."""
    return _AllToAll.apply(group, len(output_tensor_list), *output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None, group: Any = None,
) -> Tensor:  # fmt: skip
    """The parts of ``input`` along its first dimension to the processes, and theirs in return.

    Args:
        output: of as many rows as come; it is not written to.
        input: its parts go to the processes in the order of ranks.
        output_split_sizes: how many rows come from each process; equal parts where not given.
        input_split_sizes: how many go to each.
        group: the processes, all by default.
    Returns:
        The received tensors, in the order of ranks. Gradients go the opposite way.
    """
    return _AllToAllSingle.apply(group, output.shape[0], output_split_sizes, input_split_sizes, input)


def sync_batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None, bias: Tensor | None,
    momentum: float, eps: float, group: Any = None,
) -> Tensor:  # fmt: skip
    """Batch normalisation by the mean and variance of the batches of all processes, which may differ in size.

    Args:
        input: ``(batch, channels, *)``.
        running_mean: ``(channels,)``, moved towards the batch's by ``momentum``; or None.
        running_var: ``(channels,)``, likewise; or None.
        weight: ``(channels,)``, a factor, or None.
        bias: ``(channels,)``, added, or None.
        momentum: share of the batch in the running values.
        eps: added to the variance.
        group: the processes, all by default.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        ValueError: there is one value for each channel.
    """
    dims = [d for d in range(input.dim()) if d != 1]
    shape = [-1 if d == 1 else 1 for d in range(input.dim())]
    x = input.float() if input.element_size() < 4 else input
    count = exchange.tensor(float(input.numel() // input.shape[1]), dtype=float64, device=input.device)
    collectives.all_reduce(count, group=group)
    n = count.item()
    if n <= 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(input.shape)}")
    mean = all_reduce(x.sum(dims), group=group) / n
    centred = x - mean.reshape(shape)
    var = all_reduce(centred.square().sum(dims), group=group) / n
    with no_grad():
        for running, value in ((running_mean, mean), (running_var, var * (n / (n - 1)))):
            if running is not None:
                running.lerp_(value.to(running.dtype), momentum)
    made = centred * (var + eps).rsqrt().reshape(shape)
    if weight is not None:
        made = made * weight.reshape(shape)
    if bias is not None:
        made = made + bias.reshape(shape)
    return made.to(input.dtype)
