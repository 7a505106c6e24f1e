"""The format of PyTorch before 1.6: pickles one after the other, then the bytes of the storages."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from .._core.exchange import copy_to_storage
from .objects import VALUES_FOLLOW, Stored, check_id, read_data, restored
from .pickling import UnpicklingError, Writer
from .saver import Saver

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001


class LegacyLoader:
    """Loads a file of PyTorch before 1.6: pickles one after the other, then the storages' bytes."""

    def __init__(self, data: bytes, map_location: Any, unpickle: Callable):
        self.data = data
        self.map_location = map_location
        self.unpickle = unpickle
        self.stored: dict[str, Stored] = {}
        self.itemsizes: dict[str, int] = {}
        self.announced = 0  # bytes of all storages so far

    def load(self) -> Any:
        position = 0
        heads = []
        for _ in range(3):
            head, position = read_data(self.data, position, self._refuse)
            heads.append(head)
        if heads[0] != _MAGIC or heads[1] != _PROTOCOL:
            raise RuntimeError("load: the file was not made by save(): its magic number is missing")
        if not isinstance(heads[2], dict) or heads[2].get("little_endian") is not True:
            raise RuntimeError(
                "load: the file is of a big-endian machine in the format before PyTorch 1.6; save it again"
            )
        later: list = []
        before = VALUES_FOLLOW.set(later)
        try:
            result, end = self.unpickle(self.data, position, self.persistent)
        finally:
            VALUES_FOLLOW.reset(before)
        self.end = self._fill(*read_data(self.data, end, self._refuse))
        return self.unpickle(self.data, position, self.persistent)[0] if later else result

    @staticmethod
    def _refuse(key: Any) -> Any:
        raise UnpicklingError("load: the file refers to a storage where it only describes itself")

    def persistent(self, key: Any) -> Stored:
        """A storage, whose bytes follow the pickle and are filled in afterwards."""
        _, storage_type, name, location, numel = check_id(key, 5)
        if len(key) > 5 and key[5] is not None:
            raise UnpicklingError("load: the file has views of storages (PyTorch before 0.4); save it again")
        if name not in self.stored:
            itemsize = self.itemsizes[name] = 1 if storage_type.dtype is None else storage_type.dtype.itemsize
            size = numel * itemsize
            self.announced += size
            if self.announced > len(self.data):
                raise UnpicklingError(f"load: storages of {self.announced} bytes are announced, more than the file has")
            self.stored[name] = restored(copy_to_storage(bytes(size), 0, size), None, location, self.map_location)
        stored = self.stored[name]
        return Stored(stored.storage, storage_type.dtype, stored.device_name)

    def _fill(self, names: Any, at: int) -> int:
        """Read the storages, and say where the last one ends."""
        if type(names) is not list or not all(type(n) is str for n in names) or set(names) != set(self.stored):
            raise UnpicklingError("load: the file's list of storages is missing or another")
        for name in names:
            storage, itemsize = self.stored[name].storage, self.itemsizes[name]
            size = storage.nbytes()
            if at + 8 + size > len(self.data):
                raise UnpicklingError("load: the file's storages are truncated")
            (numel,) = struct.unpack_from("<q", self.data, at)
            if numel * itemsize != size:
                raise UnpicklingError(f"load: storage {name!r} has {numel} elements, {size // itemsize} were announced")
            at += 8
            if storage.device.type != "meta":
                storage.copy_(copy_to_storage(self.data, at, size))
            at += size
        return at


# ---- writing ---------------------------------------------------------------------------------------------------------
def save_legacy(obj: Any, file: Any) -> None:
    """Write ``obj`` to an open file."""
    saver = Saver(legacy=True)
    pickled = Writer(saver.special).dump(obj)
    info = {"protocol_version": _PROTOCOL, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    plain = [_MAGIC, _PROTOCOL, info]
    for head in plain:
        file.write(Writer(_nothing_special).dump(head))
    file.write(pickled)
    file.write(Writer(_nothing_special).dump([name for name, _, _ in saver.storages.values()]))
    for _, dtype, storage in saver.storages.values():
        itemsize = 1 if dtype is None else dtype.itemsize
        file.write(struct.pack("<q", storage.nbytes() // itemsize))
        file.write(bytes(storage.cpu()._readable()))


def _nothing_special(writer: Writer, x: Any) -> bool:
    return False
