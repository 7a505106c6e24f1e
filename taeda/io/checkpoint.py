"""``save`` and ``load``: PyTorch's files, both ways; code in a file is not run unless the caller says ``weights_only=False``."""

from __future__ import annotations

import io
import mmap as memory_map
import os
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Size, Tensor
from .._core.exchange import copy_to_storage, share_storage
from ..ops.meta import without_values
from ..storage import TypedStorage
from .archive import ArchiveReader, ArchiveWriter, atomic_write
from .options import options
from .pickling import Constructor, PicklingError, Reader, UnpicklingError, Writer, check_key, find_allowed

_STORAGE_NAMES = {
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
    """A storage of a file: its memory, and its dtype (None if the file does not say); whether it is wanted on device meta."""

    on_meta = False

    def __init__(self, storage: Any, dtype: Any):
        self.storage = self._untyped_storage = storage
        self.dtype = dtype


# ---- what a file may ask for -----------------------------------------------------------------------------------------
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
    if stored.on_meta:
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
    found = getattr(_core, name.removeprefix("torch."), None) if type(name) is str else None
    if not isinstance(found, _core.layout):
        raise UnpicklingError(f"a layout in the file is {name!r}")
    return found


def _allow_list() -> dict[tuple[str, str], Any]:
    table: dict[tuple[str, str], Any] = {}

    def calls(module: str, name: str, function: Callable) -> None:
        table[(module, name)] = Constructor(f"{module}.{name}", function)

    for name, storage in _STORAGE_NAMES.items():
        table[("torch", storage)] = StorageType(_core.dtype_by_name(name))
    for name in _core.DTYPE_NAMES:
        table[("torch", name)] = _core.dtype_by_name(name)
    table[("torch.storage", "UntypedStorage")] = table[("torch", "UntypedStorage")] = StorageType(None)
    table[("torch", "Tensor")] = table[("torch._tensor", "Tensor")] = Tensor
    calls("torch._utils", "_rebuild_tensor", _rebuild_tensor)
    calls("torch._utils", "_rebuild_tensor_v2", _rebuild_tensor_v2)
    calls("torch._utils", "_rebuild_tensor_v3", _rebuild_tensor_v3)
    calls("torch._utils", "_rebuild_meta_tensor_no_storage", _rebuild_meta)
    calls("torch._utils", "_rebuild_parameter", _rebuild_parameter)
    calls("torch._utils", "_rebuild_parameter_with_state", _rebuild_parameter_with_state)
    calls("torch._tensor", "_rebuild_from_type_v2", _rebuild_from_type)
    calls("torch", "Size", _size)
    calls("torch", "device", _device)
    calls("torch.serialization", "_get_layout", _named)
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
    """What a name in a file stands for, if that builds data; else None."""
    if not _ALLOWED:
        _ALLOWED.update(_allow_list())
    return _ALLOWED.get((module, name))


def find(module: str, name: str) -> Any:
    """What a name in a file stands for.

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
def place(location: Any, target: Any) -> bool:
    """Check that a storage saved at ``location`` may be put on the CPU; whether it is wanted on device meta."""
    if target is None:
        if isinstance(location, str) and location not in ("cpu", "meta") and not location.startswith("cpu:"):
            raise RuntimeError(
                f"load: the file has tensors of device {location!r}, which is not here; give map_location='cpu'"
            )
    elif isinstance(target, dict):
        return place(location, target.get(location))
    elif not callable(target):
        if _core.device(target).type == "meta":
            return True
        _core.require_device(target)
    return False


def read_data(data: Any, start: int, persistent: Callable) -> tuple[Any, int]:
    """The plain data that is pickled from byte ``start``, and where its pickle ends.

    Raises:
        UnpicklingError: it is not on the allow-list, or damaged.
    """
    reader = Reader(data, find, persistent, start)
    return reader.load(), reader.position


# ---- PyTorch's zip format --------------------------------------------------------------------------------------------
class _ZipLoader:
    """Loads an archive; storages are read when first asked for."""

    def __init__(self, data: Any, map_location: Any, share: bool, unpickle: Callable):
        self.unpickle = unpickle
        self.archive = ArchiveReader(data)
        self.data = data
        self.map_location = map_location
        self.share = share
        self.stored: dict[str, Stored] = {}
        self.swap = False
        if self.archive.has("byteorder"):
            order = bytes(self.archive.read("byteorder"))
            if order not in (b"little", b"big"):
                raise RuntimeError(f"load: unknown byte order {order!r} in the file")
            import sys

            self.swap = order.decode() != sys.byteorder

    def load(self) -> Any:
        if self.archive.has("constants.pkl"):
            raise RuntimeError("load: the file is a TorchScript program; save its state_dict in PyTorch instead")
        if not self.archive.has("data.pkl"):
            raise RuntimeError("load: the archive has no record 'data.pkl': it was not made by save()")
        return self.unpickle(bytes(self.archive.read("data.pkl")), 0, self.persistent)[0]

    def persistent(self, key: Any) -> Stored:
        _, storage_type, name, location, numel = check_id(key, 5)
        stored = self.stored.get(name)
        if stored is None:
            on_meta = place(location, self.map_location)
            stored = self.stored[name] = self._read(name, storage_type.dtype, numel)
            stored.on_meta = on_meta
        elif stored.dtype is not storage_type.dtype:
            stored, on_meta = Stored(stored.storage, storage_type.dtype), stored.on_meta
            stored.on_meta = on_meta
        return stored

    def _read(self, name: str, dtype: Any, numel: int) -> Stored:
        itemsize = 1 if dtype is None else dtype.itemsize
        record = f"data/{name}"
        start, size, _ = self.archive.locate(record)
        if numel * itemsize != size:
            raise UnpicklingError(f"storage {name!r} in the file has {size} bytes, {numel * itemsize} are announced")
        if options.skip_data:
            return Stored(copy_to_storage(bytes(size), 0, size), dtype)
        if self.share:
            return Stored(share_storage(self.data, start, size), dtype)
        self.archive.read(record)  # compares the checksum
        storage = copy_to_storage(self.data, start, size)
        if self.swap and itemsize > 1:
            _swap_bytes(storage, dtype)
        return Stored(storage, dtype)


def check_id(key: Any, length: int) -> tuple:
    """A persistent id, ``("storage", type, name, location, numel)``."""
    if type(key) is not tuple or len(key) < length or key[0] != "storage":
        raise UnpicklingError(f"the file refers to {key!r}, expected a storage")
    if not isinstance(key[1], StorageType) or type(key[2]) is not str or not _natural(key[4]):
        raise UnpicklingError("a storage in the file has no type, name or size")
    return key[:length]


def _swap_bytes(storage: Any, dtype: Any) -> None:
    """From the other byte order, in place."""
    import numpy

    width = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    array = numpy.frombuffer(memoryview(storage), dtype=f"u{width}")
    array.byteswap(inplace=True)


# ---- load ------------------------------------------------------------------------------------------------------------
def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
    mmap: bool | None = None, **pickle_load_args: Any,
) -> Any:  # fmt: skip
    """Load what ``save`` of taeda or PyTorch wrote: tensors, numbers, strings and containers of them.

    Code in a file is not run unless ``weights_only=False`` says so: names in it are looked up in a list of what builds data,
    to which ``taeda.serialization.add_safe_globals`` adds.

    Args:
        f: a path, or a file open for reading in binary. A safetensors file is read too.
        map_location: "cpu" for tensors that were saved from a device which is not available here.
        pickle_module: a module like ``pickle``, to read what is more than data with; then ``weights_only`` is False.
        weights_only: None or True for plain data, read by taeda's own reader. False reads any object, by Python's
            unpickler, which runs what the file asks for: only for files that you trust.
        mmap: map the file into memory rather than copy tensors out of it; needs a path. Writing to a tensor then
            changes memory, not the file. Checksums are not compared.
        pickle_load_args: for the ``Unpickler`` of ``pickle_module``, such as ``encoding``.
    Raises:
        pickle.UnpicklingError: the file asks for something that is not on the list, or is damaged.
        RuntimeError: it is no intact archive, or of an unknown kind; ``weights_only`` with a ``pickle_module``.
        EOFError: it is empty.
    """
    if weights_only and pickle_module is not None:
        raise RuntimeError("load: Can not safely load weights when explicit pickle_module is specified")
    mmap = options.mmap if mmap is None else mmap
    unpickle: Callable = read_data
    if weights_only is False or pickle_module is not None:
        from . import trusted

        unpickle = trusted.unpickle(pickle_module, **pickle_load_args)
    if not isinstance(f, (str, os.PathLike)):
        if mmap:
            raise ValueError("f must be a file path in order to use the mmap argument")
        return _load_bytes(read_all(f), map_location, False, unpickle)
    with open(f, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            raise EOFError(f"load: Ran out of input: {os.fspath(f)!r} is empty")
        access = memory_map.ACCESS_COPY if mmap else memory_map.ACCESS_READ
        mapped = memory_map.mmap(file.fileno(), 0, access=access)
    return _load_bytes(mapped, map_location, bool(mmap), unpickle)


def _check_pickle_module(name: str, module: Any) -> None:
    if module is not None and getattr(module, "__name__", None) != "pickle":
        raise RuntimeError(
            f"{name}: expected pickle_module=None, since files are written by code of taeda's own, got {module}"
        )


def read_all(file: Any) -> bytes:
    """What is left of an open binary file."""
    if not hasattr(file, "read"):
        raise AttributeError(f"load: expected a path or an open binary file, got {type(file).__name__}")
    data = file.read()
    if not isinstance(data, bytes):
        raise TypeError("load: expected a file open in binary mode, got one in text mode")
    if not data:
        raise EOFError("load: Ran out of input: the file is empty")
    return data


def _load_bytes(data: Any, map_location: Any, share: bool, unpickle: Callable) -> Any:
    head = bytes(data[:16])
    if head.startswith(b"PK"):
        return _ZipLoader(data, map_location, share, unpickle).load()
    if head.startswith(b"\x80") and head[1:2] <= b"\x05":
        if share:
            raise RuntimeError("load: mmap needs a file in the format since PyTorch 1.6; this one is older")
        from .legacy import LegacyLoader

        return LegacyLoader(bytes(data), map_location, unpickle).load()
    if head[8:9] == b"{":
        from . import safetensors

        return safetensors.parse(data, share)
    if bytes(data[257:262]) == b"ustar":
        raise RuntimeError(
            "load: the file is a tar archive, as PyTorch wrote before 0.2; load and save it with PyTorch first"
        )
    raise RuntimeError(f"load: the file is neither PyTorch's nor safetensors': it starts with {head!r}")


# ---- save ------------------------------------------------------------------------------------------------------------
class Saver:
    """Collects the storages of what is saved."""

    def __init__(self, legacy: bool = False) -> None:
        self.legacy = legacy  # the format before 1.6 says of each storage whether it is a view
        self.storages: dict[tuple[int, int], tuple[str, Any, Any]] = {}
        self.alive: list[Any] = []

    def special(self, writer: Writer, x: Any) -> bool:
        """Write what is not a plain Python object."""
        if isinstance(x, Tensor):
            writer.alive.append(x)
            if getattr(x, "_is_param", False) or _is_parameter(x):
                self._parameter(writer, x)
            else:
                self._tensor(writer, x)
            writer.put(id(x))
        elif isinstance(x, _core.dtype):
            writer.name("torch", x.name)
        elif isinstance(x, Size):
            writer.call("torch", "Size", tuple(x))
        elif isinstance(x, (_core.layout, _core.memory_format)):
            getter = "_get_layout" if isinstance(x, _core.layout) else "_get_memory_format"
            writer.call("torch.serialization", getter, str(x).replace("taeda.", "torch."))
        elif isinstance(x, _core.device):
            writer.call("torch", "device", *([x.type] if x.index is None else [x.type, x.index]))
        else:
            return False
        return True

    def _parameter(self, writer: Writer, x: Tensor) -> None:
        state = {k: v for k, v in vars(x).items() if k != "_is_param"}
        writer.name("torch._utils", "_rebuild_parameter_with_state" if state else "_rebuild_parameter")
        writer.out += b"("
        self._plain(writer, x.detach())
        writer.write(x.requires_grad)
        writer.call("collections", "OrderedDict")
        if state:
            writer.write(state)
        writer.out += b"tR"

    def _tensor(self, writer: Writer, x: Tensor) -> None:
        """A tensor, with its class where that is the program's, and its attributes."""
        state = dict(vars(x))
        cls = Tensor if type(x).__module__.split(".")[0] == "taeda" else type(x)
        if cls is Tensor and not state:
            self._plain(writer, x)
            return
        writer.name("torch._tensor", "_rebuild_from_type_v2")
        writer.out += b"("
        plain = x if cls is Tensor else x.as_subclass(Tensor)
        self._function(writer, plain)
        if cls is Tensor:
            writer.name("torch", "Tensor")
        else:
            writer.write(cls)
        self._arguments(writer, plain)
        writer.write(state or None)
        writer.out += b"tR"

    def _plain(self, writer: Writer, x: Tensor) -> None:
        self._function(writer, x)
        self._arguments(writer, x)
        writer.out += b"R"

    def _function(self, writer: Writer, x: Tensor) -> None:
        if x.is_meta:
            writer.name("torch._utils", "_rebuild_meta_tensor_no_storage")
            return
        writer.name("torch._utils", "_rebuild_tensor_v2" if x.dtype.name in _STORAGE_NAMES else "_rebuild_tensor_v3")

    def _arguments(self, writer: Writer, x: Tensor) -> None:
        """The tuple from which the function makes the tensor."""
        if x.is_meta:
            writer.write((x.dtype, tuple(x.shape), tuple(x.stride()), x.requires_grad))
            return
        requires_grad = x.requires_grad
        if x.grad_fn is not None:
            x = x.detach()
        if any(stride < 0 for stride in x.stride()):  # PyTorch has no such tensors
            x = x.detach().contiguous()
        self.alive.append(x)
        typed = x.dtype.name in _STORAGE_NAMES
        writer.out += b"("
        self._storage(writer, x, typed)
        writer.write(x.storage_offset())
        writer.write(tuple(x.shape))
        writer.write(tuple(x.stride()))
        writer.write(requires_grad)
        writer.call("collections", "OrderedDict")
        if not typed:
            writer.name("torch", x.dtype.name)
        if x.is_conj() or x.is_neg():
            writer.write({"conj" if x.is_conj() else "neg": True})
        writer.out += b"t"

    def _storage(self, writer: Writer, x: Tensor, typed: bool) -> None:
        storage = x.untyped_storage()
        key = (storage.data_ptr(), storage.nbytes())
        dtype = x.dtype if typed else None
        name, known, _ = self.storages.setdefault(key, (str(len(self.storages)), dtype, storage))
        if known is not dtype:
            raise RuntimeError(
                "save: cannot save multiple tensors that view the same data as different types "
                f"({known} and {x.dtype}); clone one of them first"
            )
        writer.out += b"("
        writer.write("storage")
        if typed:
            writer.name("torch", _STORAGE_NAMES[x.dtype.name])
        else:
            writer.name("torch.storage", "UntypedStorage")
        writer.write(name)
        writer.write("cpu")
        writer.write(storage.nbytes() // (x.dtype.itemsize if typed else 1))
        writer.out += b"NtQ" if self.legacy else b"tQ"


def _is_parameter(x: Tensor) -> bool:
    if type(x) is Tensor:
        return False
    from ..nn import Parameter

    return isinstance(x, Parameter)


def save(
    obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2, _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:  # fmt: skip
    """Write tensors, numbers, strings and containers of them in PyTorch's format, which its ``load`` reads too.

    Tensors that share memory share it when they are loaded. A path is replaced all at once, when everything is written.

    Args:
        obj: for instance a ``state_dict()``.
        f: a path, or a file open for writing in binary.
        pickle_module: None or the module ``pickle``; data is written by taeda's own writer.
        pickle_protocol: accepted; files are written with protocol 2, which every version reads.
        _use_new_zipfile_serialization: False writes the format before PyTorch 1.6.
        _disable_byteorder_record: accepted.
    Raises:
        pickle.PicklingError: ``obj`` has something in it that is no data; the message says where.
        RuntimeError: the folder of the path does not exist.
    """
    _check_pickle_module("save", pickle_module)
    if isinstance(f, (str, os.PathLike)):
        folder = os.path.dirname(os.fspath(f))
        if folder and not os.path.isdir(folder):
            raise RuntimeError(
                f"save: the folder {os.fsdecode(folder)!r} does not exist; create it first (os.makedirs)"
            )
    if not _use_new_zipfile_serialization:
        _save_legacy(obj, f)
        return
    saver = Saver()
    pickled = Writer(saver.special).dump(obj)
    if isinstance(f, (str, os.PathLike)):
        folder = os.path.splitext(os.path.basename(os.fspath(f)))[0] or "archive"
        with atomic_write(f) as file:
            _write_archive(file, folder, pickled, saver)
    elif hasattr(f, "write"):
        _write_archive(f, "archive", pickled, saver)
        if hasattr(f, "flush"):
            f.flush()
    else:
        raise AttributeError(f"save: expected a path or an open binary file, got {type(f).__name__}")


def _save_legacy(obj: Any, f: Any) -> None:
    from .legacy import save_legacy

    if isinstance(f, (str, os.PathLike)):
        with atomic_write(f) as file:
            save_legacy(obj, file)
    else:
        save_legacy(obj, f)


def _write_archive(file: Any, folder: str, pickled: bytes, saver: Saver) -> None:
    import sys

    buffered = file if isinstance(file, (io.BytesIO, io.BufferedIOBase)) else _Buffered(file)
    archive = ArchiveWriter(buffered, folder)
    archive.add("data.pkl", pickled)
    archive.add("byteorder", sys.byteorder.encode())
    for name, _, storage in saver.storages.values():
        archive.add(f"data/{name}", bytes(len(storage)) if options.skip_data else storage)
    archive.add("version", b"3\n")
    archive.close()


class _Buffered:
    """A file object that takes bytes only."""

    def __init__(self, file: Any):
        self.file = file

    def write(self, data: Any) -> None:
        self.file.write(bytes(data))


__all__ = ["PicklingError", "UnpicklingError", "load", "save"]
