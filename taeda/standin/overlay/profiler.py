"""``torch.profiler``: ranges can be named; measuring is refused."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from taeda._refuse import refused_class, refused_function

from .autograd.profiler import record_function

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "tensorboard_trace_handler"]

_WHY = "calls are not measured yet; use cProfile, or taeda.utils.benchmark.Timer"


class ProfilerActivity(enum.Enum):
    """What could be measured."""

    CPU = 0
    XPU = 1
    CUDA = 2


class ProfilerAction(enum.Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, **options: Any) -> Callable:
    """From the number of a step to what is done in it."""
    length = wait + warmup + active

    def fn(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0 or (repeat and step // length >= repeat):
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD

    return fn


profile = refused_class("torch.profiler.profile", _WHY)
tensorboard_trace_handler = refused_function("torch.profiler.tensorboard_trace_handler", _WHY)


def kineto_available() -> bool:
    """False."""
    return False


def supported_activities() -> set:
    """What can be measured: nothing yet."""
    return set()
