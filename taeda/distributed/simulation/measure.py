"""The processor and the network of the processes that run, measured."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from ... import nn, optim
from ..._core import Tensor, float64, get_num_threads
from ...ops import exchange
from ...ops.creation import empty_like, ones, zeros
from ..collectives import (
    all_gather_into_tensor,
    all_reduce,
    all_to_all_single,
    barrier,
    broadcast,
    recv,
    reduce_scatter_tensor,
    send,
)
from ..groups import ReduceOp, get_rank, get_world_size, is_initialized
from ..objects import all_gather_object
from .layers import _Counting
from .network import Device, Link, Network, OpCost

__all__ = ["measure_device", "measure_network"]

_SECONDS = 1e-9  # least time of a measurement


def _example() -> Callable[[], Any]:
    """A step of a small model."""
    model = nn.Sequential(
        *[nn.Sequential(nn.LayerNorm(256), nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(4)]
    )
    optimizer, x = optim.AdamW(model.parameters()), zeros(512, 256)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step


class _Timing(_Counting):
    """Ops with the time of each."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(self)
        self._clock, self._seconds = clock, 0.0
        self.found: list[tuple[OpCost, float]] = []

    def call(self, op: Any, args: tuple, kwargs: dict) -> Any:
        """See :meth:`_Counting.call`."""
        start = self._clock()
        try:
            return op(*args, **kwargs)
        finally:
            self._seconds = self._clock() - start

    def append(self, op: OpCost) -> None:
        """The op that was called last."""
        self.found.append((op, self._seconds))


def _small_op(clock: Callable[[], float]) -> float:
    """Seconds of an op that has almost nothing to do."""
    one, times = ones(1, requires_grad=True), []
    for _ in range(50):
        start = clock()
        for _ in range(100):
            one + one
        times.append((clock() - start) / 100)
    return statistics.median(times)


def measure_device(step: Callable[[], Any] | None = None, group: Any = None, repeat: int = 15) -> Device:
    """A :class:`Device` with the rates that taeda's ops reach in the processes of ``group``, with their threads.

    All processes call it, and measure at the same time: processes of one machine share its memory and caches, and may
    share its cores. The rates are those of the slowest process, because the others wait for it.

    Args:
        step: what a process computes, on tensors as large as those of the program, without collectives: for instance
            the step of the model's layers in one process. Each of its ops is timed, and what it takes longer than the
            rates say becomes its factor. A model of four layers by default.
        group: all processes by default; this one alone without process groups.
        repeat: how often; means count, as a step takes their sum.
    Returns:
        The device.
    Raises:
        ValueError: nothing in ``step`` is computed.
    """
    step = step or _example()
    threads = get_num_threads()
    clock = time.thread_time if threads == 1 else time.perf_counter
    together = is_initialized()
    for _ in range(2):
        step()
    if together:
        barrier(group)
    wall, used = time.perf_counter(), time.process_time()
    for _ in range(repeat):
        step()
    share = (time.process_time() - used) / (time.perf_counter() - wall) / threads
    runs = []
    for _ in range(repeat):
        with _Timing(clock) as timed:
            step()
        runs.append(timed.found)
    ops = [(same[0][0], statistics.mean(seconds for _, seconds in same)) for same in zip(*runs, strict=False)]
    mine = ops, share, _small_op(clock)
    found = [mine] * (get_world_size(group) if together else 1)
    if together:
        all_gather_object(found, mine, group)
    ops, _, overhead = max(found, key=lambda one: sum(seconds for _, seconds in one[0]))
    return _device(ops, sum(share for _, share, _ in found), overhead)


def _device(ops: Sequence[tuple[OpCost, float]], processors: float, overhead: float) -> Device:
    """The rates of ops that were timed."""
    totals: dict[str, list[float]] = {}
    for op, seconds in ops:
        total = totals.setdefault(op.name, [0.0, 0.0, 0.0])
        for i, more in enumerate((op.flops, op.nbytes, seconds)):
            total[i] += more
    most = max(totals.values(), default=[0.0] * 3)
    if not most[0]:
        raise ValueError("measure_device: expected a step with arithmetic, got one of which no op has any")
    moving = max((t for t in totals.values() if t[0] <= t[1]), key=lambda t: t[1], default=most)
    rates = Device(most[0] / max(most[2], _SECONDS), moving[1] / max(moving[2], _SECONDS), overhead=overhead)
    expected = dict.fromkeys(totals, 0.0)
    for op, _ in ops:
        expected[op.name] += rates.seconds([op])
    factors = {name: total[2] / expected[name] for name, total in totals.items()}
    return Device(
        rates.flops, rates.bandwidth, overhead=overhead, host=1.0, factors=factors, processors=processors,
    )  # fmt: skip


def _there_and_back(tensor: Tensor, group: Any) -> None:
    """A message from process 0 to 1, and one back."""
    rank = get_rank(group)
    if rank == 0:
        send(tensor, group=group, group_dst=1)
        recv(tensor, group=group, group_src=1)
    elif rank == 1:
        recv(tensor, group=group, group_src=0)
        send(tensor, group=group, group_dst=0)


def measure_network(group: Any = None, nbytes: int = 1 << 23, repeat: int = 15) -> Network:
    """A :class:`Network` with the rates of the processes of ``group``, all on one machine. All of them call it.

    Args:
        group: two processes or more, all by default.
        nbytes: of the large tensors that are sent.
        repeat: how often; means count, as a step takes their sum.
    Returns:
        The same at each process, without overlap: the processes' own threads do the sending.
    Raises:
        ValueError: there is one process alone.
    """
    n = get_world_size(group)
    if n < 2:
        raise ValueError("measure_network: expected at least two processes, got one")
    kinds: dict[str, Callable[[Tensor, Tensor], Any]] = {
        "all_reduce": lambda whole, part: all_reduce(whole, group=group),
        "all_gather": lambda whole, part: all_gather_into_tensor(whole, part, group=group),
        "reduce_scatter": lambda whole, part: reduce_scatter_tensor(part, whole, group=group),
        "all_to_all": lambda whole, part: all_to_all_single(empty_like(whole), whole, group=group),
        "broadcast": lambda whole, part: broadcast(whole, group=group, group_src=0),
        "send": lambda whole, part: _there_and_back(whole, group),
        "barrier": lambda whole, part: barrier(group),
    }
    links, rates = {}, Network(Link(1.0, 0.0))
    for kind, run in kinds.items():
        times = []
        for count in (n, -(-nbytes // 4 // n) * n):
            whole, part = zeros(count), zeros(count // n)
            times.append(_seconds(lambda whole=whole, part=part, run=run: run(whole, part), group, repeat))  # type: ignore[misc]
        little, much = (seconds / (2 if kind == "send" else 1) for seconds in times)
        links[kind] = Link(max(rates.sent(kind, n, nbytes), 1.0) / max(much - little, _SECONDS), little)
    ring = links["all_reduce"]
    return Network(Link(ring.bandwidth, ring.latency / (2 * (n - 1))), links=links, overlaps=False)


def _seconds(run: Callable[[], Any], group: Any, repeat: int) -> float:
    """The mean time of ``repeat`` runs at the slowest process."""
    times = []
    for _ in range(repeat + 2):
        barrier(group)
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    found = exchange.tensor(statistics.mean(times[2:]), dtype=float64)
    all_reduce(found, ReduceOp.MAX, group)
    return found.item()
