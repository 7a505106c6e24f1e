"""The shared memory of tensors: large ones have a segment of their own, small ones lie side by side.

A segment costs a file descriptor, of which a process has about a thousand; a model has more parameters than that.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from ..kernels.forks import free_in_children
from . import shared

_BLOCK = 1 << 20  # bytes of a segment for small storages
_SMALL = 1 << 17  # size up to which storages go there
_ALIGNMENT = 64


class _Arena:
    """The segment that small storages are being added to."""

    def __init__(self) -> None:
        self.lock = free_in_children(threading.Lock())
        self.segment: Any = None
        self.used = 0
        self.pid = 0

    def place(self, nbytes: int) -> tuple[Any, int]:
        """A segment with ``nbytes`` free bytes, and where they are."""
        if nbytes > _SMALL:
            return shared.Segment(nbytes), 0
        with self.lock:
            # A forked child starts a segment of its own: the free part of this one belongs to its parent.
            if self.segment is None or self.used + nbytes > _BLOCK or self.pid != os.getpid():
                self.segment, self.used, self.pid = shared.Segment(_BLOCK), 0, os.getpid()
            at = self.used
            self.used += -(-max(nbytes, 1) // _ALIGNMENT) * _ALIGNMENT
            return self.segment, at


_arena = _Arena()


def _is_shared(storage: Any) -> bool:
    if storage.device.type == "meta":
        raise RuntimeError("share_memory_(): expected memory on the CPU, got a storage on device meta")
    if storage.device.type != "cpu":
        raise NotImplementedError(f"share_memory_(): the memory is on {storage.device}; copy it with .cpu() first")
    return shared.is_shared(storage)


def share(tensor: Any) -> None:
    """Move the storage of ``tensor`` to shared memory, unless it is there."""
    storage = tensor.untyped_storage()
    if not _is_shared(storage):
        place = _arena.place(storage.nbytes())
        del storage  # one reference less: see move_tensor
        shared.move_tensor(tensor, *place)


def share_storage(storage: Any) -> None:
    """Move ``storage`` to shared memory, unless it is there."""
    if not _is_shared(storage):
        shared.move_storage(storage, *_arena.place(storage.nbytes()))
