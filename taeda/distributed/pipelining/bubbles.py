"""Orders in which gradients of weights fill the time in which a process would wait.

The gradients of a stage's inputs, for which the stage before waits, go first; those of its weights wait for nothing and
nobody waits for them (Qi et al. 2023, https://arxiv.org/abs/2401.10241).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from .orders import FORWARD, INPUTS, WEIGHTS, Action, Order, in_loop, in_vee


def interleaved_zero_bubble(rank: int, ranks: int, stages: int, microbatches: int) -> Order:
    """Stages in a loop. As many microbatches are held as by interleaved 1F1B."""
    warmup = [(stages // ranks - 1) * ranks + 2 * (ranks - 1 - r) + 1 for r in range(ranks)]
    return list(_filled(in_loop, ranks, stages, microbatches, tuple(warmup))[rank])


def vee_zero_bubble(rank: int, ranks: int, stages: int, microbatches: int) -> Order:
    """Two stages a process, in the form of a V: the last one lies with the first. All processes hold about
    as many activations as the first one of 1F1B.

    Raises:
        ValueError: there are not two stages a process.
    """
    if stages != 2 * ranks:
        raise ValueError(f"ZBV requires exactly 2 stages per rank, but got {stages} stages on {ranks} processes")
    return list(_filled(in_vee, ranks, stages, microbatches, (2 * ranks,) * ranks)[rank])


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
