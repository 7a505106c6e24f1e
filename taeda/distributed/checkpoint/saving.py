"""``save``, ``async_save`` and ``load`` of state dicts whose tensors may be cut over processes."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ..._typed import Tensor
from ...autograd import no_grad
from ..groups import get_rank, get_world_size, is_initialized, new_group, resolve
from ..objects import all_gather_object, broadcast_object_list
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import CheckpointException, Metadata
from .planner import LoadPlanner, SavePlan, SavePlanner, WriteItem
from .stateful import Stateful
from .storage import StorageReader, StorageWriter

__all__ = ["async_save", "load", "load_state_dict", "save", "save_state_dict"]


class _Processes:
    """The processes that save or load together: a group, or this process alone."""

    def __init__(self, group: Any, alone: bool) -> None:
        self.group, self.alone = group, alone or not is_initialized()
        self.rank, self.size = (0, 1) if self.alone else (get_rank(group), get_world_size(group))

    def each(self, step: Callable[[], Any]) -> list:
        """The results of ``step()`` at all processes.

        Args:
            step: what each process does.

        Returns:
            A result for each process.

        Raises:
            CheckpointException: at all processes, if it raised at one.
        """
        value, problem = None, None
        try:
            value = step()
        except Exception as error:  # the others must not wait
            if self.alone:
                raise error if isinstance(error, CheckpointException) else CheckpointException(_told(error)) from error
            problem = _told(error)
        if self.alone:
            return [value]
        found: list = [None] * self.size
        all_gather_object(found, (value, problem), self.group)
        problems = {i: p for i, (_, p) in enumerate(found) if p is not None}
        if problems:
            raise CheckpointException("; ".join(f"rank {i}: {p}" for i, p in problems.items()))
        return [value for value, _ in found]

    def each_own(self, step: Callable[[], Any]) -> Any:
        """The result of ``step()`` at this process; it is not sent to the others.

        Args:
            step: what each process does.

        Returns:
            The own result.

        Raises:
            CheckpointException: at all processes, if it raised at one.
        """
        box: list = []
        self.each(lambda: box.append(step()))
        return box[0]

    def first(self, step: Callable[[], Any]) -> Any:
        """The result of ``step()`` at the first process.

        Args:
            step: what the first process does.

        Returns:
            The result of the first process, everywhere.

        Raises:
            CheckpointException: at all processes, if it raised.
        """
        if self.alone:
            return self.each(step)[0]
        box: list = [None]
        if self.rank == 0:
            try:
                box = [(step(), None)]
            except Exception as error:  # the others must not wait
                box = [(None, _told(error))]
        broadcast_object_list(box, group=self.group, group_src=0)
        value, problem = box[0]
        if problem is not None:
            raise CheckpointException(f"rank 0: {problem}")
        return value


def _told(error: Exception) -> str:
    plain = isinstance(error, CheckpointException) or type(error) is ValueError
    return str(error) if plain else f"{type(error).__name__}: {error}"


def _plain_state(state: dict[str, Any]) -> dict[str, Any]:
    """Objects with a ``state_dict`` method are saved by it."""
    return {k: v.state_dict() if isinstance(v, Stateful) else v for k, v in state.items()}


def _set_up(method: Callable, processes: _Processes, *args: Any) -> None:
    """Call a storage's ``set_up``, with the rank if it takes ``**kwargs``."""
    more: dict[str, Any] = {}
    if "kwargs" in inspect.signature(method).parameters:
        more = {"rank": processes.rank, "use_collectives": True}
    method(*args, processes.rank == 0, **more)


# ---- saving ----------------------------------------------------------------------------------------------------------


def _writer(checkpoint_id: Any, writer: StorageWriter | None) -> StorageWriter:
    if writer is None:
        if checkpoint_id is None:
            raise RuntimeError("Cannot determine, as neither storage_writer nor checkpoint_id is given")
        return FileSystemWriter(checkpoint_id)
    if checkpoint_id is not None:
        writer.reset(checkpoint_id)
    return writer


def _planned(
    state: dict[str, Any], writer: StorageWriter, planner: SavePlanner, processes: _Processes
) -> tuple[SavePlan, Metadata]:
    """The entries that this process writes, and the contents of the checkpoint."""

    def own() -> SavePlan:
        meta = writer.storage_meta()
        arguments: list[Any] = [_plain_state(state), meta, processes.rank == 0]
        if "storage_meta" not in inspect.signature(planner.set_up_planner).parameters:  # as older planners have it
            del arguments[1]
        planner.set_up_planner(*arguments)
        _set_up(writer.set_up_storage_writer, processes)
        return writer.prepare_local_plan(planner.create_local_plan())

    plans = processes.each(own)

    def together() -> tuple[list[SavePlan], Metadata]:
        made, metadata = planner.create_global_plan(plans)
        return writer.prepare_global_plan(made), metadata

    everyones, metadata = processes.first(together)
    return processes.each_own(lambda: planner.finish_plan(everyones[processes.rank])), metadata


def _write(plan: SavePlan, metadata: Metadata, writer: StorageWriter, planner: Any, processes: _Processes) -> Metadata:
    """Write this process's part; the first makes all of them the checkpoint once they are there."""

    def own() -> list:
        return writer.write_data(plan, planner).wait()

    results = processes.each(own)

    def together() -> Metadata:
        writer.finish(metadata, results)
        return metadata

    return processes.first(together)


def save(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None, process_group: Any = None,
    no_dist: bool = False, use_collectives: bool = True,
) -> Metadata:  # fmt: skip
    """Write a state dict; every process of the group calls it. Replicated tensors are written once.

    Args:
        state_dict: nested dicts and lists of tensors, DTensors, plain values, and objects with ``state_dict()``.
        checkpoint_id: a folder that all processes see.
        storage_writer: a :class:`FileSystemWriter`, or a program's own, in place of it.
        planner: a :class:`DefaultSavePlanner` unless given.
        process_group: all processes by default.
        no_dist: this process alone.
        use_collectives: accepted.
    Returns:
        The metadata.
    Raises:
        CheckpointException: a process could not write, or a value is no plain one. The last checkpoint is as it was.
    """
    writer, processes = _writer(checkpoint_id, storage_writer), _Processes(process_group, no_dist)
    planner = planner or DefaultSavePlanner()
    with no_grad():
        plan, metadata = _planned(state_dict, writer, planner, processes)
        return _write(plan, metadata, writer, planner, processes)


_background: dict[str, Any] = {}


class _Copies:
    """A planner's substitute that holds copies of the values that the planner gave for each item."""

    def __init__(self, plan: SavePlan, planner: SavePlanner) -> None:
        self._data: dict[Any, Any] = {}
        for item in plan.items:
            data = planner.resolve_data(item)
            self._data[item.index] = data.clone() if isinstance(data, Tensor) else data

    def resolve_data(self, write_item: WriteItem) -> Any:
        """See :meth:`SavePlanner.resolve_data`."""
        return self._data.pop(write_item.index)


def async_save(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None, process_group: Any = None,
    async_checkpointer_type: Any = None, async_stager: Any = None, no_dist: bool = False, use_collectives: bool = True,
) -> Future:  # fmt: skip
    """:func:`save` beside the program: what this process writes is copied now, and written by a thread.

    Arguments are the same as for :func:`save`. Every process calls it; saves are written one after the other.

    Args:
        state_dict: as for :func:`save`.
        checkpoint_id: as for :func:`save`.
        storage_writer: as for :func:`save`.
        planner: as for :func:`save`.
        process_group: as for :func:`save`.
        async_checkpointer_type: accepted.
        async_stager: accepted.
        no_dist: as for :func:`save`.
        use_collectives: accepted.

    Returns:
        A Future of the metadata, done when the checkpoint is whole.

    Raises:
        NotImplementedError: ``async_stager`` or ``process_group``.
    """
    if async_stager is not None or process_group is not None:
        raise NotImplementedError("checkpoint.async_save: async_stager and process_group are not taken")
    writer, processes = _writer(checkpoint_id, storage_writer), _Processes(process_group, no_dist)
    planner = planner or DefaultSavePlanner()
    with no_grad():
        plan, metadata = _planned(state_dict, writer, planner, processes)
        copies = processes.each_own(lambda: _Copies(plan, planner))
    if not processes.alone:  # a group of its own, as the thread's messages come between the program's
        if _background.get("world") is not resolve(None):
            _background.update(world=resolve(None), group=new_group())
        processes.group = _background["group"]
    pool = _background.setdefault("pool", ThreadPoolExecutor(1, "taeda-checkpoint"))
    return pool.submit(_write, plan, metadata, writer, copies, processes)


# ---- loading ---------------------------------------------------------------------------------------------------------


def load(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None,
    storage_reader: StorageReader | None = None, planner: LoadPlanner | None = None, process_group: Any = None,
    no_dist: bool = False,
) -> None:  # fmt: skip
    """Read a checkpoint into ``state_dict``: into its tensors, whatever processes wrote it, and in place of other
    values.

    Each process reads the parts that it needs. No code is run.

    Args:
        state_dict: with tensors of the sizes that were saved, on any number of processes; objects with
            ``load_state_dict()`` get theirs.
        checkpoint_id: the folder; or
        storage_reader: a :class:`FileSystemReader`, or a program's own.
        planner: a :class:`DefaultLoadPlanner` unless given.
        process_group: all processes by default. They exchange their plans where planner or storage are a program's own;
            otherwise reading needs no messages.
        no_dist: this process alone.
    Raises:
        CheckpointException: there is no checkpoint, it is damaged, or lacks an entry; or sizes differ.
        RuntimeError: neither ``checkpoint_id`` nor ``storage_reader`` is given.
    """
    if storage_reader is None:
        if checkpoint_id is None:
            raise RuntimeError("Cannot determine, as neither storage_reader nor checkpoint_id is given")
        storage_reader = FileSystemReader(checkpoint_id)
    elif checkpoint_id is not None:
        storage_reader.reset(checkpoint_id)
    own = type(planner) not in (type(None), DefaultLoadPlanner) or type(storage_reader) is not FileSystemReader
    processes = _Processes(process_group, no_dist or not own)
    plain = _plain_state(state_dict)
    with no_grad():
        _read(plain, storage_reader, planner or DefaultLoadPlanner(), processes)
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(plain[key])
        else:
            state_dict[key] = plain[key]


def _read(state: dict[str, Any], reader: StorageReader, planner: LoadPlanner, processes: _Processes) -> None:
    def own() -> Any:
        metadata = reader.read_metadata()
        planner.set_up_planner(state, metadata, processes.rank == 0)
        _set_up(reader.set_up_storage_reader, processes, metadata)
        return reader.prepare_local_plan(planner.create_local_plan())

    plans = processes.each(own)
    everyones = processes.first(lambda: reader.prepare_global_plan(planner.create_global_plan(plans)))
    processes.each_own(lambda: reader.read_data(planner.finish_plan(everyones[processes.rank]), planner).wait())


def save_state_dict(
    state_dict: dict[str, Any], storage_writer: StorageWriter, process_group: Any = None,
    coordinator_rank: int = 0, no_dist: bool = False, planner: SavePlanner | None = None,
) -> Metadata:  # fmt: skip
    """The older name of :func:`save`."""
    return save(
        state_dict, storage_writer=storage_writer, process_group=process_group, no_dist=no_dist, planner=planner
    )


def load_state_dict(
    state_dict: dict[str, Any], storage_reader: StorageReader, process_group: Any = None,
    coordinator_rank: int = 0, no_dist: bool = False, planner: LoadPlanner | None = None,
) -> None:  # fmt: skip
    """The older name of :func:`load`."""
    load(state_dict, storage_reader=storage_reader, process_group=process_group, no_dist=no_dist, planner=planner)
