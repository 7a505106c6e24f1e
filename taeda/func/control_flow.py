"""Control flow as functions: ``cond`` and ``while_loop``, which run as the Python that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import Tensor

__all__ = ["cond", "while_loop"]


def _decided(name: str, x: Any) -> bool:
    """A condition as a bool."""
    if not isinstance(x, (bool, int, Tensor)):
        raise RuntimeError(
            f"{name}: expected the condition to be a bool or a tensor of one element, got {type(x).__name__}"
        )
    if isinstance(x, Tensor) and x.numel() != 1:
        raise RuntimeError(
            f"{name}: expected the condition to be a bool or a tensor of one element, got a tensor of {tuple(x.shape)}"
        )
    return bool(x)


def cond(pred: Any, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()) -> Any:
    """``true_fn(*operands)`` where ``pred`` holds, else ``false_fn(*operands)``.

    Args:
        pred: a bool or a tensor of one element.
        operands: arguments of either function.
    Raises:
        RuntimeError: ``pred`` is something else, or ``operands`` are no tuple or list.
    """
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"cond: expected operands to be a tuple or a list, got {type(operands).__name__}")
    return true_fn(*operands) if _decided("cond", pred) else false_fn(*operands)


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list) -> tuple:
    """Apply ``body_fn`` to the carried values while ``cond_fn`` of them holds; gives the last ones.

    Args:
        cond_fn: gives a bool or a tensor of one element.
        body_fn: gives as many values as it takes.
        carried_inputs: the first values.
    Raises:
        RuntimeError: ``carried_inputs`` are no tuple or list, or ``body_fn`` gives another number of values.
    """
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(
            f"while_loop: expected carried_inputs to be a tuple or a list, got {type(carried_inputs).__name__}"
        )
    carried = tuple(carried_inputs)
    while _decided("while_loop", cond_fn(*carried)):
        made = body_fn(*carried)
        made = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        if len(made) != len(carried):
            raise RuntimeError(f"while_loop: body_fn takes {len(carried)} values and gives {len(made)}")
        carried = made
    return carried
