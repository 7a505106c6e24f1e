"""``save``, ``async_save`` and ``load`` of state dicts whose tensors may be cut over processes."""

from __future__ import annotations

import json
import os
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import taeda
from taeda import Tensor

from ..collectives import barrier
from ..groups import get_rank, get_world_size, is_initialized, new_group, resolve
from ..objects import all_gather_object, broadcast_object_list
from ..tensor.dtensor import DTensor
from ..tensor.layout import without_partial
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner, check_planner
from .filesystem import FileSystemReader, FileSystemWriter, StorageReader, StorageWriter
from .flatten import assign, flat_name, leaves
from .metadata import CheckpointException, Chunk, Metadata, TensorStorageMetadata
from .stateful import Stateful

__all__ = ["async_save", "load", "load_state_dict", "save", "save_state_dict"]

_PLAIN = (str, int, float, bool, type(None))


class _Processes:
    """Those that save together: a group, or this process alone."""

    def __init__(self, group: Any, no_dist: bool) -> None:
        self.group, self.alone = group, no_dist or not is_initialized()
        self.rank, self.size = (0, 1) if self.alone else (get_rank(group), get_world_size(group))

    def gather(self, value: Any) -> list:
        found = [value] * self.size
        if not self.alone:
            all_gather_object(found, value, self.group)
        return found

    def from_first(self, value: Any) -> Any:
        box = [value]
        if not self.alone:
            broadcast_object_list(box, group=self.group, group_src=0)
        return box[0]

    def agree(self, problem: str | None) -> None:
        """Raise at all where one has a problem.

        Raises:
            CheckpointException: one has.
        """
        found = {i: p for i, p in enumerate(self.gather(problem)) if p is not None}
        if found:
            raise CheckpointException("; ".join(f"rank {i}: {p}" for i, p in found.items()))


def _plain_state(state: dict[str, Any]) -> dict[str, Any]:
    """Objects with a ``state_dict`` method are saved by it."""
    return {k: v.state_dict() if isinstance(v, Stateful) else v for k, v in state.items()}


def _part(x: Tensor) -> tuple[tuple, tuple, tuple, Tensor]:
    """The sizes of the whole, where this process's part begins, the part's sizes, and the part."""
    x = x.detach()
    if isinstance(x, DTensor):
        x = x._as(without_partial(x.placements))
        return tuple(x.shape), x._layout.offsets(), x._layout.local_shape(), x._local
    return tuple(x.shape), (0,) * x.dim(), tuple(x.shape), x


class _Plan:
    """What this process writes, and the metadata of all."""

    def __init__(self, state: dict[str, Any], processes: _Processes, planner: DefaultSavePlanner) -> None:
        self.lowest = planner.dedup_save_to_lowest_rank
        self.tensors: dict[str, Tensor] = {}
        own, values, paths, parts = {}, {}, {}, {}
        problem = None
        for path, value in leaves(_plain_state(state)):
            name = flat_name(path)
            if name in paths:
                problem = f"two entries of the state dict have the name {name!r}"
            paths[name] = list(path)
            if isinstance(value, Tensor):
                size, offsets, sizes, part = _part(value)
                own[name] = (value.dtype.name, size, offsets, sizes)
                parts[name] = part
            else:
                problem = problem or _refusal(name, value)
                values[name] = value
        processes.agree(problem)
        self.nonce = processes.from_first(uuid.uuid4().hex[:12])
        self.file = f"part-{self.nonce}-{processes.rank}.safetensors"
        everyone = processes.gather((own, values, paths))
        self.metadata = Metadata()
        for _, other_values, other_paths in reversed(
            everyone
        ):  # of a value that several have, that of the first counts
            self.metadata.values.update(other_values)
            self.metadata.paths.update(other_paths)
        for name, rank in self._owners([of for of, _, _ in everyone]):
            if rank == processes.rank:
                self.tensors[name] = parts[name]

    def _owners(self, everyone: list[dict]) -> list[tuple[str, int]]:
        """Which process writes each part, of those that have it: the one with the fewest elements so far, or the
        first."""
        having: dict[tuple, list[int]] = {}
        for rank, own in enumerate(everyone):
            for name, (dtype, size, offsets, sizes) in own.items():
                if 0 not in sizes or 0 in size:
                    having.setdefault((name, dtype, size, offsets, sizes), []).append(rank)
        load, found = [0] * len(everyone), []
        for (name, dtype, size, offsets, sizes), ranks in having.items():
            rank = ranks[0] if self.lowest else min(ranks, key=load.__getitem__)
            load[rank] += taeda.Size(sizes).numel()
            known = self.metadata.state_dict_metadata.setdefault(name, TensorStorageMetadata(dtype, size))
            if (known.dtype, known.size) != (dtype, size):
                raise CheckpointException(f"{name}: processes have tensors of other dtypes or sizes")
            known.chunks.append(Chunk(offsets, sizes, f"part-{self.nonce}-{rank}.safetensors", name))
            found.append((name, rank))
        return found

    def write(self, writer: StorageWriter, processes: _Processes) -> Metadata:
        """Write this process's file; the first makes all of them the checkpoint once they are there."""
        problem = None
        try:
            if processes.rank == 0:
                writer.begin()
        except (OSError, CheckpointException) as error:
            problem = str(error)
        processes.agree(problem)
        try:
            if self.tensors:
                writer.write(self.file, {k: _own_memory(v) for k, v in self.tensors.items()})
        except (OSError, ValueError, RuntimeError) as error:
            problem = f"{type(error).__name__}: {error}"
        processes.agree(problem)
        if processes.rank == 0:
            writer.commit(self.metadata)
        if not processes.alone:
            barrier(processes.group)
        return self.metadata


def _own_memory(t: Tensor) -> Tensor:
    """Tensors that share memory are written each by itself."""
    return t if t.is_contiguous() and t.untyped_storage().nbytes() == t.nbytes else t.contiguous().clone()


def _refusal(name: str, value: Any) -> str | None:
    try:
        json.dumps(value, allow_nan=True)
    except (TypeError, ValueError):
        return (
            f"{name}: expected a tensor, a number, a string, a bool, None, or lists and dicts of such, got "
            f"{type(value).__name__}: checkpoints hold no objects"
        )
    return None


def _writer(checkpoint_id: Any, writer: StorageWriter | None) -> StorageWriter:
    if writer is None:
        if checkpoint_id is None:
            raise RuntimeError("Cannot determine, as neither storage_writer nor checkpoint_id is given")
        return FileSystemWriter(checkpoint_id)
    if checkpoint_id is not None and isinstance(writer, FileSystemWriter):
        return FileSystemWriter(checkpoint_id, overwrite=writer.overwrite)
    return writer


def save(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None, planner: Any = None, process_group: Any = None, no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:  # fmt: skip
    """Write a state dict; every process of the group calls it. Replicated tensors are written once.

    Args:
        state_dict: nested dicts and lists of tensors, DTensors, plain values, and objects with ``state_dict()``.
        checkpoint_id: a folder that all processes see.
        storage_writer: a :class:`FileSystemWriter`, in place of it.
        planner: a :class:`DefaultSavePlanner`.
        process_group: all processes by default.
        no_dist: this process alone.
        use_collectives: accepted.
    Raises:
        CheckpointException: a process could not write, or a value is no plain one. The last checkpoint is as it was.
    """
    chosen = check_planner("checkpoint.save", planner, DefaultSavePlanner)
    processes = _Processes(process_group, no_dist)
    return _Plan(state_dict, processes, chosen).write(_writer(checkpoint_id, storage_writer), processes)


_background: dict[str, Any] = {}


def async_save(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None, planner: Any = None, process_group: Any = None,
    async_checkpointer_type: Any = None, async_stager: Any = None, no_dist: bool = False, use_collectives: bool = True,
) -> Future:  # fmt: skip
    """:func:`save` beside the program: tensors are copied now, and written by a thread.

    Arguments are those of :func:`save`. Every process calls it; saves are written one after the other.

    Returns:
        A Future of the metadata, done when the checkpoint is whole.
    """
    if async_stager is not None or process_group is not None:
        raise NotImplementedError("checkpoint.async_save: async_stager and process_group are not taken")
    chosen = check_planner("checkpoint.async_save", planner, DefaultSavePlanner)
    processes = _Processes(process_group, no_dist)
    plan = _Plan(state_dict, processes, chosen)
    plan.tensors = {k: v.clone() for k, v in plan.tensors.items()}
    if not processes.alone:  # a group of its own, as the thread's messages come between the program's
        if _background.get("world") is not resolve(None):
            _background.update(world=resolve(None), group=new_group())
        processes.group = _background["group"]
    pool = _background.setdefault("pool", ThreadPoolExecutor(1, "taeda-checkpoint"))
    return pool.submit(plan.write, _writer(checkpoint_id, storage_writer), processes)


def load(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None,
    storage_reader: StorageReader | None = None, planner: Any = None, process_group: Any = None, no_dist: bool = False,
) -> None:  # fmt: skip
    """Read a checkpoint into ``state_dict``: into its tensors, whatever processes wrote it, and in place of other
    values.

    Each process reads the parts that it needs. No code is run.

    Args:
        state_dict: with tensors of the sizes that were saved, on any number of processes; objects with
            ``load_state_dict()`` get theirs.
        checkpoint_id: the folder; or
        storage_reader: a :class:`FileSystemReader`.
        planner: a :class:`DefaultLoadPlanner`.
        process_group, no_dist: accepted; reading needs no messages.
    Raises:
        CheckpointException: there is no checkpoint, it is damaged, or lacks an entry; or sizes differ.
    """
    partial = check_planner("checkpoint.load", planner, DefaultLoadPlanner).allow_partial_load
    if storage_reader is None:
        if checkpoint_id is None:
            raise RuntimeError("Cannot determine, as neither storage_reader nor checkpoint_id is given")
        storage_reader = FileSystemReader(checkpoint_id)
    metadata = storage_reader.read_metadata()
    plain = _plain_state(state_dict)
    found = list(leaves(plain))
    missing = [name for name in (flat_name(path) for path, _ in found) if not _has(metadata, name)]
    if missing and not partial:
        raise CheckpointException(f"Missing key in checkpoint state_dict: {', '.join(missing[:10])}")
    with taeda.no_grad():
        for path, value in found:
            name = flat_name(path)
            if name in missing:
                continue
            if isinstance(value, Tensor):
                _read(name, value, metadata, storage_reader)
            elif name in metadata.values:
                assign(plain, path, metadata.values[name])
            else:
                assign(plain, path, _whole(name, metadata, storage_reader))
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(plain[key])
        else:
            state_dict[key] = plain[key]


def _has(metadata: Metadata, name: str) -> bool:
    return name in metadata.state_dict_metadata or name in metadata.values


def _whole(name: str, metadata: Metadata, reader: StorageReader) -> Tensor:
    saved = metadata.state_dict_metadata[name]
    made = taeda.empty(saved.size, dtype=getattr(taeda, saved.dtype))
    _read(name, made, metadata, reader)
    return made


def _read(name: str, target: Tensor, metadata: Metadata, reader: StorageReader) -> None:
    """Fill this process's part of ``target`` from the saved parts that overlap it."""
    saved = metadata.state_dict_metadata.get(name)
    if saved is None:
        raise CheckpointException(f"{name}: a tensor is to be loaded, and the checkpoint has {metadata.values[name]!r}")
    size, offsets, sizes, part = _part(target)
    if size != saved.size:
        raise CheckpointException(
            f"Size mismatch between saved {list(saved.size)} and current: {list(size)} for {name}"
        )
    filled = 0
    for chunk in saved.chunks:
        starts = [max(a, b) for a, b in zip(offsets, chunk.offsets, strict=True)]
        ends = [
            min(a + m, b + n)
            for a, m, b, n in zip(offsets, sizes, chunk.offsets, chunk.sizes, strict=True)
        ]  # fmt: skip
        if any(a >= b for a, b in zip(starts, ends, strict=True)):
            continue
        tensors = reader.read(chunk.file)
        source = tensors.get(chunk.name)
        if source is None or tuple(source.shape) != chunk.sizes or source.dtype.name != saved.dtype:
            raise CheckpointException(f"{name}: {chunk.file} does not hold the part that the metadata says")
        here = tuple(slice(a - o, b - o) for a, b, o in zip(starts, ends, offsets, strict=True))
        there = tuple(slice(a - o, b - o) for a, b, o in zip(starts, ends, chunk.offsets, strict=True))
        part[here].copy_(source[there])
        filled += taeda.Size(b - a for a, b in zip(starts, ends, strict=True)).numel()
    if filled != part.numel():
        raise CheckpointException(f"{name}: the checkpoint's parts do not cover {list(offsets)} + {list(sizes)}")


def save_state_dict(
    state_dict: dict[str, Any], storage_writer: StorageWriter, process_group: Any = None,
    coordinator_rank: int = 0, no_dist: bool = False, planner: Any = None,
) -> Metadata:  # fmt: skip
    """The older name of :func:`save`."""
    return save(
        state_dict, storage_writer=storage_writer, process_group=process_group, no_dist=no_dist, planner=planner
    )


def load_state_dict(
    state_dict: dict[str, Any], storage_reader: StorageReader, process_group: Any = None,
    coordinator_rank: int = 0, no_dist: bool = False, planner: Any = None,
) -> None:  # fmt: skip
    """The older name of :func:`load`."""
    load(state_dict, storage_reader=storage_reader, process_group=process_group, no_dist=no_dist, planner=planner)
