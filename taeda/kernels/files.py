"""Files that exist as a whole or not at all: all writers in taeda use :func:`atomic_write`."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

_SUFFIX = ".tmp"


@contextmanager
def atomic_write(path: str | os.PathLike, *, folder: str | os.PathLike | None = None, sync: bool = True) -> Iterator:
    """A binary file to write: ``path`` is replaced by it when the block ends, all at once, and left alone if it fails.

    Until then the content is in a temporary file. If a killed process left one, the next write to the same path removes
    it. Objects other than regular files, such as ``/dev/stdout`` or a pipe, are written to directly.

    Args:
        path: the file. For a symbolic link, its target is replaced.
        folder: where the temporary file is, on the same file system; all that are left there are removed. Default: the
            folder of ``path``, and those for the same name.
        sync: wait until the disk has the file before the old one goes.
    """
    name = os.path.realpath(os.fspath(path))
    if os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name):
        with open(name, "wb") as file:
            yield file
        return
    start = "" if folder is not None else os.path.basename(name) + "."
    where = os.path.dirname(name) if folder is None else os.fspath(folder)
    _remove_left(where, start)
    temporary, opened = _temporary(where, start)
    try:
        with opened as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), _mode(name))
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
            os.replace(temporary, name)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def read_regular(path: str | os.PathLike) -> bytes | None:
    """The content of a file; None if there is none. It does not wait for a pipe or a device."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ValueError(f"{os.fspath(path)!r} is no regular file")
    with open(handle, "rb") as file:
        return file.read()


def _temporary(where: str, start: str) -> tuple[str, BinaryIO]:
    """A new file that is locked until it is closed, which says that its writer lives."""
    import tempfile  # takes longer to import than everything else here

    while True:
        handle, name = tempfile.mkstemp(_SUFFIX, start, where or ".")
        if _lock(handle, wait=True) and os.fstat(handle).st_nlink == 0:  # another process has just removed it
            os.close(handle)
            continue
        return name, os.fdopen(handle, "wb")


def _remove_left(where: str, start: str) -> None:
    """Remove temporary files whose writers are gone."""
    with contextlib.suppress(OSError):
        for name in os.listdir(where or "."):
            if name.startswith(start) and name.endswith(_SUFFIX) and len(name) - len(start) - len(_SUFFIX) == 8:
                _remove_if_left(os.path.join(where, name))


def _remove_if_left(name: str) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(name, os.O_RDWR | getattr(os, "O_NONBLOCK", 0))
        try:
            if _lock(handle, wait=False):
                os.unlink(name)
        finally:
            os.close(handle)


def _lock(handle: int, wait: bool) -> bool:
    """Lock a file for this process alone; whether that worked. Where the system has no locks, nothing is removed."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True


def _mode(path: str) -> int:
    """The permissions that the file has, or that a new one would get."""
    try:
        return os.stat(path).st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def write_with_data(path: str | os.PathLike, data: Callable[[BinaryIO], Any], text: Callable[[str], bytes]) -> None:
    """Write a file and the file ``path.data`` that it names, such that at any moment the one belongs to the other.

    Where there is a pair already, the new data first have a name of their own.

    Args:
        path: the file.
        data: writes the data to the open file that it is given.
        text: gives the content of the file, from the name of the data's file.
    """
    path = os.path.realpath(os.fspath(path))
    folder, final = os.path.dirname(path), os.path.basename(path) + ".data"
    names = (f"{final}.new{i}" for i in itertools.count())
    between = next(name for name in names if not os.path.exists(os.path.join(folder, name)))
    order = [between, final] if os.path.exists(path) else [final]
    for name in order:
        if name is order[0] or not _give_name(os.path.join(folder, between), os.path.join(folder, final)):
            with atomic_write(os.path.join(folder, name)) as file:
                data(file)
        with atomic_write(path) as file:
            file.write(text(name))
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(f"{final}.new") and name[len(final) + 4 :].isdigit():
                os.unlink(os.path.join(folder, name))


def _give_name(path: str, other: str) -> bool:
    """Let ``other`` be the file ``path`` too; False where the file system has no hard links."""
    try:
        os.link(path, f"{path}{_SUFFIX}")
        os.replace(f"{path}{_SUFFIX}", other)
    except OSError:
        return False
    return True
