"""``torch.distributed.fsdp``: refused, since this build has no communication between processes."""

from taeda._refuse import refused_class, refused_function

_WHY = "this build has no communication between processes"
(
    CPUOffload,
    FSDPModule,
    FullyShardedDataParallel,
    MixedPrecision,
    MixedPrecisionPolicy,
    ShardingStrategy,
    StateDictType,
) = (
    refused_class(f"torch.distributed.fsdp.{name}", _WHY)
    for name in (
        "CPUOffload FSDPModule FullyShardedDataParallel MixedPrecision MixedPrecisionPolicy ShardingStrategy StateDictType"
    ).split()
)
fully_shard = refused_function("torch.distributed.fsdp.fully_shard", _WHY)
