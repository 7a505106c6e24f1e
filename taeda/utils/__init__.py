"""Tools around training: data loading, checkpointing, DLPack."""

from . import checkpoint, data, dlpack, dot

__all__ = ["checkpoint", "data", "dlpack", "dot"]
