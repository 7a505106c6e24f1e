"""``torch.distributed.elastic.multiprocessing.errors``: a decorator for main functions, whose errors show as they are."""

from typing import Any

__all__ = ["ChildFailedError", "record"]


class ChildFailedError(Exception):
    """A process that a launcher started has failed."""


def record(fn: Any, error_handler: Any = None) -> Any:
    """``fn``: an error in it ends the process with a traceback, as anywhere."""
    return fn
