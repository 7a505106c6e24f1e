"""Names that only ``torch.distributed`` has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from taeda.distributed.groups import GroupMember, ProcessGroup, _world

__all__ = ["_get_process_group_name", "_pg_map", "_rank_not_in_group"]


class _Groups(Mapping):
    """The groups that this process is in, each with the name of its backend and its store. It cannot be written to."""

    def __getitem__(self, group: Any) -> tuple[str, Any]:
        if group not in _world.groups:
            raise KeyError(group)
        return group.name(), _world.store

    def __iter__(self) -> Iterator[ProcessGroup]:
        return iter(_world.groups)

    def __len__(self) -> int:
        return len(_world.groups)


_pg_map = _Groups()


def _get_process_group_name(pg: ProcessGroup) -> str:
    """The name of a group; None if this process has no such group."""
    return pg.group_name if pg in _world.groups else "None"


def _rank_not_in_group(group: Any) -> bool:
    """Whether this process is not a member of ``group``; None is the group of all."""
    return group is GroupMember.NON_GROUP_MEMBER
