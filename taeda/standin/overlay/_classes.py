"""``torch._classes``."""

from ._ops import classes

__all__ = ["classes"]
