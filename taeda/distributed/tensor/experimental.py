"""``taeda.distributed.tensor.experimental``: implicit replication, and sequences cut over processes."""

from .dtensor import implicit_replication
from .ring import context_parallel, context_parallel_unshard

__all__ = ["context_parallel", "context_parallel_unshard", "implicit_replication"]
