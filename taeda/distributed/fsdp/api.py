"""Options of ``FullyShardedDataParallel``."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig",
    "LocalOptimStateDictConfig", "LocalStateDictConfig",
    "MixedPrecision", "OptimStateDictConfig", "OptimStateKeyType", "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig", "ShardingStrategy",
    "StateDictConfig", "StateDictSettings", "StateDictType",
]  # fmt: skip


class ShardingStrategy(enum.Enum):
    """Tensors that are cut: parameters, gradients and state; the same, but parameters are whole between forward and
    backward; none."""

    FULL_SHARD = 1
    SHARD_GRAD_OP = 2
    NO_SHARD = 3
    HYBRID_SHARD = 4
    _HYBRID_SHARD_ZERO2 = 5


class BackwardPrefetch(enum.Enum):
    """When the next unit's parameters are gathered in a backward pass."""

    BACKWARD_PRE = 1
    BACKWARD_POST = 2


class StateDictType(enum.Enum):
    """Form of ``state_dict``: whole tensors, or parts as DTensors."""

    FULL_STATE_DICT = 1
    LOCAL_STATE_DICT = 2
    SHARDED_STATE_DICT = 3


class OptimStateKeyType(enum.Enum):
    """The keys of parameters in an optimiser's state dict: names or numbers."""

    PARAM_NAME = 1
    PARAM_ID = 2


@dataclass(frozen=True)
class MixedPrecision:
    """The dtypes of computation, reduction and buffers."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass
class CPUOffload:
    """Whether parts are on the CPU, where everything is here."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """Options for making a state dict; all values are on the CPU."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """``rank0_only``: the other processes get empty dicts."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Not supported: there are no flat parameters here."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Parts as DTensors."""


@dataclass
class OptimStateDictConfig:
    """Options for making an optimiser's state dict."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """``rank0_only``: the other processes get empty dicts."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Not supported: there are no flat parameters here."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Parts as DTensors."""


@dataclass
class StateDictSettings:
    """Form and options of ``state_dict`` and ``optim_state_dict``."""

    state_dict_type: StateDictType = StateDictType.FULL_STATE_DICT
    state_dict_config: StateDictConfig = field(default_factory=FullStateDictConfig)
    optim_state_dict_config: OptimStateDictConfig = field(default_factory=FullOptimStateDictConfig)
