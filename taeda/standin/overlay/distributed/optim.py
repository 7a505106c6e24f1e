"""``torch.distributed.optim``: refused, since this build has no communication between processes."""

from taeda._refuse import refused_class

ZeroRedundancyOptimizer = refused_class(
    "torch.distributed.optim.ZeroRedundancyOptimizer", "this build has no communication between processes"
)
