"""Orders in which gradients of weights fill the time in which a process would wait.

The gradients of a stage's inputs go first, because the stage before waits for them. The gradients of its weights can be
computed at any later time (Qi et al. 2023, https://arxiv.org/abs/2401.10241).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from .orders import BACKWARD, FORWARD, INPUTS, WEIGHTS, Action, Order, in_loop, in_vee


def interleaved_zero_bubble(rank: int, ranks: int, stages: int, microbatches: int) -> Order:
    """Stages in a loop. As many microbatches are held as by interleaved 1F1B."""
    warmup = [(stages // ranks - 1) * ranks + 2 * (ranks - 1 - r) + 1 for r in range(ranks)]
    return list(_filled(in_loop, ranks, stages, microbatches, tuple(warmup))[rank])


def vee_zero_bubble(rank: int, ranks: int, stages: int, microbatches: int) -> Order:
    """Two stages a process, in the form of a V: the last one lies with the first. All processes hold about
    as many activations as the first one of 1F1B.

    Args:
        rank: this process.
        ranks: number of processes.
        stages: number of stages.
        microbatches: number of microbatches.

    Returns:
        The passes of the process, in order.

    Raises:
        ValueError: there are not two stages a process.
    """
    if stages != 2 * ranks:
        raise ValueError(f"ZBV requires exactly 2 stages per rank, but got {stages} stages on {ranks} processes")
    return list(_filled(in_vee, ranks, stages, microbatches, (2 * ranks,) * ranks)[rank])


def dual_vee(rank: int, ranks: int, stages: int, microbatches: int) -> Order:
    """Two stages a process, in the form of a V, where forward and backward passes take turns: DualPipeV, which is half
    of DualPipe (DeepSeek-AI 2024, https://arxiv.org/abs/2412.19437).

    Args:
        rank: this process.
        ranks: number of processes.
        stages: number of stages.
        microbatches: number of microbatches.

    Returns:
        The passes of the process, in order.

    Raises:
        ValueError: there are not two stages a process, or too few microbatches to fill the V twice.
    """
    if stages != 2 * ranks:
        raise ValueError(f"DualPipeV requires exactly 2 stages per rank, but got {stages} stages on {ranks} processes")
    if microbatches < 2 * ranks:
        raise ValueError(
            f"DualPipeV requires at least {2 * ranks} microbatches (2 for each rank), but got {microbatches}"
        )
    down, up = rank, stages - 1 - rank
    order: Order = []
    waiting: list[Action] = []  # gradients of weights that are deferred
    count = {(stage, kind): 0 for stage in (down, up) for kind in (FORWARD, BACKWARD)}

    def add(stage: int, kind: str) -> None:
        key = stage, FORWARD if kind == FORWARD else BACKWARD
        order.append(Action(stage, kind, count[key]))
        if kind == INPUTS:
            waiting.append(Action(stage, WEIGHTS, count[key]))
        count[key] += 1

    behind = ranks - 1 - rank
    for _ in range(2 * behind):
        add(down, FORWARD)
    for _ in range(rank + 1):
        add(down, FORWARD)
        add(up, FORWARD)
    for _ in range(behind):
        add(up, INPUTS)
        order.append(waiting.pop(0))
        add(up, FORWARD)
    for _ in range(microbatches - 2 * ranks + rank + 1):
        for stage, other in ((down, up), (up, down)):
            add(stage, FORWARD)
            add(other, BACKWARD)
    for _ in range(behind):
        add(up, BACKWARD)
        add(up, FORWARD)
        add(down, BACKWARD)
    for i in range(2 * (rank + 1)):
        add(down if i % 2 else up, BACKWARD if i <= rank else INPUTS)
    for _ in range(behind):
        order.append(waiting.pop(0))
        add(down, INPUTS)
    return order + waiting


@lru_cache(maxsize=32)
def _filled(
    place: Callable[[int, int], int], ranks: int, stages: int, microbatches: int, held: tuple[int, ...]
) -> list[Order]:
    """The orders of all ranks, if every pass took the same time and each process took the most urgent one that it can.

    Gradients of inputs are the most urgent, then forward passes of later stages. A process begins no further microbatch
    while it has activations of ``held[rank]`` passes; those that have begun go on, so nothing locks.
    """
    own = [[s for s in reversed(range(stages)) if place(s, ranks) == rank] for rank in range(ranks)]
    count = {(s, kind): 0 for s in range(stages) for kind in (FORWARD, INPUTS, WEIGHTS)}

    def can(stage: int, kind: str, rank: int) -> bool:
        done = count[stage, kind]
        if kind == FORWARD:
            if stage != own[rank][-1]:
                return done < count[stage - 1, FORWARD]
            active = sum(count[s, FORWARD] - count[s, WEIGHTS] for s in own[rank])
            return done < microbatches and active < held[rank] and (stage == 0 or done < count[stage - 1, FORWARD])
        if kind == WEIGHTS:
            return done < count[stage, INPUTS]
        return done < count[stage, FORWARD] and (stage == stages - 1 or done < count[stage + 1, INPUTS])

    orders: list[Order] = [[] for _ in range(ranks)]
    while any(len(orders[r]) < 3 * microbatches * len(own[r]) for r in range(ranks)):
        chosen = [
            next(((s, kind) for kind in (INPUTS, FORWARD, WEIGHTS) for s in own[r] if can(s, kind, r)), None)
            for r in range(ranks)
        ]
        for rank, found in enumerate(chosen):
            if found is not None:
                orders[rank].append(Action(*found, count[found]))
                count[found] += 1
    return orders
