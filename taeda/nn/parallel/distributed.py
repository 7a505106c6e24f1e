"""DistributedDataParallel, whose home is :mod:`taeda.distributed`: loaded when it is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...distributed.data_parallel import DistributedDataParallel

__all__ = ["DistributedDataParallel"]


def __getattr__(name: str) -> Any:
    if name != "DistributedDataParallel":
        raise AttributeError(f"module 'taeda.nn.parallel.distributed' has no attribute '{name}'", name=name)
    return importlib.import_module("taeda.distributed").DistributedDataParallel
