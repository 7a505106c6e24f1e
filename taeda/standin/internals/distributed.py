"""Names that only ``torch.distributed`` has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from taeda.distributed.groups import ProcessGroup, _world

__all__ = ["_pg_map"]


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
