"""Settings for ops: switches of the whole process, which are attributes that ``taeda._settings`` sets; and the modes of
a thread for the length of a block."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .tensor import mode_stack, set_mode_stack

#: Whether ops that could give another result each time must not (here none could), and whether that is an error.
deterministic = False
warn_only = False

#: Whether, in deterministic mode, memory that PyTorch calls uninitialised is filled with a value that stands out.
fill_uninitialized = True

#: What products of float32 may do on a GPU: "highest", "high" or "medium"; and what counts, "none", "ieee" or "tf32".
matmul_precision = "highest"
fp32_precision = "none"


def filling() -> bool:
    """Whether ``empty`` and similar functions must fill their results."""
    return deterministic and fill_uninitialized


def expect_bool(function: str, name: str, value: Any) -> bool:
    """``value``, the argument ``name`` of ``function``; a TypeError where it is no bool."""
    if not isinstance(value, bool):
        raise TypeError(f"{function}(): argument '{name}' must be bool, not {type(value).__name__}")
    return value


class modes:
    """Within the block ``stack`` are this thread's modes, the innermost last; then those from before again."""

    __slots__ = ("before", "stack")

    def __init__(self, stack: list) -> None:
        self.stack = stack

    def __enter__(self) -> None:
        self.before = mode_stack()
        set_mode_stack(self.stack)

    def __exit__(self, *exc: object) -> None:
        set_mode_stack(self.before)


@contextmanager
def within(owner: Any, **values: Any) -> Iterator[Any]:
    """Within it, attributes of ``owner`` have these values; afterwards those that they had, or None."""
    before = {name: getattr(owner, name, None) for name in values}
    try:
        for name, value in values.items():
            setattr(owner, name, value)
        yield owner
    finally:
        for name, value in before.items():
            setattr(owner, name, value)
