"""``taeda.distributed.fsdp``: models whose parameters, gradients and optimiser state are cut over processes."""

from .policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from .shard import FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method

__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle", "fully_shard",
    "register_fsdp_forward_method",
]  # fmt: skip
