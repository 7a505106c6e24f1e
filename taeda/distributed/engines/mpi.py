"""Collectives by MPI, through mpi4py: buffers are the tensors' own memory, a group is a communicator.

Every collective is a non-blocking one that is tested until it is over or its time is up, so that a process that does
not come is an error here too. MPI itself cannot tell which process that is, nor that processes disagree.
``TAEDA_DISTRIBUTED_DEBUG=1`` lets the processes compare their calls before each collective.

float16 and bfloat16 are reduced in float32. Minima and maxima of floats use operations defined here, because MPI's lose
NaN.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import sys
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NoReturn

from ..._core import (
    Tensor,
    bool_,
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ..._warn import caller_line
from ...autograd import no_grad
from ...futures import Future
from ...ops.joining import cat
from ..debug import DebugLevel, get_debug_level
from ..errors import DistBackendError
from ..reduction import HALVES, ReduceOp
from ..work import Work
from .contract import Call, Engine, adjacent
from .messages import bytes_of

try:
    from mpi4py import MPI
except (ImportError, RuntimeError) as problem:  # the second: no MPI library
    raise RuntimeError(
        f"the backend 'mpi' stands on mpi4py and an MPI library, and could not load them: {problem}. "
        "Install both with: pip install mpi4py mpich"
    ) from None

_REDUCED = {
    float32: MPI.FLOAT, float64: MPI.DOUBLE, int8: MPI.INT8_T, int16: MPI.INT16_T,
    int32: MPI.INT32_T, int64: MPI.INT64_T, uint8: MPI.UINT8_T, uint16: MPI.UINT16_T,
    uint32: MPI.UINT32_T, uint64: MPI.UINT64_T, complex64: MPI.C_FLOAT_COMPLEX,
    complex128: MPI.C_DOUBLE_COMPLEX,
}  # fmt: skip
_MOVED = {1: MPI.BYTE, 2: MPI.INT16_T, 4: MPI.INT32_T, 8: MPI.INT64_T, 16: MPI.C_DOUBLE_COMPLEX}  # by bytes an element
_OPS = {
    ReduceOp.SUM: MPI.SUM, ReduceOp.AVG: MPI.SUM, ReduceOp.PRODUCT: MPI.PROD, ReduceOp.MIN: MPI.MIN,
    ReduceOp.MAX: MPI.MAX, ReduceOp.BAND: MPI.BAND, ReduceOp.BOR: MPI.BOR, ReduceOp.BXOR: MPI.BXOR,
}  # fmt: skip
#: Operations for bool, whose bytes are 0 and 1. A sum is "or", as it is between tensors.
_OF_BOOL = {
    ReduceOp.SUM: MPI.BOR, ReduceOp.PRODUCT: MPI.BAND, ReduceOp.MIN: MPI.BAND, ReduceOp.MAX: MPI.BOR,
    ReduceOp.BAND: MPI.BAND, ReduceOp.BOR: MPI.BOR, ReduceOp.BXOR: MPI.BXOR,
}  # fmt: skip
_EAGER = 1.0  # seconds of testing without sleep: MPI makes progress while it is tested
_BURST = 64  # tests between sleeps after that
_LAST = 1.0  # seconds for messages sent before the process ended
_NOTE = 1024  # bytes of a process's note on its collective, or its end

_own_ops: dict[tuple[Any, ReduceOp], Any] = {}
_ABORT = 5  # seconds that an abort may take
_failed: list[str] = []  # failures that leave MPI in an unknown state: the program ends with an abort


def _own_op(dtype: Any, op: ReduceOp) -> Any:
    """A minimum or maximum of floats, in which NaN wins."""
    if (dtype, op) not in _own_ops:
        import numpy as np

        kind = np.float32 if dtype == float32 else np.float64
        choose = np.minimum if op is ReduceOp.MIN else np.maximum

        def combine(a: Any, b: Any, _: Any) -> None:
            into = np.frombuffer(b, kind)
            choose(np.frombuffer(a, kind), into, out=into)

        _own_ops[dtype, op] = MPI.Op.Create(combine, commute=True)
    return _own_ops[dtype, op]


def _moved(x: Tensor) -> list:
    """The buffer specification for MPI of the memory of ``x``, which it only moves."""
    return [bytes_of(x) if x.numel() else None, x.numel(), _MOVED[x.element_size()]]


class _Reduction:
    """The memory in which ``x`` is reduced: its own, or floats for half precision."""

    def __init__(self, x: Tensor, op: ReduceOp, size: int) -> None:
        self.x, self.op, self.size = x, op, size
        self.memory = x.float() if x.dtype in HALVES else x
        if x.dtype == bool_:
            self.memory = x.view(uint8)
        if self.memory.dtype not in _REDUCED:
            raise RuntimeError(f"mpi: expected a dtype that MPI reduces, got {x.dtype}; convert the tensor first")

    @property
    def buffer(self) -> list:
        """The buffer specification for MPI."""
        memory = self.memory
        return [bytes_of(memory) if memory.numel() else None, memory.numel(), _REDUCED[memory.dtype]]

    @property
    def operation(self) -> Any:
        if self.x.dtype == bool_:
            return _OF_BOOL[self.op]
        if self.memory.is_floating_point() and self.op in (ReduceOp.MIN, ReduceOp.MAX):
            return _own_op(self.memory.dtype, self.op)
        return _OPS[self.op]

    def finish(self, out: Tensor | None = None) -> None:
        """Write the result to ``x`` (or ``out``)."""
        out = self.x if out is None else out
        if self.op is ReduceOp.AVG:
            self.memory.div_(self.size)
        if self.x.dtype in HALVES:
            out.copy_(self.memory)


def _joined(parts: Sequence[Tensor]) -> tuple[Tensor, bool]:
    """One flat tensor of ``parts``, and whether that is their own memory, one behind the other."""
    whole = adjacent(parts)
    return (cat(list(parts)), False) if whole is None else (whole, True)


class _Ends:
    """The processes that have ended. A process tells all others when its program ends before its group."""

    def __init__(self) -> None:
        self._comm = MPI.COMM_WORLD.Dup()
        self._since: dict[int, tuple[float, str]] = {}  # when each was found to have ended, and its note
        self._reading = threading.Lock()
        self._exit: SystemExit | None = None  # the last that :func:`sys.exit` raised
        self.closed = False  # in order
        sys.exit = self._leave  # the interpreter does not pass its exit code on
        atexit.register(self._tell)

    def _leave(self, status: Any = None, /) -> NoReturn:
        """``sys.exit``."""
        self._exit = SystemExit(status)
        raise self._exit

    def _how(self) -> str:
        """The way in which this process ends, in words."""
        code = "with an exit code that it does not know: 0, or that of its SystemExit"
        if self._exit is not None:
            trace, given = self._exit.__traceback__, self._exit.code
            # where the program has caught it, and gone on, it is not how that ends
            if trace is None or trace.tb_frame.f_lasti == trace.tb_lasti:
                code = f"with exit code {given & 255 if isinstance(given, int) else int(given is not None)}"
        return f"on host {socket.gethostname()} has ended {code}"

    def _tell(self) -> None:
        if not self.closed and not MPI.Is_finalized():
            me, word = self._comm.Get_rank(), self._how().encode()[:_NOTE]
            self._sent = [self._comm.Isend([word, MPI.BYTE], r) for r in range(self._comm.Get_size()) if r != me]

    def among(self, ranks: Sequence[int]) -> dict[int, str]:
        """The ``ranks`` that will send nothing more, with the reason that each gave."""
        status, word = MPI.Status(), bytearray(_NOTE)
        with self._reading:
            while self._comm.Iprobe(status=status):
                self._comm.Recv([word, MPI.BYTE], status.Get_source(), status=status)
                said = word[: status.Get_count(MPI.BYTE)].decode(errors="replace")
                self._since[status.Get_source()] = time.monotonic() + _LAST, said
            now = time.monotonic()
            return {rank: self._since[rank][1] for rank in ranks if rank in self._since and self._since[rank][0] < now}


class _Pending:
    """A request of MPI, its memory, and the steps that follow when it is over."""

    def __init__(
        self, call: Call | None, request: Any, keep: Any = None, after: Callable[[], Any] | None = None,
        timeout: timedelta | None = None,
    ) -> None:  # fmt: skip
        self.call, self.request, self.keep, self.after, self.timeout = call, request, keep, after, timeout


class MpiWork(Work):
    """A request under way. It moves on while it is tested or waited for."""

    def __init__(
        self, engine: MpiEngine, pending: _Pending, finish: Callable[[], list], what: str,
        to: Sequence[int] | None = None, of: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(Future())
        self._engine, self._pending, self._finish, self._what = engine, pending, finish, what
        self._message, self._with = of is not None, of if to is None else to  # the other side of a message
        self._look = time.monotonic() + _EAGER  # when to look whether the other side has ended
        self._testing = threading.RLock()
        self._helper: threading.Thread | None = None

    def is_completed(self) -> bool:
        """Whether it has ended."""
        with self._testing:
            if not self._future.done():
                self._test()
            if not self._future.done() and time.monotonic() > self._look:
                self._look = time.monotonic() + _LAST
                try:
                    self._engine.check_ends(self._what, self._with)
                except DistBackendError as error:
                    self._future.set_exception(error)
        return self._future.done()

    def _test(self) -> None:
        status = MPI.Status()
        try:
            if not self._pending.request.Test(status):
                return
            with no_grad():
                if self._pending.after is not None:
                    self._pending.after()
                result = self._finish()
            if self._message:
                self._check_message(status)
        except BaseException as error:
            if isinstance(error, MPI.Exception):
                error = self._engine.failed(f"{self._what}: MPI: {error}")
            self._future.set_exception(error)
        else:
            self._future.set_result(result)

    def _check_message(self, status: Any) -> None:
        self.source = status.Get_source()
        expected = self._pending.keep.numel() * self._pending.keep.element_size()
        if status.Get_count(MPI.BYTE) != expected:
            raise DistBackendError(
                f"{self._what}: expected a message of {expected} bytes, got {status.Get_count(MPI.BYTE)} from rank "
                f"{self.source}"
            )

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is done; what went wrong is raised.

        Args:
            timeout: how long; None: as long as the group waits.

        Returns:
            True.

        Raises:
            RuntimeError: it did not end in time.
        """
        timeout = timeout or self._engine.timeout
        begin, tests = time.monotonic(), 0
        while not self.is_completed():
            passed = time.monotonic() - begin
            if passed > timeout.total_seconds():
                raise self._engine.failed(
                    f"{self._what}: rank {self._engine.rank} timed out after {timeout}: another process of the group "
                    f"is gone or does something else. TAEDA_DISTRIBUTED_DEBUG=1 tells which"
                )
            tests += 1
            if passed > _EAGER and tests % _BURST == 0:
                time.sleep(0.0005)
            else:
                os.sched_yield()
        return super().wait()

    def get_future(self) -> Future:
        """The result as a Future; a thread waits for it."""
        if self._helper is None and not self._future.done():
            self._helper = threading.Thread(target=self._wait_quietly, name="taeda-mpi", daemon=True)
            self._helper.start()
        return self._future

    def _wait_quietly(self) -> None:
        try:
            self.wait()
        except BaseException as error:  # the waiting thread gets it
            if not self._future.done():
                self._future.set_exception(error)


class MpiEngine(Engine):
    """The processes of the communicator ``comm``."""

    name = "mpi"

    def __init__(self, group: str, comm: Any, timeout: timedelta, ends: _Ends, whole: bool = False) -> None:
        super().__init__(group, comm.Get_rank(), comm.Get_size(), timeout)
        self.comm, self._ends, self._whole = comm, ends, whole
        self._world = list(comm.Get_group().Translate_ranks(range(self.size), MPI.COMM_WORLD.Get_group()))
        comm.Set_errhandler(MPI.ERRORS_RETURN)
        asked = os.environ.get("TAEDA_DISTRIBUTED_DEBUG", "0") not in ("", "0")
        self._debug = comm.Dup() if asked or get_debug_level() is DebugLevel.DETAIL else None
        self._trouble = ""

    def split(self, group: str, ranks: Sequence[int], timeout: timedelta) -> MpiEngine:
        members = self.comm.Get_group().Incl(list(ranks))
        comm = self.comm.Create_group(members, zlib.crc32(group.encode()) % 32768)
        return MpiEngine(group, comm, timeout, self._ends)

    def check_ends(self, what: str, ranks: Sequence[int] | None = None) -> None:
        """Raise where ``what`` would wait for a process that has ended: any of the group, or all of ``ranks``."""
        gone = self._ends.among(self._world if ranks is None else [self._world[rank] for rank in ranks])
        if gone and (ranks is None or len(gone) == len(ranks)):
            names = ", ".join(f"rank {rank} {said}" for rank, said in gone.items())
            raise self.failed(f"{what}: {names}, while rank {self._world[self.rank]} waits")

    def failed(self, text: str) -> DistBackendError:
        """The error ``text``, with which the group ends: MPI cannot take a collective back."""
        self._trouble = text
        _failed.append(text)
        return DistBackendError(text)

    def run(self, begin: Callable[[], Any], finish: Callable[[], list], async_op: bool) -> Work | None:
        if self._trouble:
            raise DistBackendError(self._trouble)
        with no_grad():
            try:
                pending = begin()
            except MPI.Exception as error:
                raise self.failed(f"MPI: {error}") from None
        work = MpiWork(self, pending, finish, f"{pending.call.doing} at {pending.call.site}")
        if async_op:
            return work
        work.wait(pending.timeout)
        return None

    def close(self) -> None:
        """Free the communicators, unless something is under way in them."""
        self._ends.closed = self._ends.closed or (self._whole and not self._trouble)
        if not self._trouble and not MPI.Is_finalized():
            for comm in (self._debug, self.comm):
                if comm is not None:
                    comm.Free()

    # ---- agreement ---------------------------------------------------------------------------------------------------

    def _agree(self, call: Call, timeout: timedelta | None = None) -> None:
        """Compare calls, if asked to: each process sends its own to all others."""
        if self._debug is None:
            return
        tag = call.number % 32768
        mine = bytearray(f"{call.doing}\0{call.site}\0".encode()[:_NOTE].ljust(_NOTE, b"\0"))
        notes = {rank: bytearray(_NOTE) for rank in self.others}
        sent = [self._debug.Isend([mine, MPI.BYTE], rank, tag) for rank in self.others]
        waiting = {rank: self._debug.Irecv([notes[rank], MPI.BYTE], rank, tag) for rank in self.others}
        timeout = timeout or self.timeout
        end = time.monotonic() + timeout.total_seconds()
        while waiting or sent:
            waiting = {rank: request for rank, request in waiting.items() if not request.Test()}
            sent = [request for request in sent if not request.Test()]
            if time.monotonic() > end - timeout.total_seconds() + _EAGER:
                self.check_ends(f"{call.doing} at {call.site}")
            if time.monotonic() > end:
                raise self.failed(
                    f"{call.doing} at {call.site}: rank {self.rank} timed out after {timeout} waiting for ranks "
                    f"{sorted(waiting)}, which may be gone or doing something else"
                )
            os.sched_yield()
        for rank, note in notes.items():
            doing, site = note.decode(errors="replace").split("\0")[:2]
            if doing != call.doing[:_NOTE]:
                error = call.mismatch(self.rank, rank, doing, site)
                self._trouble = str(error)
                raise error

    # ---- collectives -------------------------------------------------------------------------------------------------

    def all_reduce(self, call: Call, x: Tensor, op: ReduceOp) -> Any:
        self._agree(call)
        it = _Reduction(x, op, self.size)
        return _Pending(call, self.comm.Iallreduce(MPI.IN_PLACE, it.buffer, it.operation), it, it.finish)

    def reduce(self, call: Call, x: Tensor, op: ReduceOp, root: int) -> Any:
        self._agree(call)
        it = _Reduction(x, op, self.size)
        if self.rank == root:
            return _Pending(call, self.comm.Ireduce(MPI.IN_PLACE, it.buffer, it.operation, root), it, it.finish)
        return _Pending(call, self.comm.Ireduce(it.buffer, None, it.operation, root), it)

    def broadcast(self, call: Call, x: Tensor, root: int) -> Any:
        self._agree(call)
        return _Pending(call, self.comm.Ibcast(_moved(x), root), x)

    def all_gather(self, call: Call, outs: Sequence[Tensor], x: Tensor) -> Any:
        self._agree(call)
        whole, own = _joined(outs)
        request = self.comm.Iallgather(_moved(x), self._each(whole))
        return _Pending(call, request, (x, whole), None if own else lambda: _spread(whole, outs))

    def _each(self, whole: Tensor) -> list:
        """The buffer of as many elements from each process."""
        return [bytes_of(whole) if whole.numel() else None, whole.numel() // self.size, _MOVED[whole.element_size()]]

    def gather(self, call: Call, outs: Sequence[Tensor], x: Tensor, root: int) -> Any:
        self._agree(call)
        if self.rank != root:
            return _Pending(call, self.comm.Igather(_moved(x), None, root), x)
        whole, own = _joined(outs)
        request = self.comm.Igather(_moved(x), self._each(whole), root)
        return _Pending(call, request, (x, whole), None if own else lambda: _spread(whole, outs))

    def scatter(self, call: Call, x: Tensor, parts: Sequence[Tensor], root: int) -> Any:
        self._agree(call)
        if self.rank != root:
            return _Pending(call, self.comm.Iscatter(None, _moved(x), root), x)
        whole, _ = _joined(parts)
        return _Pending(call, self.comm.Iscatter(self._each(whole), _moved(x), root), (x, whole))

    def reduce_scatter(self, call: Call, x: Tensor, parts: Sequence[Tensor], op: ReduceOp) -> Any:
        self._agree(call)
        given, result = _Reduction(_joined(parts)[0], op, self.size), _Reduction(x, op, self.size)
        memory, _, kind = given.buffer
        block = [memory, result.memory.numel(), kind]  # the count is a part's
        request = self.comm.Ireduce_scatter_block(block, result.buffer, given.operation)
        return _Pending(call, request, (given, result), result.finish)

    def all_to_all(self, call: Call, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> Any:
        """See :meth:`Engine.all_to_all`. MPI raises an error if a size differs from the one that was sent."""
        self._agree(call)
        (given, _), (whole, own) = _joined(parts), _joined(outs)
        request = self.comm.Ialltoallv(_counted(given, parts), _counted(whole, outs))
        return _Pending(call, request, (given, whole), None if own else lambda: _spread(whole, outs))

    def barrier(self, call: Call, timeout: timedelta) -> Any:
        self._agree(call, timeout)
        return _Pending(call, self.comm.Ibarrier(), timeout=timeout)

    # ---- from one to one ---------------------------------------------------------------------------------------------

    def send(self, x: Tensor, to: int, tag: int, doing: str) -> Work:
        request = self.comm.Isend(_moved(x), to, tag)
        return MpiWork(self, _Pending(None, request, x), lambda: [x], f"{doing} to rank {to} at {caller_line()}", [to])

    def receive(self, x: Tensor, ranks: Sequence[int], tag: int, doing: str) -> Work:
        source = ranks[0] if len(ranks) == 1 else MPI.ANY_SOURCE
        request = self.comm.Irecv(_moved(x), source, tag)
        return MpiWork(self, _Pending(None, request, x), lambda: [x], f"{doing} at {caller_line()}", of=ranks)


def _counted(whole: Tensor, parts: Sequence[Tensor]) -> list:
    """The buffer ``whole``, which consists of ``parts``."""
    counts = [part.numel() for part in parts]
    starts = [sum(counts[:i]) for i in range(len(counts))]
    return [bytes_of(whole) if whole.numel() else None, counts, starts, _MOVED[whole.element_size()]]


def _spread(whole: Tensor, outs: Sequence[Tensor]) -> None:
    for out, part in zip(outs, whole.split([out.numel() for out in outs]), strict=True):
        out.copy_(part)


# ---- the world -------------------------------------------------------------------------------------------------------


def world(group: str, timeout: timedelta) -> MpiEngine:
    """The engine of all processes that the MPI launcher started.

    Args:
        group: its name.
        timeout: how long one process waits for another.

    Returns:
        The engine.

    Raises:
        RuntimeError: another launcher started several, which MPI does not know of.
    """
    comm = MPI.COMM_WORLD
    told = os.environ.get("WORLD_SIZE", "1")
    if comm.Get_size() == 1 and told.isdigit() and int(told) > 1:
        raise RuntimeError(
            f"init_process_group: MPI knows of this process alone, the environment of {told}. Start the program with "
            "mpiexec, srun or python -m taeda.distributed.run --mpi"
        )
    _end_together()
    return MpiEngine(group, comm.Dup(), timeout, _Ends(), whole=True)


def _end_together() -> None:
    """Let an error that ends this process end the others, which would wait for it in vain."""
    if getattr(sys.excepthook, "__name__", "") == "_abort_with":
        return
    before = sys.excepthook

    def _abort_with(kind: Any, error: Any, where: Any) -> None:
        before(kind, error, where)
        _abort(f"{kind.__name__}: {error}")

    sys.excepthook = _abort_with
    atexit.register(lambda: _abort(_failed[0]) if _failed else None)


def _wait_until_read() -> None:
    """Wait until the launcher has read this process's outputs, and a little longer: it drops outputs that it has not
    passed on.
    """
    try:
        import fcntl
        import termios
    except ImportError:  # on Windows nothing tells
        time.sleep(0.3)
        return
    end = time.monotonic() + _ABORT
    for fd in (1, 2):
        unread = bytearray(4)
        with contextlib.suppress(OSError):  # no pipe
            while time.monotonic() < end and fcntl.ioctl(fd, termios.FIONREAD, unread) == 0 and any(unread):
                time.sleep(0.005)
    time.sleep(0.3)


def _abort(why: str) -> None:
    _failed.clear()  # said once
    if MPI.Is_finalized():
        return
    rank, host = MPI.COMM_WORLD.Get_rank(), socket.gethostname()
    print(
        f"taeda.distributed: rank {rank} on host {host} ends with exit code 1, and all others: {why}", file=sys.stderr
    )
    sys.stdout.flush()
    sys.stderr.flush()
    _wait_until_read()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_ABORT)  # cut off from its launcher, MPI waits for an answer for ever
    MPI.COMM_WORLD.Abort(1)
