"""Checkpoints in a folder: safetensors files of parts, and the metadata, whose replacement is what makes one whole."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from taeda import Tensor
from taeda.io.archive import atomic_write
from taeda.io.safetensors import load_file, save_file

from .metadata import CheckpointException, Metadata

__all__ = ["FileSystemReader", "FileSystemWriter", "StorageReader", "StorageWriter"]

METADATA = "metadata.json"


class StorageWriter:
    """Where a checkpoint is written. :class:`FileSystemWriter` is the one that there is."""

    path: Path

    def begin(self) -> None:
        """Make the place, at one process."""
        raise NotImplementedError

    def write(self, file: str, tensors: dict[str, Tensor]) -> None:
        """Write one process's parts, so that they outlive a crash."""
        raise NotImplementedError

    def commit(self, metadata: Metadata) -> None:
        """Make what was written the checkpoint, at once."""
        raise NotImplementedError


class StorageReader:
    """Where a checkpoint is read. :class:`FileSystemReader` is the one that there is."""

    def read_metadata(self) -> Metadata:
        """What the checkpoint holds."""
        raise NotImplementedError

    def read(self, file: str) -> dict[str, Tensor]:
        """The parts in a file."""
        raise NotImplementedError


class FileSystemWriter(StorageWriter):
    """Writes to the folder ``path``, which all processes see.

    A checkpoint that is there already stays whole until the new one is: files get new names, and the metadata is
    replaced last. A kill at any moment leaves the old or the new one.

    Args:
        path: the folder.
        single_file_per_rank, sync_files, thread_count, per_thread_copy_ahead, cache_staged_state_dict: accepted; each
            process writes one file, which is on the disk before the checkpoint counts.
        overwrite: whether a checkpoint that is there may be replaced.
    """

    def __init__(
        self, path: str | os.PathLike, single_file_per_rank: bool = True, sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False, overwrite: bool = True,
        **unused: Any,
    ) -> None:  # fmt: skip
        self.path, self.overwrite = Path(path), overwrite

    def begin(self) -> None:
        """Make the folder.

        Raises:
            CheckpointException: there is a checkpoint, and ``overwrite`` is False.
        """
        if not self.overwrite and (self.path / METADATA).exists():
            raise CheckpointException(f"there is a checkpoint in {self.path} already, and overwrite=False")
        self.path.mkdir(parents=True, exist_ok=True)

    def write(self, file: str, tensors: dict[str, Tensor]) -> None:
        """Write ``tensors`` to ``file``."""
        save_file(tensors, self.path / file)

    def commit(self, metadata: Metadata) -> None:
        """Replace the metadata; then files that no checkpoint needs are removed."""
        _sync(self.path)
        with atomic_write(self.path / METADATA) as out:
            out.write(metadata.to_json().encode())
        _sync(self.path)
        needed = {c.file for t in metadata.state_dict_metadata.values() for c in t.chunks}
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


class FileSystemReader(StorageReader):
    """Reads from the folder ``path``. Files are mapped: a process reads the parts that it needs."""

    def __init__(self, path: str | os.PathLike, **unused: Any) -> None:
        self.path = Path(path)
        self._open: dict[str, dict[str, Tensor]] = {}

    def read_metadata(self) -> Metadata:
        """What the checkpoint holds.

        Raises:
            CheckpointException: there is none, or it is damaged.
        """
        try:
            text = (self.path / METADATA).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CheckpointException(f"there is no checkpoint in {self.path}: {error}") from error
        return Metadata.from_json(text)

    def read(self, file: str) -> dict[str, Tensor]:
        """The parts in ``file``.

        Raises:
            CheckpointException: it is missing or damaged.
        """
        if file not in self._open:
            try:
                self._open[file] = load_file(self.path / file)
            except (OSError, RuntimeError, ValueError) as error:
                raise CheckpointException(f"{self.path / file}: {error}") from error
        return self._open[file]
