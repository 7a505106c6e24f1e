"""Control flow as functions: ``cond``, ``while_loop`` and their like, which run as Python's ``if`` and loops."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from .._core import Tensor, current_mode
from ..ops.joining import cat, stack
from ..utils._pytree import tree_flatten, tree_leaves, tree_unflatten
from .vmap import vmap

__all__ = ["associative_scan", "cond", "foreach_map", "map", "scan", "while_loop"]


def _recorded(name: str, *args: Any) -> Any:
    """The result of the call from the mode that records a program; NotImplemented if there is none, or if the call runs
    as usual.
    """
    handle = getattr(current_mode(), "control_flow", None)
    return NotImplemented if handle is None else handle(name, *args)


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
    """``true_fn(*operands)`` where ``pred`` holds, else ``false_fn(*operands)``: a branch that stays in an exported
    program.

    Args:
        pred: a bool, or a tensor of one element.
        true_fn: a function of ``operands``.
        false_fn: a function of ``operands`` that gives the same kind of result.
        operands: a tuple or list of tensors.
    Returns:
        The result of the function.
    Raises:
        RuntimeError: ``pred`` is something else, or ``operands`` are no tuple or list.
    Examples:
        >>> x = taeda.tensor([-1.0, 2.0])
        >>> taeda.cond(x.sum() > 0, lambda x: 10 * x, lambda x: -x, (x,))
        tensor([-10.,  20.])
    """
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"cond: expected operands to be a tuple or a list, got {type(operands).__name__}")
    recorded = _recorded("cond", pred, true_fn, false_fn, operands)
    if recorded is not NotImplemented:
        return recorded
    return true_fn(*operands) if _decided("cond", pred) else false_fn(*operands)


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list) -> tuple:
    """Applies ``body_fn`` to the carried values as long as ``cond_fn`` of them holds: a loop that stays in an exported
    program.

    Args:
        cond_fn: gives a bool or a tensor of one element.
        body_fn: gives a tuple of as many values as it takes.
        carried_inputs: a tuple or list of the first values.
    Returns:
        The last values, a tuple.
    Raises:
        RuntimeError: ``carried_inputs`` are no tuple or list, or ``body_fn`` gives another number of values.
    Examples:
        >>> start = (taeda.tensor(1), taeda.tensor(0))
        >>> taeda.while_loop(lambda x, n: x < 100, lambda x, n: (2 * x, n + 1), start)
        (tensor(128), tensor(7))
    """
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(
            f"while_loop: expected carried_inputs to be a tuple or a list, got {type(carried_inputs).__name__}"
        )
    carried = tuple(carried_inputs)
    recorded = _recorded("while_loop", cond_fn, body_fn, carried)
    if recorded is not NotImplemented:
        return recorded
    while _decided("while_loop", cond_fn(*carried)):
        made = body_fn(*carried)
        made = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        if len(made) != len(carried):
            raise RuntimeError(f"while_loop: body_fn takes {len(carried)} values and gives {len(made)}")
        carried = made
    return carried


def map(f: Callable, xs: Any, *args: Any) -> Any:
    """``f(x, *args)`` for each ``x`` along the first dimension of ``xs``; results are stacked.

    Args:
        f: gives a tensor or a structure of tensors.
        xs: a tensor, or a structure of tensors, of one size along the first dimension, at least 1.
        args: further arguments.
    Returns:
        What ``f`` gives, with a first dimension.
    Raises:
        ValueError: ``xs`` has no tensors, or tensors of several sizes, or of size 0, along the first dimension.
    """
    leaves, spec = tree_flatten(xs)
    _expect_rows("map", leaves, 0)
    recorded = _recorded("map", f, leaves, spec, args)
    if recorded is not NotImplemented:
        return recorded
    made = [tree_flatten(f(tree_unflatten([x[i] for x in leaves], spec), *args)) for i in range(leaves[0].shape[0])]
    columns = zip(*(flat for flat, _ in made), strict=True)
    return tree_unflatten([stack(column, 0) for column in columns], made[0][1])


def foreach_map(op: Callable, *operands: Any, **kwargs: Any) -> Any:
    """``[op(a, b, ...), ...]`` over operands that are lists or tuples of one length; others are the same each time."""
    lists = [isinstance(x, (list, tuple)) for x in operands]
    if not any(lists):
        return op(*operands, **kwargs)
    each = [x if listed else itertools.repeat(x) for x, listed in zip(operands, lists, strict=True)]
    return [op(*items, **kwargs) for items in zip(*each, strict=False)]


def scan(combine_fn: Callable, init: Any, xs: Any, *, dim: int = 0, reverse: bool = False) -> tuple[Any, Any]:
    """The carried value after the last element of ``xs``, and the outputs for each element, stacked along dimension 0.

    Args:
        combine_fn: ``(carry, x) -> (carry, y)``.
        init: the first carried value: a tensor or a structure of tensors.
        xs: a tensor, or a structure of tensors, of one size along ``dim``, at least 1.
        dim: the dimension along which ``xs`` is walked.
        reverse: begin at the last element; results stay in the order of ``xs``.
    Returns:
        The carried value, and the stacked outputs.
    Raises:
        ValueError: ``xs`` has no tensors, or tensors of several sizes, or of size 0, along ``dim``.
        RuntimeError: ``combine_fn`` gives a carried value of another structure, shape or dtype.
    """
    leaves, spec = tree_flatten(xs)
    _expect_rows("scan", leaves, dim)
    recorded = _recorded("scan", combine_fn, init, leaves, spec, dim, reverse)
    if recorded is not NotImplemented:
        return recorded
    count, carry = leaves[0].shape[dim], init
    like, kept = _form(init), []
    for i in reversed(range(count)) if reverse else range(count):
        carry, y = combine_fn(carry, tree_unflatten([x.select(dim, i) for x in leaves], spec))
        if _form(carry) != like:
            raise RuntimeError(f"scan: combine_fn takes a carried value of the form {like} and gives {_form(carry)}")
        kept.append(tree_flatten(y))
    columns = zip(*(flat for flat, _ in (kept[::-1] if reverse else kept)), strict=True)
    return carry, tree_unflatten([stack(column, 0) for column in columns], kept[0][1])


def _form(tree: Any) -> list:
    return [(tuple(x.shape), x.dtype) if isinstance(x, Tensor) else type(x) for x in tree_leaves(tree)]


def _expect_rows(name: str, leaves: list, dim: int) -> None:
    if not leaves or not all(isinstance(x, Tensor) and x.dim() for x in leaves):
        raise ValueError(f"{name}: expected xs to be tensors of at least one dimension, at least one")
    sizes = {int(x.shape[dim]) for x in leaves}
    if len(sizes) > 1 or 0 in sizes:
        raise ValueError(
            f"{name}: expected tensors of one size along dimension {dim} in xs, at least 1, got {sorted(sizes)}"
        )


def associative_scan(
    combine_fn: Callable, xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """Running results of an associative function: of the first element along ``dim``, of the first two, of the first
    three.

    The function is called for about ``2 log2 n`` halves rather than ``n`` elements (Blelloch 1990).

    Args:
        combine_fn: gives of two elements one of the same structure. Called with many elements at once: as they are
            where ``combine_mode`` is ``"pointwise"``, else under ``vmap``.
        xs: a tensor, or a structure of tensors, of one size along ``dim``.
        dim: the dimension along which elements follow each other.
        reverse: begin at the last element.
        combine_mode: ``"pointwise"``, for functions of single elements, or ``"generic"``.
    Returns:
        The structure and the sizes of ``xs``.
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
    recorded = _recorded("associative_scan", combine_fn, leaves, spec, dim, reverse, combine_mode)
    if recorded is not NotImplemented:
        return recorded
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
