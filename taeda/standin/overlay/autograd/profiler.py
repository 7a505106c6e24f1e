"""``torch.autograd.profiler``: ranges can be named; measuring is refused."""

from __future__ import annotations

import functools
from typing import Any

from taeda._refuse import refused_class

__all__ = ["emit_nvtx", "profile", "record_function"]

_WHY = "calls are not measured yet; use cProfile, or taeda.utils.benchmark.Timer"

EventList = FunctionEvent = refused_class("torch.autograd.profiler.EventList", _WHY)
profile = refused_class("torch.autograd.profiler.profile", _WHY)
emit_nvtx = refused_class("torch.autograd.profiler.emit_nvtx", "there is no GPU")
emit_itt = refused_class("torch.autograd.profiler.emit_itt", "there is no profiler of Intel's to tell")


class record_function:
    """Context manager and decorator that names a range: nobody reads it."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *exc: Any) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapped
