"""Device ``far``: memory that the host cannot read, to find code that would, without another device at hand.

``import taeda.testing.far`` adds the device; ``x.to("far")`` moves a tensor there. Its memory is mapped without access,
and opened for the length of a launch or a copy alone. Whoever reads it elsewhere ends the process with a segmentation
fault; with ``python -X faulthandler`` the report names the line. Its kernels compute one element at a time, by the same
bodies as those of the CPU: with ``TAEDA_TARGET=lane`` the CPU's give the same bits.

Linux and macOS, as it needs ``mprotect``. A device of one's own is written in the same way: docs/devices.md.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from .._core.devices import DEVICE_TYPES, Contract, register_device
from ..kernels.build import is_kernel, source
from ..kernels.host_functions import NAMES

__all__ = ["Far", "count_launches"]

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_CLOSED, _OPEN = 0, 3  # PROT_NONE, PROT_READ | PROT_WRITE
_PRIVATE, _ANONYMOUS, _NORESERVE = 0x02, 0x20, 0x4000
_SIZE = 1 << 34  # bytes of addresses; memory is used where it is written to
_LINE = 64
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Far(Contract):
    """Memory of the processor, closed but in launches and copies."""

    fuses = True

    def __init__(self) -> None:
        address = _LIBC.mmap(None, _SIZE, _CLOSED, _PRIVATE | _ANONYMOUS | _NORESERVE, -1, 0)
        if address in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), "mmap: no addresses for device far")
        self._begin = self._top = address
        self._free: dict[int, list[int]] = {}  # addresses of blocks that were given back, by size
        self._inside = 0
        self._lock = threading.RLock()
        self._built: set[int] = set()
        self.launches = 0

    # ---- memory ------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        size = max(-(-nbytes // _LINE) * _LINE, _LINE)
        with self._lock:
            if self._free.get(size):
                return self._free[size].pop()
            if self._top + size > self._begin + _SIZE:
                return 0
            self._top += size
            return self._top - size

    def release(self, address: int, nbytes: int) -> None:
        if not self._begin <= address < self._top:
            raise RuntimeError(f"device far was given back memory that is not its own, at {address:#x}")
        with self._lock:
            self._free.setdefault(max(-(-nbytes // _LINE) * _LINE, _LINE), []).append(address)

    def _protect(self, access: int) -> None:
        size = -(-(self._top - self._begin) // 4096) * 4096
        if size and _LIBC.mprotect(self._begin, size, access):
            raise OSError(ctypes.get_errno(), "mprotect: the memory of device far")

    def __enter__(self) -> None:
        """The memory is open within the block."""
        self._lock.acquire()
        self._inside += 1
        if self._inside == 1:
            self._protect(_OPEN)

    def __exit__(self, *exc: Any) -> None:
        self._inside -= 1
        if not self._inside:
            self._protect(_CLOSED)
        self._lock.release()

    # ---- work --------------------------------------------------------------------------------------------------------

    def build(self, name: str, args: tuple, compile: Callable[[], int]) -> int:
        kernel = compile()
        self._built.add(kernel)
        return kernel

    def launch(self, kernel: int, pointers: tuple, numbers: tuple, total: int, grain: int) -> None:
        if kernel not in self._built and is_kernel(kernel) and kernel not in NAMES:
            raise RuntimeError(f"device far was given a kernel of another device: {source(kernel).label}")
        self.launches += 1
        where = (ctypes.c_void_p * max(len(pointers), 1))(*pointers)
        given = (ctypes.c_int64 * max(len(numbers), 1))(*numbers)
        with self:
            for begin in range(0, total, grain):
                _KERNEL(kernel)(where, given, begin, min(begin + grain, total))

    def copy(self, to: int, source: int, nbytes: int, way: int) -> None:
        with self:
            ctypes.memmove(to, source, nbytes)

    def fill(self, to: int, value: int, nbytes: int) -> None:
        self.launches += 1
        with self:
            ctypes.memset(to, value, nbytes)

    def properties(self) -> dict[str, Any]:
        return {"name": "memory closed to the host", "lanes": 1, "bytes in use": self._top - self._begin}


def count_launches() -> int:
    """The number of kernels that ran on the device so far."""
    return _far.launches


_far = Far()
if "far" not in DEVICE_TYPES:
    register_device("far", lambda index: _far)
