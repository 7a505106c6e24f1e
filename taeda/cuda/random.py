"""Seeds and states of the GPUs' generators.

Random numbers are drawn from the one generator of the program on every device, so that a seed gives the same numbers on
all of them. To seed "the GPU's generator" is to seed that one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import random as _random
from . import _contract
from .devices import index_of, need

__all__ = [
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
    "set_rng_state", "set_rng_state_all",
]  # fmt: skip


def manual_seed(seed: int) -> None:
    """Seed the current GPU's generator, which is that of the program; nothing without a GPU.

    Args:
        seed: an int in [-2**63, 2**64).
    """
    seed = int(seed)
    if _contract.count():
        _random.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs, as :func:`manual_seed`."""
    manual_seed(seed)


def seed() -> None:
    """As :func:`manual_seed` with a random seed."""
    if _contract.count():
        _random.seed()


def seed_all() -> None:
    """As :func:`manual_seed_all` with a random seed."""
    seed()


def initial_seed() -> int:
    """The seed that the current GPU's generator was started with."""
    need("initial_seed")
    return _random.initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a GPU's generator, a uint8 tensor on the CPU."""
    need("get_rng_state")
    index_of(device)
    return _random.get_rng_state()


def get_rng_state_all() -> list:
    """The states of all GPUs' generators; none without a GPU."""
    return [get_rng_state(i) for i in range(_contract.count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Continue a GPU's generator from a state of :func:`get_rng_state`."""
    need("set_rng_state")
    index_of(device)
    _random.set_rng_state(new_state)


def set_rng_state_all(new_states: Iterable) -> None:
    """Restore :func:`get_rng_state_all`.

    Raises:
        RuntimeError: there are states, and no GPU to take them.
    """
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
