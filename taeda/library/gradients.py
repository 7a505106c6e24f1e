"""Arguments and gradients of ops that take lists of tensors, one by one as a Function takes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any


def leaves_of(args: Sequence) -> list:
    """``args``, with what is in lists and tuples in their place."""
    return [x for a in args for x in (a if isinstance(a, (list, tuple)) else (a,))]


def by_place(setup_context: Callable | None) -> Callable:
    """``setup_context`` as a function of ctx, inputs and output, in this order."""
    if setup_context is None:
        return lambda ctx, inputs, output: None
    try:
        names = list(inspect.signature(setup_context).parameters)
    except (TypeError, ValueError):
        names = []
    if names[:3] == ["ctx", "inputs", "output"] or sorted(names) != ["ctx", "inputs", "output"]:
        return setup_context
    return lambda ctx, inputs, output: setup_context(ctx=ctx, inputs=inputs, output=output)


def flattened(args: tuple, kwargs: dict) -> tuple[list, tuple]:
    """Arguments as a Function takes them, those in lists one by one, and what :func:`restored` needs to know.

    That is, of each argument that goes by position, how many there are if it is a list, else -1, or None where none is
    one; and the names of the others.
    """
    if not any(isinstance(a, list) for a in args):
        return [*args, *kwargs.values()], (None, tuple(kwargs))
    counts = tuple(len(a) if isinstance(a, list) else -1 for a in args)
    return [*leaves_of(args), *kwargs.values()], (counts, tuple(kwargs))


def restored(given: tuple) -> tuple[tuple, dict]:
    """The arguments that :func:`flattened` was given; the last of ``given`` is their form."""
    (counts, names), end = given[-1], len(given) - 1 - len(given[-1][1])
    kwargs = dict(zip(names, given[end:-1], strict=True)) if names else {}
    if counts is None:
        return given[:end], kwargs
    rest = iter(given[:end])
    return tuple(next(rest) if n < 0 else [next(rest) for _ in range(n)] for n in counts), kwargs


def flat_gradients(name: str, made: Any, counts: tuple | None) -> tuple:
    """Gradients of arguments, those of lists one by one."""
    made = made if isinstance(made, tuple) else tuple(made) if isinstance(made, list) and counts is None else (made,)
    if counts is None:
        return made
    if len(made) != len(counts):
        raise RuntimeError(f"{name}: expected the derivative to give {len(counts)} gradients, got {len(made)}")
    flat: list = []
    for g, n in zip(made, counts, strict=True):
        if n >= 0 and g is not None and (not isinstance(g, (list, tuple)) or len(g) != n):
            raise RuntimeError(f"{name}: expected a list of {n} gradients for a list of {n} tensors, got {g!r:.80}")
        flat.extend((g,) if n < 0 else (None,) * n if g is None else g)
    return tuple(flat)
