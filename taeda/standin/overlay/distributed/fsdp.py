"""``torch.distributed.fsdp``: refused, since this build has no communication between processes."""

from taeda._refuse import refused_class

FullyShardedDataParallel = refused_class(
    "torch.distributed.fsdp.FullyShardedDataParallel", "this build has no communication between processes"
)
MixedPrecision = ShardingStrategy = StateDictType = CPUOffload = refused_class(
    "torch.distributed.fsdp", "this build has no communication between processes"
)
