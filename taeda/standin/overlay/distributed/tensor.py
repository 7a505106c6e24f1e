"""``torch.distributed.tensor``: refused, since this build has no communication between processes."""

from taeda._refuse import refused_class

DTensor = refused_class("torch.distributed.tensor.DTensor", "this build has no communication between processes")
Replicate = Shard = Placement = DeviceMesh = refused_class(
    "torch.distributed.tensor", "this build has no communication between processes"
)
