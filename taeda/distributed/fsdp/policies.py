"""Options of :func:`fully_shard`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of computation and communication; parameters keep theirs.

    Args:
        param_dtype: of the gathered parameters, and so of the computation; that of the parameters by default.
        reduce_dtype: in which gradients are reduced; ``param_dtype`` by default.
        output_dtype: to which floating-point outputs are cast.
        cast_forward_inputs: cast floating-point inputs to ``param_dtype``.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Shards stay where the parameters were."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Shards, gradients and the optimiser's state are in the memory of the CPU, where everything is here.

    Args:
        pin_memory: accepted.
    """

    pin_memory: bool = True
