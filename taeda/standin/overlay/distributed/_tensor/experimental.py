"""``torch.distributed._tensor.experimental``: refused, since this build has no communication between processes."""

from taeda._refuse import refused_function

_WHY = "this build has no communication between processes"
implicit_replication = refused_function("torch.distributed._tensor.experimental.implicit_replication", _WHY)
local_map = refused_function("torch.distributed._tensor.experimental.local_map", _WHY)
