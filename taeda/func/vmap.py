"""``vmap``: a function of single examples, run on a whole batch at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor, modes
from ..autograd.modes import on_values
from ..ops.joining import cat, stack
from ..random import get_rng_state, set_rng_state
from ..utils._pytree import tree_flatten, tree_leaves, tree_unflatten
from . import families, products  # noqa: F401 - rules
from ._tree import broadcast
from .batched import Batched, VmapMode, plain
from .batching import run


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable:
    """A function mapped over a dimension of its arguments: written for one example, run on a batch at once.

    Args:
        func: from tensors, nested in tuples, lists or dicts, to tensors.
        in_dims: which dimension of each argument is mapped, None for one that is the same for every example; an int for
            all, or a nesting like the arguments'.
        out_dims: where that dimension goes in each result.
        randomness: whether random ops draw ``"different"`` or the ``"same"`` numbers for the examples, or are an
            ``"error"``.
        chunk_size: run in parts of at most this many examples, to save memory.

    Returns:
        A function. Its results have one dimension more than those of ``func``. Keyword arguments are the same for every
        example.

    Raises:
        ValueError: the mapped sizes differ, or ``in_dims`` does not fit the arguments.
        RuntimeError: the function asks for a value, as ``if x > 0`` does, or draws random numbers.

    Examples:
        >>> def distance(a, b):  # of two vectors
        ...     return ((a - b) ** 2).sum().sqrt()
        >>> points, centre = taeda.tensor([[3.0, 4.0], [0.0, 0.0]]), taeda.zeros(2)
        >>> taeda.vmap(distance, in_dims=(0, None))(points, centre)
        tensor([5., 0.])

        A gradient for each sample:

        >>> per_sample = taeda.vmap(taeda.func.grad(lambda w, x: (w * x).sum() ** 2), in_dims=(None, 0))
        >>> per_sample(taeda.ones(2), taeda.tensor([[1.0, 2.0], [0.0, 1.0]]))
        tensor([[ 6., 12.],
                [ 0.,  2.]])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @on_values
    @functools.wraps(func)
    def mapped(*args, **kwargs):
        leaves, structure, dims, size = _arguments(func, in_dims, args, kwargs)
        if any(dim is not None and x.is_nested for x, dim in zip(leaves, dims, strict=True)):
            return _by_parts(func, leaves, structure, dims, out_dims, randomness, size)
        if chunk_size is not None and chunk_size < size:
            return _in_chunks(func, leaves, structure, dims, out_dims, randomness, size, chunk_size)
        return _mapped(func, leaves, structure, dims, out_dims, randomness, size)

    return mapped


def _arguments(func: Callable, in_dims: Any, args: tuple, kwargs: dict) -> tuple[list, Any, list, int]:
    """Leaves, structure, mapped dimension of each leaf, and the size of the batch. Keyword arguments are not mapped."""
    name = getattr(func, "__name__", str(func))
    if not isinstance(in_dims, (int, tuple, list, dict)):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}): expected `in_dims` to be int or a (potentially nested) tuple, got "
            f"{type(in_dims)}."
        )
    if isinstance(in_dims, list):
        in_dims = tuple(in_dims)
    what = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of `inputs`"
    dims = broadcast(in_dims, args, what) + [None] * len(tree_leaves(kwargs))
    leaves, structure = tree_flatten((args, kwargs))
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs."
        )
    sizes = []
    for i, (x, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input but in_dim must be "
                "either an integer dimension or None."
            )
        if not isinstance(x, Tensor):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input but the input is of "
                f"type {type(x)}. We cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -x.dim() <= dim < x.dim():
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some input, but that input is a "
                f"Tensor of dimensionality {x.dim()} so expected in_dim to satisfy -{x.dim()} <= in_dim < {x.dim()}."
            )
        dims[i] = dim % x.dim()
        sizes.append(x.size(dim))
    if not sizes:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}): at least one input must be mapped, got only None dimensions"
        )
    if any(n != sizes[0] for n in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return leaves, structure, dims, sizes[0]


def _mapped(
    func: Callable, leaves: list, structure: Any, dims: list, out_dims: Any, randomness: str, size: int,
    batched: list | None = None,
) -> Any:  # fmt: skip
    """The results. ``batched`` is given whether each has a value per example."""
    mode = VmapMode(size, randomness, run)
    inputs = [x if dim is None else _add_batch_dim(x, dim, mode) for x, dim in zip(leaves, dims, strict=True)]
    args, kwargs = tree_unflatten(inputs, structure)
    inputs.clear()
    with modes([*_core.mode_stack(), mode]):
        out = func(*args, **kwargs)
    results, shape, places = _results(func, out, out_dims)
    if batched is not None:
        batched[:] = map(mode.holds, results)
    made = [_unwrap(mode, func, x, place) for x, place in zip(results, places, strict=True)]
    del args, kwargs, out, results
    mode.end()
    return tree_unflatten(made, shape)


def _add_batch_dim(x: Tensor, dim: int, level: VmapMode) -> Tensor:
    """``x`` as one example. PyTorch's name: packages wrap this function to give the example the class of ``x``."""
    return level.wrap(plain(x).movedim(dim, 0))


def _results(func: Callable, out: Any, out_dims: Any) -> tuple[list, Any, list]:
    name = getattr(func, "__name__", str(func))
    results, structure = tree_flatten(out)
    if isinstance(out_dims, list):
        out_dims = tuple(out_dims)
    if isinstance(out_dims, tuple) and not isinstance(out, (tuple, list, dict)) and len(out_dims) == 1:
        out_dims = out_dims[0]
    what = (
        f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`"
    )
    return (
        results,
        structure,
        broadcast(out_dims, tuple(out) if isinstance(out, list) and isinstance(out_dims, tuple) else out, what),
    )


def _unwrap(mode: VmapMode, func: Callable, x: Any, place: Any) -> Any:
    """A result as the caller gets it, with the batch at dimension ``place``."""
    name = getattr(func, "__name__", str(func))
    if place is None:
        if mode.holds(x):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return x
    if not isinstance(place, int):
        raise ValueError(
            f"vmap({name}, ..., out_dims={place}): `out_dims` must be an int, None or a nesting of them, got "
            f"{type(place)}"
        )
    if not isinstance(x, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    physical = mode.physical(plain(x))
    n = physical.dim()
    if not -n <= place < n:
        raise IndexError(
            f"vmap({name}, ...): out_dims={place} is out of range for a result of {n} dimensions with the batch"
        )
    return physical.movedim(0, place) if place % n else physical


def _by_parts(func, leaves, structure, dims, out_dims, randomness, size):
    """The same of nested tensors, whose parts differ in size: one part after the other, and nested results.

    Results that are the same for every example are stacked, as otherwise.
    """
    nested = [x for x, dim in zip(leaves, dims, strict=True) if dim is not None and x.is_nested]
    if any(dim and x.is_nested for x, dim in zip(leaves, dims, strict=True)):
        raise RuntimeError(f"Nested tensors can only be vmapped over dim=0, but got dim={max(filter(None, dims))}")
    rows: list = []
    batched: list[bool] = []
    state = get_rng_state()
    for i in range(size):
        if randomness == "same":
            set_rng_state(state)
        some = [
            x if dim is None else x.unbind()[i].unsqueeze(0) if x.is_nested else x.narrow(dim, i, 1)
            for x, dim in zip(leaves, dims, strict=True)
        ]
        rows.append(_mapped(func, some, structure, dims, 0, randomness, 1, batched))
    places = broadcast(out_dims, rows[0], "vmap: out_dims")
    columns = [[x.squeeze(0) for x in column] for column in zip(*map(tree_leaves, rows), strict=True)]
    made = [nested[0]._of_parts(x) if differs else stack(x) for x, differs in zip(columns, batched, strict=True)]
    if any(place and x.is_nested for x, place in zip(made, places, strict=True)):
        raise RuntimeError(f"Nested tensors can only be vmapped over dim=0, but got dim={max(filter(None, places))}")
    moved = [x.movedim(0, place) if place else x for x, place in zip(made, places, strict=True)]
    return tree_unflatten(moved, tree_flatten(rows[0])[1])


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor behind an argument of a function under :func:`vmap`, with the batch; for looking at it alone.

    Computing with it gives wrong results: the transformations do not see that.

    Args:
        tensor: any sizes; one that no transformation has wrapped is given back.
        recurse: whether to look through all transformations, rather than the innermost.

    Returns:
        A tensor.

    Examples:
        >>> def show_batch(x):
        ...     print(x.shape, taeda.func.debug_unwrap(x).shape)
        ...     return x.sum()
        >>> taeda.vmap(show_batch)(taeda.ones(3, 2))
        taeda.Size([2]) taeda.Size([3, 2])
        tensor([2., 2., 2.])
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"debug_unwrap(): expected a Tensor, got {type(tensor).__name__}")
    if not isinstance(tensor, Batched):
        return tensor
    return tensor._whole() if recurse else tensor.physical


def _in_chunks(func, leaves, structure, dims, out_dims, randomness, size, chunk_size):
    """The same, a part of the batch after the other."""
    parts, state = [], get_rng_state()
    for start in range(0, size, chunk_size):
        if randomness == "same":
            set_rng_state(state)
        stop = min(start + chunk_size, size)
        some = [x if dim is None else x.narrow(dim, start, stop - start) for x, dim in zip(leaves, dims, strict=True)]
        parts.append(_mapped(func, some, structure, dims, out_dims, randomness, stop - start))
    flat = [tree_flatten(part) for part in parts]
    if isinstance(out_dims, tuple) and not isinstance(parts[0], (tuple, list, dict)):
        (out_dims,) = out_dims
    places = broadcast(out_dims, parts[0], "vmap: out_dims")
    joined = [
        column[0] if place is None else cat(list(column), place)
        for column, place in zip(zip(*[f[0] for f in flat], strict=True), places, strict=True)
    ]
    return tree_unflatten(joined, flat[0][1])
