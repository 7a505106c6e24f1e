"""The global random number generator: seeding, saving and restoring."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from . import _core
from ._core.callbacks import callbacks
from ._core.random import GENERATORS, Generator, all_states, default_generator, seed_all, set_all_states

__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state",
]  # fmt: skip


_FUNCTION_MODES = 2  # of the core's state of overrides: a TorchFunctionMode is on
_NO_OVERRIDES = 8  # overrides are off altogether
P = ParamSpec("P")
R = TypeVar("R")


def _ordered(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, which a TorchFunctionMode sees: one that puts draws off makes them first."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if _core.change_overrides(0, 0) & (_FUNCTION_MODES | _NO_OVERRIDES) == _FUNCTION_MODES:
            return callbacks.overrides(call, args, kwargs)
        return function(*args, **kwargs)

    return call


@_ordered
def manual_seed(seed: int) -> Generator:
    """Seeds the global generator, and those of all devices: equal seeds and equal calls give equal numbers, on the CPU
    those of PyTorch, whatever the number of threads.

    Args:
        seed: an int in [-2**63, 2**64); a negative one counts down from 2**64.
    Returns:
        The global :class:`Generator`.
    Raises:
        TypeError: ``seed`` is no number.
        ValueError: ``seed`` is out of that range.
    Examples:
        >>> generator = taeda.manual_seed(7)
        >>> first = taeda.rand(3)
        >>> generator = taeda.manual_seed(7)
        >>> taeda.equal(first, taeda.rand(3))
        True
    """
    try:
        seed = int(seed)
    except TypeError:
        raise TypeError(f"manual_seed: expected an int, got {type(seed).__name__}") from None
    seed_all(seed)
    return default_generator


@_ordered
def seed() -> int:
    """Seeds the global generator from the system's entropy, so that no two runs are equal.

    Returns:
        The seed, an int.
    Examples:
        >>> seed = taeda.seed()
        >>> seed == taeda.initial_seed()
        True
    """
    found = default_generator.seed()
    seed_all(found)
    return found


def initial_seed() -> int:
    """The seed that the global generator was started with.

    Returns:
        An int.
    Examples:
        >>> generator = taeda.manual_seed(7)
        >>> taeda.initial_seed()
        7
    """
    return default_generator.initial_seed()


@_ordered
def get_rng_state() -> Any:
    """The state of the global generator, to go on from later with :func:`set_rng_state`.

    Returns:
        ``uint8``, a vector of 5056 elements.
    Examples:
        >>> state = taeda.get_rng_state()
        >>> first = taeda.rand(3)
        >>> taeda.set_rng_state(state)
        >>> taeda.equal(first, taeda.rand(3))
        True
    """
    return default_generator.get_state()


@_ordered
def set_rng_state(new_state: Any) -> None:
    """Continues the global generator from a state of :func:`get_rng_state`; PyTorch's are the same.

    Args:
        new_state: ``uint8``, a vector of 5056 elements.
    Raises:
        RuntimeError: it is no such state.
    Examples:
        >>> state = taeda.get_rng_state()
        >>> first = taeda.rand(3)
        >>> taeda.set_rng_state(state)
        >>> taeda.equal(first, taeda.rand(3))
        True
    """
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, device_type: str = "cpu", **names: str
) -> Iterator[None]:
    """Within the block random numbers may be drawn at will: after it the global generators go on as before.

    Args:
        devices: indices or names of the devices whose generators are kept beside the CPU's. Default: all.
        enabled: if false, do nothing.
        device_type: the kind of device; only checked.
        names: how PyTorch's messages name the caller and its arguments; accepted.
    Raises:
        RuntimeError: there is no such kind of device.
    Examples:
        >>> generator = taeda.manual_seed(0)
        >>> with taeda.fork_rng():
        ...     _ = taeda.rand(100)
        >>> taeda.rand(1)  # the first number after the seed
        tensor([0.4963])
    """
    _core.device(device_type)  # of a kind that there is
    if not enabled:
        yield
        return
    states = all_states()
    if devices is not None and GENERATORS:
        kept = {Generator(d).device for d in devices}
        states = {n: state for n, state in states.items() if not n or GENERATORS[n].device in kept}
    try:
        yield
    finally:
        set_all_states(states)
