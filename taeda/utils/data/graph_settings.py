"""Settings of all pipes of a chain: shuffling, seeds, shares."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from ..._core.random import Generator
from .datapipes.iter.sharding import SHARDING_PRIORITIES, _ShardingIterDataPipe
from .graph import DataPipeGraph, traverse_dps
from .sampler import draw_seed

__all__ = [
    "apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings", "get_all_graph_pipes",
]  # fmt: skip


def get_all_graph_pipes(graph: DataPipeGraph) -> list:
    """The pipes of a graph of :func:`traverse_dps`, each once."""
    found: dict[int, Any] = {}

    def collect(part: DataPipeGraph) -> None:
        for number, (pipe, inner) in part.items():
            if number not in found:
                found[number] = pipe
                collect(inner)

    collect(graph)
    return list(found.values())


def _has(pipe: Any, *names: str) -> bool:
    return all(inspect.ismethod(getattr(pipe, name, None)) for name in names)


def apply_sharding(
    datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = SHARDING_PRIORITIES.DEFAULT
) -> Any:
    """Let the pipes with ``apply_sharding`` take share ``instance_id`` of ``num_of_instances``.

    Args:
        datapipe: the end of a chain.
        num_of_instances: how many shares there are.
        instance_id: the number of the share.
        sharding_group: the priority of the pipes that share; those of others go on as they are.
    Returns:
        ``datapipe``.
    Raises:
        RuntimeError: there are two in one chain.
    """

    def visit(graph: DataPipeGraph, above: Any) -> None:
        for pipe, inner in graph.values():
            done = above
            if isinstance(pipe, _ShardingIterDataPipe) or _has(pipe, "apply_sharding"):
                if above is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause data loss. Sharding "
                        f"already applied to {above} while trying to apply to {pipe}"
                    )
                takes_group = len(inspect.signature(pipe.apply_sharding).parameters) >= 3
                pipe.apply_sharding(
                    num_of_instances, instance_id, **({"sharding_group": sharding_group} if takes_group else {})
                )
                done = pipe
            visit(inner, done)

    visit(traverse_dps(datapipe), None)
    return datapipe


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Turn the shuffling of a chain on or off; None leaves it. A chain that does not shuffle gets such a pipe."""
    if shuffle is None:
        return datapipe
    shufflers = [p for p in get_all_graph_pipes(traverse_dps(datapipe)) if _has(p, "set_shuffle", "set_seed")]
    if not shufflers and shuffle:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware "
            "that the default buffer size might not be sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: Any, rng: Generator) -> Any:
    """As :func:`apply_random_seed`. Deprecated."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases. Please use "
        "`apply_random_seed` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: Any, rng: Generator | None) -> Any:
    """Give each pipe with ``set_seed`` a seed drawn from ``rng``."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if _has(pipe, "set_seed"):
            pipe.set_seed(draw_seed(rng))
    return datapipe
