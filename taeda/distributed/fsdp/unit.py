"""A unit of :func:`fully_shard`: parameters that are gathered together, and whose gradients are reduced together."""

from __future__ import annotations

from typing import Any

from ..._core import strided
from ..._typed import Tensor
from ...autograd import is_grad_enabled, no_grad
from ...ops.joining import cat
from ..collectives import all_gather_into_tensor, all_reduce, reduce_scatter_tensor
from ..device_mesh import DeviceMesh
from ..groups import ReduceOp, Work
from .parameters import ShardedParameter
from .policies import MixedPrecisionPolicy


class Unit:
    """Sharded parameters, gathered and reduced in one message for each dtype.

    Args:
        parameters: of one ``fully_shard`` call.
        mesh: the data-parallel processes; the last dimension is that over which parameters are cut.
        policy: dtypes.
        near: the group over which wholes are cut between forward and backward; None for all.
    """

    def __init__(
        self, parameters: list[ShardedParameter], mesh: DeviceMesh, policy: MixedPrecisionPolicy, near: Any = None
    ) -> None:
        self.parameters, self.mesh, self.policy = parameters, mesh, policy
        self.group = mesh.get_group(mesh.ndim - 1)
        self.near = near
        self._near_parts: list[tuple[list[ShardedParameter], Tensor]] = []  # between forward and backward
        self.copies = mesh.get_group(0) if mesh.ndim == 2 else None
        self.whole = False
        self.divide_by: float | None = None
        self.all_reduces = True
        self._gathering: list[tuple[list[ShardedParameter], Tensor, Work | None]] = []
        self._reducing: list[tuple[list[ShardedParameter], Tensor, Work | None]] = []
        self._kept: dict[int, Tensor] = {}  # reduced over the part's processes, not yet over the copies

    # ---- parameters
    def begin_unshard(self, async_op: bool, in_backward: bool = False) -> None:
        """Start to gather the wholes; in a backward pass, from the near processes where they have parts."""
        if self.whole or self._gathering:
            return
        if not in_backward:
            self._near_parts = []  # parameters may have changed
            for p in self.parameters:
                p.adopt()
        with no_grad():
            group, parts = (self.near if self._near_parts else self.group), self._near_parts
            for some, vector in parts or [(some, _joined(some)) for some in _by_dtype(self.parameters, _dtype)]:
                made = vector.new_empty(group.size(), vector.numel())
                work = all_gather_into_tensor(made.reshape(-1), vector, group, async_op)
                self._gathering.append((some, made, work))
        self._near_parts = []

    def unshard(self, in_backward: bool = False) -> None:
        """Let the modules hold the wholes."""
        if self.whole:
            return
        self.begin_unshard(async_op=False, in_backward=in_backward)
        with no_grad():
            for some, made, work in self._gathering:
                if work is not None:
                    work.wait()
                rows, at = made.unbind(0), 0
                for p in some:
                    end = at + p.padded(len(rows))
                    p.gather([row[at:end] for row in rows])
                    at = end
                    p.show(True)
        self._gathering = []
        self.whole = True

    def reshard_after_forward(self) -> None:
        """Drop the wholes, but for a part among the near processes, if a backward pass may come."""
        if self.near is not None and self.whole and is_grad_enabled():
            n, rank = self.near.size(), self.near.rank()
            with no_grad():
                for some in _by_dtype(self.parameters, _dtype):
                    parts = [p.cut(p.leaf.detach(), n)[rank] for p in some]
                    self._near_parts.append((some, cat(parts).clone()))
        kept = self._near_parts
        self.reshard()
        self._near_parts = kept

    def reshard(self) -> None:
        """Let the modules hold the parts, and drop the memory of the wholes."""
        if self._gathering:
            self.unshard(in_backward=True)
        self._near_parts = []
        if self.whole:
            for p in self.parameters:
                p.release()
            self.whole = False

    # ---- gradients
    def begin_reduce(self) -> None:
        """Start to average the gradients that have come."""
        come = [p for p in self.parameters if p.trained and p.leaf.grad is not None]
        with no_grad():
            for some in _by_dtype(come, lambda p: self.policy.reduce_dtype or p.dtype):
                dtype = self.policy.reduce_dtype or some[0].dtype
                columns = [p.cut(_gradient(p).to(dtype), p.n) for p in some]
                vector = cat([part for row in zip(*columns, strict=True) for part in row])
                for p in some:
                    p.leaf.grad = None
                if self.divide_by is not None:
                    vector /= self.divide_by
                made = vector.new_empty(vector.numel() // self.group.size())
                op = ReduceOp.AVG if self.divide_by is None else ReduceOp.SUM
                self._reducing.append((some, made, reduce_scatter_tensor(made, vector, op, self.group, async_op=True)))

    def finish_reduce(self) -> None:
        """Wait for the averages, and add them to the gradients of the parts."""
        with no_grad():
            for some, made, work in self._reducing:
                if work is not None:
                    work.wait()
                if self.copies is not None and not self._average_copies(some, made):
                    continue
                for p, vector in zip(some, made.split([p.padded(p.n) for p in some]), strict=True):
                    p.add_gradient(vector)
        self._reducing = []

    def _average_copies(self, some: list[ShardedParameter], made: Tensor) -> bool:
        """Average over the processes that have the same parts; False where that is deferred."""
        key = id(some[0])
        if key in self._kept:
            made += self._kept.pop(key)
        if not self.all_reduces:
            self._kept[key] = made
            return False
        all_reduce(made, ReduceOp.AVG if self.divide_by is None else ReduceOp.SUM, self.copies)
        return True


def _gradient(p: ShardedParameter) -> Tensor:
    g: Any = p.leaf.grad
    return g.to_dense() if g.layout is not strided else g


def _dtype(p: ShardedParameter) -> Any:
    return p.dtype


def _joined(some: list[ShardedParameter]) -> Tensor:
    return cat([p.to_send() for p in some])


def _by_dtype(parameters: list[ShardedParameter], dtype: Any) -> list[list[ShardedParameter]]:
    found: dict[Any, list[ShardedParameter]] = {}
    for p in parameters:
        found.setdefault(dtype(p), []).append(p)
    return list(found.values())
