"""Memory of the emulated devices: allocations that are never close to each other, and the state of each byte.

All of it is one range of this process: pinned memory, shared memory, the threads' states, the devices. As far behind it
lie the states of its bytes. A device's addresses are other ones, which are mapped without access, so that the host
crashes where it uses one.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
from dataclasses import dataclass

NONE, FRESH, WRITTEN, CONSTANT, FREED = 0, 1, 3, 7, 8  # the state of a byte; bit 0: may be accessed, 1: was written

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_LIBC.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_CLOSED, _OPEN = 0, 3  # PROT_NONE, PROT_READ | PROT_WRITE
_PRIVATE, _ANONYMOUS, _NORESERVE = 0x02, 0x20, 0x4000
_DONTNEED = 4

PINNED = 1 << 32
SHARED = 1 << 20
STATES = 1 << 32
DEVICE = 1 << 35  # addresses of a device; its memory is less
ALIGN = 512
GAP = 512  # bytes between two allocations, at least


def reserve(size: int, access: int = _OPEN) -> int:
    """Addresses of this process, of zeros; memory is used where it is written to."""
    address = _LIBC.mmap(None, size, access, _PRIVATE | _ANONYMOUS | _NORESERVE, -1, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "mmap: no addresses for the emulated device")
    return address


@dataclass
class Allocation:
    address: int
    size: int
    number: int
    freed: bool = False
    what: str = "memory"


class Arena:
    """A range from which memory is taken in order. What was freed comes again only when the range is used up."""

    def __init__(self, memory: Memory, first: int, size: int, shift: int, limit: int):
        self.memory, self.first, self.size, self.shift, self.limit = memory, first, size, shift, limit
        self.reset()

    def reset(self) -> None:
        self.top = self.first + GAP
        self.used = 0
        self.starts: list[int] = []  # of all allocations, freed ones too, in order
        self.allocations: dict[int, Allocation] = {}
        self.number = 0

    def allocate(self, nbytes: int, what: str = "memory", state: int = FRESH) -> Allocation | None:
        if self.used + nbytes > self.limit or nbytes <= 0:
            return None
        room = -(-nbytes // ALIGN) * ALIGN
        if self.top + room + GAP > self.first + self.size:
            at = self._reuse(room)
            if at is None:
                return None
        else:
            at, self.top = self.top, self.top + room + GAP
        self.number += 1
        a = Allocation(at + self.shift, nbytes, self.number, what=what)
        index = bisect.bisect_left(self.starts, a.address)
        if index == len(self.starts) or self.starts[index] != a.address:
            self.starts.insert(index, a.address)
        self.allocations[a.address] = a
        self.used += nbytes
        self.memory.mark(at, nbytes, state)
        return a

    def _reuse(self, room: int) -> int | None:
        for start in self.starts:
            a = self.allocations[start]
            if a.freed and -(-a.size // ALIGN) * ALIGN >= room:
                return start - self.shift
        return None

    def free(self, address: int) -> Allocation | None:
        a = self.allocations.get(address)
        if a is None or a.freed:
            return None
        a.freed = True
        self.used -= a.size
        at = a.address - self.shift
        self.memory.mark(at, a.size, FREED)
        pages = -(-at // 4096) * 4096
        end = (at + a.size) // 4096 * 4096
        if end - pages >= 1 << 16:
            _LIBC.madvise(pages, end - pages, _DONTNEED)
        return a

    def near(self, address: int) -> Allocation | None:
        """The allocation that holds an address, or the last that begins below it."""
        index = bisect.bisect_right(self.starts, address)
        return self.allocations[self.starts[index - 1]] if index else None

    def holds(self, address: int, nbytes: int) -> bool:
        a = self.near(address)
        return a is not None and not a.freed and a.address <= address and address + nbytes <= a.address + a.size


class Memory:
    def __init__(self, devices: int, device_bytes: int):
        self.size = PINNED + SHARED + STATES + devices * DEVICE
        self.base = reserve(self.size)
        self.delta = reserve(self.size) - self.base
        shown = reserve(devices * DEVICE, _CLOSED)
        at = self.base
        self.pinned = Arena(self, at, PINNED, 0, PINNED // 2)
        self.shared = at + PINNED
        self.states = self.shared + SHARED
        at = self.states + STATES
        self.shift = shown - at
        self.devices = [Arena(self, at + k * DEVICE, DEVICE, self.shift, device_bytes) for k in range(devices)]

    @functools.cached_property
    def races(self) -> int:
        """Where 16 bytes tell of the accesses of each byte of memory."""
        return reserve(16 * self.size)

    def mark(self, at: int, nbytes: int, state: int) -> None:
        """Bytes in this process's addresses get a state."""
        ctypes.memset(at + self.delta, state, nbytes)

    def states_of(self, at: int, nbytes: int) -> bytes:
        return ctypes.string_at(at + self.delta, nbytes)

    def arena(self, address: int) -> Arena | None:
        """Where an address of the emulated driver lies."""
        for arena in (self.pinned, *self.devices):
            if arena.first <= address - arena.shift < arena.first + arena.size:
                return arena
        return None

    def reset(self) -> None:
        for arena in (self.pinned, *self.devices):
            used = -(-(arena.top - arena.first) // 4096) * 4096
            for start in (arena.first, arena.first + self.delta):
                _LIBC.madvise(start, used, _DONTNEED)
            if "races" in self.__dict__:
                _LIBC.madvise(self.races + 16 * (arena.first - self.base), 16 * used, _DONTNEED)
            arena.reset()
