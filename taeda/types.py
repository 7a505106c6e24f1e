"""Facts about dtypes, and the typed constructors of PyTorch's early days (``FloatTensor`` and its kin)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from . import _core
from ._core import Tensor
from ._core.callbacks import callbacks
from ._core.exchange import tensor
from ._core.mends import not_tensor
from .ops.table import composite


class finfo:
    """The limits of a floating-point dtype; of a complex one, those of its parts.

    ``bits``, ``eps`` (1 and the next number differ by it), ``max``, ``min``, ``tiny`` and ``smallest_normal`` (the
    smallest positive number that is not denormal) and ``resolution`` are as in NumPy.

    Args:
        type: a dtype. Default: that of :func:`get_default_dtype`.
    Raises:
        TypeError: it is no floating-point dtype.
    Examples:
        >>> taeda.finfo(taeda.float16).max, taeda.finfo(taeda.float16).eps == 2**-10
        (65504.0, True)
    """

    _FORMATS: ClassVar[dict[str, tuple[int, int, float]]] = {
        "float16": (5, 10, 1e-3), "bfloat16": (8, 7, 1e-2), "float32": (8, 23, 1e-6), "float64": (11, 52, 1e-15),
        "float8_e4m3fn": (4, 3, 1.0), "float8_e5m2": (5, 2, 1.0), "float8_e4m3fnuz": (4, 3, 1.0),
        "float8_e5m2fnuz": (5, 2, 1.0), "float8_e8m0fnu": (8, 0, 1.0),
    }  # fmt: skip
    #: Largest and smallest numbers of the formats that are not IEEE 754's.
    _LIMITS: ClassVar[dict[str, tuple[float, float, float]]] = {
        "float8_e4m3fn": (448.0, -448.0, 2.0**-6),
        "float8_e4m3fnuz": (240.0, -240.0, 2.0**-7),
        "float8_e5m2fnuz": (57344.0, -57344.0, 2.0**-15),
        "float8_e8m0fnu": (2.0**127, 2.0**-127, 2.0**-127),
    }

    def __init__(self, type: Any = None) -> None:
        dtype = _core.get_default_dtype() if type is None else _core.PYTHON_TYPES.get(type, type)
        if not isinstance(dtype, _core.dtype):
            raise TypeError(f"finfo(): argument 'type' (position 1) must be a dtype, not {_name(dtype)}")
        if not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"finfo() requires a floating point input type, got {dtype}. Use iinfo to handle integers")
        real = dtype.to_real()
        exponent, mantissa, self.resolution = self._FORMATS[real.name]
        bias = 2 ** (exponent - 1) - 1
        self.dtype = real.name
        self.bits = 8 * real.itemsize
        self.eps = 2.0**-mantissa
        largest = math.ldexp(2.0 - self.eps, bias)
        self.max, self.min, self.tiny = self._LIMITS.get(real.name, (largest, -largest, 2.0 ** (1 - bias)))
        self.smallest_normal = self.tiny

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
    """The limits of an integer dtype: ``bits``, ``min`` and ``max``.

    Args:
        type: a dtype.
    Raises:
        TypeError: it is no integer dtype.
    Examples:
        >>> taeda.iinfo(taeda.int8).min, taeda.iinfo(taeda.int8).max
        (-128, 127)
    """

    def __init__(self, type: Any) -> None:
        if not isinstance(type, _core.dtype):
            raise TypeError(f"iinfo(): argument 'type' (position 1) must be a dtype, not {_name(type)}")
        if type.is_floating_point or type.is_complex or type.name == "bool":
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


def _name(x: Any) -> str:
    return x.__class__.__name__


def is_tensor(obj: Any) -> bool:
    """Whether ``obj`` is a tensor.

    Args:
        obj: anything.
    Returns:
        A bool.
    Examples:
        >>> taeda.is_tensor(taeda.ones(2)), taeda.is_tensor([1, 1])
        (True, False)
    """
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """Whether ``obj`` is the memory of a tensor.

    Args:
        obj: anything.
    Returns:
        A bool.
    Examples:
        >>> taeda.is_storage(taeda.ones(2).untyped_storage())
        True
    """
    from .storage import TypedStorage

    return isinstance(obj, (_core.Storage, TypedStorage))


@composite(method=False)
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating-point one.

    Args:
        input: a tensor of any sizes and any dtype.
    Returns:
        A bool.
    Raises:
        TypeError: ``input`` is no tensor.
    Examples:
        >>> taeda.is_floating_point(taeda.tensor([1.0])), taeda.is_floating_point(taeda.tensor([1]))
        (True, False)
    """
    return _tensor_argument("is_floating_point", input).is_floating_point()


@composite(method=False)
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one.

    Args:
        input: a tensor of any sizes and any dtype.
    Returns:
        A bool.
    Raises:
        TypeError: ``input`` is no tensor.
    Examples:
        >>> taeda.is_complex(taeda.tensor([1j]))
        True
    """
    return _tensor_argument("is_complex", input).is_complex()


@composite(method=False)
def is_conj(input: Tensor) -> bool:
    """Whether ``input`` is a view that shows the conjugates of what its memory holds, as :func:`conj` makes them.

    Args:
        input: a tensor of any sizes and any dtype.
    Returns:
        A bool.
    Raises:
        TypeError: ``input`` is no tensor.
    Examples:
        >>> taeda.is_conj(taeda.tensor([1j]).conj())
        True
    """
    return input.is_conj()


@composite(method=False)
def is_neg(input: Tensor) -> bool:
    """Whether ``input`` is a view that shows the negatives of what its memory holds, as the imaginary part of a
    conjugated view does.

    Args:
        input: a tensor of any sizes and any dtype.
    Returns:
        A bool.
    Raises:
        TypeError: ``input`` is no tensor.
    Examples:
        >>> taeda.is_neg(taeda.tensor([1j]).conj().imag)
        True
    """
    return input.is_neg()


@composite(method=False)
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in :class:`inference_mode`.

    Args:
        input: a tensor of any sizes and any dtype.
    Returns:
        A bool.
    Raises:
        TypeError: ``input`` is no tensor.
    Examples:
        >>> with taeda.inference_mode():
        ...     x = taeda.ones(2)
        >>> taeda.is_inference(x)
        True
    """
    return input.is_inference()


@composite(method=False)
def numel(input: Tensor) -> int:
    """The number of elements: the product of the sizes.

    Args:
        input: a tensor of any sizes and any dtype.
    Returns:
        An int.
    Raises:
        TypeError: ``input`` is no tensor.
    Examples:
        >>> taeda.numel(taeda.zeros(2, 3))
        6
    """
    return _tensor_argument("numel", input).numel()


@composite(method=False)
def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers.

    Args:
        input: a tensor of any sizes and any dtype.
    Returns:
        A bool.
    Raises:
        TypeError: ``input`` is no tensor.
    Examples:
        >>> taeda.is_signed(taeda.tensor([1], dtype=taeda.uint8))
        False
    """
    return _tensor_argument("is_signed", input).is_signed()


@composite(method=False)
def get_device(input: Tensor) -> int:
    """The number of the device that ``input`` is on.

    Args:
        input: a tensor of any sizes and any dtype.
    Returns:
        An int; -1 for the CPU.
    Raises:
        TypeError: ``input`` is no tensor.
    Examples:
        >>> taeda.get_device(taeda.ones(2))
        -1
    """
    return _tensor_argument("get_device", input).get_device()


def _tensor_argument(name: str, x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise not_tensor(f"{name}(): argument 'input' (position 1)", x)
    return x


def typename(obj: Any, /) -> str:
    """The full name of a type.

    Args:
        obj: a type; or anything, for the name of its type.
    Returns:
        A string; of a tensor that of its old type, ``"torch.FloatTensor"``.
    Examples:
        >>> taeda.typename(taeda.ones(2))
        'torch.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    module = getattr(obj, "__module__", "") or ""
    if module == "builtins":
        module = ""
    if hasattr(obj, "__qualname__"):
        name = obj.__qualname__
    else:
        kind = type(obj)
        name = kind.__qualname__ if hasattr(kind, "__qualname__") else kind.__name__
    return f"{module}.{name}" if module else name


# ---- typed constructors ----------------------------------------------------------------------------------------------


class _TypedTensor(type):
    """Class of ``FloatTensor`` and its kin: calling one makes a tensor, ``isinstance`` asks for the dtype."""

    dtype: Any
    layout = _core.strided
    is_cuda = False
    is_sparse = False

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        return legacy_tensor(*args, of=cls.dtype, **kwargs)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor) and x.dtype is cls.dtype


def legacy_tensor(*args: Any, of: Any = None, device: Any = None, **kwargs: Any) -> Tensor:
    """``Tensor(2, 3)`` gives uninitialised memory, ``Tensor([2, 3])`` its elements, in dtype ``of`` or the default one.

    Also ``Tensor(size=...)``, ``Tensor(data=...)``, a tensor (which is given back as a view) and a storage.
    """
    if device is not None and _core.device(device).type == "meta":
        raise RuntimeError("legacy constructor expects device type: cpu but device type: meta was passed")
    _core.require_device(device)
    dtype = of
    unknown = set(kwargs) - {"size", "data", "other", "storage"}
    if unknown or (args and kwargs) or len(kwargs) > 1:
        raise TypeError(
            f"new() received an invalid combination of arguments: {len(args)} positional ones and "
            f"{', '.join(kwargs) or 'no keywords'}; expected sizes, or one of data, size, other, storage"
        )
    any_dtype = dtype is None  # `Tensor(t)` takes a tensor of any dtype, as it is
    if any_dtype:
        dtype = _core.get_default_dtype()
    if not args and not kwargs:
        return _core.empty((0,), dtype)
    if "size" in kwargs:
        return _uninitialised(kwargs["size"], dtype)
    data = args[0] if args else next(iter(kwargs.values()))
    if isinstance(data, Tensor) and "data" in kwargs:
        raise TypeError("new(): data must be a sequence (got Tensor)")
    if isinstance(data, Tensor) and len(args) > 1:
        raise TypeError("new() received an invalid combination of arguments: expected sizes, or one tensor")
    sized = isinstance(data, (Tensor, bool)) or hasattr(data, "__len__")
    if len(args) > 1 or (not sized and hasattr(data, "__index__")):
        return _uninitialised(args, dtype)
    if isinstance(data, _core.Size):
        return _uninitialised(data, dtype)
    if isinstance(data, Tensor):
        if data.dtype is not dtype and not any_dtype:
            raise TypeError(f"expected a tensor of {dtype} (got {data.dtype}); convert it with .to({dtype})")
        return data.view_as(data)
    untyped = getattr(data, "_untyped_storage", data)
    if isinstance(untyped, _core.Storage):
        if untyped is not data and data.dtype is not dtype:
            raise RuntimeError(f"Expected a Storage of type {dtype} or an UntypedStorage, but got {data.dtype}")
        return _core.empty((0,), dtype).set_(untyped)
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if not hasattr(data, "__len__") and not hasattr(data, "__array__"):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return tensor(data, dtype=dtype)


def _uninitialised(size: Any, dtype: Any) -> Tensor:
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    return _core.empty(size, dtype)


def new(self: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Deprecated: what the constructor of this tensor's type (``FloatTensor``, ...) gives for the same arguments. Use
    ``new_zeros`` and its kin.

    Args:
        self: a tensor of the class.
        args: sizes or data.
        kwargs: ``device``.
    Returns:
        A tensor.
    Examples:
        >>> taeda.tensor([1, 2]).new([3, 4])
        tensor([3, 4])
    """
    return legacy_tensor(*args, of=self.dtype, **kwargs)


_new_object = Tensor.__new__


def _new(cls: Any, *args: Any, **kwargs: Any) -> Tensor:
    """``Tensor.__new__`` as programs and subclasses call it: an object with memory, whatever ``__init__`` does."""
    made = _new_object(cls)
    _core.tensor.become(made, legacy_tensor(*args, **kwargs))
    return made


_core.install("__new__", staticmethod(_new))
_core.install("new", new)
for _kind in ("ipu", "maia", "mkldnn", "mtia", "sparse_csr", "vulkan", "xla", "xpu"):
    _is_doc = f"""Always False: there are no tensors of this kind, or they have a class of their own.

    Examples:
        >>> taeda.ones(2).is_{_kind}
        False
    """
    _core.install(f"is_{_kind}", property(lambda self: False, doc=_is_doc))


def _new_typed(cls: Any, *args: Any, **kwargs: Any) -> Tensor:
    """``FloatTensor.__new__``: what calling the class gives."""
    if not isinstance(cls, _TypedTensor):
        raise TypeError(f"__new__: {getattr(cls, '__name__', cls)} is not one of FloatTensor and its kin")
    return cls(*args, **kwargs)


def _typed(name: str, dtype: Any) -> Any:
    about = f"Tensors of dtype {dtype.name}."
    return _TypedTensor(name, (), {"dtype": dtype, "__doc__": about, "__module__": "taeda", "__new__": _new_typed})


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

callbacks.legacy_tensor = legacy_tensor


#: Layouts that tensors are asked about (``x.layout == sparse_coo``).
sparse_coo = _core.sparse_coo
jagged = _core.layout("jagged")
