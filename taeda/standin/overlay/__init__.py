"""What only PyTorch has: its version, and private modules that packages reach into, as far as that is harmless."""

from __future__ import annotations

from typing import Any

from taeda._refuse import refused_class

from . import _ops, torch_version, version
from ._ops import classes, ops
from .dtypes import DTYPES
from .futures import Future

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


def _assert(condition: Any, message: str) -> None:
    """``assert`` as a function.

    Raises:
        AssertionError: ``condition`` is false.
    """
    if not condition:
        raise AssertionError(message)


def _assert_async(input: Any, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Require that a tensor of one element is not 0.

    Raises:
        RuntimeError: it is.
    """
    if not input:
        raise RuntimeError(assert_msg)


__all__ = [
    "Future",
    "PyTorchFileReader",
    "PyTorchFileWriter",
    "SymBool",
    "SymFloat",
    "SymInt",
    "__version__",
    "_assert",
    "_assert_async",
    "_ops",
    "classes",
    "ops",
    "torch_version",
    "version",
]
