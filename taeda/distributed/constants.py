"""``torch.distributed.constants``: the timeout of a group that is given none."""

from .groups import default_pg_timeout

__all__ = ["default_pg_timeout"]
