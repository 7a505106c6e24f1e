"""Collectives as messages from one process to another, by TCP: for processes of any machines.

Each is written for any number of processes, with messages to the *other* ones. In a group of one there are no messages,
and input is copied to output. Values are combined in the order of ranks, by one process for each part of a tensor, so
that the results are bitwise equal everywhere.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ..._core import uint8
from ..._typed import Tensor
from ..._warn import caller_line
from ...autograd import no_grad
from ...futures import Future
from ...ops.creation import empty
from ...ops.exchange import frombuffer
from ..errors import DistBackendError
from ..links import Key, Links
from ..reduction import ReduceOp, combine_into
from ..work import Work, done
from .contract import BlockingEngine, Call

_SMALL = 1 << 16  # bytes up to which one round of messages with everything is faster than two with parts


def bytes_of(x: Tensor) -> Any:
    """The memory of a flat tensor."""
    return memoryview(x.view(uint8).numpy()) if x.numel() else memoryview(b"")  # type: ignore[arg-type]


class MessageEngine(BlockingEngine):
    """A group of the world's processes ``ranks`` that send messages by ``links``; None for a single process."""

    name = "gloo"

    def __init__(self, group: str, rank: int, ranks: Sequence[int], links: Links | None, timeout: timedelta) -> None:
        super().__init__(group, rank, len(ranks), timeout)
        self.ranks = list(ranks)
        self.links = links
        self._whole = True  # made for the world, whose links end with it
        self._pending: dict[Any, deque[_Receiving]] = defaultdict(deque)

    def split(self, group: str, ranks: Sequence[int], timeout: timedelta) -> MessageEngine:
        world = [self.ranks[rank] for rank in ranks]
        made = type(self)(group, list(ranks).index(self.rank), world, self.links, timeout)
        made._whole = False
        return made

    def look(self) -> None:
        if self.links is not None:
            self.links.trouble([self.ranks[other] for other in self.others], self.group, "work of GPUs")

    def tell(self, text: str) -> None:
        if self.links is not None:
            self.links.tell(self.group, text)

    def close(self) -> None:
        super().close()
        if self._whole and self.links is not None:
            self.links.close()

    # ---- messages ----------------------------------------------------------------------------------------------------

    def _post(self, call: Call, rank: int, payload: Any = b"") -> None:
        assert self.links is not None
        self.links.begin(*call)
        key = (call.group, str(call.number))
        self.links.send(self.ranks[rank], key, call.doing, payload, call.site)

    def _take(
        self, call: Call, rank: int, timeout: timedelta | None = None, into: memoryview | None = None
    ) -> memoryview:
        assert self.links is not None
        self.links.begin(*call)
        key = (call.group, str(call.number))
        return self.links.receive([self.ranks[rank]], key, call.doing, timeout or self.timeout, call.site, into)[2]

    def _take_into(self, call: Call, rank: int, x: Tensor) -> None:
        own = bytes_of(x)
        payload = self._take(call, rank, into=own)
        if payload is not own:
            x.copy_(_values(payload, x, call.doing))

    def _like(self, call: Call, rank: int, x: Tensor) -> Tensor:
        """The tensor that process ``rank`` sent, of the size and dtype of ``x``."""
        return _values(self._take(call, rank), x, call.doing)

    def _of_all(self, call: Call, own: Tensor) -> list[Tensor]:
        """The tensors of all processes, in the order of ranks: ``own``, and those that the others sent."""
        return [own if rank == self.rank else self._like(call, rank, own) for rank in range(self.size)]

    # ---- collectives -------------------------------------------------------------------------------------------------

    def all_reduce(self, call: Call, x: Tensor, op: ReduceOp) -> None:
        """See :meth:`Engine.all_reduce`: each process does one part, and sends that to the others; small ones, the
        whole."""
        if not self.others:
            return
        if x.numel() * x.element_size() <= _SMALL:
            for rank in self.others:
                self._post(call, rank, bytes_of(x))
            combine_into(x, op, self._of_all(call, x))
            return
        parts = list(x.tensor_split(self.size))
        for rank in self.others:
            self._post(call, rank, bytes_of(parts[rank]))
        mine = parts[self.rank]
        combine_into(mine, op, self._of_all(call, mine))
        for rank in self.others:
            self._post(call, rank, bytes_of(mine))
        for rank in self.others:
            self._take_into(call, rank, parts[rank])

    def reduce(self, call: Call, x: Tensor, op: ReduceOp, root: int) -> None:
        if self.rank != root:
            self._post(call, root, bytes_of(x))
        elif self.others:
            combine_into(x, op, self._of_all(call, x))

    def broadcast(self, call: Call, x: Tensor, root: int) -> None:
        if self.rank != root:
            self._take_into(call, root, x)
        else:
            for rank in self.others:
                self._post(call, rank, bytes_of(x))

    def all_gather(self, call: Call, outs: Sequence[Tensor], x: Tensor) -> None:
        for rank in self.others:
            self._post(call, rank, bytes_of(x))
        outs[self.rank].copy_(x)
        for rank in self.others:
            self._take_into(call, rank, outs[rank])

    def gather(self, call: Call, outs: Sequence[Tensor], x: Tensor, root: int) -> None:
        if self.rank != root:
            self._post(call, root, bytes_of(x))
            return
        outs[root].copy_(x)
        for rank in self.others:
            self._take_into(call, rank, outs[rank])

    def scatter(self, call: Call, x: Tensor, parts: Sequence[Tensor], root: int) -> None:
        if self.rank != root:
            self._take_into(call, root, x)
            return
        for rank in self.others:
            self._post(call, rank, bytes_of(parts[rank]))
        x.copy_(parts[root])

    def reduce_scatter(self, call: Call, x: Tensor, parts: Sequence[Tensor], op: ReduceOp) -> None:
        for rank in self.others:
            self._post(call, rank, bytes_of(parts[rank]))
        combine_into(x, op, self._of_all(call, parts[self.rank]))

    def all_to_all(self, call: Call, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        """See :meth:`Engine.all_to_all`."""
        for rank in self.others:
            self._post(call, rank, bytes_of(parts[rank]))
        outs[self.rank].copy_(parts[self.rank])
        for rank in self.others:
            self._take_into(call, rank, outs[rank])

    def barrier(self, call: Call, timeout: timedelta) -> None:
        for rank in self.others:
            self._post(call, rank)
        for rank in self.others:
            self._take(call, rank, timeout)

    # ---- from one to one ---------------------------------------------------------------------------------------------

    def send(self, x: Tensor, to: int, tag: int, doing: str) -> Work:
        """See :meth:`Engine.send`. The memory is handed over at once: this never waits for the receiver."""
        assert self.links is not None
        self.links.send(self.ranks[to], self._tagged(tag), doing, bytes_of(x), caller_line())
        return done([x])

    def receive(self, x: Tensor, ranks: Sequence[int], tag: int, doing: str) -> Work:
        return _Receiving(self, list(ranks), self._tagged(tag), x, doing)

    def _tagged(self, tag: int) -> Key:
        return self.group, f"tag {int(tag)}"


class _Receiving(Work):
    """A message to come. Messages from one process under one tag are received in the order of the calls."""

    def __init__(self, engine: MessageEngine, ranks: list[int], key: Key, x: Tensor, doing: str) -> None:
        super().__init__(Future())
        self._engine, self._ranks, self._key, self._x, self._doing = engine, ranks, key, x, doing
        self._site = caller_line()
        self._line = engine._pending[tuple(ranks), key]
        self._line.append(self)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is here; what went wrong is raised."""
        while not self._future.done():
            self._line.popleft()._take(timeout)
        return super().wait()

    def _take(self, timeout: timedelta | None) -> None:
        engine = self._engine
        assert engine.links is not None
        world = [engine.ranks[rank] for rank in self._ranks]
        try:
            found, _, payload = engine.links.receive(
                world, self._key, self._doing, timeout or engine.timeout, self._site
            )
            with no_grad():
                self._x.copy_(_values(payload, self._x, self._doing))
            self.source = engine.ranks.index(found)
            self._future.set_result([self._x])
        except BaseException as error:
            self._future.set_exception(error)

    def is_completed(self) -> bool:
        """Whether it is here."""
        links = self._engine.links
        assert links is not None
        world = [self._engine.ranks[rank] for rank in self._ranks]
        while self._line and not self._future.done() and links.has(world, self._key):
            self._line.popleft()._take(None)
        return self._future.done()


def _values(payload: memoryview, like: Tensor, what: str) -> Tensor:
    if len(payload) != like.numel() * like.element_size():
        raise DistBackendError(
            f"{what}: expected {like.numel()} elements of {like.dtype}, got {len(payload)} bytes: the sizes that the "
            f"processes give do not agree"
        )
    if not payload:
        return empty(like.shape, dtype=like.dtype)
    return frombuffer(payload, dtype=uint8).view(like.dtype).reshape(like.shape)
