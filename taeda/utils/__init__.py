"""Tools around training: data loading, checkpointing, DLPack."""

import importlib

from .._core import swap_tensors
from . import checkpoint, data, deterministic, dlpack, dot


def __getattr__(name: str) -> object:
    """What is imported when it is first named: benchmark, tensorboard, _pytree, ..."""
    if name in ("_pytree", "benchmark", "collect_env", "hooks", "model_zoo", "tensorboard", "weak"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["checkpoint", "data", "deterministic", "dlpack", "dot", "swap_tensors"]
