"""Errors of processes that a launcher started: written to the file that it names, for its report."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]


@dataclass
class ProcessFailure:
    """The failure of a process that a launcher started.

    Attributes:
        message: what it wrote to its error file (see :func:`record`), or how it ended.
        timestamp: when it wrote that, or when the launcher saw its end: seconds since 1970.
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    message: str = ""
    timestamp: int = field(default_factory=lambda: int(time.time()))

    def signal_name(self) -> str:
        """The name of the signal that ended the process, or ``<N/A>``."""
        return signal.Signals(-self.exitcode).name if self.exitcode < 0 else "<N/A>"


class ChildFailedError(Exception):
    """Processes that a launcher started have failed.

    Args:
        name: what they ran.
        failures: how, by rank.
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        self.name, self.failures = name, failures
        lines = [
            f"rank {rank} (local rank {one.local_rank}, pid {one.pid}), exit code {one.exitcode}: {one.message}"
            for rank, one in failures.items()
        ]
        super().__init__("\n".join([f"{name} FAILED", *lines]))

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and how."""
        return min(self.failures.items(), key=lambda item: item[1].timestamp)


class ErrorHandler:
    """Writes an error as JSON to the file that ``TORCHELASTIC_ERROR_FILE`` names."""

    def initialize(self) -> None:
        """Do nothing."""

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
    """Wrap ``fn``, the main function of a program: its exceptions are written for the launcher, and raised."""
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
