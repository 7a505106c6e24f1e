"""ZeroRedundancyOptimizer: each process keeps the state of some of the parameters (Rajbhandari et al. 2020, stage
1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taeda.optim import Optimizer

from ..._typed import Tensor
from ...autograd import no_grad
from ...ops.joining import cat
from ..algorithms.join import Join, Joinable, JoinHook
from ..collectives import broadcast
from ..groups import ProcessGroup, resolve
from ..objects import gather_object

__all__ = ["ZeroRedundancyOptimizer"]


class _Hook(JoinHook):
    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        """The update of this process's parameters, and their exchange."""
        self.optimizer.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimiser of which each process updates, and keeps the state of, a part of the parameters.

    Args:
        params: all parameters, the same at each process, with equal gradients (as DistributedDataParallel leaves them).
        optimizer_class: the optimiser.
        process_group: the processes, all by default.
        parameters_as_bucket_view: accepted.
        overlap_with_ddp: not taken.
        **defaults: the optimiser's options.
    Raises:
        NotImplementedError: ``overlap_with_ddp``.
        ValueError: this process is not in the group.
    """

    def __init__(
        self, params: Any, optimizer_class: type[Optimizer], process_group: Any = None,
        parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any,
    ) -> None:  # fmt: skip
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp is not there")
        group = resolve(process_group)
        if group is None:
            raise ValueError("ZeroRedundancyOptimizer: this process is not in the given group")
        self.process_group: ProcessGroup = group
        self._optim_class, self._optim_defaults = optimizer_class, defaults
        self._owners: dict[Tensor, int] = {}
        self._sizes = [0] * group.size()
        self._all_states: list[Any] | None = None
        self._made = False
        Joinable.__init__(self)
        Optimizer.__init__(self, params, dict(defaults))
        self.optim: Any = optimizer_class(self._own_groups(), **defaults)
        for outer, inner in zip(self.param_groups, self.optim.param_groups, strict=True):
            outer.update({k: v for k, v in inner.items() if k != "params" and k not in outer})
        self._made = True

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: its parameters go to the processes that have the fewest elements."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for p in sorted(group["params"], key=Tensor.numel, reverse=True):
            rank = self._sizes.index(min(self._sizes))
            self._owners[p] = rank
            self._sizes[rank] += p.numel()
        if self._made:
            self.optim.add_param_group(self._own_groups()[-1])

    def _own_groups(self) -> list[dict[str, Any]]:
        rank = self.process_group.rank()
        return [
            {**group, "params": [p for p in group["params"] if self._owners[p] == rank]} for group in self.param_groups
        ]

    def step(self, closure: Any = None, **kwargs: Any) -> Any:
        """Update this process's parameters, and receive the other processes' parameters from them."""
        Join.notify_join_context(self)
        for outer, inner in zip(
            self.param_groups, self.optim.param_groups, strict=True
        ):  # a scheduler may have changed one
            inner.update({k: v for k, v in outer.items() if k != "params"})
        loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        with no_grad():
            for rank in range(self.process_group.size()):
                for some in _alike(p for p, owner in self._owners.items() if owner == rank):
                    flat = cat([p.detach().reshape(-1) for p in some])
                    broadcast(flat, group=self.process_group, group_src=rank)
                    if rank != self.process_group.rank():
                        for p, part in zip(some, flat.split([p.numel() for p in some]), strict=True):
                            p.copy_(part.reshape(p.shape))
        return loss

    def _numbers(self) -> dict[Tensor, int]:
        return {p: i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the state of all parameters to process ``to``, for :meth:`state_dict` there."""
        numbers = self._numbers()
        mine = {numbers[p]: _plain(state) for p, state in self.optim.state.items()}
        root = self.process_group.rank() == to
        found: list[Any] | None = [None] * self.process_group.size() if root else None
        gather_object(mine, found, group=self.process_group, group_dst=to)
        self._all_states = found

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters, as the optimiser itself would have it.

        Returns:
            The state dict.
        Raises:
            RuntimeError: :meth:`consolidate_state_dict` was not called, or was for another process.
        """
        if self._all_states is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to="
                f"{self.process_group.rank()})` on all ranks beforehand if you meant to save the global state."
            )
        state = {number: s for part in self._all_states for number, s in part.items()}
        whole = super().state_dict()
        whole["state"] = dict(sorted(state.items()))
        return whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a dict from :meth:`state_dict`: this process keeps the state of its own parameters."""
        rank = self.process_group.rank()
        state: dict[int, Any] = {}
        groups: list[dict[str, Any]] = []
        numbers = self._numbers()
        owned = {p: i for i, p in enumerate(p for group in self.optim.param_groups for p in group["params"])}
        for p, i in owned.items():
            if numbers[p] in state_dict["state"]:
                state[i] = state_dict["state"][numbers[p]]
        for outer, own, saved in zip(
            self.param_groups, self.optim.param_groups, state_dict["param_groups"], strict=True
        ):
            options = {k: v for k, v in saved.items() if k != "params"}
            outer.update(options)
            groups.append({**options, "params": [owned[p] for p in own["params"]]})
        assert all(self._owners[p] == rank for p in owned)
        self.optim.load_state_dict({"state": state, "param_groups": groups})

    # ---- joining
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of a process without inputs: it does its share of each step."""
        return _Hook(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return next(iter(self._owners)).device

    @property
    def join_process_group(self) -> Any:
        """The processes."""
        return self.process_group


def _alike(parameters: Iterable[Tensor]) -> list[list[Tensor]]:
    """The parameters by dtype."""
    found: dict[Any, list[Tensor]] = {}
    for p in parameters:
        found.setdefault(p.dtype, []).append(p)
    return list(found.values())


def _plain(state: Any) -> Any:
    return {k: v.detach().clone() if isinstance(v, Tensor) else v for k, v in state.items()}
