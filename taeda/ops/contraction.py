"""The order in which ``einsum`` contracts three or more operands: ``opt_einsum``'s path where that package is installed
and switched on (``backends.opt_einsum``), else greedily by size."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..kernels.forks import loading

_settings: list[Callable[[], tuple[bool, str | None]]] = [lambda: (True, "auto")]


def read_settings_from(reader: Callable[[], tuple[bool, str | None]]) -> None:
    """``reader`` gives whether to ask ``opt_einsum``, and by which strategy."""
    _settings[0] = reader


@functools.cache
def planner() -> Any:
    """The package ``opt_einsum``, or None."""
    try:
        with loading:
            import opt_einsum
    except ImportError:
        return None
    return opt_einsum


@functools.lru_cache(maxsize=512)
def _planned(inputs: tuple, output: tuple, shapes: tuple, strategy: str) -> tuple:
    """The pairs in ``opt_einsum``'s order. A size of 1 beside a larger one is that index broadcast: no index of the
    path."""
    letters: dict = {}
    sizes: dict = {}
    for indices, shape in zip(inputs, shapes, strict=True):
        for i, size in zip(indices, shape, strict=True):
            letters.setdefault(i, planner().get_symbol(len(letters)))
            sizes[i] = max(size, sizes.get(i, 1))
    terms = ["".join(letters[i] for i in indices) for indices in inputs]
    whole = [tuple(sizes[i] for i in indices) for indices in inputs]
    equation = f"{','.join(terms)}->{''.join(letters[i] for i in output)}"
    path, _ = planner().contract_path(equation, *whole, shapes=True, optimize=strategy)
    steps, count = [], len(inputs)
    for step in path:
        first, *others = sorted(step, reverse=True)
        for k in others:  # more than two at once: one after the other, the last result always at the end
            steps.append((k, first))
            count -= 1
            first = count - 1
    return tuple(steps)


def order(shapes: Sequence, inputs: Sequence[tuple], output: tuple) -> Sequence[tuple[int, int]]:
    """The pairs to contract, in order. Each result goes to the end of the list of operands."""
    if len(inputs) > 2:
        enabled, strategy = _settings[0]()
        if enabled and planner() is not None:
            return _planned(tuple(inputs), output, tuple(map(tuple, shapes)), strategy or "auto")
    return _greedy(shapes, inputs, output)


def _greedy(shapes: Sequence, inputs: Sequence[tuple], output: tuple) -> list[tuple[int, int]]:
    """Contract the pair whose result is smallest relative to its operands, and repeat."""
    sizes: dict = {}
    for shape, indices in zip(shapes, inputs, strict=True):
        for size, i in zip(shape, indices, strict=True):
            sizes[i] = max(size, sizes.get(i, 1))

    def volume(indices) -> int:
        n = 1
        for i in indices:
            n *= sizes[i]
        return n

    terms, steps = [set(i) for i in inputs], []
    while len(terms) > 2:
        best = None
        for i in range(len(terms)):
            for j in range(i + 1, len(terms)):
                others = set(output).union(*(t for n, t in enumerate(terms) if n not in (i, j)))
                result = (terms[i] | terms[j]) & others
                cost = (volume(result) - volume(terms[i]) - volume(terms[j]), volume(terms[i] | terms[j]))
                if best is None or cost < best[0]:
                    best = (cost, i, j, result)
        _, i, j, result = best
        steps.append((i, j))
        terms = [t for n, t in enumerate(terms) if n not in (i, j)] + [result]
    if len(terms) == 2:
        steps.append((0, 1))
    return steps
