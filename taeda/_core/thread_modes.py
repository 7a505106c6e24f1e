"""The modes of a thread for the length of a block."""

from __future__ import annotations

from .tensor import mode_stack, set_mode_stack


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
