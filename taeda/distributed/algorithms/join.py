"""Training with different numbers of inputs: processes that run out of them take part in the others' collectives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ..._core import int64
from ...ops.exchange import tensor
from ..collectives import all_reduce
from ..groups import device_of

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """The work of a process that has no inputs left."""

    def main_hook(self) -> None:
        """The collectives of one iteration of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once no process has inputs left."""


class _Config:
    """Whether an object is within a :class:`Join`."""

    def __init__(self, enable: bool = False, throw: bool = False, first: bool = False) -> None:
        self.enable, self.throw, self.first = enable, throw, first
        self.active = 0  # processes that have inputs in this iteration


class Joinable(ABC):
    """An object that can be within a :class:`Join`. ``join_hook`` gives its hook."""

    def __init__(self) -> None:
        super().__init__()
        self._join_config = _Config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook, for the keyword arguments of :class:`Join`."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the collectives' tensors."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes."""


class Join:
    """Context manager for a loop over inputs of which processes have different numbers.

    Args:
        joinables: objects with collectives in the loop. In each iteration the first one tells the others that this
            process goes on.
        enable: whether to do anything.
        throw_on_early_termination: raise at all processes when the first has no inputs left.
        **kwargs: for the hooks.
    Raises:
        RuntimeError: that, or the objects are of several groups.
    """

    def __init__(
        self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        groups = {id(j.join_process_group) for j in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._joinables, self._enable, self._throw = joinables, enable, throw_on_early_termination
        self._group = joinables[0].join_process_group
        self._hooks = [j.join_hook(**kwargs) for j in joinables]

    def __enter__(self) -> None:
        for i, joinable in enumerate(self._joinables):
            joinable._join_config = _Config(self._enable, self._throw, i == 0)

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if not self._enable or kind is not None:
            return
        last = True
        try:
            while _count(0, self._group):
                if self._throw:
                    _count(1, self._group)
                    _stop()
                last = False
                for hook in self._hooks:
                    hook.main_hook()
            for hook in self._hooks:
                hook.post_hook(last)
        finally:
            for joinable in self._joinables:
                joinable._join_config = _Config()

    @staticmethod
    def notify_join_context(joinable: Joinable) -> None:
        """Say that this process goes on with an iteration; to be called before the iteration's collectives.

        Args:
            joinable: the object whose collectives follow.
        Raises:
            RuntimeError: another has no inputs left, and ``throw_on_early_termination`` is set.
        """
        config = joinable._join_config
        if not config.enable or not config.first:
            return
        config.active = _count(1, joinable.join_process_group)
        if config.throw and _count(0, joinable.join_process_group):
            _stop()


def _count(mine: int, group: Any) -> int:
    total = tensor(mine, dtype=int64, device=device_of(group))
    all_reduce(total, group=group)
    return int(total.item())


def _stop() -> None:
    raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
