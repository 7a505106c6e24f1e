"""The class of compiled modules."""

from taeda._compiled import OptimizedModule

__all__ = ["OptimizedModule"]
