"""Data types: the list of them, their properties, and promotion."""

from __future__ import annotations

import builtins
from types import FunctionType
from typing import Any, NamedTuple

import taeda

from .. import _core
from .._typed import Tensor

__all__ = ["__array_namespace_info__", "astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]


def _public(module: dict[str, Any]) -> list[str]:
    """The names of the standard in a module: of its functions that begin with no underscore."""
    own = [n for n, f in module.items() if isinstance(f, FunctionType) and f.__module__ == module["__name__"]]
    return [name for name in own if not name.startswith("_")]


_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")

#: The standard's kinds of dtype, by the names of their members.
KINDS = {
    "bool": ("bool",), "signed integer": _SIGNED, "unsigned integer": _UNSIGNED, "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL, "complex floating": _COMPLEX, "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}  # fmt: skip


def _members(kind: Any) -> tuple[str, ...]:
    if isinstance(kind, _core.dtype):
        return (kind.name,)
    if isinstance(kind, tuple):
        return tuple(name for part in kind for name in _members(part))
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: unknown kind {kind!r}; expected one of {', '.join(KINDS)}")
        return KINDS[kind]
    raise TypeError(f"isdtype: expected a dtype, a kind's name or a tuple of those, got {type(kind).__name__}")


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether ``dtype`` is ``kind``: a dtype, ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
    ``"real floating"``, ``"complex floating"``, ``"numeric"``, or a tuple, which means any of its members."""
    if not isinstance(dtype, _core.dtype):
        raise TypeError(f"isdtype: expected a dtype, got {type(dtype).__name__}")
    return dtype.name in _members(kind)


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """``x`` as ``dtype``: a copy, unless ``copy`` is false and it has that dtype already.

    Raises:
        TypeError: ``x`` is complex and ``dtype`` is not.
    """
    if x.dtype.is_complex and isdtype(dtype, ("integral", "real floating")):
        raise TypeError(f"astype: a complex array does not become {dtype}; take real(x) or abs(x)")
    return x.to(dtype=dtype, device=device, copy=copy)


class _FloatingPointLimits(NamedTuple):
    """Limits of a floating-point dtype (of the parts of a complex one), as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


class _IntegerLimits(NamedTuple):
    """Limits of an integer dtype, as Python numbers."""

    bits: int
    max: int
    min: int
    dtype: Any


def _dtype_of(type: Any, /) -> Any:
    return type.dtype if isinstance(type, Tensor) else type


def finfo(type: Any, /) -> _FloatingPointLimits:
    """Limits of a floating-point or complex dtype, or of an array's."""
    dtype = _dtype_of(type)
    info = taeda.finfo(dtype)
    return _FloatingPointLimits(info.bits, info.eps, info.max, info.min, info.smallest_normal, dtype.to_real())


def iinfo(type: Any, /) -> _IntegerLimits:
    """Limits of an integer dtype, or of an array's."""
    dtype = _dtype_of(type)
    info = taeda.iinfo(dtype)
    return _IntegerLimits(info.bits, info.max, info.min, dtype)


def _level(dtype: Any) -> int:
    """The family within which dtypes promote: bool, integers, floating-point numbers."""
    return 0 if dtype.name == "bool" else 2 if dtype.is_floating_point or dtype.is_complex else 1


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether the promotion rules take ``from_`` (a dtype or an array) to the dtype ``to``."""
    dtype = _dtype_of(from_)
    return _level(dtype) == _level(to) and _core.promote_types(dtype, to) is to


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that arrays (of any number of dimensions), dtypes and Python numbers have in common.

    Raises:
        ValueError: there is no array or dtype among the arguments.
    """
    found = [_dtype_of(x) for x in arrays_and_dtypes if isinstance(x, (Tensor, _core.dtype))]
    if not found:
        raise ValueError("result_type: expected at least one array or dtype")
    common = found[0]
    for dtype in found[1:]:
        common = _core.promote_types(common, dtype)
    for x in arrays_and_dtypes:
        if not isinstance(x, (Tensor, _core.dtype)):
            common = _core.result_type(taeda.empty(1, dtype=common), x)
    return common


# ---- the namespace on itself -----------------------------------------------------------------------------------------


class _Info:
    """The devices, dtypes and abilities of the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Abilities that the standard leaves open."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device of new arrays."""
        return taeda.get_default_device()

    def devices(self) -> builtins.list[Any]:
        """The devices that arrays can be on."""
        return [_core.device("cpu")]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of new arrays, by what they are to hold."""
        _core.require_device(device)
        real = taeda.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": taeda.int64,
            "indexing": taeda.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes that there are, all or those of a kind (see :func:`isdtype`), by name."""
        _core.require_device(device)
        names = KINDS["bool"] + KINDS["numeric"] if kind is None else _members(kind)
        return {name: getattr(taeda, name) for name in names}


def __array_namespace_info__() -> _Info:
    """The devices, dtypes and abilities of the namespace."""
    return _Info()
