"""Python's ``multiprocessing``, in which tensors travel by shared memory.

A tensor that is put into a queue or pipe, or passed to a process, moves into shared memory; what arrives is the same
memory, not a copy. The memory has no name: it goes with the last process that has it, however that ends.
"""

import multiprocessing as _python
from multiprocessing import *  # noqa: F403

from . import reductions
from .spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

reductions.register()

_strategy = "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted: both of PyTorch's strategies mean memory without a name here, which needs no cleaning up.

    Args:
        new_strategy: its name.

    Raises:
        AssertionError: it is not one of :func:`get_all_sharing_strategies`.
    """
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {sorted(get_all_sharing_strategies())}"
        )
    _strategy = new_strategy


def get_sharing_strategy() -> str:
    """The strategy set last by :func:`set_sharing_strategy`; ``"file_descriptor"`` at first."""
    return _strategy


def get_all_sharing_strategies() -> set[str]:
    """The names that :func:`set_sharing_strategy` takes."""
    return {"file_descriptor", "file_system"}


__all__ = [
    *_python.__all__, "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn",
    "start_processes",
]  # fmt: skip
