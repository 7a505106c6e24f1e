"""Names that only PyTorch has: its version, and private modules that packages reach into, where that is harmless."""

from __future__ import annotations

from typing import Any

from taeda import int64, segment_reduce, tensor
from taeda._asserts import _assert
from taeda._refuse import refused_class
from taeda._scalars import _check, _check_index, _check_is_size, _check_not_implemented, _check_type, _check_value
from taeda.futures import Future

from . import _VF, _ops, torch_version, version
from ._ops import classes, ops
from .dtypes import DTYPES

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


def _assert_async(input: Any, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Require that a tensor of one element is not 0."""
    if not input:
        raise RuntimeError(assert_msg)


def _shape_as_tensor(input: Any) -> Any:
    """The sizes of a tensor as one of int64."""
    return tensor(tuple(input.shape), dtype=int64)


_segment_reduce = segment_reduce

__all__ = [
    "_VF", "Future", "PyTorchFileReader", "PyTorchFileWriter", "SymBool", "SymFloat", "SymInt", "__version__",
    "_assert", "_assert_async", "_check", "_check_index", "_check_is_size", "_check_not_implemented", "_check_type",
    "_check_value", "_ops", "_segment_reduce", "_shape_as_tensor", "classes", "ops", "torch_version", "version",
]  # fmt: skip
