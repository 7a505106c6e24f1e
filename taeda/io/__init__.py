"""Files: PyTorch's checkpoints and safetensors, read without running code from them."""

from . import safetensors
from .checkpoint import load, save

__all__ = ["load", "safetensors", "save"]
