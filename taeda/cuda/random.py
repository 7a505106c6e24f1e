"""Seeds and states of the GPUs' generators.

A GPU's numbers are functions of the seed, how often was drawn, and the element's index (Philox 4x32-10). They are the
same on every GPU, and others than the CPU's. ``taeda.manual_seed`` seeds all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._core.random import GENERATORS
from . import _contract, _native
from .devices import index_of, need

__all__ = [
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
    "set_rng_state", "set_rng_state_all",
]  # fmt: skip


def generators() -> tuple:
    """The default generators of the GPUs, by index."""
    return tuple(GENERATORS[_native.first_number() + i] for i in range(_contract.count()))


def _generator(device: Any = None) -> Any:
    return GENERATORS[_native.first_number() + index_of(device)]


def manual_seed(seed: int) -> None:
    """Seed the current GPU's generator; nothing without a GPU.

    Args:
        seed: an int in [-2**63, 2**64).
    """
    seed = int(seed)
    if _contract.count():
        _generator().manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs, as :func:`manual_seed`."""
    seed = int(seed)
    for generator in generators():
        generator.manual_seed(seed)


def seed() -> None:
    """As :func:`manual_seed` with a random seed."""
    if _contract.count():
        _generator().seed()


def seed_all() -> None:
    """As :func:`manual_seed_all` with a random seed."""
    if _contract.count():
        manual_seed_all(_generator().seed())


def initial_seed() -> int:
    """The seed that the current GPU's generator was started with."""
    need("initial_seed")
    return _generator().initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a GPU's generator, a uint8 tensor of 16 elements on the CPU: the seed and the offset."""
    need("get_rng_state")
    return _generator(device).get_state()


def get_rng_state_all() -> list:
    """The states of all GPUs' generators; none without a GPU."""
    return [get_rng_state(i) for i in range(_contract.count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Continue a GPU's generator from a state of :func:`get_rng_state`."""
    need("set_rng_state")
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable) -> None:
    """Restore :func:`get_rng_state_all`.

    Args:
        new_states: a state for each GPU.

    Raises:
        RuntimeError: there are states, and no GPU to take them.
    """
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
