"""Saving and loading, and what files may name beyond plain data."""

from __future__ import annotations

import enum
import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._core.settings import within
from .io.archive import ArchiveReader
from .io.checkpoint import load, read_all, save
from .io.objects import find
from .io.options import options
from .io.pickling import UnpicklingError, allow, allowed, forget

#: Types of ``map_location`` and of what names a file, for annotations.
MAP_LOCATION = Any
FILE_LIKE = Any
#: The version of pickle's format that files have.
DEFAULT_PROTOCOL = 2

__all__ = [
    "DEFAULT_PROTOCOL", "add_safe_globals", "clear_safe_globals", "get_crc32_options",
    "get_default_load_endianness", "get_default_mmap_options", "get_safe_globals",
    "get_unsafe_globals_in_checkpoint", "load", "safe_globals", "save", "set_crc32_options",
    "set_default_load_endianness", "set_default_mmap_options", "skip_data",
]  # fmt: skip


class SourceChangeWarning(Warning):
    """The source of a class has changed since it was saved: never given, since files hold no source."""


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage saved on ``location``: it goes to the CPU, as it is."""
    return storage


def location_tag(storage: Any) -> str:
    """The name of a storage's device: "cpu"."""
    return "cpu"


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let files make instances of these classes and call these functions.

    Args:
        safe_globals: classes and functions, or pairs of one and the full name under which files know it.
    """
    allow(safe_globals)


def get_safe_globals() -> list[Any]:
    """The functions and classes added with :func:`add_safe_globals`."""
    return allowed()


def clear_safe_globals() -> None:
    """Take everything that was added with :func:`add_safe_globals` away."""
    forget()


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """As :func:`add_safe_globals`, within the block."""
    before = allowed()
    allow(safe_globals)
    try:
        yield
    finally:
        forget()
        allow(before)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Full names of classes and functions that a file asks for and that are not allowed; nothing is loaded.

    Args:
        f: a path, or a file open for reading in binary, in the zip format.
    Returns:
        Names with their modules.
    Raises:
        ValueError: it is no such file.
    """
    import pickletools

    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            data = file.read()
    else:
        data = read_all(f)
    if not data.startswith(b"PK"):
        raise ValueError("get_unsafe_globals_in_checkpoint: expected a file of save() in the zip format")
    archive = ArchiveReader(data)
    if archive.has("constants.pkl") or not archive.has("data.pkl"):
        raise ValueError("get_unsafe_globals_in_checkpoint: expected a file of save(), got another archive")
    names: dict[str, None] = {}
    strings: list[str] = []  # a name may also be the two strings before it
    for opcode, argument, _ in pickletools.genops(bytes(archive.read("data.pkl"))):
        if opcode.name == "GLOBAL":
            module, _, name = str(argument).partition(" ")
        elif opcode.name == "STACK_GLOBAL" and len(strings) > 1:
            module, name = strings[-2:]
        else:
            if isinstance(argument, str):
                strings.append(argument)
            continue
        try:
            find(module, name)
        except UnpicklingError:
            names[f"{module}.{name}"] = None
    return list(names)


@contextmanager
def skip_data(materialize_fake_tensors: bool = False) -> Iterator[None]:
    """Within the block files are written with zeros for the bytes of tensors, and loaded tensors are zeros.

    Args:
        materialize_fake_tensors: accepted; there are none.
    """
    with within(options, skip_data=True):
        yield


def get_crc32_options() -> bool:
    """Whether files are written with checksums."""
    return options.checksums


def set_crc32_options(compute_crc32: bool) -> None:
    """Whether files are written with checksums. Without them damage goes unnoticed, and zip tools complain."""
    options.checksums = bool(compute_crc32)


class LoadEndianness(enum.Enum):
    """The order of bytes in files that do not say it."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness:
    """The order of bytes that files have which do not say it."""
    return LoadEndianness[options.byteorder.upper()]


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the order of bytes that files have which do not say it.

    Args:
        endianness: the order; None is little-endian.

    Raises:
        TypeError: it is no :class:`LoadEndianness`.
    """
    if not (endianness is None or isinstance(endianness, LoadEndianness)):
        raise TypeError(f"Invalid argument type in function set_default_load_endianness: {endianness!r}")
    native = endianness is LoadEndianness.NATIVE
    options.byteorder = sys.byteorder if native else "big" if endianness is LoadEndianness.BIG else "little"


def get_default_mmap_options() -> int:
    """How ``load(mmap=True)`` maps files: ``mmap.MAP_PRIVATE`` or ``mmap.MAP_SHARED``."""
    return mmap.MAP_SHARED if options.map_shared else mmap.MAP_PRIVATE


class set_default_mmap_options:
    """Set how ``load(mmap=True)`` maps files, at once, or as a context manager until its end.

    Args:
        flags: ``mmap.MAP_PRIVATE``, or ``mmap.MAP_SHARED``: what is written to a loaded tensor goes to the file.
            Its checksums do not follow: such a file is loaded with ``mmap=True``, or saved again.

    Raises:
        ValueError: it is neither.
    """

    def __init__(self, flags: int) -> None:
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self._before = options.map_shared
        options.map_shared = flags == mmap.MAP_SHARED

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        options.map_shared = self._before
