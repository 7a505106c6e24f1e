"""The order of work of each process of a pipeline: forward and backward passes of stages on microbatches.

Stages lie on processes in a loop or in the form of a V. Sending never waits for the receiver, so an order is free of
deadlocks if the passes can be done one after the other at all, which :func:`check` finds out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

FORWARD, BACKWARD = "F", "B"
INPUTS, WEIGHTS = "I", "W"  # the two parts of a backward pass


def in_loop(stage: int, ranks: int) -> int:
    """The process of a stage: from the first to the last, and again."""
    return stage % ranks


def in_vee(stage: int, ranks: int) -> int:
    """The process of a stage: from the first to the last, and back."""
    turn, at = divmod(stage, ranks)
    return ranks - 1 - at if turn % 2 else at


class Action(NamedTuple):
    """One pass of one stage on one microbatch; printed as PyTorch does: ``2F0``."""

    stage: int
    kind: str
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"


Order = list[Action]


def _merged(forwards: Order, backwards: Order, warmup: int) -> Order:
    """``warmup`` forward passes, then one forward and one backward pass in turn, then the backward passes left."""
    order = forwards[:warmup]
    for i, backward in enumerate(backwards):
        order += forwards[warmup + i : warmup + i + 1]
        order.append(backward)
    return order


def forward_only(rank: int, ranks: int, stages: int, microbatches: int) -> Order:
    """Microbatches go through one stage after the other."""
    return [Action(s, FORWARD, m) for s in range(rank, stages, ranks) for m in range(microbatches)]


def forward_in_vee(rank: int, ranks: int, stages: int, microbatches: int) -> Order:
    """The same for stages in the form of a V."""
    return [Action(s, FORWARD, m) for s in range(stages) if in_vee(s, ranks) == rank for m in range(microbatches)]


def gpipe(rank: int, ranks: int, stages: int, microbatches: int) -> Order:
    """All forward passes, then all backward passes (Huang et al. 2019, https://arxiv.org/abs/1811.06965).

    With several stages a process: breadth first (Lamy-Poirier 2023, https://arxiv.org/abs/2211.05953).
    """
    forwards = forward_only(rank, ranks, stages, microbatches)
    return forwards + [
        Action(s, BACKWARD, m) for s in reversed(range(rank, stages, ranks)) for m in range(microbatches)
    ]


def one_forward_one_backward(rank: int, ranks: int, stages: int, microbatches: int) -> Order:
    """Backward passes begin as early as they can (PipeDream-Flush, Narayanan et al. 2021).

    Activations of at most ``ranks - rank`` microbatches are held at a time (https://arxiv.org/abs/2006.09503).
    """
    forwards = [Action(rank, FORWARD, m) for m in range(microbatches)]
    return _merged(forwards, [Action(rank, BACKWARD, m) for m in range(microbatches)], ranks - 1 - rank)


def interleaved(rank: int, ranks: int, stages: int, microbatches: int) -> Order:
    """1F1B with several stages a process, in rounds (Narayanan et al. 2021, https://arxiv.org/abs/2104.04473).

    Args:
        rank: this process.
        ranks: number of processes.
        stages: number of stages.
        microbatches: number of microbatches.

    Returns:
        The passes of the process, in order.

    Raises:
        ValueError: the microbatches do not divide into rounds of equal length.
    """
    rounds = max(1, microbatches // ranks)
    if microbatches % rounds:
        raise ValueError(
            f"Interleaved 1F1B expects the number of microbatches ({microbatches}) to be a multiple of the number of "
            f"rounds ({rounds}), which is max(1, microbatches // {ranks} processes)"
        )
    length, own = microbatches // rounds, range(rank, stages, ranks)

    def passes(kind: str, which: list[int]) -> Order:
        return [Action(s, kind, r * length + m) for r in range(rounds) for s in which for m in range(length)]

    warmup = (len(own) - 1) * length + 2 * (ranks - 1 - rank)
    return _merged(passes(FORWARD, list(own)), passes(BACKWARD, list(reversed(own))), warmup)


def _ready(action: Action, done: set[Action], stages: int) -> bool:
    stage, kind, microbatch = action
    if kind == FORWARD:
        return stage == 0 or Action(stage - 1, FORWARD, microbatch) in done
    if kind == WEIGHTS:
        return Action(stage, INPUTS, microbatch) in done
    after = stage == stages - 1 or any(Action(stage + 1, k, microbatch) in done for k in (BACKWARD, INPUTS))
    return after and Action(stage, FORWARD, microbatch) in done


def in_turn(orders: list[Order], stages: int) -> Iterator[tuple[int, Action]]:
    """The rank and action of all passes, in an order in which the inputs of each are ready.

    Args:
        orders: the passes of each process.
        stages: number of stages.

    Yields:
        A rank and an action.

    Raises:
        RuntimeError: there is none: the processes would wait for each other.
    """
    done: set[Action] = set()
    at = [0] * len(orders)
    left = sum(map(len, orders))
    while left:
        before = left
        for rank, order in enumerate(orders):
            while at[rank] < len(order) and _ready(order[at[rank]], done, stages):
                done.add(order[at[rank]])
                yield rank, order[at[rank]]
                at[rank] += 1
                left -= 1
        if left == before:
            stuck = {rank: str(order[at[rank]]) for rank, order in enumerate(orders) if at[rank] < len(order)}
            raise RuntimeError(f"pipeline: the processes would wait for each other, by rank: {stuck}")


def check(plan: Callable[[int, int, int, int], Order], ranks: int, stages: int, microbatches: int) -> list[Order]:
    """The orders of all ranks.

    Args:
        plan: gives the order of a rank.
        ranks: number of processes.
        stages: number of stages.
        microbatches: number of microbatches.

    Returns:
        An order for each rank.

    Raises:
        RuntimeError: they cannot be followed.
    """
    orders = [plan(rank, ranks, stages, microbatches) for rank in range(ranks)]
    for _ in in_turn(orders, stages):
        pass
    return orders
