"""Storages of checkpoints: the interface that a storage implements."""

from __future__ import annotations

import abc
import os
from dataclasses import dataclass
from typing import Any

from taeda.futures import Future

from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """An entry that was written. ``storage_data`` is the storage's own description of the place."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes checkpoints. Its methods are called in this order, at each process unless said otherwise."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """A checkpoint begins; ``checkpoint_id`` is the one that ``save`` was given."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Get ready. An implementation that takes ``**kwargs`` gets ``rank`` and ``use_collectives``."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """This process's plan, perhaps with ``storage_data``."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """The plans of all. (At the first process.)"""

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future:
        """Write what ``planner.resolve_data`` gives for each item: a Future of a list of :class:`WriteResult`."""

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Make what all processes wrote the checkpoint, at once. (At the first process.)"""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Whether this storage can have a checkpoint of that name."""

    def storage_meta(self) -> StorageMeta | None:
        """The name of the checkpoint, for the planner."""
        return None


class StorageReader(abc.ABC):
    """Reads checkpoints. Its methods are called in this order, at each process unless said otherwise."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Reading begins; ``checkpoint_id`` is the one that ``load`` was given."""

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The contents of the checkpoint."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Get ready. An implementation that takes ``**kwargs`` gets ``rank`` and ``use_collectives``."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """This process's plan, perhaps with ``storage_data``."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans of all. (At the first process.)"""

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future:
        """Read the items into what ``planner.resolve_tensor`` gives, and bytes to ``planner.load_bytes``: a Future."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Whether this storage can have a checkpoint of that name."""
