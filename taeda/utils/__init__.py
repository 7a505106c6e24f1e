"""Tools around training: data loading, checkpointing, DLPack, looking at models."""

from .._core import swap_tensors
from .._namespaces import parts as _parts

#: Modules that are imported when they are first named.
_PARTS = "_pytree benchmark checkpoint collect_env data deterministic dlpack dot hooks model_zoo tensorboard weak"
_LATE = {
    "_check_step": "check_step", "_curves": "Curves", "_draw": "draw", "_histograms": "histograms",
    "_memory_use": "memory_use", "_summary": "summary",
}  # fmt: skip
__getattr__ = _parts(__name__, dict.fromkeys(_PARTS.split(), "") | _LATE)

__all__ = [
    "Curves", "check_step", "checkpoint", "data", "deterministic", "dlpack", "dot", "draw", "histograms", "memory_use",
    "summary", "swap_tensors",
]  # fmt: skip
