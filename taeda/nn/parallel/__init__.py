"""Data parallelism: in one process, where DataParallel runs its module as it is on a single device, and over
several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._namespaces import names_of
from . import distributed
from .data_parallel import DataParallel, data_parallel
from .scatter_gather import gather, parallel_apply, replicate, scatter

if TYPE_CHECKING:
    from .distributed import DistributedDataParallel

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter",
]  # fmt: skip

__getattr__ = names_of("distributed", __name__, ("DistributedDataParallel",))
