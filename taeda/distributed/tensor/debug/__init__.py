"""``taeda.distributed.tensor.debug``: which collectives a program does, and how a DTensor is cut."""

from ._comm_mode import CommDebugMode
from ._visualize_sharding import visualize_sharding

__all__ = ["CommDebugMode", "visualize_sharding"]
