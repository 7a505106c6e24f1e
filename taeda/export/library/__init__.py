"""A model as one shared library: machine code and weights that run without Python and without this package."""

from .build import build

__all__ = ["build"]
