"""DLPack under PyTorch's names: ``to_dlpack`` and ``from_dlpack``."""

from .._core.dlpack import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
