"""Reductions over axes: sums, extremes, statistics, counts and tests.

An ``axis`` is a number, a tuple (an empty one reduces nothing, where PyTorch's would reduce all), or None for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda

from .._typed import Tensor
from ._dtypes import _public, isdtype
from ._elementwise import _need_axis, _need_indices, _promoted


def _reduce(x: Tensor, axis: Any, keepdims: bool, function: Callable[[Tensor, Any, bool], Tensor]) -> Tensor:
    """``function(x, dim, keepdim)`` over ``axis``."""
    if isinstance(axis, tuple) and not axis:
        return function(taeda.unsqueeze(x, -1), -1, False)
    _need_axis(x, axis)
    if axis is None:
        axis = tuple(range(x.ndim))
        if not axis:
            return function(taeda.unsqueeze(x, -1), -1, False)
    return function(x, axis, keepdims)


def _accumulator(dtype: Any) -> Any:
    """The dtype of sums and products of ``dtype``: integers narrower than int64 are summed in 64 bits."""
    if isdtype(dtype, ("signed integer", "bool")):
        return taeda.int64
    return taeda.uint64 if isdtype(dtype, "unsigned integer") else dtype


def sum(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum, in ``dtype``: by default the array's, or 64 bits for integers."""
    dtype = _accumulator(x.dtype) if dtype is None else dtype
    return _reduce(x, axis, keepdims, lambda x, dim, keep: taeda.sum(x, dim, keep, dtype=dtype))


def prod(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product, in ``dtype``: by default the array's, or 64 bits for integers."""
    dtype = _accumulator(x.dtype) if dtype is None else dtype

    def product(x: Tensor, dim: Any, keep: bool) -> Tensor:
        dims = sorted((d + x.ndim if d < 0 else d for d in (dim if isinstance(dim, tuple) else (dim,))), reverse=True)
        if len(set(dims)) < len(dims):
            raise ValueError(f"prod: an axis appears twice in {dim}")
        for d in dims:
            x = taeda.prod(x, d, keep, dtype=dtype)
        return x

    return _reduce(x, axis, keepdims, product)


def max(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element; NaN where there is one."""
    return _reduce(x, axis, keepdims, taeda.amax)


def min(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element; NaN where there is one."""
    return _reduce(x, axis, keepdims, taeda.amin)


def mean(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The arithmetic mean."""
    return _reduce(x, axis, keepdims, taeda.mean)


def var(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance: squared distances from the mean over their number less ``correction``."""
    return _reduce(x, axis, keepdims, lambda x, dim, keep: taeda.var(x, dim, correction=correction, keepdim=keep))


def std(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation: the root of :func:`var`."""
    return _reduce(x, axis, keepdims, lambda x, dim, keep: taeda.std(x, dim, correction=correction, keepdim=keep))


def all(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether every element is true."""
    return _reduce(x.to(taeda.bool), axis, keepdims, taeda.all)


def any(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether some element is true."""
    return _reduce(x.to(taeda.bool), axis, keepdims, taeda.any)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The number of elements that are not zero."""
    return sum(x != 0, axis=axis, keepdims=keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the first of the largest elements; without ``axis``, counted through the whole array."""
    return _arg(taeda.argmax, x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the first of the smallest elements; without ``axis``, counted through the whole array."""
    return _arg(taeda.argmin, x, axis, keepdims)


def _arg(op: Any, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    _need_axis(x, axis)
    if axis is not None:
        return op(x, axis, keepdims)
    found = op(x.reshape(-1), 0)
    return found.reshape((1,) * x.ndim) if keepdims else found


# ---- along one axis --------------------------------------------------------------------------------------------------


def _cumulative(op: Any, first: int, x: Tensor, axis: int | None, dtype: Any, include_initial: bool) -> Tensor:
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{op.__name__}: an array of {x.ndim} dimensions needs an axis")
        axis = 0
    dtype = _accumulator(x.dtype) if dtype is None else dtype
    shape = x.shape
    made = op(x, axis, dtype=dtype)
    if include_initial:
        x = made if shape else made.reshape(1)
        lead = list(x.shape)
        lead[axis] = 1
        made = taeda.cat([taeda.full(lead, first, dtype=dtype), x], axis)
    return made


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Sums of the elements up to each one; with ``include_initial`` starting from 0, one element more."""
    return _cumulative(taeda.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Products of the elements up to each one; with ``include_initial`` starting from 1, one element more."""
    return _cumulative(taeda.cumprod, 1, x, axis, dtype, include_initial)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours, ``n`` times over, of ``x`` between ``prepend`` and ``append``."""
    return taeda.diff(x, n, axis, prepend, append)


# ---- search ----------------------------------------------------------------------------------------------------------


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero, an array per dimension.

    Raises:
        ValueError: ``x`` has no dimensions.
    """
    if x.ndim == 0:
        raise ValueError("nonzero: expected an array with at least one dimension")
    return tuple(taeda.nonzero(x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """Places in the sorted ``x1`` where the elements of ``x2`` belong: before (``"left"``) or after equal ones."""
    first, second = _promoted("searchsorted", x1, x2)
    sorter = None if sorter is None else _need_indices("searchsorted", sorter)
    return taeda.searchsorted(first, second, side=side, sorter=sorter)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """``x1`` where ``condition`` is true, ``x2`` elsewhere, in their common dtype."""
    if isinstance(x1, Tensor) or isinstance(x2, Tensor):
        x1, x2 = _promoted("where", x1, x2)
    return taeda.where(condition, x1, x2)


__all__ = _public(globals())
