"""What only PyTorch has: its version, and private modules that packages reach into, as far as that is harmless."""

from __future__ import annotations

from taeda._refuse import refused_class

from . import _ops, torch_version, version
from ._ops import classes, ops
from .dtypes import DTYPES, finfo

__version__ = torch_version.__version__

_WHY = "files are read and written by taeda.load and taeda.save"
PyTorchFileReader = refused_class("torch.PyTorchFileReader", _WHY)
PyTorchFileWriter = refused_class("torch.PyTorchFileWriter", _WHY)


class SymInt:
    """A size that is not known yet: nothing is one."""


class SymFloat:
    """A number that is not known yet: nothing is one."""


class SymBool:
    """A truth that is not known yet: nothing is one."""


__all__ = [
    "PyTorchFileReader",
    "PyTorchFileWriter",
    "SymBool",
    "SymFloat",
    "SymInt",
    "__version__",
    "_ops",
    "classes",
    "finfo",
    "ops",
    "torch_version",
    "version",
]
