"""Storages: the memory that tensors view, as bytes (``UntypedStorage``) and as elements of a dtype
(``TypedStorage``)."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Iterator
from typing import Any

import taeda

from . import _core
from ._core import Storage, Tensor
from ._core.exchange import tensor
from ._core.tensor import refuse_reached

UntypedStorage = Storage

_NAMES = {
    "BFloat16Storage": _core.bfloat16, "BoolStorage": _core.bool_, "ByteStorage": _core.uint8,
    "CharStorage": _core.int8, "ComplexDoubleStorage": _core.complex128, "ComplexFloatStorage": _core.complex64,
    "DoubleStorage": _core.float64, "FloatStorage": _core.float32, "HalfStorage": _core.float16,
    "IntStorage": _core.int32, "LongStorage": _core.int64, "ShortStorage": _core.int16,
}  # fmt: skip


class TypedStorage:
    """A storage seen as elements of a dtype: PyTorch's older interface. :class:`UntypedStorage` has the bytes.

    Args:
        args: nothing, a number of elements, or a sequence of them.
        wrap_storage: an untyped storage to look at instead.
        dtype: of the elements. Default: that of :func:`get_default_dtype`.
        device: the CPU.
        _internal: accepted.
    Raises:
        TypeError: there is more than one positional argument, or ``wrap_storage`` is no storage.
        RuntimeError: both elements and ``wrap_storage`` are given.
    Examples:
        >>> storage = taeda.TypedStorage([1.0, 2.0])
        >>> storage[1]
        2.0
    """

    dtype: Any

    def __init__(
        self, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None, _internal: bool = False
    ):
        _core.require_device(device)
        self.dtype = dtype or getattr(type(self), "dtype", None) or _core.get_default_dtype()
        if wrap_storage is not None:
            if args:
                raise RuntimeError("TypedStorage: no positional arguments go with 'wrap_storage'")
            if not isinstance(wrap_storage, Storage):
                raise TypeError(f"TypedStorage: wrap_storage must be UntypedStorage, got {type(wrap_storage).__name__}")
            self._untyped_storage = wrap_storage
            return
        if len(args) > 1:
            raise TypeError(f"TypedStorage: too many positional arguments, expected at most one, got {len(args)}")
        given = args[0] if args else 0
        if isinstance(given, int):
            self._untyped_storage = Storage(given * self.dtype.itemsize)
        else:
            self._untyped_storage = tensor(list(given), dtype=self.dtype).untyped_storage()

    def _elements(self) -> Tensor:
        if self.device.type == "meta":
            raise NotImplementedError(
                "Not available for 'meta' device type: a storage there has a size and no elements"
            )
        refuse_reached(self._untyped_storage, "an element of a storage")
        return _core.from_storage(self._untyped_storage, self.dtype, (self.size(),), (1,))

    # ---- size and place ----------------------------------------------------------------------------------------------

    def size(self) -> int:
        """The number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = _size = size

    def nbytes(self) -> int:
        """Size in bytes."""
        return self._untyped_storage.nbytes()

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    def untyped(self) -> Storage:
        """The storage as bytes."""
        return self._untyped_storage

    @property
    def device(self) -> Any:
        """The device that holds it."""
        return self._untyped_storage.device

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    is_hpu = is_sparse = False

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on an NVIDIA GPU."""
        return self._untyped_storage.is_cuda

    def is_shared(self) -> bool:
        """Whether other processes see this memory."""
        return self._untyped_storage.is_shared()

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is locked for transfers: no."""
        return False

    def get_device(self) -> int:
        """-1: the CPU."""
        return -1

    # ---- contents ----------------------------------------------------------------------------------------------------

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__: use .untyped()")
        if not isinstance(index, int):
            raise TypeError(f"can't index a {type(self)} with {type(index)}")
        if not -self.size() <= index < self.size():
            raise IndexError(f"index {index} out of range for storage of size {self.size()}")
        return self._elements()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        self._elements()[index] = value

    def __iter__(self) -> Iterator:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and (self.dtype, self.data_ptr(), self.nbytes()) == (
            other.dtype,
            other.data_ptr(),
            other.nbytes(),
        )

    __hash__ = object.__hash__

    def tolist(self) -> list:
        """The elements as numbers."""
        return self._elements().tolist()

    def fill_(self, value: Any) -> TypedStorage:
        """Write ``value`` into every element."""
        self._elements().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Copy the elements of ``source``, a storage of as many, converting them."""
        if len(source) != self.size():
            raise RuntimeError(f"size mismatch: expected a storage of {self.size()} elements, got {len(source)}")
        other = (
            source._elements() if isinstance(source, TypedStorage) else TypedStorage(wrap_storage=source)._elements()
        )
        self._elements().copy_(other)
        return self

    def resize_(self, size: int) -> None:
        """Grow or shrink to ``size`` elements, keeping the contents; tensors on the storage move along."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def clone(self) -> TypedStorage:
        """A copy."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    __copy__ = clone

    def __deepcopy__(self, memo: dict) -> TypedStorage:
        return TypedStorage(wrap_storage=copy.deepcopy(self._untyped_storage, memo), dtype=self.dtype)

    def __reduce__(self) -> tuple:
        return _restored, (self._untyped_storage, self.dtype)

    @classmethod
    def _class_dtype(cls) -> Any:
        return getattr(cls, "dtype", None) or _core.get_default_dtype()

    @classmethod
    def from_buffer(cls, *args: Any, dtype: Any = None, **kwargs: Any) -> TypedStorage:
        """A storage with a copy of elements in a buffer: see :meth:`UntypedStorage.from_buffer`."""
        dtype = dtype or cls._class_dtype()
        return TypedStorage(wrap_storage=Storage.from_buffer(*args, dtype=dtype, **kwargs), dtype=dtype)

    _from_buffer = from_buffer

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, size: int = 0) -> TypedStorage:
        """A storage of ``size`` elements over a file: see :meth:`UntypedStorage.from_file`."""
        dtype = cls._class_dtype()
        return TypedStorage(wrap_storage=Storage.from_file(filename, shared, size * dtype.itemsize), dtype=dtype)

    filename = None

    def resizable(self) -> bool:
        """Whether the memory is taeda's own, so that it can grow."""
        return self._untyped_storage.resizable()

    def share_memory_(self) -> TypedStorage:
        """Move the memory to where other processes can see it; gives the storage."""
        self._untyped_storage.share_memory_()
        return self

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """A copy in memory that is locked for transfers to a GPU."""
        _core.require_device("cuda")
        return self._moved(self._elements().pin_memory().untyped_storage())

    def _moved(self, untyped: Storage) -> TypedStorage:
        return self if untyped is self._untyped_storage else TypedStorage(wrap_storage=untyped, dtype=self.dtype)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """The storage on an NVIDIA GPU: see :meth:`to`."""
        return self._moved(self._untyped_storage.cuda(device))

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """The storage itself if it is on that device, or else a copy there."""
        return self._moved(self._untyped_storage.to(device=device))

    def cpu(self) -> TypedStorage:
        """The storage itself; of one on a device, a copy on the CPU."""
        return self._moved(self._untyped_storage.cpu())

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the type; with ``dtype`` a storage of converted elements."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        dtype = dtype if isinstance(dtype, _core.dtype) else _NAMES[str(dtype).rsplit(".", 1)[-1].rstrip("'>")]
        return self._to(dtype)

    def pickle_storage_type(self) -> str:
        """The name of the class of storages of this dtype."""
        for name, dtype in _NAMES.items():
            if dtype is self.dtype:
                return name
        raise KeyError(f"there is no class of storages of {self.dtype}")

    def _to(self, dtype: Any) -> TypedStorage:
        return TypedStorage(wrap_storage=self._elements().to(dtype).untyped_storage(), dtype=dtype)

    def __repr__(self) -> str:
        elements = "\n ".join(str(x) for x in self.tolist())
        name = f"torch.storage.TypedStorage(dtype=torch.{self.dtype.name}, device=cpu) of size {self.size()}"
        return f" {elements}\n[{name}]" if len(self) else f"[{name}]"


def _restored(storage: Storage, dtype: Any) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=dtype)


def _conversion(name: str, dtype: Any) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return self._to(dtype)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"A copy with elements of dtype {dtype.name}."
    return convert


for _name, _dtype in (
    ("bfloat16", _core.bfloat16), ("bool", _core.bool_), ("byte", _core.uint8), ("char", _core.int8),
    ("complex_double", _core.complex128), ("complex_float", _core.complex64), ("double", _core.float64),
    ("float", _core.float32), ("half", _core.float16), ("int", _core.int32), ("long", _core.int64),
    ("short", _core.int16),
    *((n, _core.dtype_by_name(n)) for n in "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz".split()),
):  # fmt: skip
    setattr(TypedStorage, _name, _conversion(_name, _dtype))


class _Legacy(type):
    """Class of ``FloatStorage`` and its kin: calling one makes a storage, ``isinstance`` asks for the dtype."""

    dtype: Any

    def __call__(cls, *args: Any, wrap_storage: Any = None, **kwargs: Any) -> TypedStorage:
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, TypedStorage) and x.dtype is cls.dtype

    def __getattr__(cls, name: str) -> Any:
        """The attribute of TypedStorage; its constructors make storages of this dtype."""
        value = getattr(TypedStorage, name)
        return value.__func__.__get__(cls) if hasattr(value, "__self__") else value


def _legacy(name: str) -> Any:
    return _Legacy(
        name, (), {"dtype": _NAMES[name], "__doc__": f"Storages of dtype {_NAMES[name].name}.", "__module__": "taeda"}
    )


BFloat16Storage = _legacy("BFloat16Storage")
BoolStorage = _legacy("BoolStorage")
ByteStorage = _legacy("ByteStorage")
CharStorage = _legacy("CharStorage")
ComplexDoubleStorage = _legacy("ComplexDoubleStorage")
ComplexFloatStorage = _legacy("ComplexFloatStorage")
DoubleStorage = _legacy("DoubleStorage")
FloatStorage = _legacy("FloatStorage")
HalfStorage = _legacy("HalfStorage")
IntStorage = _legacy("IntStorage")
LongStorage = _legacy("LongStorage")
ShortStorage = _legacy("ShortStorage")

_warned = False


def _storage(input: Tensor) -> TypedStorage:
    """The memory of the tensor as elements of its dtype (deprecated: use :meth:`Tensor.untyped_storage`).

    Args:
        input: a tensor.
    Returns:
        A :class:`TypedStorage`.
    Examples:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     len(taeda.ones(2, 3).storage())
        6
    """
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "TypedStorage is deprecated: use tensor.untyped_storage() instead of tensor.storage()",
            UserWarning,
            stacklevel=2,
        )
    return TypedStorage(wrap_storage=input.untyped_storage(), dtype=input.dtype)


def _storage_type(input: Tensor) -> Any:
    """The class of the storage.

    Args:
        input: a tensor.
    Returns:
        A class.
    Examples:
        >>> taeda.ones(2).storage_type().__name__
        'TypedStorage'
    """
    return type(_typed_storage(input))


def _typed_storage(input: Tensor) -> TypedStorage:
    """:meth:`storage` without the warning."""
    return TypedStorage(wrap_storage=input.untyped_storage(), dtype=input.dtype)


def _load_from_bytes(b: bytes) -> TypedStorage:
    """The storage that PyTorch wrote into a pickle of its own."""
    return taeda.load(io.BytesIO(b), weights_only=False)


_storage.__name__, _storage_type.__name__ = "storage", "storage_type"
_core.install("storage", _storage)
_core.install("storage_type", _storage_type)
_core.install("_typed_storage", _typed_storage)
_core.install("_cdata", property(id))  # a tensor's identity, an int
