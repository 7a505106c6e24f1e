"""Ops whose result's size depends on values: their results where that size is an unknown number."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from taeda._core import Op, Tensor
from taeda.fx.experimental.symbolic_shapes import Expr, SymInt, _Symbolic
from taeda.fx.node import map_aggregate
from taeda.ops.histogram import Histogram
from taeda.ops.meta import planning, without_values
from taeda.ops.table import trait
from taeda.utils import _pytree as pytree

from .. import _core
from ._values import Traced

__all__ = ["has_mask", "implied", "numbers", "rule_for", "sizes_in", "without_masks"]

#: Parameters that are sizes, so at least 0, of functions that make a tensor or split one.
_SIZES = ("size", "args", "split_size", "split_sizes", "split_size_or_sections")


def _vector(n: int, dtype: Any = None) -> Tensor:
    return without_values((n,), None, dtype or _core.int64)


def _nonzero(n: int, input: Tensor, as_tuple: bool = False, out: Any = None) -> Any:
    if out is not None:
        return NotImplemented
    if as_tuple:
        return tuple(_vector(n) for _ in range(max(input.dim(), 1)))
    return without_values((n, input.dim()), None, _core.int64)


def _where(n: int, condition: Tensor, input: Any = None, other: Any = None, out: Any = None) -> Any:
    return NotImplemented if input is not None or other is not None else _nonzero(n, condition, True)


def _masked_select(n: int, input: Tensor, mask: Tensor, out: Any = None) -> Any:
    _core_broadcast(input, mask)
    return NotImplemented if out is not None else _vector(n, input.dtype)


def _core_broadcast(input: Tensor, mask: Tensor) -> None:
    if mask.dtype is not _core.bool_:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask, got {mask.dtype}")
    with planning():
        _ = input.bool() & mask


def _unique(
    n: int, input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    sizes = list(input.shape)
    inverse: Any = input.shape
    if dim is None:
        sizes = [n]
    else:
        inverse, sizes[dim] = (sizes[dim],), n
    made = [without_values(sizes, None, input.dtype)]
    made += [without_values(inverse, None, _core.int64)] if return_inverse else []
    made += [_vector(n)] if return_counts else []
    return tuple(made) if len(made) > 1 else made[0]


def _unique_consecutive(
    n: int, input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    return _unique(n, input, True, return_inverse, return_counts, dim)


def _bincount(n: int, input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Any:
    if input.is_floating_point() or input.is_complex() or input.dtype is _core.bool_ or input.dim() != 1:
        raise RuntimeError(f"bincount only supports 1-d non-negative integral inputs, got {input.dtype}, {input.shape}")
    if weights is None:
        return _vector(n)
    return _vector(n, weights.dtype if weights.dtype is _core.float32 else _core.float64)


def _repeat_interleave(n: int, input: Any, repeats: Any = None, dim: int | None = None, output_size: Any = None) -> Any:
    n = n if output_size is None else output_size
    if repeats is None:
        return _vector(n)
    if not isinstance(repeats, Tensor):
        return NotImplemented
    sizes = [math.prod(input.shape)] if dim is None else list(input.shape) or [1]
    if repeats.numel() != 1 and repeats.shape[0] != sizes[dim or 0]:
        raise RuntimeError(
            f"repeat_interleave: expected one number for each of {sizes[dim or 0]} slices, got {repeats.shape[0]}"
        )
    sizes[dim or 0] = n
    return without_values(sizes, None, input.dtype)


def _histogram(
    n: None, input: Tensor, bins: Any = 100, range: Any = None, weight: Any = None, density: bool = False,
    out: Any = None
) -> Any:  # fmt: skip
    """The result's sizes are known, though its edges are found from values."""
    count = bins.numel() - 1 if isinstance(bins, Tensor) else bins
    if out is not None or not isinstance(count, int):
        return NotImplemented
    return Histogram(_vector(count, input.dtype), _vector(count + 1, input.dtype))


def _masked(n: int, input: Tensor, index: Any) -> Any:
    parts: list[Any] = []
    for part in index if isinstance(index, tuple) else (index,):
        parts += [_vector(n) for _ in range(part.dim())] if _is_mask(part) else [part]
    with planning():
        return operator.getitem(input, tuple(parts))


_RULES: dict[str, Callable] = {
    "nonzero": _nonzero, "argwhere": _nonzero, "where": _where, "masked_select": _masked_select, "unique": _unique,
    "unique_consecutive": _unique_consecutive, "bincount": _bincount, "repeat_interleave": _repeat_interleave,
}  # fmt: skip


def _is_mask(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype in (_core.bool_, _core.uint8) and x.dim() > 0


def has_mask(function: Any, args: tuple) -> bool:
    """Whether this is ``x[mask]``."""
    if function is not operator.getitem or len(args) != 2 or not isinstance(args[0], Traced):
        return False
    return any(map(_is_mask, args[1] if isinstance(args[1], tuple) else (args[1],)))


def rule_for(function: Any, args: tuple, kwargs: dict) -> tuple[Callable, Any, Any, Any] | None:
    """A function of the unknown size and the arguments at a sample, the range of the size (None if it is known), and
    the mask whose true elements it counts, if there is one. None if the call is none of these.
    """
    if has_mask(function, args):
        masks = [m for m in (args[1] if isinstance(args[1], tuple) else (args[1],)) if _is_mask(m)]
        return (lambda n, given: _masked(n, *given[0])), 0, _most(masks[0]), masks[0] if len(masks) == 1 else None
    name = getattr(function, "__name__", "")
    if name == "histogram":
        return (lambda n, at: _histogram(n, **_bound(function, *at))), None, None, None
    rule = _RULES.get(name)
    if rule is None:
        return None
    given = _bound(function, args, kwargs)
    if rule in (_where,) and given.get("input") is not None:
        return None
    least, most = 0, math.inf
    if rule is _bincount:
        least = int(given.get("minlength") or 0)
    elif rule is not _repeat_interleave:
        whole = given.get("dim") is None
        most = _most(given["input" if "input" in given and rule is not _where else "condition"], whole)
    elif not isinstance(given.get("repeats"), Tensor) and given.get("repeats") is not None:
        return None
    mask = given.get("input", given.get("condition")) if rule in (_nonzero, _where) else None
    return (lambda n, at: rule(n, **_bound(function, *at))), least, most, mask


def without_masks(function: Any, args: tuple) -> tuple:
    """``args`` of a write to ``x[mask]``, where the value says how many elements there are: vectors for the masks."""
    if getattr(function, "__name__", "") not in ("setitem", "index_put", "index_put_") or len(args) < 3:
        return args
    parts, value = args[1] if isinstance(args[1], (tuple, list)) else (args[1],), args[2]
    if not isinstance(value, Tensor) or value.dim() == 0 or not any(map(_is_mask, parts)):
        return args
    found: list[Any] = []
    for part in parts:
        found += [_vector(value.shape[0]) for _ in range(part.dim())] if _is_mask(part) else [part]
    return args[0], tuple(found), *args[2:]


def _most(x: Tensor, whole: bool = True) -> float:
    """The number of elements, if that is one number."""
    sizes = x.shape
    fixed = all(type(n) is int for n in sizes)
    return max(math.prod(sizes), 2) if fixed and whole else math.inf


def _bound(function: Any, args: tuple, kwargs: dict) -> dict[str, Any]:
    """The arguments by name."""
    if isinstance(function, Op):
        many = function.traits.get("variadic")
        if many is not None:
            at = many if isinstance(many, int) else function.params.index(many)
            rest = args[at:]
            whole = len(rest) == 1 and isinstance(rest[0], (tuple, list))
            args = (*args[:at], rest[0] if whole else list(rest)) if rest else args
        if len(args) > len(function.params):
            raise TypeError(f"{function.__name__} takes {len(function.params)} arguments, got {len(args)}")
        return {**dict(zip(function.params, args, strict=False)), **kwargs}
    return dict(inspect.signature(function).bind(*args, **kwargs).arguments)


def sizes_in(function: Any, args: tuple, kwargs: dict) -> list:
    """The arguments of a call that are sizes, so at least 0."""
    name = getattr(function, "__name__", "")
    if trait(function, "meta", "") != "sizes" and not name.startswith(("new_", "split")):
        return []
    given = _bound(function, args, kwargs)
    return [given[name] for name in _SIZES if name in given]


# ---- facts that a failing step implies -------------------------------------------------------------------------------


def numbers(given: Any, names: list[str]) -> list[str]:
    """The unknown numbers that are arguments, not sizes of tensors."""
    found: set[str] = set()
    for x in pytree.tree_leaves(map_aggregate(given, _slices)):
        if isinstance(x, _Symbolic):
            found |= x.expr.symbols()
    return [name for name in names if name in found]


def _leaves(given: Any) -> list[Traced]:
    return [x for x in pytree.tree_leaves(given) if isinstance(x, Traced)]


def _slices(x: Any) -> Any:
    return (x.start, x.stop, x.step) if isinstance(x, slice) else x


def implied(function: Any, given: Any, names: list[str]) -> Iterator[Expr]:
    """Conditions on unknown numbers of which one may let a step that fails run, the likeliest first."""
    derived = {s.name for x in _leaves(given) for s in x.capture.found.values() if s.kind == "size"} - set(names)
    args, kwargs = given
    tensors = _leaves(given)
    sizes: list[Any] = [n.expr if isinstance(n, SymInt) else n for x in tensors for n in x._sizes]
    if getattr(function, "__name__", "") in ("split", "split_with_sizes") and tensors:
        parts = next((a for a in (*args[1:], *kwargs.values()) if isinstance(a, (list, tuple))), ())
        dim = kwargs.get("dim", args[2] if len(args) > 2 else 0)
        total = sum(parts)
        if isinstance(total, SymInt):
            whole = tensors[0]._sizes[dim]
            yield Expr("eq", total.expr, whole.expr if isinstance(whole, SymInt) else whole)
        return
    for size in dict.fromkeys(s for s in sizes if isinstance(s, Expr)):
        if derived & size.symbols():  # a slice: only its end is known
            yield from (
                Expr("eq", Expr(n), other) for n in reversed(names) for other in dict.fromkeys(sizes) if other != size
            )
        if not any(name in size.symbols() for name in names):
            continue
        for other in dict.fromkeys(sizes):
            if other != size:
                yield Expr("eq", size, other)
        for factor in (2, 3, 4, 8, 16, 32, 64):
            yield Expr("eq", Expr("mod", size, factor), 0)
