"""Parts of ``torch.distributed`` that packages name, and that taeda has elsewhere or not at all.

What is not there exists by name, as packages import it to ask whether something is one; using it refuses. A name of a
module that taeda has is looked for here where that module lacks it.
"""

from __future__ import annotations

import enum
import importlib
import importlib.machinery
import sys
import types
from typing import Any

from taeda._refuse import refused_class, refused_function

_WHY = "taeda.distributed has no such part; see docs/sharding.md for what there is"

#: Modules that are others by an older or private name.
_ALIASES = {
    "_tensor.experimental": "tensor.experimental", "_tensor.placement_types": "tensor.placement_types",
    "fsdp.fully_sharded_data_parallel": "fsdp", "tensor._utils": "tensor.layout", "checkpoint.api": "checkpoint",
    "checkpoint.storage": "checkpoint",
}  # fmt: skip

#: Names by module. Functions are in lower case.
_PARTS = {
    "_shard": "",
    "_shard.sharded_tensor": "ShardedTensor",
    "checkpoint": "HuggingFaceStorageReader HuggingFaceStorageWriter",
    "checkpoint.format_utils": "BroadcastingTorchSaveReader DynamicMetaLoadPlanner _EmptyStateDictLoadPlanner",
    "checkpoint.hf_storage": "HuggingFaceStorageReader HuggingFaceStorageWriter",
    "checkpoint._consolidate_hf_safetensors": "consolidate_safetensors_files",
    "checkpoint.optimizer": "load_sharded_optimizer_state_dict",
    "checkpoint.state_dict_loader": "_load_state_dict",
    "fsdp": "OptimStateKeyType",
    "fsdp.sharded_grad_scaler": "ShardedGradScaler",
    "fsdp.wrap": "_or_policy enable_wrap wrap",
    "launcher": "",
    "launcher.api": "LaunchConfig elastic_launch",
    "optim": "DistributedOptimizer",
    "rpc": "init_rpc remote rpc_async rpc_sync shutdown",
    "utils": "_sync_module_states",
}

#: Choices, which programs name before they use what takes them.
_CHOICES = {"OptimStateKeyType": "PARAM_NAME PARAM_ID"}

_made: dict[str, Any] = {}  # one object by name, in whichever modules it is


def _part(module: str, name: str) -> Any:
    if name not in _made or name.islower():
        full = f"torch.distributed.{module}.{name}"
        if name in _CHOICES:
            _made[name] = enum.Enum(name, _CHOICES[name])
        else:
            _made[name] = (refused_function if name.islower() or "_hook" in name else refused_class)(full, _WHY)
    return _made[name]


def _getter(home: str) -> Any:
    return lambda name: getattr(importlib.import_module(f"taeda.distributed.{home}"), name)


def _make() -> None:
    for inner in sorted({*_PARTS, *_ALIASES}):
        name = f"{__name__}.{inner}"
        module: Any = types.ModuleType(
            name, f"``torch.distributed.{inner}``: names that taeda has elsewhere, or refuses."
        )
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        module.__path__ = []
        vars(module).update({part: _part(inner, part) for part in _PARTS.get(inner, "").split()})
        if inner in _ALIASES:
            module.__getattr__ = _getter(_ALIASES[inner])
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        setattr(sys.modules.get(parent), last, module) if parent in sys.modules else None


_make()
