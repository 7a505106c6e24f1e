"""``taeda.distributed.tensor``: tensors of which each process has a part."""

from ..device_mesh import DeviceMesh, init_device_mesh
from . import dispatch, losses, special
from .creation import empty, full, ones, rand, randn, zeros
from .dtensor import DTensor, distribute_module, distribute_tensor
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full",
    "ones", "rand", "randn", "zeros",
]  # fmt: skip
