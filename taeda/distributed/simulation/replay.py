"""Recorded processes put on a time axis: who waits for whom, and what goes on beside the arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from .network import Network
from .record import Begin, Compute, Key, Sent, Wait
from .timeline import COMPUTE, MESSAGES, NETWORK, Timeline

__all__ = ["replay"]


class _Replay:
    """One time axis for the processes ``ranks`` of the world."""

    def __init__(self, records: Sequence[list], ranks: Sequence[int], network: Network) -> None:
        self.records, self.ranks, self.network = records, list(ranks), network
        self.timeline = Timeline(network.overlaps)
        self.at = [0] * len(records)
        self.asked: dict[Key, dict[int, float]] = {}  # when each process has asked for a collective
        self.ends: dict[Key, float] = {}
        self.sent = {event.key for record in records for event in record if isinstance(event, Sent)}

    def run(self) -> Timeline:
        """Go through all events.

        Raises:
            RuntimeError: the processes wait for each other.
        """
        left = {i for i, record in enumerate(self.records) if record}
        while left:  # who is the furthest behind goes first
            for i in sorted(left, key=lambda i: self.timeline.free[i, COMPUTE]):
                if self.step(i, self.records[i][self.at[i]]):
                    break
            else:
                raise RuntimeError(
                    f"simulate: ranks {[self.ranks[i] for i in left]} wait for each other: not all processes of a "
                    f"group do the same collectives"
                )
            self.at[i] += 1
            if self.at[i] == len(self.records[i]):
                left.discard(i)
        return self.timeline

    def step(self, i: int, event: Compute | Begin | Sent | Wait) -> bool:
        """Whether process ``i`` gets past the event now."""
        line = self.timeline
        if isinstance(event, Compute):
            line.put(i, COMPUTE, event.kind, event.kind, 0.0, event.seconds)
        elif isinstance(event, Sent):
            seconds = self.network.seconds("send", [self.ranks[i], event.to], event.nbytes)
            now = line.free[i, COMPUTE]
            self.ends[event.key] = line.put(i, MESSAGES, f"to {event.to}", "send", now, seconds)
        elif isinstance(event, Begin):
            self.begin(i, event)
        elif event.key in self.ends:
            line.free[i, COMPUTE] = max(line.free[i, COMPUTE], self.ends[event.key])
        else:  # what was asked for before the step is there
            return event.key not in self.sent and event.key not in self.asked
        return True

    def begin(self, i: int, event: Begin) -> None:
        """Process ``i`` asks for a collective, which begins when all have."""
        line, members = self.timeline, [j for j, rank in enumerate(self.ranks) if rank in event.ranks]
        asked = self.asked.setdefault(event.key, {})
        asked[i] = line.free[i, COMPUTE]
        if len(asked) < len(members):
            return
        seconds = self.network.seconds(event.kind, event.ranks, event.nbytes)
        start = max([*asked.values(), *(line.free[j, NETWORK] for j in members)])
        if not line.overlaps:
            start = max([start, *(line.end_of(j) for j in members)])
        for j in members:
            self.ends[event.key] = line.put(j, NETWORK, event.kind, "collective", start, seconds)


def replay(records: Sequence[list], ranks: Sequence[int], network: Network) -> Timeline:
    """The time axis of recorded processes.

    Args:
        records: the events of each process.
        ranks: which processes they are.
        network: links and latencies.
    Raises:
        RuntimeError: the processes wait for each other.
    """
    return _Replay(records, ranks, network).run()
