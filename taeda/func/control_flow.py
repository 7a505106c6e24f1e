"""Control flow as functions, which run as the Python that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import Tensor
from ..ops.joining import cat, stack
from ..utils._pytree import tree_flatten, tree_leaves, tree_unflatten
from .vmap import vmap

__all__ = ["associative_scan", "cond", "while_loop"]


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


def associative_scan(
    combine_fn: Callable, xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """Running results of an associative function: of the first element along ``dim``, of the first two, of the first three.

    The function is called for about ``2 log2 n`` halves rather than ``n`` elements (Blelloch 1990).

    Args:
        combine_fn: gives of two elements one of the same structure. Called with many elements at once: as they are where
            ``combine_mode`` is ``"pointwise"``, else under ``vmap``.
        xs: a tensor, or a structure of tensors, of one size along ``dim``.
        reverse: begin at the last element.
    Raises:
        ValueError: ``xs`` has no tensors, tensors of several sizes along ``dim``, or ``combine_mode`` is another word.
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"associative_scan: expected combine_mode 'pointwise' or 'generic', got {combine_mode!r}")
    leaves, spec = tree_flatten(xs)
    if not leaves or not all(isinstance(x, Tensor) for x in leaves):
        raise ValueError("associative_scan: expected xs to be tensors, at least one")
    if len({x.shape[dim] for x in leaves}) > 1:
        raise ValueError(f"associative_scan: expected tensors of one size along dimension {dim} in xs")
    together = combine_fn if combine_mode == "pointwise" else vmap(combine_fn)

    def combine(first: list, second: list) -> list:
        return tree_leaves(together(tree_unflatten(first, spec), tree_unflatten(second, spec)))

    moved = [x.movedim(dim, 0) for x in leaves]
    scanned = _scan(combine, [x.flip(0) for x in moved] if reverse else moved)
    return tree_unflatten([(x.flip(0) if reverse else x).movedim(0, dim) for x in scanned], spec)


def _scan(combine: Callable, xs: list) -> list:
    """Pairs are combined and scanned, which gives every second result; the others are one combination further."""
    n = xs[0].shape[0]
    if n < 2:
        return xs
    odd = _scan(combine, combine([x[: n - 1 : 2] for x in xs], [x[1::2] for x in xs]))
    even = [x[:1] for x in xs]
    if n > 2:
        later = combine([o[: (n - 1) // 2] for o in odd], [x[2::2] for x in xs])
        even = [cat([e, later_one]) for e, later_one in zip(even, later, strict=True)]
    pairs = n // 2
    joined = [stack([e[:pairs], o], 1).flatten(0, 1) for e, o in zip(even, odd, strict=True)]
    return joined if n % 2 == 0 else [cat([j, e[-1:]]) for j, e in zip(joined, even, strict=True)]
