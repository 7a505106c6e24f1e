"""The format of PyTorch before 1.6: pickles one after the other, then the bytes of the storages."""

from __future__ import annotations

import struct
from typing import Any

from .._core.exchange import copy_to_storage
from .checkpoint import Saver, Stored, check_id, find, place
from .pickling import Constructor, Reader, UnpicklingError, Writer

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001


class LegacyLoader:
    """Loads a file of PyTorch before 1.6: pickles one after the other, then the storages' bytes."""

    def __init__(self, data: bytes, map_location: Any):
        self.data = data
        self.map_location = map_location
        self.stored: dict[str, Stored] = {}
        self.sizes: dict[str, int] = {}

    def load(self) -> Any:
        position = 0
        heads = []
        for _ in range(3):
            reader = Reader(self.data, find, self._refuse, position)
            heads.append(reader.load())
            position = reader.position
        if heads[0] != _MAGIC or heads[1] != _PROTOCOL:
            raise RuntimeError("load: the file was not made by save(): its magic number is missing")
        if not isinstance(heads[2], dict) or heads[2].get("little_endian") is not True:
            raise RuntimeError(
                "load: the file is of a big-endian machine in the format before PyTorch 1.6; save it again"
            )
        names_at = self._find_storages(position)
        reader = Reader(self.data, find, self.persistent, position)
        result = reader.load()
        if reader.position != names_at:
            raise UnpicklingError("load: the file's parts do not follow each other")
        return result

    @staticmethod
    def _refuse(key: Any) -> Any:
        raise UnpicklingError("load: the file refers to a storage before it announces any")

    def _find_storages(self, position: int) -> int:
        """Run the pickle without tensors once, to learn where the storages' bytes are: they follow it."""
        sketch = Reader(self.data, _sketch_find, self._announce, position)
        sketch.load()
        end = sketch.position
        reader = Reader(self.data, find, self._refuse, end)
        names = reader.load()
        at = reader.position
        if type(names) is not list:
            raise UnpicklingError("load: the file's list of storages is missing")
        for name in names:
            itemsize = self.sizes.get(name)
            if type(name) is not str or itemsize is None or at + 8 > len(self.data):
                raise UnpicklingError("load: the file's storages are truncated or unknown")
            (numel,) = struct.unpack_from("<q", self.data, at)
            at += 8
            if numel < 0 or at + numel * itemsize > len(self.data):
                raise UnpicklingError(f"load: storage {name!r} announces {numel} elements, more than the file has")
            if name not in self.stored:
                self.stored[name] = Stored(copy_to_storage(self.data, at, numel * itemsize), None)
            at += numel * itemsize
        return end

    def _announce(self, key: Any) -> None:
        _, storage_type, name, _, _ = check_id(key, 5)
        self.sizes[name] = 1 if storage_type.dtype is None else storage_type.dtype.itemsize

    def persistent(self, key: Any) -> Stored:
        _, storage_type, name, location, _ = check_id(key, 5)
        if len(key) > 5 and key[5] is not None:
            raise UnpicklingError("load: the file has views of storages (PyTorch before 0.4); save it again")
        place(location, self.map_location)
        if name not in self.stored:
            raise UnpicklingError(f"load: storage {name!r} is missing in the file")
        return Stored(self.stored[name].storage, storage_type.dtype)


def _sketch_find(module: str, name: str) -> Any:
    """As :func:`find`, but tensors become None."""
    found = find(module, name)
    if type(found) is Constructor and module.startswith("torch._"):
        return Constructor(found.name, lambda *args: None)
    return found


# ---- writing ---------------------------------------------------------------------------------------------------------
def save_legacy(obj: Any, file: Any) -> None:
    """Write ``obj`` to an open file."""
    saver = Saver(legacy=True)
    pickled = Writer(saver.special).dump(obj)
    info = {
        "protocol_version": _PROTOCOL,
        "little_endian": True,
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    plain = [_MAGIC, _PROTOCOL, info]
    for head in plain:
        file.write(Writer(_nothing_special).dump(head))
    file.write(pickled)
    file.write(Writer(_nothing_special).dump([name for name, _, _ in saver.storages.values()]))
    for _, dtype, storage in saver.storages.values():
        itemsize = 1 if dtype is None else dtype.itemsize
        file.write(struct.pack("<q", storage.nbytes() // itemsize))
        file.write(bytes(storage))


def _nothing_special(writer: Writer, x: Any) -> bool:
    return False
