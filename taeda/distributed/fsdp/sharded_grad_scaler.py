"""``ShardedGradScaler``: scaled losses where each process sees the gradients of its parts alone."""

from __future__ import annotations

from typing import Any

from taeda.amp import GradScaler

from ..._typed import Tensor
from ..collectives import all_reduce
from ..reduction import ReduceOp

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """A :class:`taeda.amp.GradScaler` by which all leave a step out where one has gradients that are not finite.

    Args:
        device: the device of the scale.
        init_scale: the first scale.
        backoff_factor: factor after a step that was left out.
        growth_factor: factor after ``growth_interval`` steps that were taken.
        growth_interval: how many these are.
        enabled: False: do nothing.
        process_group: the processes, all by default.
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, backoff_factor: float = 0.5,
        growth_factor: float = 2.0, growth_interval: int = 2000, enabled: bool = True, process_group: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self.process_group = process_group

    def unscale_(self, optimizer: Any) -> None:
        """See :meth:`GradScaler.unscale_`. Every process of the group calls it."""
        super().unscale_(optimizer)
        if self._enabled:
            found: Tensor = self._state(optimizer)["found_inf"]
            all_reduce(found, ReduceOp.MAX, self.process_group)
