"""The accelerator, a device other than the CPU. There is none."""

from __future__ import annotations

from typing import Any, NoReturn

from ._no_device import answering, refusing
from ._refuse import refused_class

_WHY = "there is no device beside the CPU, whose work is done when a call returns"

Event = refused_class("Event", _WHY)
Stream = refused_class("Stream", _WHY)

_ANSWERS = """
    is_available() = False: Whether there is a device beside the CPU: False.
    device_count() = 0: The number of such devices: 0.
    current_accelerator(check_available=False) = None: That device: None.
    synchronize(device=None) = None: Wait for it: nothing.
    empty_cache() = None: Give its unused memory back: nothing.
"""
_NEEDS_ONE = """
    current_device_idx current_device_index current_stream get_memory_info max_memory_allocated max_memory_reserved
    memory_allocated memory_reserved memory_stats reset_accumulated_memory_stats reset_peak_memory_stats
    set_device_idx set_device_index set_stream
"""


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(f"{name}: Cannot access accelerator device when none is available")


_DOC = "A question to that device: a RuntimeError, since there is none."
_answers = answering(__name__, _ANSWERS) | refusing(__name__, _NEEDS_ONE, _refuse, _DOC)
globals().update(_answers)
__all__ = ["Event", "Stream", "device_index", *sorted(_answers)]


class device_index:
    """A context manager for the device of an index: None does nothing."""

    def __init__(self, device: int | None) -> None:
        self.device = device

    def __enter__(self) -> None:
        if self.device is not None:
            _refuse("set_device_index")

    def __exit__(self, *exc: Any) -> None:
        pass


def __getattr__(name: str) -> Any:  # for type checkers, which do not see what is in the tables
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
