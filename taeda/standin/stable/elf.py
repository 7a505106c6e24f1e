"""Libraries that name PyTorch's own libraries as what they need: copies of them that do not.

Source of the format: the System V ABI, chapters 4 and 5, and the Linux Standard Base on symbol versions.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from pathlib import Path
from typing import Any

from taeda.kernels import build
from taeda.kernels.files import atomic_write

#: The functions of these are those of :mod:`.native`.
REPLACED = re.compile(r"lib(torch|c10|cudart)[\w-]*\.so[.\d]*$")
NEEDED, STRTAB, SYMTAB, STRSZ, RUNPATH, RPATH = 1, 5, 6, 10, 29, 15
VERSYM, VERNEED, VERNEEDNUM = 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF
IGNORED = 0x5FFFFFFF  # a tag that no loader knows


class _Image:
    """A shared library of 64 bits, little-endian, and its dynamic section."""

    def __init__(self, data: bytearray) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise OSError("it is no ELF library of 64 bits")
        self.data = data
        (offset,) = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        headers = [struct.unpack_from("<IIQQQQ", data, offset + i * size) for i in range(count)]
        self.loads = [(virtual, at, length) for kind, _, at, virtual, _, length in headers if kind == 1]
        start, length = next((at, n) for kind, _, at, _, _, n in headers if kind == 2)
        self.entries = [(at, *struct.unpack_from("<qQ", data, at)) for at in range(start, start + length, 16)]
        self.tags = {tag: value for _, tag, value in reversed(self.entries)}
        self.strings = self.place(self.tags[STRTAB])

    def place(self, virtual: int) -> int:
        """The place in the file of an address of the loaded library."""
        return next(at + virtual - v for v, at, length in self.loads if v <= virtual < v + length)

    def text(self, offset: int) -> str:
        start = self.strings + offset
        return self.data[start : self.data.index(0, start)].decode()

    def named(self, tag: int) -> list[tuple[int, str]]:
        """The entries of a tag whose value is a text."""
        return [(at, self.text(value)) for at, t, value in self.entries if t == tag]


def prepared(path: Path) -> Path:
    """The library, or a copy that needs none of PyTorch's and finds what lies beside the library.

    Raises:
        OSError: it cannot be read, or is not of this kind of machine.
    """
    image = _Image(bytearray(path.read_bytes()))
    replaced = [at for at, name in image.named(NEEDED) if REPLACED.match(name)]
    if not replaced:
        return path
    for at in replaced:
        struct.pack_into("<q", image.data, at, IGNORED)
    _without_versions(image)
    digest = hashlib.sha256(os.fsencode(path) + image.data).hexdigest()[:32]
    target = Path(build.cache_dir(), "libraries", digest, *path.parts[-4:])
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        for folder in {d for tag in (RUNPATH, RPATH) for _, text in image.named(tag) for d in text.split(":")}:
            _link(folder, path.parent, target.parent, [name for _, name in image.named(NEEDED)])
        with atomic_write(target, sync=False) as file:
            file.write(image.data)
    return target


def _link(folder: str, old: Path, new: Path, names: list[str]) -> None:
    """Let libraries of these names be found in a folder as ``$ORIGIN/../package.libs`` from ``new`` as from ``old``."""
    origin = re.match(r"\$(ORIGIN|\{ORIGIN\})/?", folder)
    if origin is None:
        return
    source, target = (Path(os.path.normpath(at / folder[origin.end() :])) for at in (old, new))
    pairs = [(source / name, target / name) for name in names] if target == new else [(source, target)]
    for was, found in pairs:
        if was.exists() and not found.exists():
            found.parent.mkdir(parents=True, exist_ok=True)
            found.symlink_to(was)


def _without_versions(image: Any) -> None:
    """Drop the versions of symbols of the replaced libraries, and give those of CUDA's runtime names of their own."""
    data, tags = image.data, image.tags
    if VERNEED not in tags:
        return
    at, dropped, left, previous = image.place(tags[VERNEED]), set(), tags[VERNEEDNUM], None
    first = tags[VERNEED]
    while True:
        _, count, file, auxiliary, following = struct.unpack_from("<HHIII", data, at)
        if REPLACED.match(image.text(file)):
            entry = at + auxiliary
            for _ in range(count):
                _, _, other, _, after = struct.unpack_from("<IHHII", data, entry)
                dropped.add(other)
                entry += after
            left -= 1
            if previous is None:
                first += following
            else:
                skip = struct.unpack_from("<I", data, previous + 12)[0]
                struct.pack_into("<I", data, previous + 12, skip + following if following else 0)
        else:
            previous = at
        if not following:
            break
        at += following
    if not dropped:
        return
    for at, tag, _ in image.entries:
        if tag == VERNEED:
            struct.pack_into("<Q", data, at + 8, first)
        elif tag == VERNEEDNUM:
            struct.pack_into("<Q", data, at + 8, left)
    symbols, versions = image.place(tags[SYMTAB]), image.place(tags[VERSYM])
    for i in range((image.place(tags[STRTAB]) - symbols) // 24):
        (version,) = struct.unpack_from("<H", data, versions + 2 * i)
        if version & 0x7FFF in dropped:
            (name,) = struct.unpack_from("<I", data, symbols + 24 * i)
            start = image.strings + name
            found = data.find(b"cuda", start, data.index(0, start))
            if found >= 0:
                data[found : found + 4] = b"none"
            struct.pack_into("<H", data, versions + 2 * i, 1)  # any version
