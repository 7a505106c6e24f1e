"""``taeda.distributed.tensor.experimental``."""

from .dtensor import implicit_replication

__all__ = ["implicit_replication"]
