"""The network of the processes that run, measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import taeda

from ..collectives import all_reduce, barrier, recv, send
from ..groups import ReduceOp, get_rank, get_world_size
from .network import Link, Network

__all__ = ["measure_network"]


def _seconds(run: Callable[[], Any], group: Any, repeat: int) -> float:
    """The fastest of ``repeat`` runs, as the slowest process sees it."""
    best = float("inf")
    for _ in range(repeat + 1):
        barrier(group)
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    slowest = taeda.tensor(best, dtype=taeda.float64)
    all_reduce(slowest, ReduceOp.MAX, group)
    return slowest.item()


def measure_network(group: Any = None, nbytes: int = 1 << 24, repeat: int = 5) -> Network:
    """A :class:`Network` with the rates of the processes of ``group``, all on one machine. All of them call it.

    Args:
        group: two processes or more, all by default.
        nbytes: of the large tensors that are sent.
        repeat: how often; the fastest counts.
    Returns:
        The same at each process, without overlap: the processes' own threads do the sending.
    Raises:
        ValueError: there is one process alone.
    """
    rank, n = get_rank(group), get_world_size(group)
    if n < 2:
        raise ValueError("measure_network: expected at least two processes, got one")
    large, small = taeda.zeros(nbytes // 4), taeda.zeros(1)

    def there_and_back(tensor: taeda.Tensor) -> None:
        if rank == 0:
            send(tensor, group=group, group_dst=1)
            recv(tensor, group=group, group_src=1)
        elif rank == 1:
            recv(tensor, group=group, group_src=0)
            send(tensor, group=group, group_dst=0)

    times = []
    for run in (all_reduce_of(group), there_and_back):
        for tensor in (small, large):
            times.append(_seconds(lambda run=run, tensor=tensor: run(tensor), group, repeat))  # type: ignore[misc]
    little, much, ping, pong = times
    share = 2 * nbytes * (n - 1) / n
    collectives = Link(share / max(much - little, 1e-9), little / (2 * (n - 1)))
    return Network(
        collectives, messages=Link(nbytes / max((pong - ping) / 2, 1e-9), ping / 2), overlaps=False,
    )  # fmt: skip


def all_reduce_of(group: Any) -> Callable[[taeda.Tensor], Any]:
    """:func:`all_reduce` in ``group``."""
    return lambda tensor: all_reduce(tensor, ReduceOp.SUM, group)
