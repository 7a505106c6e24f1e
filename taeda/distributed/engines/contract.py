"""The contract of engines, which move memory between the processes of a group.

The functions of ``collectives.py`` check their arguments, lay tensors out densely and copy results back. An engine
moves the memory. It knows nothing of shapes: every tensor it is given is flat, contiguous and on its device, and of the
same dtype and number of elements at all processes unless said otherwise. Ranks are those in the group.

The duties of an engine:

- Each collective *begins* when its method is called: it returns None when it is over, or something to wait for.
- Results do not depend on timing. All processes get the same bits.
- A process that does something else is an error that names both call sites (:class:`Call`), where the engine looks.
- A process that is gone, or does not come within ``timeout``, is an error that names it; never a wait without end.
"""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any, NamedTuple

from ..._typed import Tensor
from ..._warn import caller_line
from ...autograd import no_grad
from ...futures import Future
from ..errors import DistBackendError
from ..reduction import ReduceOp
from ..work import Work


class Call(NamedTuple):
    """One collective of one process."""

    group: str  #: the name of the group
    number: int  #: how many collectives the group did before
    doing: str  #: name, dtype, sizes, reduction and root: equal at all processes
    site: str  #: file and line of the user's call

    @classmethod
    def here(cls, group: str, number: int, doing: str) -> Call:
        """The call that the running line of the program makes."""
        return cls(group, number, doing, caller_line())

    def mismatch(self, rank: int, other: int, doing: str, site: str) -> DistBackendError:
        """The error of process ``rank``, which does this, while ``other`` does something else."""
        return DistBackendError(
            f"mismatched collectives: rank {other} does {doing} at {site}, rank {rank} {self.doing} at {self.site}. "
            f"All processes of a group have to call the same collectives in the same order, with the same sizes"
        )


def adjacent(parts: Sequence[Tensor]) -> Tensor | None:
    """One flat tensor of ``parts`` whose memory lies one behind the other; None: it does not."""
    if len(parts) == 1:
        return parts[0]
    at = parts[0].data_ptr()
    storage = parts[0].untyped_storage().data_ptr()
    for part in parts:
        if part.data_ptr() != at or part.untyped_storage().data_ptr() != storage:
            return None
        at += part.numel() * part.element_size()
    total = sum(part.numel() for part in parts)
    return parts[0].as_strided((total,), (1,), parts[0].storage_offset())


class Engine(ABC):
    """The exchange of memory between process ``rank`` of a group of ``size`` and the others."""

    name = ""  #: the backend

    def __init__(self, group: str, rank: int, size: int, timeout: timedelta) -> None:
        self.group, self.rank, self.size, self.timeout = group, rank, size, timeout
        self.others = [other for other in range(size) if other != rank]

    @abstractmethod
    def all_reduce(self, call: Call, x: Tensor, op: ReduceOp) -> Any:
        """Combine ``x`` of all processes; each process's ``x`` gets the result."""

    @abstractmethod
    def reduce(self, call: Call, x: Tensor, op: ReduceOp, root: int) -> Any:
        """Combine ``x`` of all processes into ``x`` of ``root``; the others keep theirs."""

    @abstractmethod
    def broadcast(self, call: Call, x: Tensor, root: int) -> Any:
        """Copy ``x`` of ``root`` to ``x`` of the others."""

    @abstractmethod
    def all_gather(self, call: Call, outs: Sequence[Tensor], x: Tensor) -> Any:
        """Write ``x`` of process ``i`` to ``outs[i]`` at each process."""

    @abstractmethod
    def gather(self, call: Call, outs: Sequence[Tensor], x: Tensor, root: int) -> Any:
        """Write ``x`` of process ``i`` to ``outs[i]`` at ``root``; ``outs`` is empty elsewhere."""

    @abstractmethod
    def scatter(self, call: Call, x: Tensor, parts: Sequence[Tensor], root: int) -> Any:
        """Write ``parts[i]`` of ``root`` to ``x`` of process ``i``; ``parts`` is empty elsewhere."""

    @abstractmethod
    def reduce_scatter(self, call: Call, x: Tensor, parts: Sequence[Tensor], op: ReduceOp) -> Any:
        """Combine ``parts[i]`` of all processes into ``x`` of process ``i``."""

    @abstractmethod
    def all_to_all(self, call: Call, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> Any:
        """Write ``parts[j]`` of process ``i`` to ``outs[i]`` of process ``j``. Sizes differ from pair to pair."""

    @abstractmethod
    def barrier(self, call: Call, timeout: timedelta) -> Any:
        """Wait until all processes are here."""

    @abstractmethod
    def send(self, x: Tensor, to: int, tag: int, doing: str) -> Work:
        """Send ``x`` to process ``to``; it is not written to until the Work is over."""

    @abstractmethod
    def receive(self, x: Tensor, ranks: Sequence[int], tag: int, doing: str) -> Work:
        """Receive into ``x`` a message that one of ``ranks`` sends under ``tag``; ``Work.source`` is the sender."""

    def look(self) -> None:  # noqa: B027 - engines may have no way to know
        """Raise an error where a process of the group is known to be gone, or to have failed."""

    def tell(self, text: str) -> None:  # noqa: B027 - as above
        """Let the others of the group fail with ``text``, where there is a way."""

    def together(self) -> AbstractContextManager[None]:
        """Within it, messages may be collected; they begin together at the end."""
        return nullcontext()

    @abstractmethod
    def split(self, group: str, ranks: Sequence[int], timeout: timedelta) -> Engine:
        """The engine of some of the processes. Exactly these processes call this."""

    @abstractmethod
    def run(self, begin: Callable[[], Any], finish: Callable[[], list], async_op: bool) -> Work | None:
        """Call ``begin``, which calls one of the collectives, and ``finish`` when that is over."""

    @abstractmethod
    def close(self) -> None:
        """Release the group's resources."""


class BlockingEngine(Engine):
    """An engine whose collectives return when they are over. Asynchronous ones are done in their order by a thread."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._tasks: queue.SimpleQueue | None = None
        self._left = 0  # tasks that the thread has not done; counted by two threads, under the lock
        self._counting = threading.Lock()

    def run(self, begin: Callable[[], Any], finish: Callable[[], list], async_op: bool) -> Work | None:
        """See :meth:`Engine.run`. One that is not asynchronous waits for those that are: the order is the program's."""
        if not async_op and not self._left:
            with no_grad():
                begin()
                finish()
            return None
        future = Future()

        def task() -> None:
            try:
                with no_grad():
                    begin()
                    result = finish()
            except BaseException as error:  # the waiting thread gets it
                self._count(-1)
                future.set_exception(error)
            else:
                self._count(-1)
                future.set_result(result)

        self._count(1)
        if self.size == 1:
            task()
        else:
            if self._tasks is None:
                self._tasks = queue.SimpleQueue()
                threading.Thread(target=_work, args=(self._tasks,), name="taeda-collectives", daemon=True).start()
            self._tasks.put(task)
        if async_op:
            return Work(future)
        future.result()
        return None

    def _count(self, change: int) -> None:
        with self._counting:
            self._left += change

    def close(self) -> None:
        """End the thread."""
        if self._tasks is not None:
            self._tasks.put(None)


def _work(tasks: queue.SimpleQueue) -> None:
    while (task := tasks.get()) is not None:
        task()
        del task  # and the objects that it holds
