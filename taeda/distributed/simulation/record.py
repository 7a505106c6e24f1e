"""The work of a program in a simulated process: the arithmetic of its ops, its collectives and messages, in order."""

from __future__ import annotations

import statistics
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from taeda._core import current_task

from ..._core.settings import within
from ..._typed import Tensor
from ...autograd import no_grad
from ...futures import Future
from ..engines.contract import Call, Engine
from ..reduction import ReduceOp
from ..work import Work, done
from .network import Device, OpCost

Key = tuple  # a collective's group and number; a message's group, sender, receiver, tag and number


class Compute(NamedTuple):
    """Arithmetic: ``kind`` is ``"forward"``, ``"backward"`` or ``"optimizer"``."""

    seconds: float
    kind: str


class Begin(NamedTuple):
    """A collective is asked for; ``nbytes`` as :meth:`Network.seconds` takes them."""

    key: Key
    kind: str
    ranks: tuple[int, ...]
    nbytes: int


class Sent(NamedTuple):
    """A message goes to process ``to``."""

    key: Key
    to: int
    nbytes: int


class Wait(NamedTuple):
    """The process waits for the end of a collective, or for a message."""

    key: Key


class Recorder:
    """The events of one process.

    Args:
        device: whose rates count.
    Attributes:
        events: in the order of the program.
        flops: of the ops.
        recording: whether what happens counts.
        clock: that of the program's own Python, while it is timed.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self.events: list[Compute | Begin | Sent | Wait] = []
        self.flops = 0
        self.recording = self.in_optimizer = False
        self.clock: Clock | None = None

    def append(self, op: OpCost) -> None:
        """The process does an op."""
        if self.recording:
            self.flops += op.flops
            self.spend(self._device.seconds([op]))

    def spend(self, seconds: float) -> None:
        """The process computes for ``seconds``."""
        if not self.recording or not seconds:
            return
        kind = self.kind()
        last = self.events[-1] if self.events else None
        if isinstance(last, Compute) and last.kind == kind:
            self.events[-1] = Compute(last.seconds + seconds, kind)
        else:
            self.events.append(Compute(seconds, kind))

    def kind(self) -> str:
        """The kind of the arithmetic that runs now."""
        return "optimizer" if self.in_optimizer else "backward" if current_task() != -1 else "forward"

    def add(self, event: Begin | Sent | Wait) -> None:
        """A collective, a message, or a wait."""
        if self.recording:
            self.events.append(event)
        elif self.clock is not None:
            self.clock.lap(self.kind())

    @contextmanager
    def not_timed(self) -> Iterator[None]:
        """Within it, nothing is the program's own Python."""
        clock = self.clock
        if clock is None:
            yield
            return
        clock.stop()
        try:
            yield
        finally:
            clock.go()

    def add_host(self, clocks: Sequence[Clock]) -> None:
        """Put the program's own Python between the recorded events: the mean of ``clocks``."""
        laps = [
            (statistics.mean(seconds for seconds, _ in times), times[0][1])
            for times in zip(*(clock.laps for clock in clocks), strict=False)
        ]
        before, self.events = self.events, []
        for event in [*before, None]:
            if not isinstance(event, Compute) and laps:
                seconds, kind = laps.pop(0)
                self.events.append(Compute(seconds * self._device.host, kind))
            if event is not None:
                self.events.append(event)


class Clock:
    """The processor time of a thread, without what passes between ``stop`` and ``go``.

    Args:
        cost: seconds that a stop and the ``go`` after it take themselves.
    Attributes:
        laps: seconds and what they were for, between the calls of ``lap``.
    """

    def __init__(self, cost: float = 0.0) -> None:
        self.laps: list[tuple[float, str]] = []
        self._cost, self._so_far = cost, 0.0
        self.go()

    def go(self) -> None:
        """Count from now on."""
        self._since = time.thread_time()

    def stop(self) -> None:
        """Until now."""
        self._so_far += time.thread_time() - self._since - self._cost

    def lap(self, kind: str) -> None:
        """Until now, and from here on again."""
        self.stop()
        self.laps.append((max(self._so_far, 0.0), kind))
        self._so_far = 0.0
        self.go()


_here = threading.local()


def recorded(recorder: Recorder) -> AbstractContextManager:
    """Within it, :func:`spend` in this thread counts for ``recorder``."""
    return within(_here, recorder=recorder)


def current() -> Recorder | None:
    """The recorder of the simulated process that runs on this thread; None outside a simulation."""
    return getattr(_here, "recorder", None)


class _Later(Future):
    """A result that is ready at once, whose waiter the simulation must know."""

    def __init__(self, waited: Callable[[], None], result: Callable[[], Any]) -> None:
        super().__init__()
        self._steps: tuple | None = (waited, result)

    def _settle(self) -> None:
        if self._steps is not None:
            (waited, result), self._steps = self._steps, None
            try:
                waited()
                self.set_result(result())
            except BaseException as error:  # the waiting thread gets it
                self.set_exception(error)

    def done(self) -> bool:
        """True: the caller has waited."""
        self._settle()
        return super().done()

    def result(self, timeout: float | None = None) -> Any:
        self._settle()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error, or None."""
        self._settle()
        return super().exception(timeout)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A Future of ``callback(self)``, which is called when somebody waits for it."""
        return _Later(self._settle, lambda: callback(self))


class Mail:
    """Messages between processes that are simulated; what tensors on device meta hold is not kept."""

    def __init__(self) -> None:
        self.on_the_way: dict[tuple, deque[tuple[Key, Tensor | None, int]]] = defaultdict(deque)


class RecordingEngine(Engine):
    """An engine that moves nothing: other processes are taken to have the same tensors as this one.

    Args:
        group: its name.
        ranks: of the group, in the world.
        rank: of this process in the group.
        recorder: of this process.
        mail: of all processes.
        until: ``until(ready, doing)`` lets other processes go on until ``ready()``.
        known: the processes that are simulated.
        timeout: that of the group.
    """

    name = "gloo"

    def __init__(
        self, group: str, ranks: Sequence[int], rank: int, recorder: Recorder, mail: Mail, until: Callable,
        known: frozenset[int], timeout: timedelta,
    ) -> None:  # fmt: skip
        super().__init__(group, rank, len(ranks), timeout)
        self._ranks = tuple(ranks)
        self._recorder, self._mail, self._until, self._known = recorder, mail, until, known
        self._key: Key = ()
        self._messages: dict[tuple, int] = defaultdict(int)

    def _begin(self, call: Call, kind: str, nbytes: int) -> None:
        self._key = self.group, call.number
        if self.size > 1:
            self._recorder.add(Begin(self._key, kind, self._ranks, nbytes))

    def all_reduce(self, call: Call, x: Tensor, op: ReduceOp) -> Any:
        self._begin(call, "all_reduce", x.nbytes)
        _of_equal(x, op, self.size)

    def reduce(self, call: Call, x: Tensor, op: ReduceOp, root: int) -> Any:
        self._begin(call, "reduce", x.nbytes)
        if root == self.rank:
            _of_equal(x, op, self.size)

    def broadcast(self, call: Call, x: Tensor, root: int) -> Any:
        self._begin(call, "broadcast", x.nbytes)

    def all_gather(self, call: Call, outs: Sequence[Tensor], x: Tensor) -> Any:
        self._begin(call, "all_gather", x.nbytes * self.size)
        _copy(outs, x)

    def gather(self, call: Call, outs: Sequence[Tensor], x: Tensor, root: int) -> Any:
        self._begin(call, "gather", x.nbytes * self.size)
        _copy(outs, x)

    def scatter(self, call: Call, x: Tensor, parts: Sequence[Tensor], root: int) -> Any:
        self._begin(call, "scatter", x.nbytes * self.size)
        if parts:
            _copy([x], parts[self.rank])

    def reduce_scatter(self, call: Call, x: Tensor, parts: Sequence[Tensor], op: ReduceOp) -> Any:
        self._begin(call, "reduce_scatter", x.nbytes * self.size)
        _copy([x], parts[self.rank])
        _of_equal(x, op, self.size)

    def all_to_all(self, call: Call, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> Any:
        """See :meth:`Engine.all_to_all`."""
        self._begin(call, "all_to_all", sum(part.nbytes for part in parts))
        for out in outs:
            if not out.is_meta and out.numel() != parts[self.rank].numel():
                raise RuntimeError(
                    f"simulate: all_to_all of tensors with values, of which process {self.rank} expects {out.numel()} "
                    f"elements and would send {parts[self.rank].numel()}; what the others send is not known"
                )
            _copy([out], parts[self.rank])

    def barrier(self, call: Call, timeout: timedelta) -> Any:
        self._begin(call, "barrier", 0)

    def _line(self, frm: int, to: int, tag: int) -> tuple:
        for rank in (self._ranks[frm], self._ranks[to]):
            if rank not in self._known:
                raise RuntimeError(
                    f"simulate: a message from rank {self._ranks[frm]} to {self._ranks[to]}, of which {rank} is not "
                    f"simulated: name the dimension of the pipeline 'pp', or give simulate(ranks=...) all that send "
                    f"messages"
                )
        return self.group, self._ranks[frm], self._ranks[to], tag

    def send(self, x: Tensor, to: int, tag: int, doing: str) -> Work:
        line = self._line(self.rank, to, tag)
        key = (*line, self._messages[line])
        self._messages[line] += 1
        self._recorder.add(Sent(key, self._ranks[to], x.nbytes))
        self._mail.on_the_way[line].append((key, None if x.is_meta else x.clone(), x.numel()))
        return done([x])

    def receive(self, x: Tensor, ranks: Sequence[int], tag: int, doing: str) -> Work:
        lines = [self._line(rank, self.rank, tag) for rank in ranks]
        mail = self._mail.on_the_way
        key: list[Key] = []

        def take() -> None:
            self._until(lambda: any(mail[line] for line in lines), f"a message of {doing} under tag {tag}")
            line = next(line for line in lines if mail[line])
            found, value, count = mail[line].popleft()
            if count != x.numel():
                raise RuntimeError(
                    f"simulate: rank {line[1]} sends {count} elements, rank {line[2]} expects {x.numel()}"
                )
            if value is not None:
                x.copy_(value)
            self._recorder.add(Wait(found))
            work.source = self._ranks.index(line[1])
            key.append(found)

        work = Work(_Later(take, lambda: [x]))
        return work

    def split(self, group: str, ranks: Sequence[int], timeout: timedelta) -> RecordingEngine:
        return RecordingEngine(
            group, ranks, list(ranks).index(self._ranks[self.rank]), self._recorder, self._mail, self._until,
            self._known, timeout,
        )  # fmt: skip

    def run(self, begin: Callable[[], Any], finish: Callable[[], list], async_op: bool) -> Work | None:
        """See :meth:`Engine.run`. The Python of a collective is in the time of the collective."""
        with self._recorder.not_timed(), no_grad():
            begin()
            key, result = self._key, finish()
        work = Work(_Later(lambda: self._recorder.add(Wait(key)), lambda: result))
        if async_op:
            return work
        work.wait()
        return None

    def close(self) -> None:
        """Release nothing."""


def _of_equal(x: Tensor, op: ReduceOp, n: int) -> None:
    """``x`` combined with ``n - 1`` more that are equal."""
    if x.is_meta:
        return
    if op is ReduceOp.SUM:
        x.mul_(n)
    elif op is ReduceOp.PRODUCT:
        x.pow_(n)
    elif op is ReduceOp.BXOR and n % 2 == 0:
        x.zero_()


def _copy(outs: Sequence[Tensor], x: Tensor) -> None:
    for out in outs:
        if not out.is_meta:
            out.copy_(x)
