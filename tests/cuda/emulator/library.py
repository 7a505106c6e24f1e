"""What stand-ins of NVIDIA's libraries share: functions in C, handles, and work on the memory of emulated devices.

``TAEDA_EMULATOR_LIBRARIES=cufft,cusolver`` says which there are. Without it there is none, and results have the CPU's
bits.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .capture import Failed
from .driver import Missing
from .faults import Fault
from .memory import WRITTEN

P, N, I, L = ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int, ctypes.c_longlong


class Refused(Exception):
    """A function of the library gives an error: its number, and why."""


def table_of(make: Callable[[], StandIn], name: str) -> dict[str, int]:
    """The C address of each function of a library, which has to be asked for."""
    if name not in os.environ.get("TAEDA_EMULATOR_LIBRARIES", "").split(","):
        raise LookupError(f"TAEDA_EMULATOR_LIBRARIES does not name {name}")
    return dict(make().functions)


class Operand:
    """Elements in the memory of a device.

    Args:
        address: of the first one.
        strides: in elements; None where they are contiguous, the last dimension innermost.
        writes: whether they are written; else they are read.
        reads: whether those that are written are read before.
    """

    def __init__(
        self, address: int, dtype: Any, shape: tuple, strides: tuple | None = None, writes: bool = False,
        reads: bool | None = None,
    ):  # fmt: skip
        self.address, self.dtype, self.shape = address, np.dtype(dtype), tuple(shape)
        self.strides = strides or tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))
        self.writes, self.reads = writes, not writes if reads is None else reads

    @property
    def nbytes(self) -> int:
        """From the first byte to behind the last."""
        if 0 in self.shape:
            return 0
        last = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return (last + 1) * self.dtype.itemsize

    def array(self, at: int) -> np.ndarray:
        buffer = (ctypes.c_ubyte * self.nbytes).from_address(at)
        return np.ndarray(self.shape, self.dtype, buffer, 0, [s * self.dtype.itemsize for s in self.strides])

    def states(self, at: int) -> np.ndarray:
        buffer = (ctypes.c_ubyte * self.nbytes).from_address(at)
        strides = [*(s * self.dtype.itemsize for s in self.strides), 1]
        return np.ndarray((*self.shape, self.dtype.itemsize), np.uint8, buffer, 0, strides)


class StandIn:
    """A library: its methods are the functions. ``CUDA_ERROR``, ``INTERNAL`` and ``INVALID`` are numbers of errors."""

    name = ""
    CUDA_ERROR = INTERNAL = INVALID = 0

    def __init__(self, driver: Any, signatures: Mapping[str, tuple]):
        self.driver, self.keep = driver, []
        self.numbers = itertools.count(0x10, 0x10)
        self.handles: dict[int, Any] = {}
        self.calls: list[str] = []  # the names of those that queued work
        self.functions = {name: self.export(name, args) for name, args in signatures.items()}

    def export(self, name: str, args: tuple) -> int:
        method = getattr(self, name)

        def called(*given: Any) -> int:
            try:
                with self.driver.lock:
                    method(*given)
                return 0
            except Refused as error:
                number, why = error.args
                if why:  # else the caller may have asked what there is
                    self.driver.faults.append(Fault(self.name, f"{name}: {why}", 0))
                return number
            except Failed:
                return self.CUDA_ERROR
            except BaseException as error:
                self.driver.note(f"{name}: {error!r}")
                return self.INTERNAL

        callback = ctypes.CFUNCTYPE(I, *args)(called)
        self.keep.append(callback)
        return ctypes.cast(callback, ctypes.c_void_p).value or 0

    def refuse(self, why: str) -> Refused:
        return Refused(self.INVALID, why)

    def context(self) -> Any:
        """The calling thread's context."""
        return self.driver.context()

    def take(self, handle: int, kind: type) -> Any:
        thing = self.handles.get(handle)
        if not isinstance(thing, kind):
            raise self.refuse(f"{handle:#x} is no handle, or was destroyed")
        if thing.context is not self.context():
            raise self.refuse("the handle is one of another device than the current one")
        return thing

    def places(self, context: Any, operands: list[Operand]) -> list[int]:
        """Where the operands of work are in the host's memory."""
        places = []
        for x in operands:
            if x.address % x.dtype.itemsize:
                raise self.refuse(f"{x.address:#x} is no address of a {x.dtype}")
            if self.driver.memory.arena(x.address) is not context.arena:
                raise self.refuse(f"{x.address:#x} is no memory of the device")
            places.append(self.driver.on_device(x.address, x.nbytes))
        for i, a in enumerate(operands):
            for b in operands[:i]:
                apart = a.address + a.nbytes <= b.address or b.address + b.nbytes <= a.address
                if (a.writes or b.writes) and not apart and a.address != b.address:
                    raise self.refuse("operands overlap")
        return places

    def run_on(self, context: Any, operands: list[Operand], places: list[int], do: Callable) -> None:
        """Run ``do`` of the operands as arrays. What is read must have been written."""
        delta = self.driver.memory.delta
        for x, at in zip(operands, places, strict=True):
            states = x.states(at + delta)
            if not (states & 1).all() or (states & 8).any():
                raise Missing(x.address, x.nbytes, "copy")
            if x.reads and not (states & 2).all():
                raise Failed(f"{x.shape} {x.dtype} at {x.address:#x}: some were never written")
            self.driver.touch(context, [(x.address, at, x.writes)], x.nbytes)
        do(*(x.array(at) for x, at in zip(operands, places, strict=True)))
        for x, at in zip(operands, places, strict=True):
            if x.writes:
                x.states(at + delta)[...] = WRITTEN

    def queue_batch(
        self, name: str, stream: Any, count: int, tables: list[tuple[int, Callable[[int], Operand]]],
        others: list[Operand], do: Callable,
    ) -> Any:  # fmt: skip
        """Work on ``count`` matrices whose addresses are in tables on the device, which are read when the work is done.

        Args:
            tables: of each its address, and the operand at an address that is in it.
            others: further operands.
            do: gets the number of a matrix, its operands and the others.
        """

        def run(*arrays: np.ndarray) -> None:
            listed, rest = arrays[: len(tables)], arrays[len(tables) :]
            for i in range(count):
                operands = [make(int(at[i])) for at, (_, make) in zip(listed, tables, strict=True)]
                try:
                    places = self.places(stream.context, operands)
                except Refused as error:
                    raise Failed(f"matrix {i}: {error.args[1]}") from None
                self.run_on(stream.context, operands, places, lambda *of, i=i: do(i, *of, *rest))

        given = [Operand(at, "u8", (count,)) for at, _ in tables]
        return self.queue(name, stream, [*given, *others], run)

    def queue(
        self, name: str, stream: Any, operands: list[Operand], do: Callable, alive: Callable = lambda: True
    ) -> Any:
        """Work on ``stream``: ``do`` gets the operands as arrays. What is read must have been written."""
        driver, context = self.driver, stream.context
        if context is not self.context():
            raise self.refuse("the stream is one of another device than the current one")
        operands = [x for x in operands if x.nbytes]
        places = self.places(context, operands)
        self.calls.append(name)

        def guarded() -> None:
            try:
                if not alive():
                    raise Failed("its handle was destroyed before the work was done")
                self.run_on(context, operands, places, do)
            except Failed as error:
                driver.faults.append(Fault(self.name, f"{name}: {error.name}", 719))
                context.error = 719

        return driver.queue(stream, driver.guarded(context, guarded))
