"""Rates: the work of a processor and the bytes of a network per second."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["COLLECTIVES", "Device", "Link", "Network"]

COLLECTIVES = (
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send", "broadcast", "reduce", "gather", "scatter",
    "barrier",
)  # fmt: skip


class OpCost(NamedTuple):
    """The cost of an op: floating point operations, and bytes that it reads and writes."""

    flops: int
    nbytes: int
    name: str = ""


@dataclass(frozen=True)
class Device:
    """A processor.

    Attributes:
        flops: floating point operations per second, at most; utilization is told of these.
        bandwidth: bytes per second from and to memory.
        memory: bytes.
        efficiency: the share of ``flops`` that products and attention reach.
        overhead: seconds that each op takes at least.
        host: seconds that the program's own Python takes for each second that it takes here, in the simulation. 0 where
            it runs ahead of the device, as it does with GPUs.
        factors: by the name of an op, how much longer it takes than the rates say.
        processors: how many processes compute at once, where all are on one machine that has fewer of them. (Of a
            program; a :class:`Step` does not know.)
    """

    flops: float
    bandwidth: float
    memory: float = math.inf
    efficiency: float = 1.0
    overhead: float = 0.0
    host: float = 0.0
    factors: Mapping[str, float] = field(default_factory=dict)
    processors: float = math.inf

    def seconds(self, ops: Sequence[OpCost]) -> float:
        """The time of ops one after the other: arithmetic or memory, whichever is longer."""
        rate = self.flops * self.efficiency
        return sum(
            max(op.flops / rate, op.nbytes / self.bandwidth, self.overhead) * self.factors.get(op.name, 1.0)
            for op in ops
        )


@dataclass(frozen=True)
class Link:
    """The way out of one process: ``bandwidth`` in bytes per second, ``latency`` in seconds."""

    bandwidth: float
    latency: float


@dataclass(frozen=True)
class Network:
    """Machines of ``size`` processes each; processes are numbered machine by machine.

    Collectives go in rings, ``all_reduce`` of little data, ``broadcast``, ``reduce`` and ``barrier`` in a tree. A ring
    with several processes in each machine uses the links of all of them.

    Attributes:
        inside: the link of a process to others in its machine.
        between: its link to other machines; that of ``inside`` where not given.
        size: processes in a machine; all of them where not given.
        reduction: bytes per second at which what has come is added up.
        links: in a machine, those of kinds of collectives that were measured as a whole: the bandwidth is that of what
            each process sends, the latency that of the collective. ``"send"`` is a single message.
        overlaps: whether what need not be waited for goes on beside the arithmetic (it does where the network has
            processors of its own).
    """

    inside: Link
    between: Link | None = None
    size: int | None = None
    reduction: float = math.inf
    links: Mapping[str, Link] = field(default_factory=dict)
    overlaps: bool = True

    def _way(self, ranks: Sequence[int]) -> tuple[Link, int, int]:
        """The slowest link of a ring of ``ranks``, how often it goes on inside of machines, and between them."""
        machines = {rank // self.size if self.size else 0 for rank in ranks}
        if len(machines) == 1 or self.between is None:
            return self.inside, len(ranks) - 1, 0
        each = max(1, len(ranks) // len(machines))
        shared = self.between.bandwidth * each
        rate = min(shared, self.inside.bandwidth) if each > 1 else shared
        return Link(rate, self.between.latency), each - 1, len(machines) - 1

    def seconds(self, kind: str, ranks: Sequence[int], nbytes: float) -> float:
        """The time of a collective of ``ranks``.

        Args:
            kind: of :data:`COLLECTIVES`.
            ranks: in the world.
            nbytes: of the whole tensor: that which ``all_gather`` and ``gather`` give, which the others take; of the
                message of ``send``.
        Returns:
            Seconds.
        Raises:
            ValueError: there is no such kind.
        """
        n = len(ranks)
        if n == 1 or not (nbytes or kind == "barrier"):
            return 0.0
        link, near, far = self._way(ranks)
        if kind == "send" or (kind in self.links and not far):
            link = link if far else self.links.get(kind, link)
            return self.sent(kind, n, nbytes) / link.bandwidth + link.latency
        share = nbytes * (n - 1) / n
        delay = near * self.inside.latency + far * link.latency
        if kind in ("all_gather", "all_to_all", "gather", "scatter"):
            return share / link.bandwidth + delay
        if kind == "reduce_scatter":
            return share / link.bandwidth + share / self.reduction + delay
        down = nbytes / link.bandwidth + math.ceil(math.log2(n)) * link.latency  # a tree, from its root
        if kind == "broadcast":
            return down
        if kind == "reduce":
            return down + nbytes / self.reduction
        if kind == "barrier":
            return 2 * down
        if kind != "all_reduce":
            raise ValueError(f"simulate: expected a kind of collective of {COLLECTIVES}, got {kind!r}")
        ring = 2 * share / link.bandwidth + share / self.reduction + 2 * delay
        return min(ring, 2 * down + nbytes / self.reduction)

    def sent(self, kind: str, n: int, nbytes: float) -> float:
        """Bytes that one process of ``n`` sends; of ``gather`` and ``scatter`` that which has most to send."""
        if n == 1 or kind == "barrier":
            return 0.0
        if kind in ("send", "broadcast", "reduce"):
            return nbytes
        if kind == "gather":
            return nbytes / n
        return nbytes * (n - 1) / n * (2 if kind == "all_reduce" else 1)
