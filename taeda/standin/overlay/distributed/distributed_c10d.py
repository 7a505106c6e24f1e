"""``torch.distributed.distributed_c10d``: refused, since this build has no communication between processes."""

from taeda._refuse import refused_class

ProcessGroup = refused_class(
    "torch.distributed.distributed_c10d.ProcessGroup", "this build has no communication between processes"
)
