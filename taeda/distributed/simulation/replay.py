"""Recorded processes on a time axis: their waits for each other, and the work beside the arithmetic."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from .network import Network
from .record import Begin, Compute, Key, Sent
from .timeline import COMPUTE, MESSAGES, NETWORK, Span

__all__ = ["replay"]


class _Process:
    """One process on the way through its events.

    Args:
        index: its number.
        events: what it does.
    Attributes:
        left: seconds of arithmetic that it still has to do before its next event.
        blocked: until when it waits; infinite while nobody knows.
        busy: the times from and to which the network has it, in order.
        free: when each of its lanes is.
    """

    def __init__(self, index: int, events: Sequence) -> None:
        self.index, self.events, self.at = index, events, 0
        self.left = self.blocked = 0.0
        self.kind = ""
        self.busy: list[tuple[float, float]] = []
        self.free = {NETWORK: 0.0, MESSAGES: 0.0}

    def stopped(self, now: float) -> bool:
        """Whether the network has it."""
        while self.busy and self.busy[0][1] <= now:
            self.busy.pop(0)
        return bool(self.busy) and self.busy[0][0] <= now

    def next(self, now: float, rate: float) -> float:
        """When something changes for it."""
        if self.stopped(now):
            return self.busy[0][1]
        ends = now + self.left / rate if self.left else max(now, self.blocked)
        return min(ends, self.busy[0][0]) if self.busy else ends


class _Replay:
    """One time axis for the processes ``ranks`` of the world."""

    def __init__(self, records: Sequence[list], ranks: Sequence[int], network: Network, processors: float) -> None:
        self.ranks, self.network, self.processors = list(ranks), network, processors
        self.processes = [_Process(i, events) for i, events in enumerate(records)]
        self.spans: list[Span] = []
        self.last: dict[int, int] = {}  # the span of each process's arithmetic
        self.asked: dict[Key, dict[int, float]] = defaultdict(dict)  # when each process has asked for a collective
        self.ends: dict[Key, float] = {}
        self.sent = {event.key for record in records for event in record if isinstance(event, Sent)}

    def run(self) -> float:
        """Go through all events; gives the end of the last.

        Returns:
            Seconds.
        Raises:
            RuntimeError: the processes wait for each other.
        """
        now = 0.0
        while True:
            while any([self.advance(p, now) for p in self.processes]):
                pass
            active = [p for p in self.processes if p.left or p.at < len(p.events) or p.stopped(now)]
            if not active:
                return max([now, *(end for p in self.processes for end in p.free.values())])
            computing = [p for p in active if p.left and not p.stopped(now)]
            rate = min(1.0, self.processors / len(computing)) if computing else 1.0
            times = [p.next(now, rate) for p in active]
            then = min(times)
            if then == math.inf:
                raise RuntimeError(
                    f"simulate: ranks {[self.ranks[p.index] for p in active]} wait for each other: not all processes "
                    f"of a group do the same collectives"
                )
            for p in computing:
                ends = now + p.left / rate
                p.left = 0.0 if ends <= then else p.left - (then - now) * rate
                self.compute(p, now, then)
            now = then

    def compute(self, p: _Process, start: float, end: float) -> None:
        """Process ``p`` computes from ``start`` to ``end``."""
        at = self.last.get(p.index)
        before = None if at is None else self.spans[at]
        if before is not None and before.end == start and before.kind == p.kind:
            self.spans[at] = before._replace(end=end)  # type: ignore[index]
        elif end > start:
            self.last[p.index] = len(self.spans)
            self.spans.append(Span(p.index, COMPUTE, p.kind, p.kind, start, end))

    def advance(self, p: _Process, now: float) -> bool:
        """Whether ``p`` gets past its next event at ``now``."""
        if p.left or p.at == len(p.events) or p.stopped(now):
            return False
        event = p.events[p.at]
        if isinstance(event, Compute):
            p.left, p.kind = event.seconds, event.kind
        elif isinstance(event, Sent):
            seconds = self.network.seconds("send", [self.ranks[p.index], event.to], event.nbytes)
            self.ends[event.key] = self.put([p], MESSAGES, f"to {event.to}", "send", now, seconds)
        elif isinstance(event, Begin):
            self.begin(p, event, now)
        else:
            if event.key in self.ends:
                p.blocked = self.ends[event.key]
            elif event.key in self.sent or event.key in self.asked:
                p.blocked = math.inf
            else:  # its request from before the step is ready
                p.blocked = now
            if p.blocked > now:
                return False
        p.at += 1
        return True

    def begin(self, p: _Process, event: Begin, now: float) -> None:
        """Process ``p`` asks for a collective, which begins when all have."""
        members = [q for q in self.processes if self.ranks[q.index] in event.ranks]
        self.asked[event.key][p.index] = now
        if len(self.asked[event.key]) == len(members):
            seconds = self.network.seconds(event.kind, event.ranks, event.nbytes)
            self.ends[event.key] = self.put(members, NETWORK, event.kind, "collective", now, seconds)

    def put(self, members: list[_Process], lane: str, name: str, kind: str, now: float, seconds: float) -> float:
        """The network is used by ``members`` as soon as it is free; they do nothing else unless it overlaps."""
        start = max([now, *(p.free[lane] for p in members)])
        if not self.network.overlaps:
            start = max([start, *(p.busy[-1][1] for p in members if p.busy)])
        end = start + seconds
        for p in members:
            p.free[lane] = end
            if seconds:
                self.spans.append(Span(p.index, lane, name, kind, start, end))
                if not self.network.overlaps:
                    p.busy.append((start, end))
        return end


def replay(
    records: Sequence[list], ranks: Sequence[int], network: Network, processors: float = math.inf
) -> tuple[float, list[Span]]:
    """The time of recorded processes, and the spans of their actions.

    Args:
        records: the events of each process.
        ranks: which processes they are.
        network: links and latencies.
        processors: how many of them can compute at once; where more do, each gets an equal share.
    Returns:
        Seconds, and the spans.
    Raises:
        RuntimeError: the processes wait for each other.
    """
    made = _Replay(records, ranks, network, processors)
    return made.run(), made.spans
