"""Pipes of files: their names, the open files and their content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import get_file_binaries_from_pathnames, get_file_pathnames_from_root
from .utils import IterableWrapperIterDataPipe

__all__ = ["FileListerIterDataPipe", "FileOpenerIterDataPipe", "StreamReaderIterDataPipe"]


class _Told(IterDataPipe):
    """A pipe whose length is an argument."""

    length: int

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("list_files")
class FileListerIterDataPipe(_Told):
    """A pipe of the paths of files.

    Args:
        root: a folder, a list of folders or a pipe of them.
        masks: patterns of names.
        recursive: also in folders within.
        abspath: give absolute paths.
        non_deterministic: in the order in which the system lists them, rather than by name.
        length: how many there are. Default: ``len`` raises TypeError.
    """

    def __init__(
        self, root: str | Sequence[str] | IterDataPipe = ".", masks: str | list[str] = "", *, recursive: bool = False,
        abspath: bool = False, non_deterministic: bool = False, length: int = -1,
    ):  # fmt: skip
        super().__init__()
        roots = [root] if isinstance(root, str) else root
        self.datapipe = roots if isinstance(roots, IterDataPipe) else IterableWrapperIterDataPipe(roots)
        self.masks = masks
        self.recursive = recursive
        self.abspath = abspath
        self.non_deterministic = non_deterministic
        self.length = length

    def __iter__(self) -> Iterator[str]:
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(
                path, self.masks, self.recursive, self.abspath, self.non_deterministic
            )


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(_Told):
    """A pipe of pairs of a path and its file, opened.

    Args:
        datapipe: where paths come from.
        mode: to open them in: ``"r"``, ``"t"`` or ``"b"``.
        encoding: of text.
        length: how many there are. Default: ``len`` raises TypeError.
    """

    def __init__(self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None, length: int = -1):
        super().__init__()
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe = datapipe
        self.mode = mode
        self.encoding = encoding
        self.length = length

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """A pipe of pairs of a path and a part of its file.

    Args:
        datapipe: where pairs of a path and an open file come from.
        chunk: size of the parts. Default: all.
    """

    def __init__(self, datapipe: IterDataPipe, chunk: int | None = None):
        self.datapipe = datapipe
        self.chunk = chunk

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        for path, stream in self.datapipe:
            while part := stream.read(self.chunk):
                yield path, part
            stream.close()
