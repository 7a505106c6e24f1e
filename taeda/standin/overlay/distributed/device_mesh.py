"""``torch.distributed.device_mesh``: refused, since this build has no communication between processes."""

from taeda._refuse import refused_class

DeviceMesh = refused_class(
    "torch.distributed.device_mesh.DeviceMesh", "this build has no communication between processes"
)
