"""``taeda.distributed.tensor.experimental``: implicit replication, and sequences cut over processes."""

from ...context_parallel import context_parallel, context_parallel_unshard, set_rotate_method
from ..dtensor import implicit_replication
from ._func_map import local_map

__all__ = ["context_parallel", "context_parallel_unshard", "implicit_replication", "local_map", "set_rotate_method"]
