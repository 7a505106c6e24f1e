"""Collectives that give new tensors and can be differentiated, as PyTorch's module of this name.

Here a collective is over when its function returns, so results are plain tensors. :class:`AsyncCollectiveTensor` is a
name for the ``isinstance`` checks of programs.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from .._core import contiguous_format
from .._typed import Tensor
from ..ops.joining import cat, stack
from . import collectives
from .device_mesh import DeviceMesh
from .groups import ProcessGroup, _world, get_process_group_ranks
from .nn import functional
from .reduction import ReduceOp
from .tensor.moves import move
from .watching import functional as watched

__all__ = [
    "AsyncCollectiveTensor", "all_gather_into_tensor_coalesced", "all_gather_single", "all_gather_single_autograd",
    "all_gather_tensor", "all_gather_tensor_autograd", "all_reduce", "all_reduce_coalesced", "all_to_all_single",
    "all_to_all_single_autograd", "broadcast", "permute_tensor", "reduce_scatter_single",
    "reduce_scatter_single_autograd", "reduce_scatter_tensor", "reduce_scatter_tensor_autograd",
    "reduce_scatter_tensor_coalesced", "wait_tensor",
]  # fmt: skip


class AsyncCollectiveTensor(Tensor):
    """PyTorch's class for the result of a collective that is under way. No tensor here is one."""


def wait_tensor(tensor: Tensor) -> Tensor:
    """``tensor``, which is complete."""
    return tensor


def _group_of(group: Any) -> ProcessGroup:
    """The group that an argument means: the group itself, a mesh of one dimension, a mesh and one of its dimensions, or
    ranks.

    Raises:
        ValueError: the mesh has several dimensions, or there is no group of these ranks.
    """
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1])
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise ValueError("Only 1D mesh is supported, pass in (DeviceMesh, int) together if mesh > 1D")
        return group.get_group()
    if isinstance(group, ProcessGroup):
        return group
    if isinstance(group, list):
        for known in _world.groups:
            if get_process_group_ranks(known) == group:
                return known
        raise ValueError(f"expected the ranks of a group that new_group made, got {group}")
    raise ValueError(f"expected a ProcessGroup, a DeviceMesh, (DeviceMesh, dim) or ranks, got {group!r}")


def _op(name: str) -> ReduceOp:
    try:
        return ReduceOp[name.upper()]
    except KeyError:
        raise ValueError(f"expected a reduction such as 'sum', 'avg' or 'max', got {name!r}") from None


# ---- the moves -------------------------------------------------------------------------------------------------------


def _reduced(group: ProcessGroup, op: ReduceOp, x: Tensor) -> Tensor:
    made = x.clone(memory_format=contiguous_format)
    collectives.all_reduce(made, op, group)
    return made


def _gathered(group: ProcessGroup, dim: int, x: Tensor) -> Tensor:
    made = x.new_empty((group.size(), *x.shape))
    collectives.all_gather_into_tensor(made.reshape(-1), x.contiguous().reshape(-1), group)
    return cat(list(made.unbind(0)), dim) if x.dim() else made


def _scattered(group: ProcessGroup, dim: int, op: ReduceOp, x: Tensor) -> Tensor:
    parts = stack(list(x.chunk(group.size(), dim)))
    made = parts.new_empty(parts.shape[1:])
    collectives.reduce_scatter_tensor(made.reshape(-1), parts.reshape(-1), op, group)
    return made


def _scaled(step: Any, factor: float, x: Tensor) -> Tensor:
    return step(x) * factor


def _no_derivative(name: str, op: ReduceOp, x: Tensor) -> Tensor:
    raise RuntimeError(f"{name}: only 'sum' and 'avg' can be differentiated, got {op.name}")


# ---- the functions ---------------------------------------------------------------------------------------------------


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of rank ``src`` of the world."""
    with watched():
        return functional.broadcast(self, src, _group_of(group))


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, combined by ``reduceOp``: ``"sum"``, ``"avg"``, ``"max"`` and so on."""
    where, op = _group_of(group), _op(reduceOp)
    step = partial(_reduced, where, op)
    plain = op in (ReduceOp.SUM, ReduceOp.AVG)
    return move(self, step, step if plain else partial(_no_derivative, "all_reduce", op))


def all_gather_single(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, one after the other along ``gather_dim``."""
    where = _group_of(group)
    return move(self, partial(_gathered, where, gather_dim), partial(_scattered, where, gather_dim, ReduceOp.SUM))


def reduce_scatter_single(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """This process's part, along ``scatter_dim``, of the tensors of all processes combined.

    Raises:
        ValueError: the dimension does not divide into parts of one size.
    """
    where, op = _group_of(group), _op(reduceOp)
    if self.shape[scatter_dim] % where.size():
        raise ValueError(
            f"input dimension {scatter_dim} ({self.shape[scatter_dim]}) must be a multiple of group_size {where.size()}"
        )
    back: Any = partial(_gathered, where, scatter_dim)
    if op is ReduceOp.AVG:
        back = partial(_scaled, back, 1 / where.size())
    elif op is not ReduceOp.SUM:
        back = partial(_no_derivative, "reduce_scatter", op)
    return move(self, partial(_scattered, where, scatter_dim, op), back)


def all_to_all_single(
    self: Tensor, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None, group: Any, tag: str = ""
) -> Tensor:
    """Rows of ``self`` to the processes, and theirs in return; equal numbers of rows where no sizes are given."""
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    place = self.new_empty((rows, *self.shape[1:]))
    with watched():
        return functional.all_to_all_single(place, self, output_split_sizes, input_split_sizes, _group_of(group))


def permute_tensor(self: Tensor, src_dst: list[int], group: Any, tag: str = "") -> Tensor:
    """The tensor of the process that has this one as its destination: process ``i`` sends to ``src_dst[i]``.

    Raises:
        ValueError: ``src_dst`` is no permutation of the group's ranks.
    """
    where = _group_of(group)
    if sorted(src_dst) != list(range(where.size())):
        raise ValueError(f"permute_tensor: expected a permutation of {where.size()} ranks, got {src_dst}")
    flat = self.contiguous().reshape(-1)
    to, rank = src_dst[where.rank()], where.rank()
    given = [flat.numel() if other == to else 0 for other in range(where.size())]
    taken = [flat.numel() if theirs == rank else 0 for theirs in src_dst]
    return all_to_all_single(flat, taken, given, where).reshape(self.shape)


def all_reduce_coalesced(self: list[Tensor], reduceOp: str, group: Any, tag: str = "") -> list[Tensor]:
    """:func:`all_reduce` of each."""
    return [all_reduce(t, reduceOp, group) for t in self]


def all_gather_into_tensor_coalesced(self: list[Tensor], group: Any, tag: str = "") -> list[Tensor]:
    """:func:`all_gather_single` of each, along the first dimension."""
    return [all_gather_single(t, 0, group) for t in self]


def reduce_scatter_tensor_coalesced(
    inputs: list[Tensor], reduceOp: str, scatter_dim: list[int], group: Any, tag: str = ""
) -> list[Tensor]:
    """:func:`reduce_scatter_single` of each, along a dimension of its own."""
    return [reduce_scatter_single(t, reduceOp, dim, group) for t, dim in zip(inputs, scatter_dim, strict=True)]


all_gather_tensor = all_gather_tensor_autograd = all_gather_single_autograd = all_gather_single
reduce_scatter_tensor = reduce_scatter_tensor_autograd = reduce_scatter_single_autograd = reduce_scatter_single
all_to_all_single_autograd = all_to_all_single
