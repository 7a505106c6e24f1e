"""Compiled kernels that come with a wheel: one file, made by ``tools/shipped.py`` when the wheel is made.

A kernel is found by the hash of its text and the target that it would be compiled for. The file is used where the
compiler has the version that made it. So a program computes the same with the file as without it. A damaged file is as
none: kernels are compiled.

The file: a line of JSON (``compiler``: its version; ``targets``: their keys; ``kernels``: how many entries), then an
entry of 28 bytes for each kernel, sorted by hash (16 bytes of the hash; a number whose bit ``i`` says that the code is
that of target ``i``; where the code begins; its size), then the code, each compressed with zlib, which adds a checksum.
"""

from __future__ import annotations

import json
import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path

from .files import atomic_write, read_regular

PATH = Path(__file__).with_name("shipped.pack")
_ENTRY = struct.Struct("<16sIII")


class Pack:
    """The kernels of the file at ``path`` for a compiler; none where there is no such file, or another made it."""

    def __init__(self, compiler: str, path: Path = PATH):
        self._content = memoryview(read_regular(path) or b"")
        head, _, _ = bytes(self._content[:4096]).partition(b"\n")
        try:
            about = json.loads(head)
            usable = about["compiler"] == compiler
            self.targets: list[str] = list(about["targets"]) if usable else []
            self.kernels = int(about["kernels"])
        except (ValueError, KeyError, TypeError):
            self.targets, self.kernels = [], 0
        self._start = len(head) + 1
        if self._start + self.kernels * _ENTRY.size > len(self._content):
            self.targets, self.kernels = [], 0

    def _entry(self, i: int) -> tuple[bytes, int, int, int]:
        return _ENTRY.unpack_from(self._content, self._start + i * _ENTRY.size)

    def find(self, digest: str, target: str) -> bytes | None:
        """The object code of the kernel whose text has the SHA-256 ``digest`` (hex), for a target's key."""
        if target not in self.targets:
            return None
        bit, wanted = 1 << self.targets.index(target), bytes.fromhex(digest)[:16]
        for i in range(bisect_left(range(self.kernels), wanted, key=lambda i: self._entry(i)[0]), self.kernels):
            found, targets, start, size = self._entry(i)
            if found != wanted:
                break
            if targets & bit:
                start += self._start + self.kernels * _ENTRY.size
                try:
                    return zlib.decompress(self._content[start : start + size])
                except zlib.error:
                    break
        return None


def write(path: Path, compiler: str, kernels: Iterable[tuple[str, str, bytes]]) -> None:
    """Make a pack of (digest of a kernel's text, key of a target, object code). Equal code of a text is kept once."""
    kernels = list(kernels)
    targets = sorted({target for _, target, _ in kernels})
    masks: dict[tuple[bytes, bytes], int] = {}
    for digest, target, code in kernels:
        key = bytes.fromhex(digest)[:16], code
        masks[key] = masks.get(key, 0) | 1 << targets.index(target)
    entries, blobs, start = bytearray(), [], 0
    for (digest, code), mask in sorted(masks.items()):
        blobs.append(zlib.compress(code, 9))
        entries += _ENTRY.pack(digest, mask, start, len(blobs[-1]))
        start += len(blobs[-1])
    head = json.dumps({"compiler": compiler, "targets": targets, "kernels": len(blobs)}).encode()
    with atomic_write(path) as file:
        file.write(head + b"\n" + entries + b"".join(blobs))
