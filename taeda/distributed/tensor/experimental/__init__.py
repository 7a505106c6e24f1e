"""``taeda.distributed.tensor.experimental``: implicit replication, and sequences cut over processes."""

from ...context_parallel import context_parallel, context_parallel_unshard, set_rotate_method
from ..dtensor import implicit_replication

__all__ = ["context_parallel", "context_parallel_unshard", "implicit_replication", "set_rotate_method"]
