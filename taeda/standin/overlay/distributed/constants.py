"""``torch.distributed.constants``."""

from taeda.distributed import default_pg_timeout

__all__ = ["default_pg_timeout"]
