"""Facts about dtypes, and the typed constructors of PyTorch's early days (``FloatTensor`` and its kin)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from . import _core
from ._core import HELPERS, Tensor


class finfo:
    """Limits of a floating-point dtype (for a complex one, of its parts).

    Attributes:
        bits, eps, max, min, tiny, smallest_normal, resolution: as in NumPy.
    """

    _FORMATS: ClassVar[dict[str, tuple[int, int, float]]] = {
        "float16": (5, 10, 1e-3),
        "bfloat16": (8, 7, 1e-2),
        "float32": (8, 23, 1e-6),
        "float64": (11, 52, 1e-15),
    }

    def __init__(self, type: Any = None) -> None:
        dtype = _core.get_default_dtype() if type is None else type
        if not isinstance(dtype, _core.dtype) or not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"finfo() requires a floating point input type, got {dtype}. Use iinfo to handle integers")
        real = dtype.to_real()
        exponent, mantissa, self.resolution = self._FORMATS[real.name]
        bias = 2 ** (exponent - 1) - 1
        self.dtype = real.name
        self.bits = 1 + exponent + mantissa
        self.eps = 2.0**-mantissa
        self.max = math.ldexp(2.0 - self.eps, bias)
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - bias)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:
    """Limits of an integer dtype: ``bits``, ``min``, ``max``."""

    def __init__(self, type: Any) -> None:
        if not isinstance(type, _core.dtype) or type.is_floating_point or type.is_complex or type.name == "bool":
            raise TypeError(f"iinfo() requires an integer input type, got {type}. Use finfo to handle floating point")
        self.dtype = type.name
        self.bits = 8 * type.itemsize
        self.min = -(1 << (self.bits - 1)) if type.is_signed else 0
        self.max = (1 << (self.bits - 1)) - 1 if type.is_signed else (1 << self.bits) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


def is_tensor(obj: Any) -> bool:
    """Whether ``obj`` is a Tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """Whether ``obj`` is the memory of a tensor."""
    return isinstance(obj, _core.Storage)


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating-point one."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one."""
    return input.is_complex()


def is_conj(input: Tensor) -> bool:
    """False: conjugation is never lazy here."""
    return input.is_conj()


def is_neg(input: Tensor) -> bool:
    """False: negation is never lazy here."""
    return input.is_neg()


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


class _TypedTensor(type):
    """Class of ``FloatTensor`` and its kin: calling one makes a tensor, ``isinstance`` asks for the dtype."""

    dtype: Any

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        return legacy_tensor(*args, dtype=cls.dtype, device=device)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor) and x.dtype is cls.dtype


def legacy_tensor(*args: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """``Tensor(2, 3)`` gives uninitialised memory, ``Tensor([2, 3])`` its elements, in the default or the named dtype."""
    dtype = _core.get_default_dtype() if dtype is None else dtype
    _core.require_device(device)
    if not args:
        return _core.empty((0,), dtype)
    if len(args) == 1 and not isinstance(args[0], int):
        data = args[0]
        if isinstance(data, _core.Size):
            return _core.empty(data, dtype)
        if isinstance(data, Tensor):
            if data.dtype is not dtype:
                raise TypeError(f"expected {dtype} (got {data.dtype}); convert it with .to({dtype})")
            return data.detach()
        if isinstance(data, _core.Storage):
            return _core.from_storage(data, dtype, (len(data) // dtype.itemsize,), (1,))
        return HELPERS["tensor"](data, dtype=dtype)
    return _core.empty(args, dtype)


def _typed(name: str, dtype: Any) -> Any:
    return _TypedTensor(name, (), {"dtype": dtype, "__doc__": f"Tensors of dtype {dtype.name}.", "__module__": "taeda"})


FloatTensor = _typed("FloatTensor", _core.float32)
DoubleTensor = _typed("DoubleTensor", _core.float64)
HalfTensor = _typed("HalfTensor", _core.float16)
BFloat16Tensor = _typed("BFloat16Tensor", _core.bfloat16)
ByteTensor = _typed("ByteTensor", _core.uint8)
CharTensor = _typed("CharTensor", _core.int8)
ShortTensor = _typed("ShortTensor", _core.int16)
IntTensor = _typed("IntTensor", _core.int32)
LongTensor = _typed("LongTensor", _core.int64)
BoolTensor = _typed("BoolTensor", _core.bool_)

HELPERS["legacy_tensor"] = legacy_tensor
