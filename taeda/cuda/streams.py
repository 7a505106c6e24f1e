"""Streams, queues of a GPU's work, and events, points in them."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from .. import _core
from . import _driver, _native
from ._contract import launch_deferred
from ._driver import POINTER, ask, call, get
from .devices import index_of, need

__all__ = [
    "Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream",
    "get_stream_from_external", "set_stream", "stream",
]  # fmt: skip

_NON_BLOCKING = 1  # a stream that does not wait for the default one


def _is_over(is_finalizing: Any = sys.is_finalizing) -> bool:
    """Whether the driver is not to be called any more: in a forked process, or at the interpreter's end."""
    return is_finalizing() or _native.is_forked()


class Stream:
    """A queue of work on a GPU; work on different streams may run in any order.

    Args:
        device: of the GPU; None for the current one.
        priority: lower numbers are served first; out of range they are cut.
        **kwargs: accepted.
    """

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        need("Stream")
        index = index_of(device)
        self._index, self._own = index, True
        _native.enter_context(index)
        least, greatest = self.priority_range()
        self.priority = min(max(priority, greatest), least)
        self.cuda_stream: int = get(POINTER, "cuStreamCreateWithPriority", _NON_BLOCKING, self.priority)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The priorities that streams of the current GPU can have: the last to be served, and the first."""
        need("Stream")
        least, greatest = ctypes.c_int(), ctypes.c_int()
        call("cuCtxGetStreamPriorityRange", ctypes.byref(least), ctypes.byref(greatest))
        return least.value, greatest.value

    @classmethod
    def _of(cls, index: int, handle: int) -> Stream:
        made = object.__new__(Stream)
        made._index, made._own, made.cuda_stream, made.priority = index, False, handle, 0
        return made

    @property
    def device(self) -> Any:
        """Its GPU."""
        return _core.device("cuda", self._index)

    @property
    def device_index(self) -> int:
        """The index of its GPU."""
        return self._index

    @property
    def stream_id(self) -> int:
        """A number that no other stream of the GPU has."""
        return self.cuda_stream

    device_type = 1

    def query(self) -> bool:
        """Whether all its work has ended."""
        launch_deferred(self._index)
        _native.enter_context(self._index)
        return ask("cuStreamQuery", self.cuda_stream) == 0

    def synchronize(self) -> None:
        """Wait until all its work has ended."""
        launch_deferred(self._index)
        _native.wait_for(self._index, self.cuda_stream)

    def wait_event(self, event: Event) -> None:
        """Let its later work wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let its later work wait for what another stream has now."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Put an event, a new one by default, behind its work of now; gives it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def is_capturing(self) -> bool:
        """Whether its work is captured into a graph."""
        _native.enter_context(self._index)
        status = ctypes.c_int()
        if self.cuda_stream:
            call("cuStreamIsCapturing", self.cuda_stream, ctypes.byref(status))
        return status.value == 1

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_stream)

    def __enter__(self) -> Stream:
        entered = self.__dict__.setdefault("_entered", [])
        entered.append(StreamContext(self))
        entered[-1].__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.__dict__["_entered"].pop().__exit__(*exc)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Stream) and (self._index, self.cuda_stream) == (other._index, other.cuda_stream)

    def __hash__(self) -> int:
        return hash((self._index, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"

    def __del__(self) -> None:
        if self.__dict__.get("_own") and not _is_over():
            # its memory is kept for it alone: wait, so that nothing is used by a stream that is gone
            try:
                _native.enter_context(self._index)
                call("cuStreamSynchronize", self.cuda_stream)
                call("cuStreamDestroy_v2", self.cuda_stream)
            except Exception:  # the interpreter ends
                return


class ExternalStream(Stream):
    """A stream that another library made.

    Args:
        stream_ptr: its handle.
        device: of its GPU; None for the current one.
        **kwargs: accepted.
    """

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
        self._index, self._own, self.cuda_stream, self.priority = index_of(device), False, stream_ptr, 0


class Event:
    """A point in a stream: others can wait for it, and the time between two can be measured.

    Args:
        enable_timing: whether it can be used by :meth:`elapsed_time`.
        blocking: whether a thread that waits for it sleeps.
        interprocess: False; other processes cannot wait for it yet.

    Raises:
        NotImplementedError: ``interprocess``.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        need("Event")
        if interprocess:
            raise NotImplementedError("cuda.Event: events are not shared between processes yet")
        self._flags = int(blocking) | (0 if enable_timing else 2)
        self._timed = enable_timing
        self.cuda_event = 0
        self._index = -1

    @property
    def device(self) -> Any:
        """The GPU on whose stream it was recorded; None before."""
        return None if self._index < 0 else _core.device("cuda", self._index)

    def record(self, stream: Stream | None = None) -> None:
        """Put it behind what a stream, the current one by default, has now."""
        stream = current_stream() if stream is None else stream
        if self._index not in (-1, stream._index):
            raise RuntimeError(f"Event device {self._index} does not match recording stream's device {stream._index}.")
        launch_deferred(stream._index)
        _native.enter_context(stream._index)
        if not self.cuda_event:
            self.cuda_event = get(POINTER, "cuEventCreate", self._flags)
            self._index = stream._index
        call("cuEventRecord", self.cuda_event, stream.cuda_stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a stream, the current one by default, wait for it."""
        stream = current_stream() if stream is None else stream
        if self.cuda_event:
            _native.enter_context(stream._index)
            call("cuStreamWaitEvent", stream.cuda_stream, self.cuda_event, 0)

    def query(self) -> bool:
        """Whether the work before it has ended."""
        return not self.cuda_event or ask("cuEventQuery", self.cuda_event) == 0

    def synchronize(self) -> None:
        """Wait for the work before it."""
        if self.cuda_event:
            call("cuEventSynchronize", self.cuda_event)
            _native.look(self._index)

    def elapsed_time(self, end_event: Event) -> float:
        """The milliseconds from this event to ``end_event``.

        Args:
            end_event: the later event.

        Returns:
            Milliseconds.

        Raises:
            ValueError: one of them was made without ``enable_timing``, or was not recorded.
        """
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.cuda_event and end_event.cuda_event):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return get(ctypes.c_float, "cuEventElapsedTime", self.cuda_event, end_event.cuda_event)

    def ipc_handle(self) -> bytes:
        """Refused: events are not shared between processes yet."""
        raise NotImplementedError("cuda.Event.ipc_handle: events are not shared between processes yet")

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> Event:
        """Refused, as :meth:`ipc_handle`."""
        raise NotImplementedError("cuda.Event.from_ipc_handle: events are not shared between processes yet")

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self.cuda_event:#x}>" if self.cuda_event else "<torch.cuda.Event uninitialized>"

    def __del__(self) -> None:
        if self.__dict__.get("cuda_event") and not _is_over():
            try:
                _driver.call("cuEventDestroy_v2", self.cuda_event)
            except Exception:  # the interpreter ends
                return


def current_stream(device: Any = None) -> Stream:
    """The stream to which this thread's work on a GPU goes."""
    need("current_stream")
    index = index_of(device)
    return _kept.get((index, _native.get_stream(index))) or Stream._of(index, _native.get_stream(index))


_kept: dict[tuple[int, int], Stream] = {}  # streams that are somebody's current one


def default_stream(device: Any = None) -> Stream:
    """The stream to which work on a GPU goes at first."""
    need("default_stream")
    return Stream._of(index_of(device), 0)


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """The stream that another library made.

    Args:
        data_ptr: its handle.
        device: of its GPU; None for the current one.

    Returns:
        The stream.
    """
    need("get_stream_from_external")
    return ExternalStream(data_ptr, device)


def set_stream(stream: Stream | None) -> None:
    """Let this thread's work on a GPU go to a stream; None changes nothing."""
    if stream is None:
        return
    _kept[stream._index, stream.cuda_stream] = stream
    _native.set_stream(stream._index, stream.cuda_stream)


class StreamContext:
    """The context of :func:`stream`: within it, work goes to the stream, and its GPU is the current one."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: list[tuple[int, int]] = []

    def __enter__(self) -> None:
        if self.stream is None:
            return
        need("StreamContext")
        at = self.stream._index
        _kept[at, self.stream.cuda_stream] = self.stream
        self._before.append((_native.set_index(at), _native.set_stream(at, self.stream.cuda_stream)))

    def __exit__(self, *exc: Any) -> None:
        if self.stream is not None:
            index, stream = self._before.pop()
            _native.set_stream(self.stream._index, stream)
            _native.set_index(index)


def stream(stream: Stream | None) -> StreamContext:
    """Within the block, this thread's work goes to ``stream``; None changes nothing."""
    if stream is not None:
        need("stream")
    return StreamContext(stream)
