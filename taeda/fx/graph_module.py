"""``GraphModule``; see :mod:`taeda.fx`."""

from . import GraphModule

__all__ = ["GraphModule"]
