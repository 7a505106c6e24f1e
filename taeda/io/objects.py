"""The classes and functions that a file may name: tensors, their storages, and plain data."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from .. import _core
from .._core import Size, Tensor
from .._core.devices import is_registered
from .._core.memory import storage_on_device
from ..ops.devices import number_of
from ..ops.meta import without_values
from ..storage import TypedStorage
from .pickling import Constructor, Ignored, Reader, UnpicklingError, check_key, find_allowed

STORAGE_NAMES = {
    "float64": "DoubleStorage", "float32": "FloatStorage", "float16": "HalfStorage", "bfloat16": "BFloat16Storage",
    "int64": "LongStorage", "int32": "IntStorage", "int16": "ShortStorage", "int8": "CharStorage",
    "uint8": "ByteStorage", "bool": "BoolStorage", "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
}  # fmt: skip

_ADVICE = (
    "If you trust it, allow it with taeda.serialization.add_safe_globals, or the whole file with weights_only=False, "
    "which runs what the file asks for"
)


class StorageType:
    """A typed storage class of PyTorch, as files name it."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: Any):
        self.dtype = dtype


class Stored(TypedStorage):
    """A storage of a file: its memory, its dtype (uint8 if the file does not say), and the device that it is wanted on:
    a name, None for the CPU."""

    def __init__(self, storage: Any, dtype: Any, device: str | None = None):
        if device not in (None, "meta") and storage.device.type == "cpu":
            storage = storage_on_device(device, storage)
        self.storage = self._untyped_storage = storage
        self.dtype = _core.uint8 if dtype is None else dtype
        self.device_name = device


# ---- names that a file may use
# -----------------------------------------------------------------------------------------
def _natural(x: Any) -> bool:
    return type(x) is int and 0 <= x < 2**62


def _tensor(stored: Any, offset: Any, sizes: Any, strides: Any, dtype: Any) -> Tensor:
    """A tensor on a storage of the file, after checking that it lies within it."""
    if type(stored) is not Stored or not isinstance(sizes, tuple) or not isinstance(strides, tuple):
        raise UnpicklingError("a tensor in the file has no storage, sizes or strides")
    if len(sizes) != len(strides) or len(sizes) > 64 or not _natural(offset):
        raise UnpicklingError(f"a tensor in the file has sizes {sizes}, strides {strides} and offset {offset}")
    last, empty = offset, False
    for size, stride in zip(sizes, strides, strict=True):
        if not _natural(size) or not _natural(stride):
            raise UnpicklingError(f"a tensor in the file has sizes {sizes} and strides {strides}")
        if size == 0:
            empty = True
        last += (size - 1) * stride
    if not empty and (last + 1) * dtype.itemsize > stored.storage.nbytes():
        raise UnpicklingError(
            f"a tensor in the file (sizes {sizes}, strides {strides}, offset {offset}, {dtype}) does not fit its "
            f"storage of {stored.storage.nbytes()} bytes"
        )
    numel = 1
    for size in sizes:
        numel *= size
    if numel >= 2**62:
        raise UnpicklingError(f"a tensor in the file has sizes {sizes}, which are too large")
    if empty:
        offset = min(offset, stored.storage.nbytes() // dtype.itemsize)
    if stored.device_name == "meta":
        return without_values(sizes, strides, dtype)
    return _core.from_storage(stored.storage, dtype, sizes, strides, offset)


def _rebuild_tensor(stored, offset, sizes, strides):
    return _tensor(stored, offset, sizes, strides, stored.dtype)


def _rebuild_tensor_v2(stored, offset, sizes, strides, requires_grad, hooks, metadata=None):
    t = _tensor(stored, offset, sizes, strides, stored.dtype)
    return _finish(t, requires_grad, metadata)


def _rebuild_tensor_v3(stored, offset, sizes, strides, requires_grad, hooks, dtype, metadata=None):
    if not isinstance(dtype, _core.dtype):
        raise UnpicklingError(f"a tensor in the file has a {type(dtype).__name__} as its dtype")
    return _finish(_tensor(stored, offset, sizes, strides, dtype), requires_grad, metadata)


def _rebuild_meta(dtype, sizes, strides, requires_grad):
    if not isinstance(dtype, _core.dtype) or not all(
        isinstance(x, tuple) and all(map(_natural, x)) for x in (sizes, strides)
    ):
        raise UnpicklingError("a tensor of device meta in the file has no dtype, sizes or strides")
    if len(sizes) != len(strides) or len(sizes) > 64:
        raise UnpicklingError(f"a tensor in the file has sizes {sizes} and strides {strides}")
    return without_values(sizes, strides, dtype, bool(requires_grad))


def _finish(t: Tensor, requires_grad: Any, metadata: Any) -> Tensor:
    if metadata:
        if metadata.get("neg") and t.is_complex():
            t = -t
        if metadata.get("neg" if not t.is_complex() else "conj"):
            t = _core.tensor.view_conjugated(t)
    if requires_grad:
        t.requires_grad = True
    return t


#: Where the values of storages come after the pickle: stand-ins for the tensors that are made of values (of indices).
#: If there are any, the pickle is read again once the values are known.
VALUES_FOLLOW: ContextVar[list[Tensor] | None] = ContextVar("VALUES_FOLLOW", default=None)


def _made_of_values(make: Callable) -> Callable:
    """``make``, which reads the values of its arguments, for files whose values may follow."""

    def made(*args):
        later = VALUES_FOLLOW.get()
        if later is None:
            return make(*args)
        later.append(_core.empty((0,), _core.float32))
        return later[-1]

    return made


@_made_of_values
def _rebuild_sparse(layout, parts):
    from ..ops import compressed, sparse

    make = {
        _core.sparse_coo: lambda i, v, size, coalesced=None: sparse.sparse_coo_tensor(
            i, v, size, is_coalesced=coalesced
        ),
        **compressed.MAKERS,
    }.get(layout)
    if make is None or type(parts) is not tuple or not all(isinstance(x, Tensor) for x in parts[:2]):
        raise UnpicklingError(f"a sparse tensor in the file has the layout {layout} and parts that do not fit it")
    return make(*parts)


@_made_of_values
def _rebuild_nested(buffer, sizes, strides, offsets):
    """A nested tensor of the strided layout: its parts lie in a buffer, at offsets."""
    from ..nested.tensor import nest

    rows = _rows_of_nested(sizes), _rows_of_nested(strides), _rows_of_nested(offsets)
    made = nest([buffer.detach().as_strided(*where) for where in zip(*rows, strict=True)], _core.strided)
    return made.requires_grad_(buffer.requires_grad)


@_made_of_values
def _rebuild_jagged(arguments):
    """A nested tensor of the jagged layout, of the arguments of PyTorch's class."""
    from ..nested import nested_tensor_from_jagged

    values, offsets, lengths = (arguments.get(name) for name in ("values", "offsets", "lengths"))
    for x in (offsets, lengths):
        _rows_of_nested(x)
    made = nested_tensor_from_jagged(values, offsets, lengths, arguments.get("_ragged_idx"))
    return made.requires_grad_(bool(arguments.get("requires_grad")))


def _rows_of_nested(x: Any) -> list:
    if x is not None and (not isinstance(x, Tensor) or x.dtype is not _core.int64):
        raise UnpicklingError("a nested tensor in the file has sizes, strides or offsets that are not integers")
    return [] if x is None else x.tolist()


def _rebuild_parameter(data, requires_grad, hooks):
    from ..nn import Parameter

    if not isinstance(data, Tensor):
        raise UnpicklingError(f"a parameter in the file is a {type(data).__name__}")
    return Parameter(data, bool(requires_grad))


def _set_attributes(t: Tensor, state: Any) -> Tensor:
    """The Python attributes that a tensor had."""
    if type(state) is tuple and state:
        state = state[0]
    for name, value in (state or {}).items():
        if type(name) is not str or hasattr(type(t), name):
            raise UnpicklingError(f"a tensor in the file sets its attribute {name!r}")
        setattr(t, name, value)
    return t


def _rebuild_parameter_with_state(data, requires_grad, hooks, state):
    return _set_attributes(_rebuild_parameter(data, requires_grad, hooks), state)


def _rebuild_from_type(function, cls, args, state):
    if (
        type(function) is not Constructor
        or type(args) is not tuple
        or not (isinstance(cls, type) and issubclass(cls, Tensor))
    ):
        raise UnpicklingError("the file has a tensor that is made otherwise than files of save() say")
    made = function.function(*args)
    if made.is_nested or any(made is x for x in VALUES_FOLLOW.get() or ()):  # the attributes are of PyTorch's class
        return made
    return _set_attributes(made if cls is Tensor else made.as_subclass(cls), state)


def _encode(text, encoding):
    if encoding != "latin1":
        raise UnpicklingError(f"the file encodes text as {encoding!r}, expected 'latin1'")
    return text.encode("latin1")


def _bytearray(*args):
    if args and type(args[0]) is str and args[1:] == ("latin1",):  # as Python 2 has it
        return bytearray(args[0].encode("latin1"))
    if len(args) > 1 or any(type(a) is not bytes for a in args):
        raise UnpicklingError("a bytearray in the file is not made of bytes")
    return bytearray(*args)


def _bytes(*args):
    if args:  # only the empty one is written like this
        raise UnpicklingError("bytes in the file are not written as bytes")
    return b""


def _mapping(cls: type) -> Callable:
    def make(*args):
        made = cls()
        if args:
            pairs = args[0].items() if type(args[0]) is dict else args[0]
            Reader._set_items(made, [x for key, value in pairs for x in (key, value)])
        return made

    return make


def _set(cls: type) -> Callable:
    def make(*args):
        if len(args) > 1 or any(type(a) not in (list, tuple) for a in args):
            raise UnpicklingError(f"a {cls.__name__} in the file is not made of a list")
        check_key(tuple(args[0]) if args else ())
        return cls(*args)

    return make


def _size(sizes=()):
    if type(sizes) is not tuple or not all(type(s) is int for s in sizes):
        raise UnpicklingError("a Size in the file is not made of ints")
    return Size(sizes)


def _device(*args):
    return _core.device(*args)


def _named(name):
    from ..ops.sparse import LAYOUTS

    name = str(name)
    compressed = {str(layout).rpartition(".")[2]: layout for layout in LAYOUTS}
    short = name.removeprefix("torch.")
    found = getattr(_core, short, compressed.get(short))
    if not isinstance(found, _core.layout):
        raise UnpicklingError(f"a layout in the file is {name!r}")
    return found


def _memory_format(name):
    found = getattr(_core, str(name).removeprefix("torch."), None)
    if not isinstance(found, _core.memory_format):
        raise UnpicklingError(f"a memory format in the file is {name!r}")
    return found


def _allow_list() -> dict[tuple[str, str], Any]:
    table: dict[tuple[str, str], Any] = {}

    def calls(module: str, name: str, function: Callable) -> None:
        table[(module, name)] = Constructor(f"{module}.{name}", function)

    for name, storage in STORAGE_NAMES.items():
        table[("torch", storage)] = StorageType(_core.dtype_by_name(name))
    for name in _core.DTYPE_NAMES:
        table[("torch", name)] = _core.dtype_by_name(name)
    table[("torch.storage", "UntypedStorage")] = table[("torch", "UntypedStorage")] = StorageType(None)
    table[("torch", "Tensor")] = table[("torch._tensor", "Tensor")] = Tensor
    calls("torch._utils", "_rebuild_tensor", _rebuild_tensor)
    calls("torch._utils", "_rebuild_tensor_v2", _rebuild_tensor_v2)
    calls("torch._utils", "_rebuild_tensor_v3", _rebuild_tensor_v3)
    calls("torch._utils", "_rebuild_meta_tensor_no_storage", _rebuild_meta)
    calls("torch._utils", "_rebuild_sparse_tensor", _rebuild_sparse)
    calls("torch._utils", "_rebuild_nested_tensor", _rebuild_nested)
    calls("torch.nested._internal.nested_tensor", "_rebuild_njt", _rebuild_jagged)
    table[("torch.nested._internal.nested_tensor", "NestedTensor")] = Tensor
    table[("torch._dynamo.decorators", "_DimRange")] = Ignored  # of a tensor whose sizes a compiler was told of
    calls("torch._utils", "_rebuild_parameter", _rebuild_parameter)
    calls("torch._utils", "_rebuild_parameter_with_state", _rebuild_parameter_with_state)
    calls("torch._tensor", "_rebuild_from_type_v2", _rebuild_from_type)
    calls("torch", "Size", _size)
    calls("torch", "device", _device)
    calls("torch.serialization", "_get_layout", _named)
    calls("torch.serialization", "_get_memory_format", _memory_format)
    calls("collections", "OrderedDict", _mapping(OrderedDict))
    calls("collections", "Counter", _mapping(Counter))
    calls("_codecs", "encode", _encode)
    for module in ("builtins", "__builtin__"):
        calls(module, "complex", complex)
        calls(module, "bytearray", _bytearray)
        calls(module, "bytes", _bytes)
        calls(module, "set", _set(set))
        calls(module, "frozenset", _set(frozenset))
    return table


_ALLOWED: dict[tuple[str, str], Any] = {}
Known = Any  # a Constructor, or a plain value


def known(module: str, name: str) -> Known:
    """The object for a name in a file, if it builds data; else None."""
    if not _ALLOWED:
        _ALLOWED.update(_allow_list())
    return _ALLOWED.get((module, name))


def find(module: str, name: str) -> Any:
    """The object for a name in a file.

    Args:
        module: the first part.
        name: the last part.

    Returns:
        A class or a function.

    Raises:
        UnpicklingError: it is not on the allow-list.
    """
    found = known(module, name)
    if found is None:
        found = find_allowed(module, name)
    if found is None:
        full = f"{module}.{name}"
        if full.startswith("torch.Q") or "qtensor" in name:
            raise UnpicklingError(f"load: the file has quantised tensors ({full}), which taeda does not have")
        raise UnpicklingError(
            f"load: the file asks for {full!r}, which is not on the list of what builds data. {_ADVICE}"
        )
    return found


# ---- where tensors go ------------------------------------------------------------------------------------------------
def place(location: Any, target: Any) -> str | None:
    """The device that a storage saved at ``location`` is wanted on, None for the CPU.

    Args:
        location: as the file says.
        target: where ``map_location`` wants it.

    Returns:
        A device's name, or None.

    Raises:
        RuntimeError: that device is not here.
    """
    if target is None:
        if not isinstance(location, str) or location == "cpu" or location.startswith("cpu:"):
            return None
        if location != "meta" and not is_registered(location.partition(":")[0]):
            raise RuntimeError(
                f"load: the file has tensors of device {location!r}, which is not here; give map_location='cpu'"
            )
        return None if location == "meta" else _device_name(location)
    if isinstance(target, dict):
        return place(location, target.get(location))
    return _device_name(target)


def restored(storage: Any, dtype: Any, location: Any, target: Any) -> Stored:
    """A storage that was saved at ``location``, as ``map_location`` wants it: a function may give another one."""
    if callable(target) and not isinstance(target, _core.device):
        made = target(storage, location)
        if made is not None:
            made = getattr(made, "_untyped_storage", made)
            return Stored(made, dtype, "meta" if made.device.type == "meta" else None)
        target = None
    return Stored(storage, dtype, place(location, target))


def _device_name(device: Any) -> str | None:
    kind = _core.device(device).type
    if kind == "meta":
        return "meta"
    number_of(device)
    return None if kind == "cpu" else str(_core.device(device))


def read_data(data: Any, start: int, persistent: Callable, *, encoding: str = "utf-8") -> tuple[Any, int]:
    """The plain data that is pickled from byte ``start``, and where its pickle ends.

    Args:
        data: the bytes.
        start: where to begin.
        persistent: gives the storage for what the file calls it.
        encoding: of the strings that Python 2 wrote, or ``"bytes"``.

    Returns:
        The object, and a place in ``data``.

    Raises:
        UnpicklingError: it is not on the allow-list, or damaged.
    """
    reader = Reader(data, find, persistent, start, encoding)
    return reader.load(), reader.position


def check_id(key: Any, length: int) -> tuple:
    """A persistent id, ``("storage", type, name, location, numel)``."""
    if type(key) is tuple:  # its strings are bytes where load keeps those of Python 2
        key = tuple(str(part, "ascii", "replace") if type(part) is bytes else part for part in key)
    if type(key) is not tuple or len(key) < length or key[0] != "storage":
        raise UnpicklingError(f"the file refers to {key!r}, expected a storage")
    if not isinstance(key[1], StorageType) or type(key[2]) is not str or not _natural(key[4]):
        raise UnpicklingError("a storage in the file has no type, name or size")
    return key[:length]
