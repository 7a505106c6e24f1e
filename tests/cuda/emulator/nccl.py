"""A stand-in of NCCL for the emulated devices of several processes: ``table()`` gives the C address of each function.

Processes exchange files in a folder that the unique id names. Names, arguments and numbers are those of NVIDIA's
``nccl.h`` (NCCL 2). Work is queued on its stream; it begins when what comes before is done, and is done when the others'
part is here. A message is over when it was taken. Values are combined in the order of ranks, half precision in float32
and rounded once. Calls that do not agree are a fault.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import itertools
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .capture import Failed, put
from .driver import Context, Missing
from .faults import Fault
from .memory import FREED, FRESH, NONE, WRITTEN

P, N, I = ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int


class UniqueId(ctypes.Structure):
    _fields_ = (("internal", ctypes.c_char * 128),)


SIGNATURES: dict[str, tuple] = {
    "ncclGetVersion": (P,), "ncclGetUniqueId": (P,), "ncclCommInitRank": (P, I, UniqueId, I), "ncclCommDestroy": (P,),
    "ncclCommGetAsyncError": (P, P), "ncclAllReduce": (P, P, N, I, I, P, P),
    "ncclBroadcast": (P, P, N, I, I, P, P), "ncclReduce": (P, P, N, I, I, I, P, P), "ncclAllGather": (P, P, N, I, P, P),
    "ncclReduceScatter": (P, P, N, I, I, P, P), "ncclSend": (P, N, I, I, P, P), "ncclRecv": (P, N, I, I, P, P),
    "ncclGroupStart": (), "ncclGroupEnd": (),
}  # fmt: skip
_TEXTS = ("no error", "unhandled cuda error (run with NCCL_DEBUG=INFO for details)", "unhandled system error",
          "internal error", "invalid argument (run with NCCL_DEBUG=WARN for details)",
          "invalid usage (run with NCCL_DEBUG=WARN for details)", "remote process exited or there was a network error",
          "NCCL operation in progress")  # fmt: skip
CUDA_ERROR, INTERNAL, INVALID_ARGUMENT, INVALID_USAGE = 1, 3, 4, 5
VERSION = 22803

#: By NCCL's number: NumPy's dtype; the one in which values are combined.
DTYPES = [
    (np.dtype(kind), np.dtype(wide)) for kind, wide in (
        ("i1", "i1"), ("u1", "u1"), ("i4", "i4"), ("u4", "u4"), ("i8", "i8"), ("u8", "u8"), ("f2", "f4"), ("f4", "f4"),
        ("f8", "f8"), ("u2", "f4"),
    )
]  # fmt: skip
BFLOAT16 = 9
SUM, PRODUCT, MAX, MIN, AVERAGE = range(5)


class Refused(Exception):
    """A function of NCCL gives an error: its number, and why."""


def _wide(data: Any, dtype: int) -> np.ndarray:
    kind, wide = DTYPES[dtype]
    x = np.frombuffer(data, kind)
    return (x.astype(np.uint32) << 16).view(np.float32) if dtype == BFLOAT16 else x.astype(wide)


def _narrow(x: np.ndarray, dtype: int) -> bytes:
    if dtype != BFLOAT16:
        return x.astype(DTYPES[dtype][0]).tobytes()
    bits = x.astype(np.float32).view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), rounded).astype(np.uint16).tobytes()


def combined(parts: list, dtype: int, op: int) -> bytes:
    """The bytes of ``parts``, combined in their order."""
    values = [_wide(part, dtype) for part in parts]
    floating = dtype == BFLOAT16 or DTYPES[dtype][0].kind == "f"
    with np.errstate(all="ignore"):
        if op == AVERAGE and floating:  # NCCL scales before it adds
            values = [x * DTYPES[dtype][1].type(1 / len(parts)) for x in values]
        how = {SUM: np.add, AVERAGE: np.add, PRODUCT: np.multiply, MAX: np.maximum, MIN: np.minimum}[op]
        result = functools.reduce(how, values)
        if op == AVERAGE and not floating:
            result = result // len(parts)
    return _narrow(result, dtype)


class Comm:
    """A communicator: this process's rank among some, and its device."""

    def __init__(self, driver: Any, folder: Path, rank: int, size: int, context: Context):
        self.driver, self.folder, self.rank, self.size, self.context = driver, folder, rank, size, context
        self.counts: Counter = Counter()
        self.last: Any = None  # its work that was queued last: a communicator's work is done in order
        self.closed = False
        self.others = [other for other in range(size) if other != rank]

    def post(self, key: str, to: int, words: bytes) -> Path:
        path = self.folder / f"{key}-{self.rank}-{to}"
        draft = path.with_suffix(".draft")
        draft.write_bytes(words)
        draft.rename(path)
        return path

    def leave(self) -> None:
        """The last one removes the folder."""
        if self.closed:
            return
        self.closed = True
        (self.folder / f"member-{self.rank}").unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another one that left last removes it
            (self.folder / f"left-{self.rank}").touch()
            if len(list(self.folder.glob("left-*"))) == self.size:
                for path in self.folder.iterdir():
                    path.unlink(missing_ok=True)
                self.folder.rmdir()


class Part:
    """One call: what it sends to whom, from whom it hears, and what it makes of that."""

    def __init__(self, comm: Comm, key: str, call: str):
        self.comm, self.key, self.call = comm, key, call.encode()
        self.reads: dict[int, tuple[int, int]] = {}  # by rank: an address, a number of bytes
        self.hears: list[int] = []
        self.heard: dict[int, bytes] = {}
        self.make: Callable[[dict[int, bytes]], None] = lambda heard: None
        self.handed = False  # it is over when the others have taken what it sent
        self.touches: list[tuple[int, int, bool]] = []  # memory: an address, a number of bytes, whether it writes
        self.sums = False
        self.posted: list[Path] = []

    def begin(self) -> None:
        driver = self.comm.driver
        for to, (address, nbytes) in self.reads.items():
            words = self.call + b"\n" + (read(driver, address, nbytes, self.sums) if nbytes else b"")
            self.posted.append(self.comm.post(self.key, to, words))

    def is_ready(self) -> bool:
        """Take what is here; whether that is all, and the others have taken what they must."""
        for source in self.hears:
            path = self.comm.folder / f"{self.key}-{source}-{self.comm.rank}"
            if source not in self.heard and path.exists():
                call, _, self.heard[source] = path.read_bytes().partition(b"\n")
                path.unlink()
                if call != self.call:
                    raise Failed(f"rank {self.comm.rank} does {self.call.decode()}, rank {source} {call.decode()}")
        return len(self.heard) == len(self.hears) and not (self.handed and any(path.exists() for path in self.posted))


def read(driver: Any, address: int, nbytes: int, sums: bool = False) -> bytes:
    at, known = driver.place(address, nbytes)
    if known:
        states = driver.memory.states_of(at, nbytes)
        if NONE in states or FREED in states:
            raise Failed(f"{nbytes} bytes are read at {address:#x}, which is no memory now")
        if sums and FRESH in states:
            raise Failed(f"{nbytes} bytes are combined at {address:#x}, of which some were never written")
    return ctypes.string_at(at, nbytes)


def write(driver: Any, address: int, data: bytes) -> None:
    if data:
        at, known = driver.place(address, len(data))
        states = driver.memory.states_of(at, len(data))
        if NONE in states or FREED in states:
            raise Failed(f"{len(data)} bytes are written at {address:#x}, which is no memory now")
        ctypes.memmove(at, data, len(data))
        if known:
            driver.memory.mark(at, len(data), WRITTEN)


class Work:
    """The calls of a group on one stream, which begin and end together."""

    def __init__(self, parts: list[Part]):
        self.parts, self.begun = parts, False
        self.comms = list({id(p.comm): p.comm for p in parts}.values())
        self.context = self.comms[0].context

    def failed(self, why: str) -> None:
        self.context.driver.faults.append(Fault("nccl", why, 719))
        self.context.error = 719

    def ready(self) -> bool:
        if self.context.error:
            return True
        try:
            if not self.begun:
                self.begun = True
                for part in self.parts:
                    part.begin()
            return all([part.is_ready() for part in self.parts])
        except Failed as error:
            self.failed(error.name)
            return True

    def do(self) -> None:
        try:
            for part in self.parts:
                part.make(part.heard)
                for address, n, writes in sorted(part.touches, key=lambda x: not x[2]):  # writes find readers
                    if n:
                        self.context.driver.touch(
                            self.context, [(address, self.context.driver.place(address, n)[0], writes)], n
                        )
        except Failed as error:
            self.failed(error.name)
        except Missing as error:
            self.failed(f"{error.args[1]} bytes at {error.args[0]:#x} are accessed, and nothing orders that")


class Nccl:
    """The functions."""

    def __init__(self, driver: Any):
        self.driver = driver
        self.comms: dict[int, Comm] = {}
        self.numbers = itertools.count(0x7000, 0x10)
        self.here = threading.local()
        self.why = ctypes.create_string_buffer(512)
        self.keep: list = [ctypes.create_string_buffer(text.encode()) for text in _TEXTS]
        texts = [ctypes.addressof(text) for text in self.keep]
        self.functions = {name: self.export(name, args) for name, args in SIGNATURES.items()}
        for name, args, function in (
            ("ncclGetErrorString", (I,), lambda code: texts[code] if 0 <= code < len(texts) else texts[INTERNAL]),
            ("ncclGetLastError", (P,), lambda comm: ctypes.addressof(self.why)),
        ):
            callback = ctypes.CFUNCTYPE(ctypes.c_void_p, *args)(function)
            self.keep.append(callback)
            self.functions[name] = ctypes.cast(callback, ctypes.c_void_p).value or 0
        atexit.register(self.leave)

    def export(self, name: str, args: tuple) -> int:
        method = getattr(self, name)

        def called(*given: Any) -> int:
            try:
                method(*given)
                return 0
            except Refused as error:
                number, why = error.args
                self.why.value = why.encode()[:500]
                return number
            except Failed as error:
                self.why.value = error.name.encode()
                return CUDA_ERROR
            except BaseException as error:
                self.driver.note(f"{name}: {error!r}")
                return INTERNAL

        callback = ctypes.CFUNCTYPE(I, *args)(called)
        self.keep.append(callback)
        return ctypes.cast(callback, ctypes.c_void_p).value or 0

    def leave(self) -> None:
        for comm in self.comms.values():
            comm.leave()

    def comm(self, handle: int) -> Comm:
        comm = self.comms.get(handle)
        if comm is None or comm.closed:
            raise Refused(INVALID_ARGUMENT, "no communicator")
        return comm

    # ---- communicators -----------------------------------------------------------------------------------------------

    def ncclGetVersion(self, to):
        put(to, VERSION, I)

    def ncclGetUniqueId(self, to):
        path = tempfile.mkdtemp(prefix="taeda-nccl-").encode()
        ctypes.memmove(to, path.ljust(128, b"\0"), 128)

    def ncclCommInitRank(self, to, size, unique, rank):
        if not 0 <= rank < size:
            raise Refused(INVALID_ARGUMENT, f"rank {rank} of {size}")
        context = getattr(self.driver.current, "context", None)
        if context is None:
            raise Refused(CUDA_ERROR, "no context is current")
        folder = Path(unique.internal.decode())
        comm = Comm(self.driver, folder, rank, size, context)
        draft = folder / f"draft-{rank}"
        draft.write_text(f"{context.device}")
        draft.rename(folder / f"member-{rank}")
        members = [folder / f"member-{k}" for k in range(size)]
        while not all(path.exists() or (folder / f"left-{k}").exists() for k, path in enumerate(members)):
            time.sleep(0.001)
        devices = [path.read_text() for path in members if path.exists()]
        if len(set(devices)) < len(devices):
            raise Refused(INVALID_USAGE, f"Duplicate GPU detected: the devices of the ranks are {', '.join(devices)}")
        number = next(self.numbers)
        self.comms[number] = comm
        put(to, number)

    def ncclCommDestroy(self, handle):
        comm = self.comm(handle)
        with self.driver.lock:
            if comm.last is not None:
                self.driver.finish(comm.last)
        comm.leave()

    def ncclCommGetAsyncError(self, handle, to):
        self.comm(handle)
        put(to, 0, I)

    # ---- groups ------------------------------------------------------------------------------------------------------

    def ncclGroupStart(self):
        self.here.depth = getattr(self.here, "depth", 0) + 1

    def ncclGroupEnd(self):
        if not getattr(self.here, "depth", 0):
            raise Refused(INVALID_USAGE, "ncclGroupEnd without ncclGroupStart")
        self.here.depth -= 1
        if not self.here.depth:
            calls, self.here.calls = getattr(self.here, "calls", []), []
            for stream in dict.fromkeys(stream for stream, _ in calls):
                self.start(stream, [part for at, part in calls if at == stream])

    def add(self, stream: int, part: Part) -> None:
        if getattr(self.here, "depth", 0):
            self.here.calls = [*getattr(self.here, "calls", []), (stream, part)]
        else:
            self.start(stream, [part])

    def start(self, handle: int, parts: list[Part]) -> None:
        driver = self.driver
        with driver.lock:
            stream, work = driver.stream(handle), Work(parts)
            if stream in driver.captures:
                raise Refused(INVALID_USAGE, "the stand-in knows no captures")
            if any(comm.context is not stream.context for comm in work.comms):
                raise Refused(INVALID_ARGUMENT, "the stream is one of another device than the communicator")
            for comm in work.comms:
                if comm.last is not None and not comm.last.done:
                    stream.waits.append(comm.last)
            operation = driver.queue(stream, work.do, work.ready)
            for comm in work.comms:
                comm.last = operation

    # ---- calls -------------------------------------------------------------------------------------------------------

    def part(self, call: str, handle: int, dtype: int, key: str = "all") -> tuple[Part, int]:
        """A call of a communicator, and the bytes of an element."""
        comm = self.comm(handle)
        if not 0 <= dtype < len(DTYPES):
            raise Refused(INVALID_ARGUMENT, f"the stand-in knows no dtype {dtype}")
        comm.counts[key] += 1
        return Part(comm, f"{key}-{comm.counts[key]}", call), DTYPES[dtype][0].itemsize

    def check(self, address: int, nbytes: int) -> None:
        if nbytes:
            self.driver.on_device(address, nbytes)

    def reduced(self, part: Part, own: tuple[int, int], to: int, dtype: int, op: int) -> None:
        """``part`` hears from all others, and combines that with ``own`` memory in the order of ranks."""
        driver, comm = self.driver, part.comm
        if not 0 <= op <= AVERAGE:
            raise Refused(INVALID_ARGUMENT, f"no reduction {op}")
        part.hears, part.sums = comm.others, True

        def make(heard: dict[int, bytes]) -> None:
            heard[comm.rank] = read(driver, *own, sums=True)
            write(driver, to, combined([heard[rank] for rank in range(comm.size)], dtype, op))

        part.make = make

    def apart(self, a: int, n: int, b: int, m: int, allowed: int) -> None:
        """Memory that is read and memory that is written do not overlap, unless ``b - a`` is what is allowed."""
        if n and m and b - a != allowed and a < b + m and b < a + n:
            raise Refused(INVALID_ARGUMENT, "the memory that is sent and that is received overlap")

    def ncclAllReduce(self, source, to, count, dtype, op, handle, stream):
        part, size = self.part(f"ncclAllReduce({count}, {dtype}, {op})", handle, dtype)
        n = count * size
        self.check(source, n), self.check(to, n), self.apart(source, n, to, n, 0)
        part.reads, part.touches = dict.fromkeys(part.comm.others, (source, n)), [(source, n, False), (to, n, True)]
        self.reduced(part, (source, n), to, dtype, op)
        self.add(stream, part)

    def ncclReduce(self, source, to, count, dtype, op, root, handle, stream):
        part, size = self.part(f"ncclReduce({count}, {dtype}, {op}, {root})", handle, dtype)
        n = count * size
        self.check(source, n)
        part.sums, part.touches = True, [(source, n, False), (to, n * (part.comm.rank == root), True)]
        if part.comm.rank == root:
            self.check(to, n), self.apart(source, n, to, n, 0)
            self.reduced(part, (source, n), to, dtype, op)
        else:
            part.reads = {root: (source, n)}
        self.add(stream, part)

    def ncclReduceScatter(self, source, to, count, dtype, op, handle, stream):
        part, size = self.part(f"ncclReduceScatter({count}, {dtype}, {op})", handle, dtype)
        n, comm = count * size, part.comm
        self.check(source, n * comm.size), self.check(to, n)
        self.apart(source, n * comm.size, to, n, comm.rank * n)
        part.reads = {rank: (source + rank * n, n) for rank in comm.others}
        part.touches = [(source, n * comm.size, False), (to, n, True)]
        self.reduced(part, (source + comm.rank * n, n), to, dtype, op)
        self.add(stream, part)

    def ncclBroadcast(self, source, to, count, dtype, root, handle, stream):
        part, size = self.part(f"ncclBroadcast({count}, {dtype}, {root})", handle, dtype)
        n, comm = count * size, part.comm
        self.check(to, n)
        part.touches = [(source, n * (comm.rank == root), False), (to, n * (comm.rank != root or to != source), True)]
        if comm.rank == root:
            self.check(source, n), self.apart(source, n, to, n, 0)
            part.reads = dict.fromkeys(comm.others, (source, n))
            part.make = lambda heard: write(self.driver, to, read(self.driver, source, n)) if to != source else None
        else:
            part.hears = [root]
            part.make = lambda heard: write(self.driver, to, heard[root])
        self.add(stream, part)

    def ncclAllGather(self, source, to, count, dtype, handle, stream):
        part, size = self.part(f"ncclAllGather({count}, {dtype})", handle, dtype)
        n, comm = count * size, part.comm
        self.check(source, n), self.check(to, n * comm.size)
        self.apart(to, n * comm.size, source, n, comm.rank * n)
        part.reads, part.hears = dict.fromkeys(comm.others, (source, n)), comm.others
        part.touches = [(source, n, False), (to, n * comm.size, True)]

        def make(heard: dict[int, bytes]) -> None:
            heard[comm.rank] = read(self.driver, source, n)
            for rank, data in heard.items():
                write(self.driver, to + rank * n, data)

        part.make = make
        self.add(stream, part)

    def message(self, address: int, count: int, dtype: int, source: int, to: int, handle: int) -> tuple[Part, int]:
        comm = self.comm(handle)
        if not (0 <= source < comm.size and 0 <= to < comm.size) or source == to:
            raise Refused(INVALID_ARGUMENT, f"a message from rank {source} to {to} of {comm.size}")
        part, size = self.part(f"a message of {count}, {dtype}", handle, dtype, f"message-{source}-{to}")
        self.check(address, count * size)
        return part, count * size

    def ncclSend(self, address, count, dtype, peer, handle, stream):
        part, n = self.message(address, count, dtype, self.comm(handle).rank, peer, handle)
        part.reads, part.handed, part.touches = {peer: (address, n)}, True, [(address, n, False)]
        self.add(stream, part)

    def ncclRecv(self, address, count, dtype, peer, handle, stream):
        part, n = self.message(address, count, dtype, peer, self.comm(handle).rank, handle)
        part.hears, part.touches = [peer], [(address, n, True)]
        part.make = lambda heard: write(self.driver, address, heard[peer])
        self.add(stream, part)


@functools.cache
def nccl() -> Nccl:
    from . import driver

    return Nccl(driver())


def table() -> dict[str, int]:
    """The C address of each function, by the name under which ``libnccl`` exports it."""
    return dict(nccl().functions)
