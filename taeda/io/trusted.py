"""What ``load(weights_only=False)`` reads beyond plain data: NumPy's arrays, the standard library's containers, and modules.

Nothing that a file names is run. A name stands for a function of this module, which checks what it is given, or for a
subclass of ``nn.Module`` that the program has imported already: of that an instance is made without its constructor, and
given its attributes.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import decimal
import fractions
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any

from .checkpoint import find
from .pickling import Constructor, UnpicklingError

_FACTORIES = (list, dict, set, int, float, str, bool, tuple, collections.OrderedDict)


_ORDERS = ("<", ">", "|", "=")
_UNITS = (b"Y", b"M", b"W", b"D", b"h", b"m", b"s", b"ms", b"us", b"ns", b"ps", b"fs", b"as", b"generic")


class _Factory:
    """A class that a defaultdict may call."""

    def __init__(self, cls: type):
        self.cls = cls


def _default_dict(*args: Any) -> collections.defaultdict:
    if len(args) > 1 or not all(args) or (args and not isinstance(args[0], _Factory)):
        raise UnpicklingError("a defaultdict in the file has a factory that is none of Python's own types")
    return collections.defaultdict(*(a.cls for a in args))


def _deque(items: Any = (), most: Any = None) -> collections.deque:
    return collections.deque(items if isinstance(items, (list, tuple)) else (), most)


def _path(*parts: Any) -> pathlib.Path:
    if not all(isinstance(part, str) for part in parts):
        raise UnpicklingError("a path in the file is not made of strings")
    return pathlib.Path(*parts)


def _numbers(name: str, make: Callable) -> Callable:
    """``make`` of ints, strings, bytes and what this module made only."""

    def checked(*args: Any) -> Any:
        if not all(a is None or type(a) in (int, str, bytes, datetime.timedelta, datetime.timezone) for a in args):
            raise UnpicklingError(f"a {name} in the file is not made of numbers or strings")
        return make(*args)

    return checked


# ---- NumPy -----------------------------------------------------------------------------------------------------------
def _dtype(name: Any, align: Any = False, copy: Any = True) -> Any:
    import numpy

    if not isinstance(name, str) or not re.fullmatch(r"[<>=|]?[biufcSUVmM?]\d{0,9}", name):
        raise UnpicklingError(f"a NumPy dtype in the file is {name!r}, expected one of numbers, strings or times")
    return numpy.dtype(name, False, True)


def _scalar(dtype: Any, data: Any = None) -> Any:
    import numpy

    if not isinstance(dtype, numpy.dtype) or not isinstance(data, bytes) or len(data) != dtype.itemsize or not data:
        raise UnpicklingError("a NumPy number in the file has no dtype, or not its bytes")
    return numpy.frombuffer(data, dtype, 1)[0]


def _reconstruct(cls: Any, shape: Any, kind: Any) -> Any:
    import numpy

    if not isinstance(cls, _Factory) or cls.cls is not numpy.ndarray:
        raise UnpicklingError("an array in the file is of a class of its own")
    return numpy.empty((0,), numpy.uint8)


def _set_dtype(dtype: Any, state: Any) -> None:
    """Byte order, and the unit of times; sizes are those that the dtype's name says."""
    if type(state) is not tuple or len(state) < 5 or state[2:5] != (None, None, None) or state[1] not in _ORDERS:
        raise UnpicklingError("a NumPy dtype in the file has fields, which are not supported")
    if dtype.kind in "Mm":
        try:
            unit, count = state[8][1][:2]
        except (IndexError, TypeError):
            unit = count = None
        if unit not in _UNITS or type(count) is not int or not 0 < count < 2**31:
            raise UnpicklingError(f"a NumPy dtype in the file has unit {unit!r}")
        dtype.__setstate__((4, state[1], None, None, None, -1, -1, 0, ({}, (unit, count, 1, 1))))
    elif dtype.kind in "SUV":
        order = state[1] if dtype.kind == "U" else "|"
        dtype.__setstate__((3, order, None, None, None, dtype.itemsize, dtype.alignment, dtype.flags))
    elif state[1] in "<>":
        dtype.__setstate__((3, state[1], None, None, None, -1, -1, 0))


def _set_array(array: Any, state: Any) -> None:
    import numpy

    if type(state) is not tuple or len(state) != 5:
        raise UnpicklingError("an array in the file has no shape, dtype and bytes")
    _, shape, dtype, fortran, data = state
    if not isinstance(dtype, numpy.dtype) or dtype.hasobject or not isinstance(data, bytes) or type(shape) is not tuple:
        raise UnpicklingError("an array in the file has no shape, dtype and bytes")
    size = dtype.itemsize
    for n in shape:
        if type(n) is not int or n < 0:
            raise UnpicklingError(f"an array in the file has shape {shape}")
        size *= n
    if size != len(data) or len(shape) > 32:
        raise UnpicklingError(f"an array in the file of shape {shape} and {dtype} has {len(data)} bytes")
    array.__setstate__((1, shape, dtype, bool(fortran), data))


# ---- names -----------------------------------------------------------------------------------------------------------
def _table() -> dict[tuple[str, str], Any]:
    table: dict[tuple[str, str], Any] = {}

    def calls(module: str, name: str, function: Callable, cls: type | None = None) -> None:
        table[module, name] = Constructor(f"{module}.{name}", function, cls)

    for cls in _FACTORIES:
        for module in ("builtins", "__builtin__") if cls.__module__ == "builtins" else (cls.__module__,):
            if cls not in (set, collections.OrderedDict):
                table[module, cls.__name__] = _Factory(cls)
    for module in ("builtins", "__builtin__"):
        calls(module, "slice", _numbers("slice", slice))
        calls(module, "range", _numbers("range", range))
        calls(module, "xrange", _numbers("range", range))  # as Python 2 has it
    calls("collections", "defaultdict", _default_dict)
    calls("collections", "deque", _deque)
    for name in ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"):
        calls("pathlib", name, _path)
        calls("pathlib._local", name, _path)
    for time in (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, datetime.timezone):
        calls("datetime", time.__name__, _numbers(time.__name__, time))
    calls("decimal", "Decimal", _numbers("Decimal", decimal.Decimal))
    calls("fractions", "Fraction", _numbers("Fraction", fractions.Fraction))
    calls("argparse", "Namespace", argparse.Namespace, argparse.Namespace)
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):
        calls(module, "_reconstruct", _reconstruct)
        calls(module, "scalar", _scalar)
    calls("numpy", "dtype", _dtype)
    return table


_names: dict[tuple[str, str], Any] = {}


def _never(*args: Any) -> Any:
    raise UnpicklingError("the file calls the constructor of a module")


def _module_class(module: str, name: str) -> Any:
    """A subclass of ``nn.Module`` by its name: of the program, or of taeda under PyTorch's name."""
    from .. import nn

    candidates = [getattr(sys.modules.get(module), name, None)]
    if module.startswith("torch.nn."):
        candidates.append(getattr(nn, name, None))
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, nn.Module)), None)


def _function(module: str, name: str) -> Any:
    """A function of taeda that a module has as an attribute: given as it is, never called."""
    if module.split(".")[0] in ("taeda", "torch") and not name.startswith("_"):
        own = sys.modules.get("taeda" + module[5:])
        found = getattr(own, name, None)
        if callable(found) and not isinstance(found, type):
            return found
    return None


def find_trusted(module: str, name: str) -> Any:
    """What a name in a file stands for.

    Raises:
        UnpicklingError: nothing that could be read without running it.
    """
    if (module, name) == ("numpy", "ndarray"):
        import numpy

        return _Factory(numpy.ndarray)
    if not _names:
        _names.update(_table())
    known = _names.get((module, name))
    if known is not None:
        return known
    cls = _module_class(module, name)
    if cls is not None:
        return Constructor(f"{module}.{name}", _never, cls)
    try:
        return find(module, name)
    except UnpicklingError:
        function = _function(module, name)
        if function is None:
            raise
        return function


def build_trusted(target: Any, state: Any) -> bool:
    """Set the state of an object that :func:`find_trusted` led to; gives whether it did."""
    from .. import nn

    numpy = sys.modules.get("numpy")
    if isinstance(target, nn.Module):
        if not isinstance(state, dict) or not all(type(name) is str for name in state):
            raise UnpicklingError(f"the file has no attributes for a {type(target).__name__}")
        target.__setstate__(state)
    elif type(target) is argparse.Namespace and isinstance(state, dict):
        target.__dict__.update(state)
    elif numpy is not None and isinstance(target, numpy.dtype):
        _set_dtype(target, state)
    elif numpy is not None and type(target) is numpy.ndarray:
        _set_array(target, state)
    else:
        return False
    return True
