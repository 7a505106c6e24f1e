"""``save`` and ``load`` of PyTorch's files. Code in a file runs only with ``weights_only=False``."""

from __future__ import annotations

import functools
import io
import mmap as memory_map
import os
import sys
from collections.abc import Callable
from typing import Any

from .._core.exchange import copy_to_storage, share_storage
from ..kernels.files import atomic_write
from . import safetensors, trusted
from .archive import ArchiveReader, ArchiveWriter
from .legacy import LegacyLoader, save_legacy
from .objects import Stored, check_id, read_data, restored
from .options import options
from .pickling import PicklingError, UnpicklingError, Writer
from .saver import Saver


# ---- PyTorch's zip format --------------------------------------------------------------------------------------------
class ZipLoader:
    """Loads an archive; storages are read when first asked for, from records in ``folder``."""

    folder = "data"

    def __init__(self, data: Any, map_location: Any, share: bool, unpickle: Callable):
        self.unpickle = unpickle
        self.archive = ArchiveReader(data)
        self.data = data
        self.map_location = map_location
        self.share = share
        self.stored: dict[str, Stored] = {}
        self.swap = options.byteorder != sys.byteorder
        if self.archive.has("byteorder"):
            order = bytes(self.archive.read("byteorder"))
            if order not in (b"little", b"big"):
                raise RuntimeError(f"load: unknown byte order {order!r} in the file")
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
            stored = self._read(name, storage_type.dtype, numel)
            stored = self.stored[name] = restored(stored.storage, stored.dtype, location, self.map_location)
        elif stored.dtype is not storage_type.dtype:
            stored = Stored(stored.storage, storage_type.dtype, stored.device_name)
        return stored

    def _read(self, name: str, dtype: Any, numel: int) -> Stored:
        itemsize = 1 if dtype is None else dtype.itemsize
        record = f"{self.folder}/{name}"
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
    """Reads what :func:`save`, or PyTorch's, wrote: tensors, numbers, strings and containers of them.

    Code in a file runs only with ``weights_only=False``. Otherwise names in it are looked up in a list of functions
    that build data, to which ``taeda.serialization.add_safe_globals`` adds.

    Args:
        f: a path, or a file open for reading in binary. A safetensors file is read too.
        map_location: ``"cpu"`` for tensors that were saved from a device which is not available here.
        pickle_module: a module like ``pickle``, to read what is more than data with; then ``weights_only`` is False.
        weights_only: None or True for plain data, read by taeda's own reader. False reads any object, by Python's
            unpickler, which runs what the file asks for: only for files that you trust.
        mmap: map the file into memory rather than copy tensors out of it; needs a path. Writing to a tensor then
            changes memory, not the file. Checksums are not compared.
        pickle_load_args: ``encoding`` of the strings that Python 2 wrote (``"bytes"`` keeps them as bytes), and for
            Python's unpickler what else it takes.
    Returns:
        The object.
    Raises:
        pickle.UnpicklingError: the file asks for something that is not on the list, or is damaged.
        RuntimeError: it is no intact archive, or of an unknown kind; ``weights_only`` with a ``pickle_module``.
        EOFError: it is empty.
        ValueError: ``mmap`` without a path.
    Examples:
        >>> import io
        >>> file = io.BytesIO()
        >>> taeda.save({"weight": taeda.ones(2), "epoch": 3}, file)
        >>> _ = file.seek(0)
        >>> taeda.load(file)
        {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    if weights_only and pickle_module is not None:
        raise RuntimeError("load: Can not safely load weights when explicit pickle_module is specified")
    mmap = options.mmap if mmap is None else mmap
    unpickle: Callable = functools.partial(read_data, **pickle_load_args)
    if weights_only is False or pickle_module is not None:
        unpickle = trusted.unpickle(pickle_module, **pickle_load_args)
    if not isinstance(f, (str, os.PathLike)):
        if mmap:
            raise ValueError("f must be a file path in order to use the mmap argument")
        return _load_bytes(read_all(f), map_location, False, unpickle, f)
    shared = bool(mmap) and options.map_shared
    with open(f, "r+b" if shared else "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            raise EOFError(f"load: Ran out of input: {os.fspath(f)!r} is empty")
        private = memory_map.ACCESS_COPY if mmap else memory_map.ACCESS_READ
        access = memory_map.ACCESS_WRITE if shared else private
        mapped = memory_map.mmap(file.fileno(), 0, access=access)
    return _load_bytes(mapped, map_location, bool(mmap), unpickle)


def _check_pickle_module(name: str, module: Any) -> None:
    if module is not None and getattr(module, "__name__", None) != "pickle":
        raise RuntimeError(
            f"{name}: expected pickle_module=None, since files are written by code of taeda's own, got {module}"
        )


def read_all(file: Any) -> bytes:
    """The rest of an open binary file."""
    if not hasattr(file, "read"):
        raise AttributeError(f"load: expected a path or an open binary file, got {type(file).__name__}")
    data = file.read()
    if not isinstance(data, bytes):
        raise TypeError("load: expected a file open in binary mode, got one in text mode")
    if not data:
        raise EOFError("load: Ran out of input: the file is empty")
    return data


def _load_bytes(data: Any, map_location: Any, share: bool, unpickle: Callable, file: Any = None) -> Any:
    head = bytes(data[:16])
    if head.startswith(b"PK"):
        return ZipLoader(data, map_location, share, unpickle).load()
    if head.startswith(b"\x80") and head[1:2] <= b"\x05":
        if share:
            raise RuntimeError("load: mmap needs a file in the format since PyTorch 1.6; this one is older")
        loader = LegacyLoader(bytes(data), map_location, unpickle)
        result = loader.load()
        if loader.end < len(data) and hasattr(file, "seek"):  # what else was saved to the file may be loaded next
            file.seek(loader.end - len(data), os.SEEK_CUR)
        return result
    if head[8:9] == b"{":
        return safetensors.parse(data, share)
    if bytes(data[257:262]) == b"ustar":
        raise RuntimeError(
            "load: the file is a tar archive, as PyTorch wrote before 0.2; load and save it with PyTorch first"
        )
    raise UnpicklingError(f"load: the file is neither PyTorch's nor safetensors': it starts with {head!r}")


# ---- save ------------------------------------------------------------------------------------------------------------
def save(
    obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2, _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:  # fmt: skip
    """Writes tensors, numbers, strings and containers of them in PyTorch's format, which its ``load`` reads too.

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
        AttributeError: ``f`` is neither a path nor a file.
    Examples:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.pt"
        >>> model = taeda.nn.Linear(2, 1)
        >>> taeda.save(model.state_dict(), path)
        >>> model.load_state_dict(taeda.load(path))
        <All keys matched successfully>
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
    if isinstance(f, (str, os.PathLike)):
        with atomic_write(f) as file:
            save_legacy(obj, file)
    else:
        save_legacy(obj, f)
        if hasattr(f, "flush"):
            f.flush()


def _write_archive(file: Any, folder: str, pickled: bytes, saver: Saver) -> None:
    buffered = file if isinstance(file, (io.BytesIO, io.BufferedIOBase)) else _Buffered(file)
    archive = ArchiveWriter(buffered, folder)
    archive.add("data.pkl", pickled)
    archive.add("byteorder", sys.byteorder.encode())
    for name, _, storage in saver.storages.values():
        archive.add(f"data/{name}", bytes(len(storage)) if options.skip_data else storage.cpu()._readable())
    archive.add("version", b"3\n")
    archive.close()


class _Buffered:
    """A file object that takes bytes only."""

    def __init__(self, file: Any):
        self.file = file

    def write(self, data: Any) -> None:
        self.file.write(bytes(data))


__all__ = ["PicklingError", "UnpicklingError", "load", "save"]
