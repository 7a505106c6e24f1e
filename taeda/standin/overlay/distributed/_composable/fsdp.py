"""``torch.distributed._composable.fsdp``: the older name of ``torch.distributed.fsdp``."""

from ..fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

__all__ = ["FSDPModule", "MixedPrecisionPolicy", "fully_shard"]
