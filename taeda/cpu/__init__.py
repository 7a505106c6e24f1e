"""The CPU as a device: its memory, and the queries that every device answers."""

from __future__ import annotations

from typing import Any

from .._core.memory import empty_cache, memory_stats, reset_peak_memory_stats, set_cache_limit, set_memory_limit

__all__ = [
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count", "empty_cache",
    "is_available", "is_initialized", "max_memory_allocated", "max_memory_reserved", "memory_allocated",
    "memory_reserved", "memory_stats", "reset_peak_memory_stats", "set_cache_limit", "set_device", "set_memory_limit",
    "stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Whether there is a CPU: True."""
    return True


def device_count() -> int:
    """The number of CPU devices: 1."""
    return 1


def current_device() -> str:
    """The name of the current CPU device."""
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Wait for work that is under way: on the CPU there is none, since ops return when they are done."""


def memory_allocated() -> int:
    """Bytes that tensors use, each block rounded up to its size class."""
    return memory_stats()["allocated"]


def memory_reserved() -> int:
    """Bytes held from the system: in use, or kept for the next tensor."""
    return memory_stats()["reserved"]


def max_memory_allocated() -> int:
    """The highest :func:`memory_allocated` since the start or :func:`reset_peak_memory_stats`."""
    return memory_stats()["peak_allocated"]


def max_memory_reserved() -> int:
    """The highest :func:`memory_reserved` since the start or :func:`reset_peak_memory_stats`."""
    return memory_stats()["peak_reserved"]


def is_initialized() -> bool:
    """Whether the CPU can be used: True."""
    return True


def set_device(device: Any) -> None:
    """Choose the CPU: it is the only one."""


class Stream:
    """A queue of work on the CPU, which is done when a call returns."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Wait for another queue: nothing."""

    def synchronize(self) -> None:
        """Wait for this queue: nothing."""

    def record_event(self, event: Any = None) -> Any:
        """An event at the end of the queue."""
        return Event() if event is None else event

    def wait_event(self, event: Any) -> None:
        """Wait for an event: nothing."""


class Event:
    """A point in a queue, which has always been reached."""

    def query(self) -> bool:
        """Whether it has been reached: True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Put it at the end of the queue."""

    def synchronize(self) -> None:
        """Wait for it: nothing."""

    def wait(self, stream: Any = None) -> None:
        """Let the queue wait for it: nothing."""


_stream = Stream()


def current_stream(device: Any = None) -> Stream:
    """The queue that work goes to."""
    return _stream


class StreamContext:
    """The context of :func:`stream`: within it, work goes to another queue of the CPU, which is the same one."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        pass


def stream(stream: Any) -> StreamContext:
    """A context manager in which work goes to ``stream``."""
    return StreamContext(stream)


from . import amp  # noqa: E402
