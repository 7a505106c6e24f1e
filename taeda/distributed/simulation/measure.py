"""The processor and the network of the processes that run, measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import taeda

from ..collectives import all_reduce, barrier, recv, send
from ..groups import ReduceOp, get_rank, get_world_size
from .network import Device, Link, Network

__all__ = ["measure_device", "measure_network"]

_WHILE = 0.04  # seconds
_LAYERS = 4  # of which each is used in turn


def _seconds(run: Callable[[], Any], group: Any, repeat: int, clock: Callable[[], float]) -> float:
    """The fastest of ``repeat`` runs, as the slowest process sees it."""
    best = float("inf")
    for _ in range(repeat + 1):
        barrier(group)
        start = clock()
        run()
        best = min(best, clock() - start)
    slowest = taeda.tensor(best, dtype=taeda.float64)
    all_reduce(slowest, ReduceOp.MAX, group)
    return slowest.item()


def measure_device(
    product: tuple[int, int, int] = (512, 512, 512), nbytes: int = 1 << 21, repeat: int = 15,
    clock: Callable[[], float] = time.perf_counter,
) -> Device:  # fmt: skip
    """A :class:`Device` with the rates that taeda's ops reach in this process, with the threads that it has.

    Args:
        product: rows, inner numbers and columns of the float32 products that tell the rate of the arithmetic: those of
            the model. They are the three of a linear layer that is trained, among other layers: operands that were not
            used just before, and gradients that are added up, are a sixth slower than the same product again and again.
        nbytes: of each of the tensors that are added to others, which tells that of memory: as large as those that the
            model has. They are used in turn too: the same tensors again and again are up to three times as fast.
        repeat: how often each runs for 40 ms, which is longer than a turn of a processor that is shared; the fastest
            counts.
        clock: ``time.process_time`` where other programs use the processors too, and there is one thread.
    """

    def seconds(run: Callable[[], Any]) -> float:
        times = []
        for _ in range(repeat):
            count, start = 0, clock()
            while not count or clock() - start < _WHILE:
                run()
                count += 1
            times.append((clock() - start) / count)
        return min(times)

    m, k, n = product
    one = taeda.ones(1, requires_grad=True)
    terms = [(taeda.ones(nbytes // 4), taeda.ones(nbytes // 4)) for _ in range(_LAYERS)]
    layers = [taeda.nn.Linear(k, n) for _ in range(_LAYERS)]
    rows, grad = taeda.ones(m, k, requires_grad=True), taeda.ones(m, n)

    def trained() -> None:
        for layer in layers:
            layer(rows).backward(grad)

    overhead = seconds(lambda: [one + one for _ in range(100)]) / 100
    rate = 3 * _LAYERS * 2 * m * k * n / seconds(trained)
    moved = 3 * _LAYERS * terms[0][0].nbytes
    return Device(rate, moved / seconds(lambda: [a.add_(b) for a, b in terms]), overhead=overhead, host=1.0)


def measure_network(
    group: Any = None, nbytes: int = 1 << 24, repeat: int = 5, clock: Callable[[], float] = time.perf_counter
) -> Network:
    """A :class:`Network` with the rates of the processes of ``group``, all on one machine. All of them call it.

    Args:
        group: two processes or more, all by default.
        nbytes: of the large tensors that are sent.
        repeat: how often; the fastest counts.
        clock: as for :func:`measure_device`.
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
            times.append(_seconds(lambda run=run, tensor=tensor: run(tensor), group, repeat, clock))  # type: ignore[misc]
    little, much, ping, pong = times
    share = 2 * nbytes * (n - 1) / n
    collectives = Link(share / max(much - little, 1e-9), little / (2 * (n - 1)))
    return Network(
        collectives, messages=Link(nbytes / max((pong - ping) / 2, 1e-9), ping / 2), overlaps=False,
    )  # fmt: skip


def all_reduce_of(group: Any) -> Callable[[taeda.Tensor], Any]:
    """:func:`all_reduce` in ``group``."""
    return lambda tensor: all_reduce(tensor, ReduceOp.SUM, group)
