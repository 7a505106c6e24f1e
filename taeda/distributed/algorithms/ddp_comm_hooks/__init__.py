"""Communication hooks of DistributedDataParallel: how a bucket of gradients is averaged."""

from __future__ import annotations

import enum
from typing import Any

from . import debugging_hooks, default_hooks, post_localSGD_hook, powerSGD_hook

__all__ = [
    "DDPCommHookType", "debugging_hooks", "default_hooks", "post_localSGD_hook", "powerSGD_hook",
    "register_ddp_comm_hook",
]  # fmt: skip


class DDPCommHookType(enum.Enum):
    """The hooks by name, for programs that take one from a configuration."""

    ALLREDUCE = "allreduce_hook"
    FP16_COMPRESS = "fp16_compress_hook"
    BF16_COMPRESS = "bf16_compress_hook"
    POWER_SGD = "powerSGD_hook"
    POWER_SGD_RANK2 = "powerSGD_hook of rank 2"
    BATCHED_POWER_SGD = "batched_powerSGD_hook"
    BATCHED_POWER_SGD_RANK2 = "batched_powerSGD_hook of rank 2"
    NOOP = "noop_hook"


_MODULES = default_hooks, powerSGD_hook, debugging_hooks


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Register the hook of that name with ``model``, a DistributedDataParallel.

    For PowerSGD, ``state`` is a process group. The rank of the matrices is 1, or 2 where the name says so.
    """
    if "POWER_SGD" in comm_hook_type.name:
        rank = 2 if comm_hook_type.name.endswith("RANK2") else 1
        state = powerSGD_hook.PowerSGDState(process_group=state, matrix_approximation_rank=rank)
    name = comm_hook_type.value.partition(" ")[0]
    model.register_comm_hook(state, next(getattr(module, name) for module in _MODULES if hasattr(module, name)))
