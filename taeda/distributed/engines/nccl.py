"""NCCL: collectives between GPUs, each a process's own, as work on their streams.

An engine is for one GPU of this process. A collective goes on the current stream, an asynchronous one on a stream of
the engine's own; waiting for its Work lets the current stream wait, not the program. What processes tell each other
meanwhile, the ids of communicators above all, goes by the engine of the host.

Messages from one process to another have a communicator and a stream for each direction and tag, so that those of one
direction never wait for the other. Each pair makes them when it first exchanges a message.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from ... import cuda
from ..._core import uint8
from ..._typed import Tensor
from ..._warn import caller_line
from ...autograd import no_grad
from ...cuda import _native, _nccl
from ...futures import Future
from ...ops.creation import empty, zeros
from ...ops.exchange import frombuffer
from ...ops.joining import cat
from ..debug import DebugLevel, get_debug_level
from ..errors import DistBackendError
from ..reduction import ReduceOp
from ..work import Work
from .contract import Call, Engine, adjacent
from .guard import GUARD

_TAG = 32749  # of messages by the host that carry ids


def _count(x: Tensor) -> tuple[int, int]:
    """The number of elements that NCCL counts, and its code for their dtype."""
    name, n = str(x.dtype).rpartition(".")[2], x.numel()
    if x.is_complex():
        name, n = str(x.real.dtype).rpartition(".")[2], 2 * n
    if name not in _nccl.DTYPES:
        raise TypeError(f"Input tensor data type is not supported for NCCL process group: {x.dtype}")
    return n, _nccl.DTYPES[name]


def _op(op: ReduceOp, x: Tensor) -> int:
    if op.name not in _nccl.OPS:
        raise ValueError(f"Cannot use ReduceOp.{op.name} with NCCL")
    # sums of truth values are bitwise or, as everywhere
    return _nccl.OPS["MAX" if op is ReduceOp.SUM and str(x.dtype).endswith(".bool") else op.name]


def _call(name: str, *args: Any) -> None:
    code = _nccl.LIBRARY.functions[name](*args)
    if code:
        raise DistBackendError(_nccl.explain(code, name))


class _Communicator:
    """NCCL's communicator of some processes on one GPU, and the stream of its asynchronous work."""

    def __init__(self, index: int, unique: bytes, rank: int, size: int) -> None:
        self.index, self.handle, self.rank = index, ctypes.c_void_p(), rank
        _native.enter_context(index)
        _call("ncclCommInitRank", ctypes.byref(self.handle), size, _nccl.UniqueId(unique), rank)
        self.stream = cuda.Stream(index)

    def close(self) -> None:
        if self.handle:
            _native.enter_context(self.index)
            _call("ncclCommDestroy", self.handle)
            self.handle = ctypes.c_void_p()


class NcclEngine(Engine):
    """The GPU ``device`` of this process in the group of the engine ``host``."""

    name = "nccl"

    def __init__(self, host: Engine, device: Any, number: int) -> None:
        super().__init__(host.group, host.rank, host.size, host.timeout)
        self.host, self.device, self._number = host, device, number  # how many GPUs the group used before
        self._all: _Communicator | None = None
        self._ways: dict[tuple[int, int, int], _Communicator] = {}  # by source, destination and tag
        self._stream: Any = None  # of the asynchronous collective that is being queued
        self._batch: _Batch | None = None
        self._doing = ""  # the collective that is being queued
        asked = os.environ.get("TAEDA_DISTRIBUTED_DEBUG", "0") not in ("", "0")
        self._debug = asked or get_debug_level() is DebugLevel.DETAIL

    # ---- communicators -----------------------------------------------------------------------------------------------

    def open(self) -> _Communicator:
        """The communicator of the group; the first call is one of all its processes."""
        if self._all is None:
            mine = frombuffer(bytearray(_unique() if self.rank == 0 else bytes(128)), dtype=uint8)
            everyones = empty(self.size, 128, dtype=uint8, device="cpu")
            call = Call.here(f"{self.group} nccl", self._number, "the communicator of NCCL")
            self.host.run(lambda: self.host.all_gather(call, list(everyones), mine), list, False)
            self._all = _Communicator(self.device.index, bytes(everyones[0].tolist()), self.rank, self.size)
        return self._all

    def open_way(self, source: int, to: int, tag: int) -> _Communicator:
        """The communicator of messages from ``source`` to ``to``; both processes call this."""
        if (source, to, tag) not in self._ways:
            low, high = sorted((source, to))
            for way in ((low, high, tag), (high, low, tag)):
                self._ways[way] = _Communicator(self.device.index, self._agreed(low, high), int(self.rank == way[1]), 2)
        return self._ways[source, to, tag]

    def _agreed(self, low: int, high: int) -> bytes:
        """An id that two processes know; each has heard from the other."""
        doing, answer = "message(a communicator of NCCL)", empty(1, dtype=uint8, device="cpu")
        if self.rank == low:
            unique = frombuffer(bytearray(_unique()), dtype=uint8)
            self.host.send(unique, high, _TAG, doing).wait()
            self.host.receive(answer, [high], _TAG, doing).wait()
        else:
            unique = empty(128, dtype=uint8, device="cpu")
            self.host.receive(unique, [low], _TAG, doing).wait()
            self.host.send(answer.zero_(), low, _TAG, doing).wait()
        return bytes(unique.tolist())

    # ---- calls -------------------------------------------------------------------------------------------------------

    def _ready(self, call: Call, *tensors: Tensor) -> tuple[Any, Any]:
        """The communicator and the stream for a collective of these tensors."""
        for x in tensors:
            if x.device != self.device:
                raise ValueError("Tensors must be CUDA and dense")
        self._doing = f"{call.doing} at {call.site}"
        if self._debug:
            self.host.run(lambda: self.host.barrier(call, self.timeout), list, False)
        comm = self.open()
        self._keep(tensors, self._stream)
        _native.enter_context(self.device.index)
        return comm.handle, _native.get_stream(self.device.index)

    @staticmethod
    def _keep(tensors: Sequence[Tensor], stream: Any) -> None:
        """Their memory is not given to others before the stream has done what it has."""
        if stream is not None:
            for x in tensors:
                if x.numel():
                    x.record_stream(stream)

    def all_reduce(self, call: Call, x: Tensor, op: ReduceOp) -> None:
        count, number = _count(x), _op(op, x)
        comm, stream = self._ready(call, x)
        _call("ncclAllReduce", x.data_ptr(), x.data_ptr(), *count, number, comm, stream)

    def reduce(self, call: Call, x: Tensor, op: ReduceOp, root: int) -> None:
        count, number = _count(x), _op(op, x)
        comm, stream = self._ready(call, x)
        _call("ncclReduce", x.data_ptr(), x.data_ptr(), *count, number, root, comm, stream)

    def broadcast(self, call: Call, x: Tensor, root: int) -> None:
        count = _count(x)
        comm, stream = self._ready(call, x)
        _call("ncclBroadcast", x.data_ptr(), x.data_ptr(), *count, root, comm, stream)

    def all_gather(self, call: Call, outs: Sequence[Tensor], x: Tensor) -> None:
        count = _count(x)
        comm, stream = self._ready(call, x, *outs)
        whole = adjacent(outs)
        place = x.new_empty(self.size * x.numel()) if whole is None else whole
        if _shares(place, x) and x.data_ptr() != outs[self.rank].data_ptr():
            x = x.clone()
        _call("ncclAllGather", x.data_ptr(), place.data_ptr(), *count, comm, stream)
        if whole is None:
            for out, part in zip(outs, place.tensor_split(self.size), strict=True):
                out.copy_(part)

    def gather(self, call: Call, outs: Sequence[Tensor], x: Tensor, root: int) -> None:
        self._exchange(call, dict(enumerate(outs)), {root: x})

    def scatter(self, call: Call, x: Tensor, parts: Sequence[Tensor], root: int) -> None:
        self._exchange(call, {root: x}, dict(enumerate(parts)))

    def reduce_scatter(self, call: Call, x: Tensor, parts: Sequence[Tensor], op: ReduceOp) -> None:
        count, number = _count(x), _op(op, x)
        comm, stream = self._ready(call, x, *parts)
        whole = adjacent(parts)
        if whole is None or (_shares(whole, x) and x.data_ptr() != parts[self.rank].data_ptr()):
            whole = cat(list(parts))
        _call("ncclReduceScatter", whole.data_ptr(), x.data_ptr(), *count, number, comm, stream)

    def all_to_all(self, call: Call, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        """See :meth:`Engine.all_to_all`."""
        self._exchange(call, dict(enumerate(outs)), dict(enumerate(parts)))

    def _exchange(self, call: Call, outs: dict[int, Tensor], parts: dict[int, Tensor]) -> None:
        """Send ``parts`` to the processes that they are for, and receive ``outs`` from others."""
        comm, stream = self._ready(call, *outs.values(), *parts.values())
        if self.rank in outs and self.rank in parts:
            outs[self.rank].copy_(parts[self.rank])
        _call("ncclGroupStart")
        try:
            for name, tensors in (("ncclSend", parts), ("ncclRecv", outs)):
                for rank, x in tensors.items():
                    if rank != self.rank and x.numel():
                        _call(name, x.data_ptr(), *_count(x), rank, comm, stream)
        finally:
            _call("ncclGroupEnd")

    def barrier(self, call: Call, timeout: timedelta) -> Any:
        """See :meth:`Engine.barrier`: the program waits for it."""
        self.all_reduce(call, zeros(1, device=self.device), ReduceOp.SUM)
        return True

    # ---- from one to one ---------------------------------------------------------------------------------------------

    def send(self, x: Tensor, to: int, tag: int, doing: str) -> Work:
        return self._message("ncclSend", x, self.rank, to, tag, f"{doing} to rank {to} at {caller_line()}")

    def receive(self, x: Tensor, ranks: Sequence[int], tag: int, doing: str) -> Work:
        """See :meth:`Engine.receive`; from one process that is named."""
        if len(ranks) > 1:
            raise RuntimeError("ProcessGroupNCCL does not support recvAnysource")
        doing = f"{doing} from rank {ranks[0]} at {caller_line()}"
        work = self._message("ncclRecv", x, ranks[0], self.rank, tag, doing)
        work.source = ranks[0]
        return work

    def _message(self, name: str, x: Tensor, source: int, to: int, tag: int, doing: str) -> Work:
        if x.device != self.device:
            raise ValueError("Tensors must be CUDA and dense")
        count, batch = _count(x), self._batch
        comm = batch.comm if batch is not None else self.open_way(source, to, tag)
        peer = to if source == self.rank else source
        if batch is None:
            comm.stream.wait_stream(cuda.current_stream(self.device))
            peer = int(peer == to)
        self._keep([x], comm.stream)
        _native.enter_context(self.device.index)
        if x.numel():
            _call(name, x.data_ptr(), *count, peer, comm.handle, comm.stream.cuda_stream)
        if batch is not None:
            return batch.work
        self._doing = doing
        self._watch(comm.stream, comm)
        return NcclWork(self, comm.stream, [x])

    @contextmanager
    def together(self) -> Iterator[None]:
        """Within it, messages are collected; they begin together at the end. All processes of the group take part in
        the first such batch, as in PyTorch."""
        comm = self.open()
        self._batch = batch = _Batch(self, comm)
        _call("ncclGroupStart")
        try:
            yield
        finally:
            self._batch = None
            comm.stream.wait_stream(cuda.current_stream(self.device))
            _native.enter_context(self.device.index)
            _call("ncclGroupEnd")
        self._doing = f"batch_isend_irecv() at {caller_line()}"
        batch.begin()
        self._watch(comm.stream, comm)

    # ---- the group ---------------------------------------------------------------------------------------------------

    def split(self, group: str, ranks: Sequence[int], timeout: timedelta) -> Engine:
        return NcclEngine(self.host.split(group, ranks, timeout), self.device, 0)

    def run(self, begin: Callable[[], Any], finish: Callable[[], list], async_op: bool) -> Work | None:
        current = cuda.current_stream(self.device)
        if not async_op:
            with no_grad():
                waits = begin()
                finish()
            self._watch(current, self._all)
            if waits:
                current.synchronize()
            return None
        self._stream = stream = self.open().stream
        try:
            stream.wait_stream(current)
            with cuda.stream(stream), no_grad():
                waits = begin()
                result = finish()
            self._keep([x for x in result if isinstance(x, Tensor)], stream)
            self._watch(stream, self._all)
        finally:
            self._stream = None
        return NcclWork(self, stream, result, bool(waits))

    def _watch(self, stream: Any, comm: _Communicator | None) -> None:
        """The guard looks at what the stream has now."""
        if comm is not None and not stream.is_capturing():
            GUARD.watch(self, stream.record_event(), comm, self._doing)

    def asynchronous_error(self, comm: _Communicator) -> str:
        """The error that NCCL has found since, as text; empty if there is none."""
        code = ctypes.c_int()
        if comm.handle:
            _call("ncclCommGetAsyncError", comm.handle, ctypes.byref(code))
        return _nccl.explain(code.value, "a collective") if code.value else ""

    def close(self) -> None:
        GUARD.forget(self)
        for comm in [*([self._all] if self._all is not None else []), *self._ways.values()]:
            comm.close()
        self._all, self._ways = None, {}


class NcclWork(Work):
    """Work of a GPU: to wait for it lets the current stream wait, not the program."""

    def __init__(self, engine: NcclEngine, stream: Any, result: list, blocks: bool = False) -> None:
        self._engine, self._stream, self._result, self._blocks = engine, stream, result, blocks
        self._after: list[Callable[[], object]] | None = None
        self._event = stream.record_event()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Let the current stream wait for it. With a ``timeout``, and for a barrier, the program waits.

        Args:
            timeout: how long the program waits.

        Returns:
            True.

        Raises:
            DistBackendError: it did not end in time.
        """
        if timeout:
            end = time.monotonic() + timeout.total_seconds()
            while not self._event.query():
                if time.monotonic() > end:
                    raise DistBackendError(f"Work.wait: the collective did not end within {timeout}")
                time.sleep(0.001)
        current = cuda.current_stream(self._engine.device)
        current.wait_event(self._event)
        if self._blocks:
            current.synchronize()
        return True

    def is_completed(self) -> bool:
        """Whether it has ended on the GPU."""
        return self._event.query()

    def is_success(self) -> bool:
        """Whether it has ended."""
        return self.is_completed()

    def exception(self) -> BaseException | None:
        """None: what goes wrong on the GPU ends the program."""
        return None

    def result(self) -> list:
        """The tensors it writes."""
        self.wait()
        return self._result

    def get_future(self) -> Future:
        """Its result; whoever takes it has the current stream wait."""
        return _FutureOfStream(self)

    def when_done(self, call: Callable[[], object]) -> None:
        """Call ``call()``, whose work comes behind this on its stream."""
        if self._after is not None:
            self._after.append(call)
            return
        with cuda.stream(self._stream), no_grad():
            call()
        self._event = self._stream.record_event()


class _FutureOfStream(Future):
    """A result that work of a stream writes: it is there at once, for streams that wait."""

    def __init__(self, work: NcclWork) -> None:
        super().__init__()
        self._work = work
        self.set_result(work._result)

    def result(self, timeout: float | None = None) -> Any:
        self._work.wait()
        return super().result(timeout)


class _Batch:
    """Messages that begin together."""

    def __init__(self, engine: NcclEngine, comm: _Communicator) -> None:
        self.comm = comm
        self.work = NcclWork(engine, comm.stream, [])
        self.work._after = []

    def begin(self) -> None:
        """They have begun: what comes after them is queued."""
        calls, self.work._after = self.work._after or [], None
        for call in (*calls, lambda: None):
            self.work.when_done(call)


def _unique() -> bytes:
    made = _nccl.UniqueId()
    _call("ncclGetUniqueId", ctypes.byref(made))
    return bytes(made)


def _shares(whole: Tensor, x: Tensor) -> bool:
    """Whether ``x`` lies within the memory of ``whole``."""
    first, at = whole.data_ptr(), x.data_ptr()
    return first <= at < first + whole.numel() * whole.element_size()
