"""What a process that the launcher started tells it."""

from . import errors

__all__ = ["errors"]
