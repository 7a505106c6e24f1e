"""Intel's GPUs. There are none: queries say so, and using one raises an error."""

from typing import Any

from ._no_device import absent

_names = absent(__name__)
globals().update(_names)
__all__ = [name for name in _names if name[0].islower()]


def __getattr__(name: str) -> Any:  # for type checkers, which do not see what is in the table
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
