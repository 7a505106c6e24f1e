"""``torch._functorch.partitioners``."""

from ..functorch.compile import default_partition, min_cut_rematerialization_partition

__all__ = ["default_partition", "min_cut_rematerialization_partition"]
