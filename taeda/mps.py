"""Apple's GPUs. There are none: queries say so, and using one raises an error."""

from __future__ import annotations

from typing import Any

from ._no_device import ANSWERS, answering, manual_seed
from ._refuse import refused_class

Event = refused_class("mps.Event", "there is no such device")
Stream = refused_class("mps.Stream", "there is no such device")
manual_seed_all = manual_seed
_answers = answering(__name__, ANSWERS)
globals().update(_answers)
__all__ = [*_answers, "manual_seed", "manual_seed_all"]


def __getattr__(name: str) -> Any:  # for type checkers, which do not see what is in the table
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
