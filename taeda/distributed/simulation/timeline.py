"""The passes of a step put on a time axis, for one process of each pipeline stage: the others do the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..pipelining.orders import BACKWARD, FORWARD, Action, Order, in_turn

COMPUTE, NETWORK, MESSAGES = LANES = ("compute", "network", "messages")


class Span(NamedTuple):
    """Something that takes a while.

    Attributes:
        rank: of the process along the pipeline.
        lane: ``"compute"``, ``"network"`` (collectives), or ``"messages"`` (between stages).
        name: what it is.
        kind: ``"forward"``, ``"backward"``, ``"collective"``, ``"send"`` or ``"optimizer"``.
        start, end: in seconds.
    """

    rank: int
    lane: str
    name: str
    kind: str
    start: float
    end: float


@dataclass(frozen=True)
class Part:
    """A layer's pass: what must come before it, its time, and what it sends when it ends."""

    seconds: float
    waits: float = 0.0  # collectives on the way, that nothing hides
    hidden: float = 0.0  # collectives beside the arithmetic
    gather: float = 0.0  # seconds to gather parameters, asked for one layer ahead
    scatter: float = 0.0  # seconds to scatter gradients
    scatter_last: float = 0.0  # the same in the last microbatch only


@dataclass
class Timeline:
    """Three lanes for each process: arithmetic, collectives, and messages between stages, which do not wait for those.

    Attributes:
        overlaps: whether the network goes on beside the arithmetic; otherwise it takes turns with it.
        spans: what was put on it.
    """

    overlaps: bool
    spans: list[Span] = field(default_factory=list)
    free: dict[tuple[int, str], float] = field(default_factory=lambda: defaultdict(float))

    def put(self, rank: int, lane: str, name: str, kind: str, after: float, seconds: float) -> float:
        """Begin at ``after``, or once the lane is free; gives the end."""
        if not self.overlaps:
            after = max(after, self.end_of(rank))
        start = max(after, self.free[rank, lane])
        end = start + seconds
        self.free[rank, lane] = end
        if seconds > 0:
            self.spans.append(Span(rank, lane, name, kind, start, end))
        return end

    def end_of(self, rank: int) -> float:
        """When the process has done everything."""
        return max(self.free[rank, lane] for lane in LANES)

    def run_part(self, rank: int, name: str, kind: str, part: Part, after: float, last: bool, gathered: float) -> float:
        """A layer's pass; gives the time at which it began, from which on the next one's parameters may come."""
        begin = max(after, gathered)
        if part.waits:
            begin = self.put(rank, COMPUTE, f"{name} collectives", "collective", begin, part.waits)
        if self.overlaps:
            seconds = max(part.seconds, part.hidden)
        else:
            seconds = part.seconds + part.hidden
        end = self.put(rank, COMPUTE, name, kind, begin, seconds)
        scatter = part.scatter + (part.scatter_last if last else 0.0)
        if scatter:
            self.put(rank, NETWORK, f"{name} gradients", "collective", end, scatter)
        return end - seconds

    def run(
        self, orders: list[Order], stages: int, parts: dict[tuple[int, str], list[Part]], sends: Sequence[float],
        microbatches: int,
    ) -> None:  # fmt: skip
        """The passes of a step.

        Args:
            orders: of each process.
            stages: how many.
            parts: the layers of a stage in a pass.
            sends: the time of a message from stage ``i`` to the next, or back.
            microbatches: how many.
        """
        ready: dict[Action, float] = {}  # when the input that a pass needs from its neighbour is ready
        ranks = len(orders)
        for rank, action in in_turn(orders, stages):
            stage, kind, m = action
            started = arrived = ready.pop(action, 0.0)
            label = "forward" if kind == FORWARD else "backward"
            for i, part in enumerate(parts[stage, kind]):
                gathered = 0.0
                if part.gather:
                    gathered = self.put(rank, NETWORK, f"{action} parameters", "collective", started, part.gather)
                started = self.run_part(
                    rank, str(action), label, part, arrived if not i else 0.0, m == microbatches - 1, gathered
                )
            to = stage + 1 if kind == FORWARD else stage - 1
            if not 0 <= to < stages:
                continue
            done = self.free[rank, COMPUTE]
            if to % ranks != rank:
                done = self.put(rank, MESSAGES, f"{action} to {to % ranks}", "send", done, sends[min(stage, to)])
            ready[Action(to, FORWARD if kind == FORWARD else BACKWARD, m)] = done
