"""Arranging elements: shapes, joins, orders, sets and picks."""

from __future__ import annotations

from typing import Any, NamedTuple

import taeda

from .._typed import Tensor
from ._dtypes import _public, result_type
from ._elementwise import _need_axis, _need_indices, _promoted

# ---- shapes ----------------------------------------------------------------------------------------------------------


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The arrays in their common shape."""
    return list(taeda.broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """``x`` in a shape that it broadcasts to."""
    return taeda.broadcast_to(x, shape)


def _common(name: str, arrays: Any) -> Any:
    """The dtype of the arrays together."""
    if not arrays:
        raise ValueError(f"{name}: expected at least one array")
    return result_type(*arrays)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """The arrays one after the other along ``axis``; with None, each flattened first."""
    common = _common("concat", arrays)
    if axis is None:
        arrays, axis = [x.reshape(-1) for x in arrays], 0
    return taeda.cat([x.to(common) for x in arrays], axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """The arrays side by side along a new ``axis``."""
    common = _common("stack", arrays)
    return taeda.stack([x.to(common) for x in arrays], axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along ``axis``."""
    _need_axis(x, axis)
    return tuple(taeda.unbind(x, axis))


def expand_dims(x: Tensor, /, axis: int = 0) -> Tensor:
    """``x`` with a new dimension of size one at ``axis``."""
    return taeda.unsqueeze(x, axis)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """``x`` without the dimensions ``axis``.

    Raises:
        ValueError: one of them is not of size one.
    """
    _need_axis(x, axis)
    axes = axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        if x.size(a) != 1:
            raise ValueError(f"squeeze: expected size 1 in dimension {a}, got {x.size(a)} of shape {tuple(x.shape)}")
    return taeda.squeeze(x, axes)


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """``x`` in reverse order along ``axis``, or along all."""
    _need_axis(x, axis)
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return taeda.flip(x, axes)


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """``x`` moved on by ``shift`` along ``axis``, what leaves one end coming in at the other."""
    _need_axis(x, axis)
    if isinstance(shift, int) and isinstance(axis, tuple):
        shift = (shift,) * len(axis)
    if axis == ():
        return x.clone()
    if axis is not None:
        for a in axis if isinstance(axis, tuple) else (axis,):
            x.size(a)  # raises where there is no such dimension
    return taeda.roll(x, shift, axis)


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """``x`` with dimensions moved to other places."""
    return taeda.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """``x`` with its dimensions in another order."""
    return taeda.permute(x, axes)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two dimensions exchanged.

    Raises:
        ValueError: ``x`` has fewer than two.
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: expected at least two dimensions, got {x.ndim}")
    return taeda.transpose(x, -1, -2)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """``x`` in another shape: a view where that is possible, unless ``copy``.

    Raises:
        ValueError: ``copy`` is false and no view has that shape.
    """
    if copy:
        return taeda.reshape(x.clone(), shape)
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(f"reshape: a copy is needed for shape {tuple(shape)}, and copy=False") from error
    return taeda.reshape(x, shape)


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element, or each slice along ``axis``, ``repeats`` times in place."""
    _need_axis(x, axis)
    if axis is None:
        x, axis = x.reshape(-1), 0
    if isinstance(repeats, Tensor):
        repeats = _need_indices("repeat", repeats)
    return taeda.repeat_interleave(x, repeats, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The whole of ``x`` side by side."""
    return taeda.tile(x, repetitions)


# ---- picks -----------------------------------------------------------------------------------------------------------


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices of ``x`` along ``axis`` at ``indices``, of which negative ones count from the end."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: an array of {x.ndim} dimensions needs an axis")
        axis = 0
    axis = axis + x.ndim if axis < 0 else axis
    flat, size = _need_indices("take", indices).reshape(-1), x.size(axis)
    # one that is too low stays as it is, for the error to name it
    picked = taeda.index_select(x, axis, taeda.where((flat < 0) & (flat >= -size), flat + size, flat))
    return picked if indices.ndim == 1 else picked.reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1 :])


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The element of each line of ``x`` along ``axis`` that ``indices`` says."""
    return taeda.take_along_dim(x, _need_indices("take_along_axis", indices), axis)


# ---- order and sets --------------------------------------------------------------------------------------------------


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """``x`` in order along ``axis``."""
    _need_axis(x, axis)
    return taeda.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that put ``x`` in order along ``axis``."""
    _need_axis(x, axis)
    return taeda.argsort(x, dim=axis, descending=descending, stable=stable)


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements in order, where each is first, which of them each element is, and how often it comes.

    NaN equals nothing, itself included.
    """
    values, inverse, counts = _unique(x)
    first = taeda.full(values.shape, x.numel(), dtype=taeda.int64)
    first = first.scatter_reduce(0, inverse.reshape(-1), taeda.arange(x.numel()), "amin")
    return UniqueAll(values, first, inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements in order, and how often each comes."""
    values, _, counts = _unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements in order, and which of them each element is."""
    values, inverse, _ = _unique(x)
    return UniqueInverse(values, inverse)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements in order."""
    return _unique(x)[0] if x.dtype.is_complex else taeda.unique(x)


def _unique(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct elements, inverse indices and counts; complex numbers in order of their real, then their imaginary
    parts."""
    if x.dtype.is_complex:
        pairs = taeda.view_as_real(x.reshape(-1)) + 0.0  # no zero has a sign afterwards
        values, inverse, counts = taeda.unique(pairs, return_inverse=True, return_counts=True, dim=0)
        values = taeda.view_as_complex(values)
    else:
        values, inverse, counts = taeda.unique(x, return_inverse=True, return_counts=True)
    return values, inverse.reshape(x.shape), counts


# ---- products --------------------------------------------------------------------------------------------------------


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product of the last two dimensions; see :func:`taeda.matmul`."""
    return taeda.matmul(*_promoted("matmul", x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over ``axes``: how many last and first ones, or two sequences of them."""
    return taeda.tensordot(*_promoted("tensordot", x1, x2), dims=axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum of ``conj(x1) * x2`` along ``axis``, which counts from the end of the broadcast shape.

    Raises:
        ValueError: the arrays differ in size along ``axis``.
    """
    first, second = _promoted("vecdot", x1, x2)
    if first.shape[axis] != second.shape[axis]:
        raise ValueError(f"vecdot: sizes along axis {axis} differ: {tuple(first.shape)} and {tuple(second.shape)}")
    first, second = taeda.broadcast_tensors(moveaxis(first, axis, -1), moveaxis(second, axis, -1))
    return taeda.matmul(taeda.conj(first).unsqueeze(-2), second.unsqueeze(-1)).squeeze(-1).squeeze(-1)


__all__ = _public(globals())
