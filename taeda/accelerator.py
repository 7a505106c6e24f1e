"""The accelerator, a device other than the CPU: its namespace, such as ``taeda.cuda``, has the functions."""

from __future__ import annotations

import importlib
from typing import Any, NoReturn

from . import _core
from ._core import devices as _devices

#: Functions here, and the function of the device's module that each calls.
_PASSED_ON = {
    "current_device_index": "current_device", "current_device_idx": "current_device", "get_memory_info": "mem_get_info",
    "set_device_index": "set_device", "set_device_idx": "set_device",
} | {
    name: name
    for name in (
        "current_stream", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
        "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_stream",
    )
}  # fmt: skip


def _namespace() -> Any:
    found = _devices.accelerator()
    return None if found is None else importlib.import_module(f"taeda.{_devices.ACCELERATOR}")


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(f"{name}: Cannot access accelerator device when none is available")


def _passed_on(name: str, theirs: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        module = _namespace()
        if module is None:
            _refuse(name)
        return getattr(module, theirs)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = f"``{theirs}`` of the accelerator's namespace; a RuntimeError where there is none."
    return function


globals().update({name: _passed_on(name, theirs) for name, theirs in _PASSED_ON.items()})
__all__ = [
    "Event", "Stream", "current_accelerator", "device_count", "device_index", "empty_cache", "is_available",
    "synchronize", *sorted(_PASSED_ON),
]  # fmt: skip


def is_available() -> bool:
    """Whether there is a device beside the CPU."""
    return _devices.accelerator() is not None


def device_count() -> int:
    """The number of such devices."""
    return _devices.device_count(_devices.ACCELERATOR) if is_available() else 0


def current_accelerator(check_available: bool = False) -> Any:
    """The current accelerator, without an index; None if there is none."""
    return _core.device(_devices.ACCELERATOR) if is_available() else None


def synchronize(device: Any = None) -> None:
    """Wait for it; nothing where there is none."""
    module = _namespace()
    if module is not None:
        module.synchronize(device)


def empty_cache() -> None:
    """Give its unused memory back; nothing where there is none."""
    module = _namespace()
    if module is not None:
        module.empty_cache()


class device_index:
    """A context manager for the device of an index: None does nothing."""

    def __init__(self, device: int | None) -> None:
        self.device = device
        self._inside: list[Any] = []

    def __enter__(self) -> None:
        if self.device is None:
            return
        module = _namespace()
        if module is None:
            _refuse("set_device_index")
        self._inside.append(module.device(self.device))
        self._inside[-1].__enter__()

    def __exit__(self, *exc: Any) -> None:
        if self.device is not None:
            self._inside.pop().__exit__(*exc)


def _device_of(kind: str, device: Any) -> Any:
    """The device of an event or a stream: the CPU by default."""
    if isinstance(device, int):
        _refuse(kind)
    if device is not None and not isinstance(device, (str, _core.device)):
        raise TypeError(f"{kind}(): argument 'device' (position 1) must be a device, not {type(device).__name__}")
    found = _core.device("cpu" if device is None else device)
    if found.type not in ("cpu", "meta"):
        raise RuntimeError(f"{kind}(): taeda is not built with support for {found.type} devices")
    return _core.device(found.type)


class Event:
    """A point in a queue of work. Work of the CPU is done when a call returns, so there it has always been reached.

    Args:
        device: the CPU.
        enable_timing: accepted.
        blocking: accepted.
        interprocess: accepted.
    Examples:
        >>> event = taeda.Event("cpu")
        >>> event.query()
        True
    """

    event_id = 0

    def __init__(
        self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self.device = _device_of("Event", device)
        self._timed = enable_timing

    def query(self) -> bool:
        """Whether the work before it is done: True."""
        return True

    def synchronize(self) -> None:
        """Wait for the work before it: nothing."""

    def wait(self, stream: Any = None) -> None:
        """Let later work of a stream wait for it: nothing."""

    def record(self, stream: Any = None) -> NoReturn:
        """Refused: the CPU has no queue to place it in."""
        raise RuntimeError(f"{self.device.type} backend doesn't support events")

    def elapsed_time(self, end_event: Event) -> float:
        """Refused: the milliseconds between two events that were recorded."""
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'")
        self.record()

    def __repr__(self) -> str:
        return f"taeda.Event device_type={self.device.type}, device_index=-1, event_flag={self._timed:d}, event_id=0"


class Stream:
    """A queue of work. The CPU's is always empty.

    Args:
        device: the CPU.
        priority: accepted.
    Examples:
        >>> taeda.Stream("cpu").query()
        True
    """

    stream_id, device_index, device_type = 0, -1, 0

    def __init__(self, device: Any = None, *, priority: int = 0) -> None:
        self.device = _device_of("Stream", device)

    def query(self) -> bool:
        """Whether all its work is done: True."""
        return True

    def is_capturing(self) -> bool:
        """Whether its work is recorded: False."""
        return False

    def synchronize(self) -> None:
        """Wait for its work: nothing."""

    def wait_event(self, event: Event) -> None:
        """Let its later work wait for an event: nothing."""

    def wait_stream(self, stream: Stream) -> None:
        """Refused, as :meth:`record_event`."""
        self.record_event()

    def record_event(self, event: Event | None = None) -> Event:
        """Refused: see :meth:`Event.record`."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: Any) -> None:
        pass

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return f"taeda.Stream device_type={self.device.type}, device_index=-1, stream_id=0"


Event.__module__ = Stream.__module__ = "taeda"


def __getattr__(name: str) -> Any:  # for type checkers, which do not see the tables
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
