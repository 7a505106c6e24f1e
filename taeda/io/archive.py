"""The archive that PyTorch files are: a zip file of uncompressed records, aligned so that they can be mapped.

Reading trusts nothing: offsets and sizes are checked against the file, sizes may not add up to more than it, records
are compared with their checksums.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

from .options import options

ALIGNMENT = 64
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_END64 = struct.Struct("<4sQHHIIQQQQ")
_LOCATOR64 = struct.Struct("<4sIQI")
_BIG = 0xFFFFFFFF
_UTF8 = 0x800


def pieces(data: Any) -> Iterator[memoryview]:
    """The bytes of ``data`` in pieces that are quickly written or read: Python hears Ctrl-C between them."""
    view = memoryview(data).cast("B")
    return (view[at : at + (1 << 27)] for at in range(0, len(view), 1 << 27))


def _checksum(data: Any) -> int:
    found = 0
    for piece in pieces(data):
        found = zlib.crc32(piece, found)
    return found


# ---- writing ---------------------------------------------------------------------------------------------------------
class ArchiveWriter:
    """Writes records one after the other; :meth:`close` writes the directory."""

    def __init__(self, file: Any, folder: str):
        self.file = file
        self.folder = folder
        self.position = 0
        self.entries: list[tuple[bytes, int, int, int]] = []

    def _write(self, data: Any) -> None:
        self.file.write(data)
        self.position += memoryview(data).nbytes

    def add(self, name: str, data: Any) -> None:
        """A record of the bytes of ``data``, which start at a multiple of ALIGNMENT in the file."""
        full = f"{self.folder}/{name}".encode()
        view = memoryview(data).cast("B")
        size, start = view.nbytes, self.position
        checksum = _checksum(view) if options.checksums else 0
        large = size >= _BIG
        extra = struct.pack("<HHQQ", 1, 16, size, size) if large else b""
        head = start + _LOCAL.size + len(full) + len(extra) + 4
        padding = -head % ALIGNMENT
        extra += struct.pack("<HH", 0x4246, padding) + b"Z" * padding  # "FB", as PyTorch pads
        short = _BIG if large else size
        self._write(
            _LOCAL.pack(b"PK\3\4", 45 if large else 20, _UTF8, 0, 0, 0, checksum, short, short, len(full), len(extra))
        )
        self._write(full)
        self._write(extra)
        for piece in pieces(view):
            self._write(piece)
        self.entries.append((full, checksum, size, start))

    def close(self) -> None:
        """Write the directory. The file itself stays open."""
        start = self.position
        for name, checksum, size, at in self.entries:
            fields = [x for x in (size, size, at) if x >= _BIG]
            extra = struct.pack(f"<HH{len(fields)}Q", 1, 8 * len(fields), *fields) if fields else b""
            short = min(size, _BIG)
            version = 45 if fields else 20
            lengths = (len(name), len(extra), 0)
            head = (b"PK\1\2", version, version, _UTF8, 0, 0, 0, checksum, short, short)
            self._write(_CENTRAL.pack(*head, *lengths, 0, 0, 0, min(at, _BIG)))
            self._write(name)
            self._write(extra)
        size, count, end = self.position - start, len(self.entries), self.position
        if count >= 0xFFFF or size >= _BIG or start >= _BIG:
            self._write(_END64.pack(b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start))
            self._write(_LOCATOR64.pack(b"PK\6\7", 0, end, 1))
        count = min(count, 0xFFFF)
        self._write(_END.pack(b"PK\5\6", 0, 0, count, count, min(size, _BIG), min(start, _BIG), 0))


# ---- reading ---------------------------------------------------------------------------------------------------------
class _Entry:
    """The directory's entry for a record; ``plain``: neither compressed nor encrypted. ``deflated``: compressed."""

    __slots__ = ("checksum", "deflated", "header", "packed", "plain", "size")

    def __init__(self, checksum: int, packed: int, size: int, header: int, method: int, encrypted: bool):
        self.checksum = checksum
        self.packed = packed
        self.size = size
        self.header = header
        self.plain = not encrypted and method == 0 and packed == size
        self.deflated = not encrypted and method == 8


def _broken(what: str) -> RuntimeError:
    return RuntimeError(f"load: the file is no intact archive: {what}. It may be truncated or damaged; fetch it again")


class ArchiveReader:
    """The records of an archive in ``data`` (bytes, an mmap, ...)."""

    def __init__(self, data: Any):
        self.data = memoryview(data).cast("B")
        self.entries: dict[str, _Entry] = {}
        try:
            self._read_directory()
        except (struct.error, UnicodeDecodeError) as error:
            raise _broken(str(error)) from None
        first = next(iter(self.entries), "")
        self.folder = first.partition("/")[0]

    def _read_directory(self) -> None:
        n = len(self.data)
        tail = bytes(self.data[max(0, n - 65557) :])
        at = tail.rfind(b"PK\5\6")
        if at < 0:
            raise _broken("it has no directory at its end")
        _, disk, _, _, count, size, start, _ = _END.unpack_from(tail, at)
        end = n - len(tail) + at
        if count == 0xFFFF or size == _BIG or start == _BIG:
            if end < _LOCATOR64.size:
                raise _broken("its directory is cut off")
            magic, _, at64, _ = _LOCATOR64.unpack_from(self.data, end - _LOCATOR64.size)
            if magic == b"PK\6\7":
                if at64 + _END64.size > n:
                    raise _broken("its directory lies outside of it")
                magic, _, _, _, _, _, _, count, size, start = _END64.unpack_from(self.data, at64)
                if magic != b"PK\6\6":
                    raise _broken("its directory has no beginning")
        if disk or start + size > end:
            raise _broken("its directory lies outside of it")
        self.limit = start
        total = 0
        for _ in range(count):
            start, entry_size = self._read_entry(start, end)
            total += entry_size
        if total > n:
            raise _broken(f"its records claim {total} bytes, the file has {n}")

    def _read_entry(self, at: int, end: int) -> tuple[int, int]:
        if at + _CENTRAL.size > end:
            raise _broken("its directory is cut off")
        fields = _CENTRAL.unpack_from(self.data, at)
        magic, flags, method, checksum, packed, size = fields[0], fields[3], fields[4], fields[7], fields[8], fields[9]
        name_size, extra_size, comment_size, header = fields[10], fields[11], fields[12], fields[16]
        at += _CENTRAL.size
        if magic != b"PK\1\2" or at + name_size + extra_size + comment_size > end:
            raise _broken("an entry of its directory is cut off")
        name = str(self.data[at : at + name_size], "utf-8")
        at += name_size
        if _BIG in (packed, size, header):
            packed, size, header = _large_fields(bytes(self.data[at : at + extra_size]), packed, size, header)
        if name in self.entries:
            raise _broken(f"it has two records named {name!r}")
        self.entries[name] = _Entry(checksum, packed, size, header, method, bool(flags & 1))
        return at + extra_size + comment_size, packed

    def has(self, name: str) -> bool:
        """Whether there is a record ``name`` in the folder."""
        return f"{self.folder}/{name}" in self.entries

    def locate(self, name: str) -> tuple[int, int, int]:
        """The start of a record's bytes, their number, and their checksum."""
        entry = self.entries.get(f"{self.folder}/{name}")
        if entry is None:
            raise _broken(f"it has no record {name!r}")
        if not entry.plain:
            raise RuntimeError(f"load: record {name!r} is compressed or encrypted, which tensors in files never are")
        return self._start(name, entry, entry.size), entry.size, entry.checksum

    def _start(self, name: str, entry: _Entry, size: int) -> int:
        """The start of a record's bytes, of which there are ``size``."""
        if entry.header + _LOCAL.size > self.limit:
            raise _broken(f"record {name!r} lies outside of it")
        header = _LOCAL.unpack_from(self.data, entry.header)
        start = entry.header + _LOCAL.size + header[9] + header[10]
        if header[0] != b"PK\3\4" or start + size > self.limit:
            raise _broken(f"record {name!r} lies outside of it")
        return start

    def read(self, name: str) -> memoryview:
        """A record's bytes, compared with their checksum."""
        start, size, checksum = self.locate(name)
        data = self.data[start : start + size]
        if checksum and _checksum(data) != checksum:  # PyTorch can be told to leave checksums out: then it is 0
            raise _broken(f"the checksum of record {name!r} is wrong")
        return data

    def read_text(self, name: str, limit: int = 2**26) -> str:
        """A record that is text, compressed or not; of ``limit`` bytes at most."""
        entry = self.entries.get(f"{self.folder}/{name}")
        data: Any = None
        if entry is not None and entry.deflated and entry.size <= limit:
            start = self._start(name, entry, entry.packed)
            try:
                data = zlib.decompressobj(-15).decompress(self.data[start : start + entry.packed], entry.size + 1)
            except zlib.error:
                raise _broken(f"record {name!r} cannot be decompressed") from None
            if len(data) != entry.size or (entry.checksum and zlib.crc32(data) != entry.checksum):
                raise _broken(f"the checksum of record {name!r} is wrong")
        elif self.locate(name)[1] <= limit:
            data = self.read(name)
        if data is None:
            raise _broken(f"record {name!r} has more than {limit} bytes")
        try:
            return str(data, "utf-8")
        except UnicodeDecodeError:
            raise _broken(f"record {name!r} is no text") from None


def _large_fields(extra: bytes, packed: int, size: int, header: int) -> tuple[int, int, int]:
    """The values that did not fit 32 bits, from the extra field."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            values = iter(struct.unpack_from(f"<{length // 8}Q", extra, at + 4))
            size = next(values, -1) if size == _BIG else size
            packed = next(values, -1) if packed == _BIG else packed
            header = next(values, -1) if header == _BIG else header
        at += 4 + length
    if min(packed, size, header) < 0:
        raise _broken("a size in its directory is missing")
    return packed, size, header
