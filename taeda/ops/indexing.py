"""Indexing with tensors, lists and masks: ``x[index]``, ``x[index] = value``, and the ops that they come down to.

Ints, slices, ``None`` and ``...`` alone make a view in the core and never get here.
"""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import HELPERS, Tensor
from .._core import indexing as core_indexing
from .._core import tensor as core
from .._core.exchange import tensor as make_tensor
from ..kernels import scalar as s
from .table import composite, pointwise, primitive
from .views import broadcast_shapes, reshape, sum_to_size, unsqueeze

_INT = ("int64", "int32", "int16", "int8")
_MASK = ("bool", "uint8")


# ---- from an index to a view and tensors -----------------------------------------------------------------------------


def _is_sequence(x: Any) -> bool:
    return isinstance(x, (list, tuple, range)) or (hasattr(x, "__array__") and not isinstance(x, Tensor))


def _as_tuple(index: Any) -> tuple:
    """A list that holds more than numbers is taken for a tuple, as PyTorch does."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, list) and len(index) < 32:
        for item in index:
            if item is None or item is Ellipsis or isinstance(item, (slice, Tensor, list, tuple)):
                return tuple(index)
    return (index,)


def _index_tensor(x: Any) -> Tensor:
    """A list, an array or a tensor as a tensor of integers or a mask."""
    if not isinstance(x, Tensor):
        empty = isinstance(x, (list, tuple)) and not x
        x = _core.empty((0,), _core.int64) if empty else make_tensor(x)
        if x.numel() == 0 and x.is_floating_point():
            x = _core.empty(x.shape, _core.int64)
    if x.dtype.name not in _INT and x.dtype.name not in _MASK:
        raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, got {x.dtype}")
    return x


def _bound(x: Any) -> Any:
    return x if x is None or isinstance(x, int) else x.__index__()


def split_index(t: Tensor, index: Any) -> tuple[Tensor, list[Tensor | None]]:
    """The basic part of an index applied as a view, and for each dimension of that the tensor that indexes it, or None.

    Raises:
        IndexError: too many indices, or one that is neither int, slice, ``...``, None, bool, tensor, array nor list.
    """
    items = _as_tuple(index)
    basic: list[Any] = []  # the index of the view
    places: list[Tensor | None] = []  # per dimension of the view
    used = 0
    ellipsis = -1
    for item in items:
        if item is None:
            basic.append(None)
            places.append(None)
        elif item is Ellipsis:
            if ellipsis >= 0:
                raise IndexError("an index can only have a single ellipsis ('...')")
            ellipsis = len(basic)
            basic.append(Ellipsis)
            places.append(None)  # stands for all the dimensions it covers
        elif isinstance(item, slice):
            basic.append(slice(_bound(item.start), _bound(item.stop), _bound(item.step)))
            places.append(None)
            used += 1
        elif isinstance(item, bool) or (isinstance(item, Tensor) and item.dim() == 0 and item.dtype.name in _MASK):
            basic.append(None)  # a new dimension of size 1, kept or dropped
            places.append(_one_mask(bool(item)))
        elif isinstance(item, int) or (isinstance(item, Tensor) and item.dim() == 0 and item.dtype.name in _INT):
            basic.append(int(item))
            used += 1
        elif isinstance(item, Tensor) or _is_sequence(item):
            item = _index_tensor(item)
            n = item.dim() if item.dtype.name in _MASK else 1
            if item.dim() == 0:
                basic.append(int(item))
                used += 1
                continue
            basic.extend([slice(None)] * n)
            places.append(item)
            places.extend([_COVERED] * (n - 1))
            used += n
        elif isinstance(item, str):
            raise TypeError(f"a tensor cannot be indexed with the string {item!r}")
        elif hasattr(item, "__index__"):
            basic.append(item.__index__())
            used += 1
        else:
            raise IndexError(
                f"only integers, slices (`:`), ellipsis (`...`), None and long or byte tensors are valid indices "
                f"(got {type(item).__name__})"
            )
    if used > t.dim():
        raise IndexError(f"too many indices for tensor of dimension {t.dim()}")
    view = t if _is_trivial(basic) else t[tuple(basic)]
    if ellipsis >= 0:
        at = sum(1 for item in basic[:ellipsis] if not isinstance(item, int))
        covered = t.dim() - used
        places[at : at + 1] = [None] * covered
    return view, places


#: Stands for the further dimensions of a mask.
_COVERED: Any = object()


def _is_trivial(basic: list) -> bool:
    return all(item is Ellipsis or (isinstance(item, slice) and item == slice(None)) for item in basic)


def _one_mask(value: bool) -> Tensor:
    mask = _core.empty((1,), _core.bool_)
    core.zero(mask)
    if value:
        mask.fill_(True)
    return mask


def _expanded(shape, indices) -> list[Tensor | None]:
    """One tensor of integers per dimension: a mask becomes the positions of what is true."""
    result: list[Tensor | None] = []
    for item in indices:
        if item is _COVERED:
            continue
        if item is None or item.dtype.name not in _MASK:
            result.append(item)
            continue
        at, n = len(result), item.dim()
        if tuple(shape[at : at + n]) != tuple(item.shape):
            bad = next((d for d in range(n) if at + d >= len(shape) or shape[at + d] != item.shape[d]), 0)
            raise IndexError(
                f"The shape of the mask {list(item.shape)} at index {bad} does not match the shape of the indexed tensor "
                f"{list(shape)} at index {at + bad}"
            )
        positions = core_indexing.true_positions(item if item.dtype is _core.bool_ else item != 0)
        if n == 1:
            result.append(core.view_reshape(positions, (positions.shape[0],)))
        else:
            result.extend(core.view_unbind(positions, 1))
    return result


def _plan(input: Tensor, indices) -> tuple[Tensor, int, list[Tensor], bool]:
    """The input with its indexed dimensions side by side from ``first``, and the indices in one shape.

    The last of the result says whether dimensions were moved to the front.
    """
    found = _expanded(input.shape, indices)
    if len(found) > input.dim():
        raise IndexError(f"too many indices for tensor of dimension {input.dim()} (got {len(found)})")
    dims = [d for d, item in enumerate(found) if item is not None]
    tensors: list[Tensor] = [found[d] for d in dims]  # type: ignore[misc]
    if not tensors:
        return input, 0, [], False
    if any(x.shape != tensors[0].shape for x in tensors):
        try:
            shape = broadcast_shapes(*[x.shape for x in tensors])
        except RuntimeError:
            raise IndexError(
                "shape mismatch: indexing tensors could not be broadcast together with shapes "
                + ", ".join(str(list(x.shape)) for x in tensors)
            ) from None
        tensors = [core.view_expand(x, shape) for x in tensors]
    first = dims[0]
    if dims[-1] - first + 1 == len(dims):
        return input, first, tensors, False
    order = (*dims, *(d for d in range(input.dim()) if d not in dims))
    return core.view_permute(input, order), 0, tensors, True


# ---- reading and writing ---------------------------------------------------------------------------------------------


@primitive(method=False, out=False)
def index(input, indices):
    """The elements at ``indices``: one tensor of integers, mask or None per dimension; what advanced indexing comes to.

    The dimensions of the indices, broadcast together, take the place of the indexed dimensions where these are next to
    each other, else they come first.
    """
    if len(indices) == 1 and indices[0] is not None and indices[0].dtype is _core.int64 and input.dim():
        return core_indexing.index_get(input, [indices[0]], 0)
    view, first, tensors, _ = _plan(input, indices)
    if not tensors:
        return input.clone()
    return core_indexing.index_get(view, tensors, first)


def _index_backward(g, input_shape, indices):
    return index_put_(g.new_zeros(input_shape), indices, g, True)


index.vjp(input=lambda g, input_shape, indices: _index_backward(g, input_shape, indices))


def _fitting(values: Tensor, shape, name: str) -> Tensor:
    try:
        return core.view_expand(values, shape)
    except RuntimeError:
        raise RuntimeError(
            f"{name}: shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
            f"shape {list(shape)}"
        ) from None


@primitive(mutates=True)
def index_put(input, indices, values, accumulate=False):
    """Write ``values`` at ``indices``, or add them there.

    Args:
        indices: a tuple with one tensor of integers, mask or None per dimension.
        values: broadcast to the shape of ``input[indices]``, of the dtype of ``input``.
        accumulate: add; of several values for one place all count, in their order. Otherwise the last is what stays.

    Raises:
        IndexError: an index is out of range (nothing is written).
        RuntimeError: the dtypes differ, or the values do not broadcast.
    """
    if values.dtype is not input.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {input.dtype} for the destination and "
            f"{values.dtype} for the source."
        )
    view, first, tensors, _ = _plan(input, indices)
    if not tensors:
        values = _fitting(values, input.shape, "index_put_")
        _core.copy_tensor(input, input + values if accumulate else values)
        return
    shape = (*view.shape[:first], *tensors[0].shape, *view.shape[first + len(tensors) :])
    values = _fitting(_separate(values, input), shape, "index_put_")
    core_indexing.index_set(view, tensors, first, values, 2 if accumulate else 1)


def _separate(values: Tensor, target: Tensor) -> Tensor:
    if values.untyped_storage() is not target.untyped_storage():
        return values
    own = _core.empty(values.shape, values.dtype)
    _core.copy_tensor(own, values)
    return own


index_put.vjp(
    input=lambda g, indices, accumulate: g if accumulate else index_put(g, indices, g.new_zeros(())),
    values=lambda g, indices, values_shape: sum_to_size(index(g, indices), values_shape),
)
index_put_ = index_put.traits["inplace"]


def getitem(t: Tensor, item: Any) -> Tensor:
    """``t[item]`` where ``item`` holds tensors, lists, arrays or bools."""
    if type(item) is Tensor and item.dim() and item.dtype is _core.int64 and t.dim():
        return index(t, (item,))
    view, indices = split_index(t, item)
    mask = indices[0] if indices else None
    if mask is not None and mask.dtype is _core.bool_ and mask.shape == view.shape:
        return masked_select(view, mask)
    if all(i is None for i in indices):
        return view
    return index(view, tuple(i for i in indices if i is not _COVERED))


def setitem(t: Tensor, item: Any, value: Any) -> None:
    """``t[item] = value`` where ``item`` holds tensors, lists, arrays or bools."""
    view, indices = split_index(t, item)
    kept = tuple(i for i in indices if i is not _COVERED)
    mask = indices[0] if indices else None
    plain = isinstance(value, (bool, int, float, complex))
    if all(i is None for i in kept):
        HELPERS["assign"](view, value)
        return
    if mask is not None and mask.dtype is _core.bool_ and mask.shape == view.shape:
        if plain or (isinstance(value, Tensor) and value.dim() == 0):
            view.masked_fill_(mask, value)
            return
    if not isinstance(value, Tensor):
        value = make_tensor(value, dtype=t.dtype)
    elif value.dtype is not t.dtype:
        value = value.to(t.dtype)
    lead = value.dim() - _result_dims(view, kept)
    if lead > 0 and all(n == 1 for n in value.shape[:lead]):
        value = reshape(value, value.shape[lead:])
    index_put_(view, kept, value)


def _result_dims(view: Tensor, indices) -> int:
    """Dimensions of ``view[indices]``."""
    used = sum(i.dim() if i.dtype.name in _MASK else 1 for i in indices if i is not None)
    inner = max((1 if i.dtype.name in _MASK else i.dim() for i in indices if i is not None), default=0)
    return view.dim() - used + inner


HELPERS.update(getitem=getitem, setitem=setitem)


# ---- flat ------------------------------------------------------------------------------------------------------------


def _check_long(x: Tensor, name: str) -> None:
    if x.dtype is not _core.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {x.dtype}")


def _out_of_range(x: Tensor, size: int) -> IndexError:
    bad = next(i for i in x.reshape(-1).tolist() if not -size <= i < size)
    return IndexError(f"out of range: tried to access index {bad} on a tensor of {size} elements.")


@primitive()
def take(input, index):
    """The elements of ``input``, taken as one dimension, at ``index``; the result has the shape of ``index``.

    Raises:
        IndexError: an index is out of range.
    """
    _check_long(index, "take")
    n = input.numel()
    if not core_indexing.check_index(index, n, True):
        if n == 0:
            raise IndexError("take(): tried to take from an empty tensor")
        raise _out_of_range(index, n)
    flat = core.view_reshape(input, (n,))
    if index.numel() == 0:
        return _core.empty(index.shape, input.dtype)
    return core_indexing.index_get(flat, [index], 0)


take.vjp(input=lambda g, input_shape, index: g.new_zeros(input_shape).put(index, g, True))


@primitive(mutates=True)
def put(input, index, source, accumulate=False):
    """Write ``source`` at the positions ``index`` of ``input`` taken as one dimension, or add it there.

    Raises:
        IndexError: an index is out of range, or ``source`` and ``index`` differ in number of elements.
    """
    _check_long(index, "put_")
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {input.dtype} and "
            f"source.dtype = {source.dtype}"
        )
    if index.numel() != source.numel():
        raise IndexError(
            f"put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.numel()}, index.numel() = {index.numel()}"
        )
    n = input.numel()
    if not core_indexing.check_index(index, n, True):
        raise _out_of_range(index, n)
    if index.numel() == 0:
        return
    flat = core.view_reshape(input, (n,))
    values = core.view_reshape(_separate(source, input), (index.numel(),))
    core_indexing.index_set(flat, [core.view_reshape(index, (index.numel(),))], 0, values, 2 if accumulate else 1)
    if not input.is_contiguous() and flat.untyped_storage() is not input.untyped_storage():
        _core.copy_tensor(input, core.view_reshape(flat, input.shape))


put.vjp(
    input=lambda g, index, accumulate: g if accumulate else g.put(index, g.new_zeros(index.shape)),
    source=lambda g, index, source_shape: reshape(take(g, index), source_shape),
)


# ---- masks -----------------------------------------------------------------------------------------------------------


def _choose(mask, a, b):
    if isinstance(a, s.Complex):
        return s.Complex(s.select(mask, a.re, b.re), s.select(mask, a.im, b.im))
    return s.select(mask, a, b)


def _true(x):
    return x.re != 0 if isinstance(x, s.Complex) else x != 0


def _require_mask(dtypes):
    if dtypes[1] != "bool":
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {dtypes[1]}")


@pointwise(operands=3, promote_from=(0,), require=_require_mask)
def masked_fill(input, mask, value):
    """``value`` where ``mask`` is true, ``input`` elsewhere.

    Args:
        mask: bool, broadcast with ``input``.
        value: a number or a tensor of no dimensions.
    """
    return _choose(_true(mask), value, input)


masked_fill.vjp(
    input=lambda g, mask: masked_fill(g, mask, 0),
    value=lambda g, mask: masked_fill(g, mask.logical_not(), 0).sum(),
)


def _require_condition(dtypes):
    if dtypes[0] != "bool":
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {dtypes[0]}")


@pointwise(operands=3, promote_from=(1, 2), require=_require_condition, method=False, inplace=False)
def where_select(condition, input, other):
    """``input`` where ``condition`` is true, ``other`` elsewhere: :func:`where` with all its arguments."""
    return _choose(_true(condition), input, other)


where_select.vjp(
    input=lambda g, condition: where_select(condition, g, 0),
    other=lambda g, condition: where_select(condition, 0, g),
)


@composite(method=False)
def where(condition, input=None, other=None, *, out=None):
    """``input`` where ``condition`` is true, ``other`` elsewhere; or, of a condition alone, where it is true.

    Args:
        condition: bool.
        input, other: tensors or numbers, which promote to a common dtype; all three broadcast.

    Returns:
        A tensor, or for a condition alone a tuple of index tensors: ``nonzero(condition, as_tuple=True)``.
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if not isinstance(condition, Tensor):
        raise TypeError(f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}")
    return where_select(condition, input, other) if out is None else where_select(condition, input, other, out=out)


_core.install("where", lambda self, condition, other: where(condition, self, other))


def _as_mask(input: Tensor) -> Tensor:
    return input if input.dtype is _core.bool_ else input.ne(0)


@primitive(method=False)
def argwhere(input):
    """Coordinates of the elements that are not zero, one row each, in row-major order."""
    return core_indexing.true_positions(_as_mask(input))


_core.install("argwhere", argwhere)


@composite()
def nonzero(input, *, as_tuple=False, out=None):
    """Where ``input`` is not zero.

    Returns:
        An int64 matrix with the coordinates of one element in each row, in row-major order; with ``as_tuple`` a tuple of
        one vector per dimension, fit for indexing.
    """
    if not as_tuple:
        return argwhere(input) if out is None else argwhere(input, out=out)
    found = argwhere(unsqueeze(input, 0) if input.dim() == 0 else input)
    return tuple(x.contiguous() for x in found.unbind(1))


@composite()
def nonzero_numpy(input):
    """``nonzero(input, as_tuple=True)``."""
    return nonzero(input, as_tuple=True)


def _together(input: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    if input.shape == mask.shape:
        return input, mask
    shape = broadcast_shapes(input.shape, mask.shape)
    return core.view_expand(input, shape), core.view_expand(mask, shape)


@primitive()
def masked_select(input, mask):
    """The elements of ``input`` where ``mask`` is true, in row-major order, as one dimension; the two broadcast."""
    if mask.dtype is not _core.bool_:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask, got {mask.dtype}")
    return core_indexing.mask_get(*_together(input, mask))


def _masked_select_backward(g, input_shape, mask):
    shape = broadcast_shapes(input_shape, mask.shape)
    return sum_to_size(masked_scatter(g.new_zeros(shape), mask, g), input_shape)


masked_select.vjp(input=_masked_select_backward)


@primitive(mutates=True)
def masked_scatter(input, mask, source):
    """Write the elements of ``source``, in order, where ``mask`` (broadcast to ``input``) is true.

    Raises:
        RuntimeError: ``source`` has too few elements, or another dtype.
    """
    if mask.dtype is not _core.bool_:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {input.dtype} and {source.dtype}"
        )
    if not core_indexing.mask_set(input, core.view_expand(mask, input.shape), _separate(source, input)):
        raise RuntimeError("masked_scatter: Number of elements of source < number of ones in mask")


def _masked_scatter_source(g, mask, source_shape):
    chosen = masked_select(g, mask)
    n = 1
    for size in source_shape:
        n *= size
    rest = n - chosen.shape[0]
    if rest:
        from .joining import cat

        chosen = cat((chosen, chosen.new_zeros(rest)), 0)
    return reshape(chosen, source_shape)


masked_scatter.vjp(input=lambda g, mask: masked_fill(g, mask, 0), source=_masked_scatter_source)
