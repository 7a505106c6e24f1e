"""Errors of processes that a launcher started: written to the file that it names, for its report."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
import traceback
from collections.abc import Callable
from typing import Any

__all__ = ["ChildFailedError", "ErrorHandler", "get_error_handler", "record"]


class ChildFailedError(Exception):
    """A process that a launcher started has failed."""


class ErrorHandler:
    """Writes an error as JSON to the file that ``TORCHELASTIC_ERROR_FILE`` names."""

    def initialize(self) -> None:
        """Nothing is necessary."""

    def record_exception(self, error: BaseException) -> None:
        """Write ``error``; the first that is written stays."""
        path = os.environ.get("TORCHELASTIC_ERROR_FILE")
        if path:
            extra = {
                "py_callstack": "".join(traceback.format_exception(error)), "timestamp": str(int(time.time())),
            }  # fmt: skip
            said = {"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": extra}}
            with contextlib.suppress(OSError), open(path, "x") as file:
                json.dump(said, file)


def get_error_handler() -> ErrorHandler:
    """An :class:`ErrorHandler`."""
    return ErrorHandler()


def record(fn: Callable, error_handler: ErrorHandler | None = None) -> Callable:
    """``fn``, the main function of a program: what it raises is written for the launcher, and raised."""
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            handler.record_exception(error)
            raise

    return wrapper
