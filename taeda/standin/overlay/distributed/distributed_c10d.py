"""``torch.distributed.distributed_c10d``: the home of PyTorch's groups and collectives."""

from taeda.distributed import *  # noqa: F403
from taeda.distributed import GroupMember, P2POp, ReduceOp, Store, Work, group
from taeda.distributed.groups import ProcessGroup, _get_default_group, _get_default_store, _world

__all__ = [
    "GroupMember", "P2POp", "ProcessGroup", "ReduceOp", "Store", "Work", "_get_default_group", "_get_default_store",
    "_world", "group",
]  # fmt: skip
