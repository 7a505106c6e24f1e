"""The older place of DTensors: ``taeda.distributed.tensor``."""

from ..tensor import DTensor, distribute_module, distribute_tensor

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]
