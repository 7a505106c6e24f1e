"""Tools around training: data loading, checkpointing, DLPack."""

from . import data, dlpack

__all__ = ["data", "dlpack"]
