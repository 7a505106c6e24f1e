"""PyTorch's path to DistributedDataParallel, which lies above this layer: :mod:`taeda.distributed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._namespaces import names_of

if TYPE_CHECKING:
    from ...distributed.data_parallel import DistributedDataParallel

__all__ = ["DistributedDataParallel"]

__getattr__ = names_of("distributed", __name__, ("DistributedDataParallel",))
