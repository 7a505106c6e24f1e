"""Parts of ``torch.distributed`` that packages name.

Those that split one model over processes (DTensor, FSDP, pipelines, sharded checkpoints) are not there. Packages import their
names to ask whether something is one, so they exist, in modules that are made here of a table; using one refuses.
"""

from __future__ import annotations

import enum
import importlib.machinery
import sys
import types
from typing import Any

from taeda._refuse import refused_class, refused_function

_WHY = "a model is not split over processes here; DistributedDataParallel trains one that each process holds"

#: Names by module. Functions are in lower case.
_PARTS = {
    "_composable": "fully_shard",
    "_composable.fsdp": "FSDPModule MixedPrecisionPolicy fully_shard",
    "_functional_collectives": "all_gather_tensor all_reduce all_to_all_single_autograd wait_tensor",
    "_shard": "",
    "_shard.sharded_tensor": "ShardedTensor",
    "_tensor": "DTensor DeviceMesh Replicate Shard distribute_tensor",
    "_tensor.experimental": "implicit_replication local_map",
    "algorithms": "",
    "algorithms._checkpoint": "",
    "algorithms._checkpoint.checkpoint_wrapper": (
        "CheckpointImpl CheckpointWrapper apply_activation_checkpointing checkpoint_wrapper offload_wrapper"
    ),
    "algorithms.ddp_comm_hooks": "",
    "algorithms.ddp_comm_hooks.default_hooks": "allreduce_hook bf16_compress_hook fp16_compress_hook",
    "algorithms.ddp_comm_hooks.powerSGD_hook": "PowerSGDState powerSGD_hook",
    "algorithms.ddp_comm_hooks.post_localSGD_hook": "PostLocalSGDState post_localSGD_hook",
    "algorithms.join": "Join JoinHook Joinable",
    "algorithms.model_averaging": "",
    "algorithms.model_averaging.averagers": "ModelAverager PeriodicModelAverager",
    "checkpoint": "FileSystemReader FileSystemWriter load load_state_dict save save_state_dict",
    "checkpoint.default_planner": "DefaultLoadPlanner DefaultSavePlanner",
    "checkpoint.format_utils": "_EmptyStateDictLoadPlanner dcp_to_torch_save torch_save_to_dcp",
    "checkpoint.hf_storage": "HuggingFaceStorageReader HuggingFaceStorageWriter",
    "checkpoint._consolidate_hf_safetensors": "consolidate_safetensors_files",
    "checkpoint.filesystem": "FileSystemReader FileSystemWriter",
    "checkpoint.metadata": "Metadata",
    "checkpoint.stateful": "Stateful",
    "checkpoint.optimizer": "load_sharded_optimizer_state_dict",
    "checkpoint.state_dict": (
        "StateDictOptions get_model_state_dict get_optimizer_state_dict get_state_dict set_model_state_dict "
        "set_optimizer_state_dict set_state_dict"
    ),
    "checkpoint.state_dict_loader": "_load_state_dict",
    "fsdp": (
        "BackwardPrefetch CPUOffload CPUOffloadPolicy FSDPModule FullOptimStateDictConfig FullStateDictConfig "
        "FullyShardedDataParallel MixedPrecision MixedPrecisionPolicy OffloadPolicy OptimStateKeyType "
        "ShardedOptimStateDictConfig ShardedStateDictConfig ShardingStrategy StateDictType fully_shard"
    ),
    "fsdp.api": "FullOptimStateDictConfig ShardedOptimStateDictConfig ShardedStateDictConfig StateDictType",
    "fsdp.fully_sharded_data_parallel": (
        "BackwardPrefetch CPUOffload FullOptimStateDictConfig FullStateDictConfig FullyShardedDataParallel MixedPrecision "
        "ShardedOptimStateDictConfig ShardedStateDictConfig ShardingStrategy StateDictType"
    ),
    "fsdp.sharded_grad_scaler": "ShardedGradScaler",
    "fsdp.wrap": (
        "ModuleWrapPolicy _or_policy always_wrap_policy enable_wrap lambda_auto_wrap_policy size_based_auto_wrap_policy "
        "transformer_auto_wrap_policy wrap"
    ),
    "launcher": "",
    "launcher.api": "LaunchConfig elastic_launch",
    "optim": "DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer",
    "pipelining": "PipelineStage ScheduleGPipe SplitPoint pipeline",
    "pipelining.microbatch": "TensorChunkSpec",
    "rpc": "init_rpc remote rpc_async rpc_sync shutdown",
    "tensor": (
        "DTensor DeviceMesh Partial Placement Replicate Shard distribute_module distribute_tensor init_device_mesh "
        "ones zeros"
    ),
    "tensor._utils": "compute_local_shape_and_global_offset",
    "tensor.experimental": "context_parallel implicit_replication local_map",
    "tensor.experimental._attention": "set_rotate_method",
    "tensor.parallel": (
        "ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleOutput RowwiseParallel SequenceParallel "
        "loss_parallel parallelize_module"
    ),
    "tensor.placement_types": "Partial Placement Replicate Shard _StridedShard",
    "utils": "_sync_module_states",
}

#: Choices, which programs name before they use what takes them.
_CHOICES = {
    "BackwardPrefetch": "BACKWARD_PRE BACKWARD_POST",
    "CheckpointImpl": "REENTRANT NO_REENTRANT",
    "OptimStateKeyType": "PARAM_NAME PARAM_ID",
    "ShardingStrategy": "FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD _HYBRID_SHARD_ZERO2",
    "StateDictType": "FULL_STATE_DICT LOCAL_STATE_DICT SHARDED_STATE_DICT",
}

#: Descriptions, which packages make while they are imported: they keep what they are given.
_DESCRIPTIONS = (
    "CPUOffload CPUOffloadPolicy ColwiseParallel FullOptimStateDictConfig FullStateDictConfig MixedPrecision "
    "MixedPrecisionPolicy ModuleWrapPolicy OffloadPolicy ParallelStyle Partial Placement PrepareModuleInput "
    "PrepareModuleOutput Replicate RowwiseParallel SequenceParallel Shard ShardedOptimStateDictConfig "
    "ShardedStateDictConfig StateDictOptions _StridedShard"
).split()


class _Description:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.args, tuple(self.kwargs)))


_made: dict[str, Any] = {}  # one object by name, in whichever modules it is


def _part(module: str, name: str) -> Any:
    if name not in _made or name.islower():
        full = f"torch.distributed.{module}.{name}"
        if name == "DeviceMesh" or name == "init_device_mesh":
            from taeda.distributed import device_mesh

            _made[name] = getattr(device_mesh, name)
        elif name in _CHOICES:
            _made[name] = enum.Enum(name, _CHOICES[name])
        elif name in _DESCRIPTIONS:
            made = types.new_class(name, (_Description,))
            made.__module__ = f"torch.distributed.{module}"
            _made[name] = made
        else:
            _made[name] = (refused_function if name.islower() or "_hook" in name else refused_class)(full, _WHY)
    return _made[name]


def _make() -> None:
    for inner, names in _PARTS.items():
        name = f"{__name__}.{inner}"
        module: Any = types.ModuleType(name, f"``torch.distributed.{inner}``: names that refuse to be used.")
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        module.__path__ = []
        vars(module).update({part: _part(inner, part) for part in names.split()})
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        setattr(sys.modules[parent], last, module)


_make()
