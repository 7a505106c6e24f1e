"""What the accesses of a kernel cost: sectors of global memory, conflicts of the banks of shared memory.

The lanes of a warp run one after the other here. The k-th time that a lane comes to an instruction is taken as one
access with the k-th time of the other lanes, as it is where they stay together.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np

from .runtime import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW

SECTOR = 32  # bytes that memory is read and written in
BANKS = 32  # of 4 bytes
SHARED_WORDS = 1 << 16  # more than a block has
MOST = 1 << 22  # accesses between two digests


@dataclass
class Traffic:
    """Accesses of one kind, over all launches of a kernel."""

    requests: int = 0  # of a warp
    accesses: int = 0  # of threads
    wanted: int = 0  # bytes that the threads of a warp ask for, each once
    sectors: int = 0
    wavefronts: int = 0  # passes over the banks of shared memory
    least: int = 0  # of them, if no two lanes met at a bank

    @property
    def bytes(self) -> int:
        """What goes over the bus."""
        return self.sectors * SECTOR

    @property
    def used(self) -> float:
        """The part of the sectors that was asked for."""
        return self.wanted / self.bytes if self.sectors else 1.0

    @property
    def conflicts(self) -> int:
        return self.wavefronts - self.least


@dataclass
class Counters:
    """Of one kernel: ``traffic`` by ``("global", "load")`` and the like, and by the line of the PTX."""

    launches: int = 0
    instructions: int = 0
    warps: int = 0  # that access memory
    traffic: dict[tuple[str, str], Traffic] = field(default_factory=dict)
    lines: dict[int, Traffic] = field(default_factory=dict)

    def of(self, space: str, way: str) -> Traffic:
        return self.traffic.setdefault((space, way), Traffic())


def _pairs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Equal pairs become equal numbers, in the order of the pairs."""
    low, room = int(b.min()), int(b.max()) - int(b.min()) + 1
    if (int(a.max()) + 1) * room >= 1 << 62:
        a = np.unique(a, return_inverse=True)[1].reshape(-1)
    return a * room + (b - low)


class Trace:
    """The buffer that kernels write their accesses to."""

    def __init__(self) -> None:
        self.records = np.zeros((MOST, 2), np.uint64)
        self.kernels: dict[str, Counters] = {}
        self.current = Counters()
        self.digest_function = ctypes.CFUNCTYPE(None)(self.digest)

    def attach(self, words, fields: dict[str, int]) -> None:
        self.words, self.at = words, fields["TRACE_COUNT"]
        words[fields["TRACE"]] = self.records.ctypes.data
        words[fields["TRACE_COUNT"]] = 0
        words[fields["TRACE_MOST"]] = MOST
        words[fields["DIGEST"]] = ctypes.cast(self.digest_function, ctypes.c_void_p).value

    def begin(self, name: str) -> None:
        self.current = self.kernels.setdefault(name, Counters())
        self.current.launches += 1

    def digest(self) -> None:
        """Counts what is in the buffer, which ends with a block."""
        count = int(self.words[self.at])
        if count >= MOST - 1:
            raise MemoryError("a block of the kernel makes more accesses than the trace has room for")
        self.words[self.at] = 0
        if not count:
            return
        address = self.records[:count, 0].astype(np.int64)
        what = self.records[:count, 1].astype(np.int64)
        line, size, write = what & 0xFFFFF, what >> 20 & 63, what >> 26 & 1
        space, thread, block = what >> 27 & 3, what >> 30 & 1023, what >> 40
        for number, window in enumerate((SHARED_WINDOW, LOCAL_WINDOW, PARAM_WINDOW), 1):  # by generic addresses
            space = np.where(address >> 40 == window >> 40, number, space)
        self.current.warps += len(np.unique(block << 5 | thread >> 5))
        who = (block << 30 | line << 10) | thread
        order = np.argsort(who, kind="stable")
        first = np.r_[True, who[order][1:] != who[order][:-1]]
        start = np.maximum.accumulate(np.where(first, np.arange(count), 0))
        turn = np.empty(count, np.int64)
        turn[order] = np.arange(count) - start
        request = np.unique(_pairs(block << 30 | line << 10 | thread >> 5, turn), return_inverse=True)[1].reshape(-1)
        for s, name in enumerate(("global", "shared", "local")):
            for w, way in enumerate(("load", "store")):
                mask = (space == s) & (write == w)
                if mask.any():
                    self._add([self.current.of(name, way)], s, address[mask], size[mask], request[mask], thread[mask])
        for n in np.unique(line):
            mask = line == n
            one = self.current.lines.setdefault(int(n), Traffic())
            self._add([one], int(space[mask][0]), address[mask], size[mask], request[mask], thread[mask])

    def _add(self, totals: list[Traffic], space: int, address, size, request, thread) -> None:
        requests = len(np.unique(request))
        wanted = size[np.unique(_pairs(request, address), return_index=True)[1]].sum()
        sectors = wavefronts = least = 0
        if space == 1:
            for n in np.unique(size):
                m = size == n
                words = max(int(n) // 4, 1)
                part = request[m] * words + (thread[m] & 31) // (32 // words)  # lanes that are served together
                place = np.concatenate([address[m] // 4 % SHARED_WORDS + k for k in range(words)])
                found = np.unique(np.tile(part, words) * SHARED_WORDS + place)
                banks, times = np.unique(found // SHARED_WORDS * BANKS + found % BANKS, return_counts=True)
                groups, at = np.unique(banks // BANKS, return_inverse=True)
                worst = np.zeros(len(groups), np.int64)
                np.maximum.at(worst, at.reshape(-1), times)
                wavefronts += int(worst.sum())
                least += len(groups)
        else:
            sectors = len(np.unique(_pairs(request, address // SECTOR)))
        for t in totals:
            t.requests += requests
            t.accesses += len(address)
            t.wanted += int(wanted)
            t.sectors += sectors
            t.wavefronts += wavefronts
            t.least += least
