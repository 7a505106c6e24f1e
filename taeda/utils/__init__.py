"""Tools around training: data loading, checkpointing, DLPack, looking at models."""

from .._core import swap_tensors
from .._namespaces import parts as _parts

#: Modules that are imported when they are first named.
_PARTS = "_pytree benchmark checkpoint collect_env data deterministic dlpack dot hooks model_zoo tensorboard weak"
_LATE = {"_check_step": "check_step", "_draw": "draw", "_summary": "summary"}
__getattr__ = _parts(__name__, dict.fromkeys(_PARTS.split(), "") | _LATE)

__all__ = ["check_step", "checkpoint", "data", "deterministic", "dlpack", "dot", "draw", "summary", "swap_tensors"]
