"""Checkpoints in a folder: safetensors files of parts, and the metadata, whose replacement is what makes one whole."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import math
import os
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taeda.futures import Future
from taeda.io.safetensors import load_file, save_file
from taeda.kernels.files import atomic_write

from ... import _core
from ..._core import Size
from ..._typed import Tensor
from .default_planner import block
from .metadata import (
    BytesStorageMetadata,
    CheckpointException,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadItemType, LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItemType
from .storage import StorageReader, StorageWriter, WriteResult

__all__ = ["FileSystemReader", "FileSystemWriter", "StorageReader", "StorageWriter"]

METADATA = "metadata.json"
_FORMAT = "taeda.distributed.checkpoint"


@dataclass(frozen=True)
class _Place:
    """The file that has a chunk, and its name there."""

    file: str
    name: str


# ---- the metadata's file ---------------------------------------------------------------------------------------------


def to_json(metadata: Metadata) -> str:
    """The text of the file."""
    tensors: dict[str, Any] = {}
    values: dict[str, Any] = {}
    other: dict[str, str] = {}
    for name, saved in metadata.state_dict_metadata.items():
        if isinstance(saved, TensorStorageMetadata):
            chunks = []
            for chunk in saved.chunks:
                place = metadata.storage_data[MetadataIndex(name, chunk.offsets)]
                where = {"offsets": list(chunk.offsets), "sizes": list(chunk.sizes)}
                chunks.append({**where, "file": place.file, "name": place.name})
            tensors[name] = {"dtype": saved.properties.dtype.name, "size": list(saved.size), "chunks": chunks}
            continue
        raw = metadata.storage_data[MetadataIndex(name)]
        try:
            values[name] = json.loads(raw)
        except (ValueError, RecursionError):  # a planner's own bytes
            other[name] = base64.b64encode(raw).decode()
    paths = {name: list(path) for name, path in (metadata.planner_data or {}).items()}
    found = {"format": _FORMAT, "version": 1, "tensors": tensors, "values": values, "bytes": other, "paths": paths}
    return json.dumps(found, indent=1)


def from_json(text: str) -> Metadata:
    """Read the metadata that :func:`to_json` wrote. It contains no code, and everything is checked.

    Args:
        text: JSON.

    Returns:
        The metadata.

    Raises:
        CheckpointException: it is something else.
    """
    try:
        found = json.loads(text)
        if found["format"] != _FORMAT or found["version"] != 1:
            raise ValueError(f"format {found['format']!r}, version {found['version']!r}")
        places: dict[MetadataIndex, Any] = {}
        entries: dict[str, Any] = {}
        for name, tensor in found["tensors"].items():
            entries[name] = _tensor(name, tensor, places)
        raw = {name: json.dumps(value).encode() for name, value in found["values"].items()}
        raw |= {name: base64.b64decode(value, validate=True) for name, value in found.get("bytes", {}).items()}
        for name, value in raw.items():
            entries[name], places[MetadataIndex(name)] = BytesStorageMetadata(), value
        return Metadata(entries, {k: tuple(v) for k, v in found["paths"].items()}, places, version="1")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointException(f"the checkpoint's metadata cannot be read: {error!r}") from error


def _sizes(values: Any) -> Size:
    if not isinstance(values, list) or not all(type(n) is int and n >= 0 for n in values):
        raise ValueError(f"expected sizes, got {values!r}")
    return Size(values)


def _tensor(name: str, found: dict, places: dict[MetadataIndex, Any]) -> TensorStorageMetadata:
    size, chunks = _sizes(found["size"]), []
    for c in found["chunks"]:
        chunk, place = ChunkStorageMetadata(_sizes(c["offsets"]), _sizes(c["sizes"])), _Place(c["file"], c["name"])
        if (
            not isinstance(place.file, str)
            or not isinstance(place.name, str)
            or place.file != place.file.split("/")[-1]
        ):
            raise ValueError(f"expected the name of a file in the checkpoint's folder, got {place.file!r}")
        if any(start + n > whole for start, n, whole in zip(chunk.offsets, chunk.sizes, size, strict=True)):
            raise ValueError(f"a part {tuple(chunk.offsets)} + {tuple(chunk.sizes)} of a tensor of sizes {tuple(size)}")
        chunks.append(chunk)
        places[MetadataIndex(name, chunk.offsets)] = place
    if sum(math.prod(c.sizes) for c in chunks) != math.prod(size):
        raise ValueError(f"the parts of a tensor of sizes {tuple(size)} are not all of it")
    return TensorStorageMetadata(TensorProperties(_core.dtype_by_name(found["dtype"])), size, chunks)


# ---- writing ---------------------------------------------------------------------------------------------------------


def _own_memory(t: Tensor) -> Tensor:
    """Tensors that share memory are written each by itself, those of a device from copies on the CPU."""
    t = t.detach().cpu()
    return t if t.is_contiguous() and t.untyped_storage().nbytes() == t.nbytes else t.contiguous().clone()


class FileSystemWriter(StorageWriter):
    """Writes to the folder ``path``, which all processes see.

    An existing checkpoint stays whole until the new one is: files get new names, and the metadata is replaced last. A
    kill at any moment leaves the old or the new one. Values are in the metadata's file.

    Args:
        path: the folder.
        single_file_per_rank: accepted; each process writes one file.
        sync_files: accepted; the file is on the disk before the checkpoint counts.
        thread_count: accepted.
        per_thread_copy_ahead: accepted.
        cache_staged_state_dict: accepted.
        overwrite: whether an existing checkpoint may be replaced.
        **unused: accepted.
    """

    def __init__(
        self, path: str | os.PathLike, single_file_per_rank: bool = True, sync_files: bool = True,
        thread_count: int = 1, per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False,
        overwrite: bool = True, **unused: Any,
    ) -> None:  # fmt: skip
        self.path, self.overwrite = Path(path), overwrite

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """See :meth:`StorageWriter.reset`: the folder, if it is another."""
        if checkpoint_id is not None:
            self.path = Path(checkpoint_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """See :meth:`StorageWriter.set_up_storage_writer`."""

    def storage_meta(self) -> StorageMeta:
        """See :meth:`StorageWriter.storage_meta`."""
        return StorageMeta(self.path)

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """See :meth:`StorageWriter.validate_checkpoint_id`."""
        return isinstance(checkpoint_id, (str, os.PathLike)) and "://" not in str(checkpoint_id)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """See :meth:`StorageWriter.prepare_local_plan`."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Make the folder, and name the files.

        Args:
            plans: a plan of each process.

        Returns:
            The plans, with the names of files.

        Raises:
            CheckpointException: there is a checkpoint, and ``overwrite`` is False.
        """
        if not self.overwrite and (self.path / METADATA).exists():
            raise CheckpointException(f"there is a checkpoint in {self.path} already, and overwrite=False")
        self.path.mkdir(parents=True, exist_ok=True)
        nonce = uuid.uuid4().hex[:12]
        return [replace(plan, storage_data=f"part-{nonce}-{i}.safetensors") for i, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future:
        """See :meth:`StorageWriter.write_data`."""
        tensors: dict[str, Tensor] = {}
        results = []
        for item in plan.items:
            data = planner.resolve_data(item)
            if item.type is WriteItemType.BYTE_IO:
                if not isinstance(data, io.BytesIO):
                    raise TypeError(
                        f"{item.index.fqn}: expected resolve_data to give BytesIO, got {type(data).__name__}"
                    )
                raw = data.getvalue()
                results.append(WriteResult(item.index, len(raw), raw))
                continue
            if not isinstance(data, Tensor):
                raise TypeError(f"{item.index.fqn}: expected resolve_data to give a tensor, got {type(data).__name__}")
            name, count = item.index.fqn, 1
            while name in tensors:  # a planner may cut a tensor further
                name, count = f"{item.index.fqn}#{count}", count + 1
            tensors[name] = _own_memory(data)
            results.append(WriteResult(item.index, data.nbytes, _Place(plan.storage_data, name)))
        if tensors:
            save_file(tensors, self.path / plan.storage_data)
        done: Future = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Replace the metadata; then files that no checkpoint needs are removed."""
        metadata.storage_data = {r.index: r.storage_data for of_one in results for r in of_one}
        metadata.storage_meta, metadata.version = self.storage_meta(), "1"
        _sync(self.path)
        with atomic_write(self.path / METADATA) as out:
            out.write(to_json(metadata).encode())
        _sync(self.path)
        needed = {place.file for place in metadata.storage_data.values() if isinstance(place, _Place)}
        for file in self.path.glob("part-*.safetensors"):
            if file.name not in needed:
                with contextlib.suppress(OSError):
                    file.unlink()


def _sync(path: Path) -> None:
    """Write a folder's list of files to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# ---- reading ---------------------------------------------------------------------------------------------------------


class FileSystemReader(StorageReader):
    """Reads from the folder ``path``. Files are mapped: a process reads the parts that it needs."""

    def __init__(self, path: str | os.PathLike, **unused: Any) -> None:
        self.path = Path(path)
        self._open: dict[str, dict[str, Tensor]] = {}
        self._metadata: Metadata | None = None

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """See :meth:`StorageReader.reset`: the folder, if it is another."""
        if checkpoint_id is not None:
            self.path = Path(checkpoint_id)

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """See :meth:`StorageReader.validate_checkpoint_id`."""
        return FileSystemWriter.validate_checkpoint_id(checkpoint_id)

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The contents of the checkpoint.

        Args:
            *args: accepted.
            **kwargs: accepted.

        Returns:
            The metadata.

        Raises:
            CheckpointException: there is none, or it is damaged.
        """
        try:
            text = (self.path / METADATA).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CheckpointException(f"there is no checkpoint in {self.path}: {error}") from error
        return replace(from_json(text), storage_meta=StorageMeta(self.path))

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """See :meth:`StorageReader.set_up_storage_reader`."""
        self._metadata, self._open = metadata, {}

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """See :meth:`StorageReader.prepare_local_plan`."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """See :meth:`StorageReader.prepare_global_plan`."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future:
        """See :meth:`StorageReader.read_data`.

        Args:
            plan: what to read.
            planner: where it goes.

        Returns:
            A Future that is done.

        Raises:
            CheckpointException: a file is missing or damaged.
        """
        if self._metadata is None:
            raise CheckpointException("FileSystemReader: read_data comes after set_up_storage_reader")
        for item in plan.items:
            place = self._metadata.storage_data[item.storage_index]
            if item.type is LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(place))
                continue
            source = block(self._chunk(item.storage_index, place), item.storage_offsets, item.lengths)
            target = planner.resolve_tensor(item).detach()
            if target.shape != source.shape:
                raise CheckpointException(
                    f"{item.storage_index.fqn}: expected resolve_tensor to give {list(source.shape)}, got "
                    f"{list(target.shape)}"
                )
            target.copy_(source)
            planner.commit_tensor(item, target)
        done: Future = Future()
        done.set_result(None)
        return done

    def _chunk(self, index: MetadataIndex, place: _Place) -> Tensor:
        saved = self._metadata.state_dict_metadata[index.fqn]  # type: ignore[union-attr]
        found = self.read(place.file).get(place.name)
        sizes = next(c.sizes for c in saved.chunks if c.offsets == index.offset)  # type: ignore[union-attr]
        if found is None or found.shape != sizes or found.dtype != saved.properties.dtype:  # type: ignore[union-attr]
            raise CheckpointException(f"{index.fqn}: {place.file} does not hold the part that the metadata says")
        return found

    def read(self, file: str) -> dict[str, Tensor]:
        """The parts in ``file``.

        Args:
            file: its name in the folder.

        Returns:
            Tensors by name.

        Raises:
            CheckpointException: it is missing or damaged.
        """
        if file not in self._open:
            try:
                self._open[file] = load_file(self.path / file)
            except (OSError, RuntimeError, ValueError) as error:
                raise CheckpointException(f"{self.path / file}: {error}") from error
        return self._open[file]
