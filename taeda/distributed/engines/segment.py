"""Collectives in memory that the processes of one machine share.

A collective is a row of *steps*. In a step each process writes to its own slot, marks that in a counter, waits for the
counters of the others, and reads their slots. Each process has two slots, used in turn. Before a process writes to a
slot again, the counters of the step between have shown that all others have read it. So a step costs one wait.

With the first step of a collective goes its :class:`Call`, which all processes compare. Processes that are gone are
known from their connections (``links.py``), over which messages from one to one go as well.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from ..._core import uint8
from ..._core.machine import cpus
from ..._typed import Tensor
from ...ops.exchange import frombuffer
from ..errors import DistBackendError
from ..links import Links
from ..reduction import ReduceOp, combine_into
from .contract import Call
from .handover import shared_segment
from .messages import MessageEngine

_LINE = 64  # bytes of a counter: a cache line, so that waiting for one process does not slow another
_NOTE = 2048  # bytes of a process's note on its collective
_TEXT = 1024
_MOST = (_NOTE - _TEXT) // 8  # processes that can say how much they send to each
_SLOT = 1 << 19  # bytes: two processes' slots stay in a second-level cache
_SMALL = 1 << 15  # up to here each process combines the whole tensor, in one step
_HEAD = struct.Struct("<HH")
_SPINS, _YIELDS = 200, 50  # on a machine that others use too, 2,000 looks took 160 us a call in place of 70
_SLICE = 0.02  # seconds of sleep between looks for processes that are gone


class SegmentEngine(MessageEngine):
    """A group in shared memory where all its processes are on one machine, by messages where they are not."""

    def __init__(self, group: str, rank: int, ranks: Sequence[int], links: Links | None, timeout: timedelta) -> None:
        super().__init__(group, rank, ranks, links, timeout)
        near = links is not None and 1 < len(ranks) <= _MOST and links.on_one_machine(self.ranks)
        self._near = near  # equal at all processes
        self._segment: Any = None
        self._steps = 0
        self._failed = ""
        self._areas: dict[Any, list[Tensor]] = {}
        # spinning takes the processor from those that are waited for, where there are fewer than processes
        self._spins = _SPINS if cpus() >= self.size else 20

    # ---- steps -------------------------------------------------------------------------------------------------------

    def _shared(self, call: Call, timeout: timedelta | None = None) -> bool:
        """Whether the collective goes through shared memory, which the first one makes."""
        if not self._near:
            return False
        if self._failed:
            raise DistBackendError(self._failed)
        if self._segment is None:
            assert self.links is not None
            self._notes = _LINE * self.size
            self._slots = self._notes + 2 * _NOTE * self.size
            nbytes = self._slots + 2 * _SLOT * self.size
            wait = timeout or self.timeout
            self._segment = shared_segment(self.links, self.ranks, self.rank, call, wait, nbytes)
            self._near = self._segment is not None
        return self._near

    def _area(self, dtype: Any) -> list[Tensor]:
        """The slots of all processes for the step that is being made, in the order of ranks."""
        turn = self._steps & 1
        found = self._areas.get((dtype, turn))
        if found is None:
            whole = frombuffer(self._segment, dtype=uint8)
            starts = [self._slots + (2 * rank + turn) * _SLOT for rank in range(self.size)]
            found = self._areas[dtype, turn] = [whole[at : at + _SLOT].view(dtype) for at in starts]
        return found

    def _note(self, call: Call, sizes: Sequence[int] = ()) -> None:
        """Leave word of the collective, and of how many bytes go to each process."""
        doing, site = call.doing.encode()[: _TEXT // 2], call.site.encode()[-_TEXT // 4 :]
        at = self._notes + (2 * self.rank + (self._steps & 1)) * _NOTE
        self._segment.write(at, _HEAD.pack(len(doing), len(site)) + doing + site)
        if sizes:
            self._segment.write(at + _TEXT, struct.pack(f"<{self.size}q", *sizes))

    def _noted(self, rank: int) -> tuple[bytes, bytes, memoryview]:
        """The call that ``rank`` makes, its line, and the bytes that it sends to each process."""
        at = self._notes + (2 * rank + (self._steps & 1)) * _NOTE
        note = memoryview(self._segment)[at : at + _NOTE]
        n, m = _HEAD.unpack_from(note)
        return bytes(note[4 : 4 + n]), bytes(note[4 + n : 4 + n + m]), note[_TEXT:]

    def _meet(self, call: Call, begun: bool = False, timeout: timedelta | None = None) -> None:
        """Say that this process has written, and wait until all have; compare their calls unless it has ``begun``."""
        step = self._steps + 1
        reached, spins = self._segment.reached, self._spins
        yields = 0 if begun else _YIELDS  # between chunks, a sleeping process leaves the processor to the other
        self._segment.post(self.rank * _LINE, step)
        for other in self.others:
            if not reached(other * _LINE, step, spins, yields, _SLICE):
                self._wait(call, other, step, timeout or self.timeout)
        if not begun:
            mine = call.doing.encode()[: _TEXT // 2]
            for other in self.others:
                doing, site, _ = self._noted(other)
                if doing != mine:
                    raise call.mismatch(
                        self.ranks[self.rank],
                        self.ranks[other],
                        doing.decode(errors="replace"),
                        site.decode(errors="replace"),
                    )

    def _wait(self, call: Call, other: int, step: int, timeout: timedelta) -> None:
        assert self.links is not None
        end = time.monotonic() + timeout.total_seconds()
        reached = self._segment.reached
        while not reached(other * _LINE, step, 0, 0, _SLICE):
            try:
                self.links.trouble([self.ranks[other]], call.group, call.doing)
            except DistBackendError:
                if reached(other * _LINE, step, 0, 0, 0.0):  # it came, and ended, after the look above
                    return
                raise
            if time.monotonic() >= end:
                raise DistBackendError(
                    f"{call.doing} at {call.site}: rank {self.ranks[self.rank]} timed out after {timeout} waiting for "
                    f"rank {self.ranks[other]}, which may be doing something else"
                )

    def _through(self, call: Call, steps: Callable[[], None]) -> None:
        """Take ``steps``; a collective that does not end well is the group's last."""
        try:
            steps()
        except BaseException as error:
            self._failed = f"{error}" if isinstance(error, DistBackendError) else f"{call.doing}: {error!r}"
            assert self.links is not None
            self.links.tell(call.group, self._failed)
            raise

    # ---- collectives -------------------------------------------------------------------------------------------------

    def all_reduce(self, call: Call, x: Tensor, op: ReduceOp) -> None:
        if not self._shared(call):
            super().all_reduce(call, x, op)
        elif x.numel() * x.element_size() <= _SMALL:
            self._through(call, lambda: self._combine_whole(call, x, op, x))
        else:
            self._through(call, lambda: self._combine_parts(call, x, op))

    def _combine_whole(self, call: Call, x: Tensor, op: ReduceOp, out: Tensor | None) -> None:
        """In one step: all processes show ``x``, and those with an ``out`` combine the parts."""
        n = x.numel()
        area = self._area(x.dtype)
        area[self.rank][:n].copy_(x)
        self._note(call)
        self._meet(call)
        if out is not None and n:
            combine_into(out, op, [slot[:n] for slot in area])
        self._steps += 1

    def _combine_parts(self, call: Call, x: Tensor, op: ReduceOp) -> None:
        """Chunk by chunk: process ``i`` combines part ``i`` of it, and shows the result in the next step.

        The place of part ``i`` in slot ``i``, where nothing need be written, has the result for the chunk before.
        """
        whole = _SLOT // x.element_size() // self.size  # elements of a part
        before: list[Tensor] = []
        self._note(call)
        for i, chunk in enumerate([*x.split(whole * self.size), None]):
            parts = [] if chunk is None else list(chunk.tensor_split(self.size))
            area = self._area(x.dtype)
            mine, own = area[self.rank], self.rank * whole
            for rank in self.others if parts else ():
                mine[rank * whole : rank * whole + parts[rank].numel()].copy_(parts[rank])
            if before:
                mine[own : own + before[self.rank].numel()].copy_(before[self.rank])
            self._meet(call, begun=i > 0)
            for rank in self.others if before else ():
                before[rank].copy_(area[rank][rank * whole : rank * whole + before[rank].numel()])
            if parts:
                part = parts[self.rank]
                n = part.numel()
                combine_into(part, op, [part if r == self.rank else s[own : own + n] for r, s in enumerate(area)])
            before = parts
            self._steps += 1

    def reduce(self, call: Call, x: Tensor, op: ReduceOp, root: int) -> None:
        if not self._shared(call):
            return super().reduce(call, x, op, root)

        def read(area: list[Tensor], at: int, n: int) -> None:
            part = x[at : at + n]
            if self.rank == root:
                combine_into(part, op, [part if r == root else s[:n] for r, s in enumerate(area)])

        self._through(call, lambda: self._in_pieces(call, x if self.rank != root else None, x, read))

    def _in_pieces(
        self, call: Call, shown: Tensor | None, like: Tensor, read: Callable[[list[Tensor], int, int], None]
    ) -> None:
        """Show ``shown``, of the size of ``like``, piece by piece; ``read(slots, start, n)`` looks at all slots."""
        most = _SLOT // like.element_size()
        self._note(call)
        for at in range(0, max(like.numel(), 1), most):
            n = min(most, like.numel() - at)
            area = self._area(like.dtype)
            if shown is not None and n:
                area[self.rank][:n].copy_(shown[at : at + n])
            self._meet(call, begun=at > 0)
            if n:
                read(area, at, n)
            self._steps += 1

    def broadcast(self, call: Call, x: Tensor, root: int) -> None:
        if not self._shared(call):
            return super().broadcast(call, x, root)

        def read(area: list[Tensor], at: int, n: int) -> None:
            if self.rank != root:
                x[at : at + n].copy_(area[root][:n])

        self._through(call, lambda: self._in_pieces(call, x if self.rank == root else None, x, read))

    def all_gather(self, call: Call, outs: Sequence[Tensor], x: Tensor) -> None:
        if not self._shared(call):
            return super().all_gather(call, outs, x)
        self._gather(call, outs, x)

    def _gather(self, call: Call, outs: Sequence[Tensor], x: Tensor) -> None:
        def read(area: list[Tensor], at: int, n: int) -> None:
            for rank in self.others if outs else ():
                outs[rank][at : at + n].copy_(area[rank][:n])

        if outs:
            outs[self.rank].copy_(x)
        self._through(call, lambda: self._in_pieces(call, x, x, read))

    def gather(self, call: Call, outs: Sequence[Tensor], x: Tensor, root: int) -> None:
        if not self._shared(call):
            return super().gather(call, outs, x, root)
        self._gather(call, outs, x)

    def scatter(self, call: Call, x: Tensor, parts: Sequence[Tensor], root: int) -> None:
        if not self._shared(call):
            return super().scatter(call, x, parts, root)

        def read(slots: list[Tensor], at: int, n: int) -> None:
            x[at : at + n].copy_(parts[root][at : at + n] if self.rank == root else slots[root][:n])

        self._through(call, lambda: self._in_columns(call, parts, x, read))

    def reduce_scatter(self, call: Call, x: Tensor, parts: Sequence[Tensor], op: ReduceOp) -> None:
        if not self._shared(call):
            return super().reduce_scatter(call, x, parts, op)
        own = parts[self.rank]

        def read(slots: list[Tensor], at: int, n: int) -> None:
            seen = [own[at : at + n] if rank == self.rank else slots[rank][:n] for rank in range(self.size)]
            combine_into(x[at : at + n], op, seen)

        self._through(call, lambda: self._in_columns(call, parts, x, read))

    def _in_columns(
        self, call: Call, parts: Sequence[Tensor], like: Tensor, read: Callable[[list[Tensor], int, int], None]
    ) -> None:
        """Show ``parts``, one for each process and of the size of ``like``, piece by piece; ``read`` looks at this
        one's."""
        most = _SLOT // like.element_size() // self.size
        mine = slice(self.rank * most, (self.rank + 1) * most)
        self._note(call)
        for at in range(0, max(like.numel(), 1), most):
            n = min(most, like.numel() - at)
            area = self._area(like.dtype)
            for rank in self.others if parts and n else ():
                area[self.rank][rank * most : rank * most + n].copy_(parts[rank][at : at + n])
            self._meet(call, begun=at > 0)
            if n:
                read([slot[mine] for slot in area], at, n)
            self._steps += 1

    def all_to_all(self, call: Call, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        """See :meth:`Engine.all_to_all`."""
        if not self._shared(call):
            return super().all_to_all(call, outs, parts)
        self._through(call, lambda: self._exchange(call, outs, parts))

    def _exchange(self, call: Call, outs: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        outs[self.rank].copy_(parts[self.rank])
        most = _SLOT // parts[0].element_size() // self.size
        mine = self.rank * most
        self._note(call, [part.numel() for part in parts])
        at, end = 0, 1
        while at < end:
            area = self._area(parts[0].dtype)
            for rank in self.others:
                piece = parts[rank][at : at + most]
                area[self.rank][rank * most : rank * most + piece.numel()].copy_(piece)
            self._meet(call, begun=at > 0)
            if at == 0:
                end = self._agreed(call, outs)
            for rank in self.others:
                piece = outs[rank][at : at + most]
                piece.copy_(area[rank][mine : mine + piece.numel()])
            at += most
            self._steps += 1

    def _agreed(self, call: Call, outs: Sequence[Tensor]) -> int:
        """The most elements that go from one process to another, once all of them are known to be as expected."""
        sizes = [struct.unpack_from(f"<{self.size}q", self._noted(rank)[2]) for rank in range(self.size)]
        for rank in self.others:
            if sizes[rank][self.rank] != outs[rank].numel():
                raise DistBackendError(
                    f"{call.doing} at {call.site}: rank {self.ranks[self.rank]} expected {outs[rank].numel()} elements "
                    f"from rank {self.ranks[rank]}, which sends {sizes[rank][self.rank]}"
                )
        return max(max(row) for row in sizes)

    def barrier(self, call: Call, timeout: timedelta) -> None:
        if not self._shared(call, timeout):
            return super().barrier(call, timeout)

        def steps() -> None:
            self._note(call)
            self._meet(call, timeout=timeout)
            self._steps += 1

        self._through(call, steps)
