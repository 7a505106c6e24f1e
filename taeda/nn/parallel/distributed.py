"""DistributedDataParallel, which needs a group of processes."""

from __future__ import annotations

from ..._refuse import refused_class
from ..modules.module import Module

__all__ = ["DistributedDataParallel"]

DistributedDataParallel = refused_class(
    "nn.parallel.DistributedDataParallel",
    "this build has no communication between processes. Use the module itself in one process",
    (Module,),
)
