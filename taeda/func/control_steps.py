"""``cond``, ``while_loop``, ``map``, ``scan`` and ``associative_scan`` as steps, with graphs of their functions.

These graphs take and return flat tuples; values from outside come last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import control_flow as _flow

__all__ = ["STEPS", "associative_scan", "cond", "map", "scan", "while_loop"]


def cond(pred: Any, true_graph: Callable, false_graph: Callable, operands: Sequence) -> tuple:
    """``true_graph(*operands)`` where ``pred`` holds, else ``false_graph(*operands)``."""
    return _flow.cond(pred, true_graph, false_graph, tuple(operands))


def while_loop(cond_graph: Callable, body_graph: Callable, carried: Sequence, additional: Sequence) -> tuple:
    """``carried`` after ``body_graph(*carried, *additional)`` was applied while ``cond_graph`` of the same holds."""
    return _flow.while_loop(
        lambda *xs: cond_graph(*xs, *additional)[0], lambda *xs: body_graph(*xs, *additional), tuple(carried)
    )


def map(graph: Callable, xs: Sequence, additional: Sequence) -> tuple:
    """``graph(*rows, *additional)`` for the rows of ``xs``, stacked."""
    return _flow.map(lambda rows: graph(*rows, *additional), tuple(xs))


def scan(graph: Callable, init: Sequence, xs: Sequence, dim: int, reverse: bool, additional: Sequence) -> tuple:
    """The last carried values and the stacked results of ``graph(*carried, *rows, *additional)``, in one tuple."""
    count = len(init)

    def combine(carry: tuple, rows: tuple) -> tuple:
        made = graph(*carry, *rows, *additional)
        return tuple(made[:count]), tuple(made[count:])

    carry, results = _flow.scan(combine, tuple(init), tuple(xs), dim=dim, reverse=reverse)
    return (*carry, *results)


def associative_scan(
    graph: Callable, xs: Sequence, dim: int, reverse: bool, combine_mode: str, additional: Sequence
) -> tuple:
    """Running results of ``graph(*first, *second, *additional)`` along ``dim``."""

    def combine(first: tuple, second: tuple) -> tuple:
        return tuple(graph(*first, *second, *additional))

    return tuple(_flow.associative_scan(combine, tuple(xs), dim, reverse, combine_mode))


STEPS = {f.__name__: f for f in (cond, while_loop, map, scan, associative_scan)}
