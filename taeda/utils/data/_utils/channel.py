"""Communication between a DataLoader and its workers: small messages by a socket, batches in shared memory.

A batch is pickled with its buffers (storages of tensors, NumPy arrays) out of band. They are copied side by side into a
segment of shared memory, which the receiver maps once and whose bytes become the batch's tensors without a further
copy. The first word of a segment says whether the receiver still uses what lies there: when the last tensor of a batch
is gone, the sender writes its next batch into the same memory. Segments are anonymous files whose descriptors travel
along the socket, so nothing outlives the processes.
"""

from __future__ import annotations

import array
import contextlib
import copyreg
import io
import pickle
import socket
import struct
from multiprocessing import reduction
from typing import Any

from ...._core import Storage, Tensor, shared
from ...._core.exchange import copy_to_storage, share_storage
from ....nn.parameter import Buffer, Parameter

_HEADER = 64  # a segment's, as in _core.shared
_ALIGNMENT = 64
_INLINE = 1 << 14  # a longer pickle goes into the segment as well
_FREE = 4  # idle segments that a sender keeps
_LENGTH = struct.Struct("<q")
_FD = struct.calcsize("i")
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


def _storage_on(buffer: Any) -> Storage:
    """The storage of an unpickled batch: over the memory that the buffer is in."""
    view = memoryview(buffer)
    return share_storage(view, 0, view.nbytes) if view.nbytes else copy_to_storage(b"", 0, 0)


def _reduce_storage(storage: Storage) -> tuple:
    return _storage_on, (pickle.PickleBuffer(storage),)


def _reduce_tensor(tensor: Tensor) -> tuple:
    """A view of part of a storage is sent as a tensor of its own: the rest may be a whole dataset."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "DataLoader: a worker cannot send a tensor that is the result of recorded operations; call detach() on it "
            "in the dataset or collate_fn"
        )
    if tensor.untyped_storage().nbytes() > tensor.numel() * tensor.itemsize:
        made = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        return made.__reduce_ex__(5)
    return tensor.__reduce_ex__(5)


class _BatchPickler(pickle.Pickler):
    dispatch_table = {  # noqa: RUF012
        **copyreg.dispatch_table,
        **getattr(reduction.ForkingPickler, "_extra_reducers", {}),
        Storage: _reduce_storage,
        Tensor: _reduce_tensor,
        Parameter: _reduce_tensor,
        Buffer: _reduce_tensor,
    }


# ---- the socket ------------------------------------------------------------------------------------------------------
class Pipe:
    """Messages of bytes, each with at most one file descriptor, over a Unix socket."""

    def __init__(self, connection: socket.socket):
        self.connection = connection
        self.waiting = bytearray()  # bytes at this end that the system has not yet taken

    def fileno(self) -> int:
        """The descriptor of the socket."""
        return self.connection.fileno()

    def close(self) -> None:
        """Close this end. The other end reads end of file, also where a forked process holds a copy of this
        descriptor."""
        with contextlib.suppress(OSError):  # the other end is gone
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()

    def send(self, body: bytes, fd: int | None = None) -> None:
        """Send a message, waiting until there is room."""
        message = memoryview(_LENGTH.pack(len(body)) + body)
        if fd is not None:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
            message = message[self.connection.sendmsg([message], ancillary) :]
        if message:
            self.connection.sendall(message)

    def post(self, body: bytes) -> None:
        """Send a message without waiting: what finds no room goes with the next call of :meth:`flush`."""
        self.waiting += _LENGTH.pack(len(body)) + body
        self.flush()

    def flush(self) -> None:
        """Send what waits, as far as there is room."""
        with contextlib.suppress(BlockingIOError):
            while self.waiting:
                del self.waiting[: self.connection.send(self.waiting, socket.MSG_DONTWAIT)]

    def receive(self) -> tuple[bytes, int | None]:
        """The next message and its descriptor.

        Raises:
            EOFError: the other end is closed.
        """
        head, ancillary, _, _ = self.connection.recvmsg(_LENGTH.size, socket.CMSG_SPACE(_FD), _CLOEXEC)
        fd = None
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fd = array.array("i", data[:_FD])[0]
        head += self._exactly(_LENGTH.size - len(head))
        return self._exactly(_LENGTH.unpack(head)[0]), fd

    def _exactly(self, n: int) -> bytes:
        if not n:
            return b""
        data = b""
        while len(data) < n:
            more = self.connection.recv(n - len(data), socket.MSG_WAITALL)
            if not more:
                raise EOFError("the other end of the channel is closed")
            data += more
        return data


# ---- the worker's side -----------------------------------------------------------------------------------------------
class Sender:
    """Sends results of a worker."""

    def __init__(self, pipe: Pipe):
        self.pipe = pipe
        self.segments: dict[int, Any] = {}
        self.created = 0

    def _segment(self, nbytes: int) -> tuple[int, Any, bool, list[int]]:
        """A free segment with room: its number, itself, whether it is new, and the numbers of those given up."""
        free = sorted((s.nbytes, number) for number, s in self.segments.items() if not s.lent)
        for size, number in free:
            if size >= nbytes:
                return number, self.segments[number], False, []
        dropped = [number for _, number in free[: len(free) - _FREE + 1]] if len(free) >= _FREE else []
        for number in dropped:
            del self.segments[number]
        self.created += 1
        made = shared.Segment(-(-(nbytes + nbytes // 8) // 4096) * 4096)
        self.segments[self.created] = made
        return self.created, made, True, dropped

    def send(self, index: int, kind: str, value: Any) -> None:
        """Send ``value`` as the result of task ``index``."""
        buffers: list[pickle.PickleBuffer] = []
        stream = io.BytesIO()
        _BatchPickler(stream, 5, buffer_callback=buffers.append).dump(value)
        payload: Any = stream.getbuffer()
        views = [buffer.raw() for buffer in buffers]
        inline = len(payload) <= _INLINE
        if not inline:
            views.append(payload)
            payload = b""
        if not views:
            self.pipe.send(pickle.dumps((index, kind, bytes(payload), None, (), ()), 5))
            return
        places, end = [], _HEADER
        for view in views:
            places.append((end - _HEADER, view.nbytes))
            end += -(-view.nbytes // _ALIGNMENT) * _ALIGNMENT
        number, segment, new, dropped = self._segment(end)
        for (start, _), view in zip(places, views, strict=True):
            segment.write(_HEADER + start, view)
        segment.lend()
        size = segment.nbytes if new else 0
        note = pickle.dumps((index, kind, bytes(payload), (number, size, inline), places, dropped), 5)
        self.pipe.send(note, segment.fd if new else None)
        if new:
            segment.close()


# ---- the loader's side -----------------------------------------------------------------------------------------------
class Receiver:
    """Receives the results of a worker.

    Args:
        pipe: the loader's end.
        kept: batches that may be held in shared memory at a time; beyond that they are copied out of it.
    """

    def __init__(self, pipe: Pipe, kept: int):
        self.pipe = pipe
        self.kept = kept
        self.segments: dict[int, Any] = {}

    def receive(self) -> tuple[int, str, Any]:
        """``(index, kind, value)`` of the next result.

        Raises:
            EOFError, ConnectionError: the worker is gone.
        """
        note, fd = self.pipe.receive()
        index, kind, payload, place, spans, dropped = pickle.loads(note)
        for number in dropped:
            self.segments.pop(number, None)
        if place is None:
            return index, kind, pickle.loads(payload)
        number, size, inline = place
        if fd is not None:
            segment = self.segments[number] = shared.Segment(size, fd)
            segment.close()
        segment = self.segments[number]
        held = sum(s.lent for s in self.segments.values()) > self.kept
        loan = memoryview(shared.Loan(segment))
        views: list[Any] = [loan[start : start + n] for start, n in spans]
        if held:
            views = [bytearray(view) for view in views]
        if not inline:
            payload = views.pop()
        return index, kind, pickle.loads(payload, buffers=views)
