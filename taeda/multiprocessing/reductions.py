"""Pickling of tensors for another process: as a descriptor of the memory that they lie in."""

from __future__ import annotations

import os
import threading
import weakref
from multiprocessing import reduction
from typing import Any

from .._core import Storage, Tensor, shared
from .._core.sharing import share, share_storage
from ..kernels.forks import free_in_children
from ..nn.parameter import Buffer, Parameter

#: Segments that came from other processes, by the identity of their file: one mapping for all tensors in it.
_received: weakref.WeakValueDictionary[tuple[int, int], Any] = weakref.WeakValueDictionary()
_lock = free_in_children(threading.Lock())


def _rebuild_segment(descriptor: Any, size: int) -> Any:
    fd = descriptor.detach()
    status = os.fstat(fd)
    identity = (status.st_dev, status.st_ino)
    with _lock:
        segment = _received.get(identity)
        if segment is None:
            segment = _received[identity] = shared.Segment(size, fd)
        else:
            os.close(fd)
    return segment


def reduce_segment(segment: Any) -> tuple:
    """For pickle: a descriptor that the other process gets. Pickle passes each segment once, however often it
    occurs."""
    return _rebuild_segment, (reduction.DupFd(segment.fd), segment.nbytes)


def _rebuild_storage(segment: Any, start: int, nbytes: int) -> Storage:
    return segment.storage(start, nbytes)


def reduce_storage(storage: Storage) -> tuple:
    """For pickle: moves ``storage`` to shared memory and names the place."""
    share_storage(storage)
    segment, start = shared.storage_place(storage)
    return _rebuild_storage, (segment, start, storage.nbytes())


def reduce_tensor(tensor: Tensor) -> tuple:
    """For pickle: the tensor as a view of its storage in shared memory.

    Args:
        tensor: any tensor on the CPU.

    Returns:
        A function and its arguments, which make the tensor.

    Raises:
        RuntimeError: it is the result of recorded operations.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries. If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    share(tensor)
    return tensor.__reduce_ex__(5)


def register() -> None:
    """Make the pickler of ``multiprocessing`` know tensors."""
    reduction.ForkingPickler.register(shared.Segment, reduce_segment)
    reduction.ForkingPickler.register(Storage, reduce_storage)
    for cls in (Tensor, Parameter, Buffer):
        reduction.ForkingPickler.register(cls, reduce_tensor)


init_reductions = register
