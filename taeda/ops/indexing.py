"""Indexing with tensors, lists and masks: ``x[index]``, ``x[index] = value``, and the ops that they use.

Ints, slices, ``None`` and ``...`` alone make a view in the core and never get here.
"""

from __future__ import annotations

import math
import warnings

from .. import _core
from .._core import Tensor, selection
from .._core import indexing as core_indexing
from .._core import tensor as core
from .._core.callbacks import callbacks
from .._core.exchange import tensor as make_tensor
from .._warn import warn_once
from ..kernels import scalar as s
from .copies import _assign
from .joining import cat
from .table import OPS, composite, expect_tensors, pointwise, primitive
from .views import blank, broadcast_shapes, reshape, sum_to_size, unsqueeze

# ---- reading and writing ---------------------------------------------------------------------------------------------


@primitive(
    selection.index, method=False, out=False, meta="mixed", canonical=True, moves=True,
    native_call=lambda input, indices: ("index.Tensor", (input, list(indices))),
)  # fmt: skip
def index(input, indices):
    """The elements at ``indices``: what ``input[...]`` comes to where there are tensors among the indices.

    The dimensions of the indices, broadcast together, take the place of the indexed dimensions where these are next to
    each other; otherwise they come first.

    Args:
        indices: one tensor of integers, mask or None per dimension.
    Returns:
        A copy, in the dtype of ``input``.
    Raises:
        IndexError: an index is out of range, or there are too many.
    Examples:
        >>> x = taeda.tensor([[1, 2], [3, 4], [5, 6]])
        >>> x.index((taeda.tensor([2, 0]), taeda.tensor([0, 1])))
        tensor([5, 2])
    """


index.vjp(input=lambda g, input_shape, indices: index_put_(g.new_zeros(input_shape), indices, g, True))


@primitive(
    selection.index_put,
    mutates=True,
    one_value="deprecated",
    samples=lambda m: [
        ((m(3, 4), (m.index(1, high=3),), m(2, 4)[:1]), {}),
        ((m(3, 4), (m.index(2, 1, high=3), m.index(3, high=4)), m(3), True), {}),
    ],
    canonical=True,
    keeps_strides=True,
)
def index_put(input, indices, values: Tensor, accumulate=False):
    """A copy of ``input`` with ``values`` written at ``indices``, or added there: ``input[indices] = values``.

    Args:
        indices: a tuple with one tensor of integers, mask or None per dimension.
        values: a tensor that broadcasts to the shape of ``input[indices]``, of the dtype of ``input``.
        accumulate: add; of several values for one place all count, in their order. Otherwise the last is what stays.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        IndexError: an index is out of range (nothing is written).
        RuntimeError: the dtypes differ, or the values do not broadcast.
    Examples:
        >>> words = taeda.tensor([1, 0, 1, 1])
        >>> taeda.zeros(3).index_put((words,), taeda.tensor(1.0), accumulate=True)  # counts
        tensor([1., 3., 0.])
    """


def _put_values_gradient(g, indices, values_shape):
    if g.is_meta:  # how many a mask chooses depends on values
        return g.new_empty(values_shape)
    return sum_to_size(index(g, indices), values_shape)


index_put.vjp(
    input=lambda g, indices, accumulate: g if accumulate else index_put(g, indices, g.new_zeros(())),
    values=_put_values_gradient,
)
index_put_ = index_put.traits["inplace"]
callbacks.getitem = selection.getitem
callbacks.setitem = selection.setitem


def _explain_mask(mask: Tensor, input: Tensor, at: int) -> None:
    shape = input.shape
    bad = next((d for d in range(mask.dim()) if at + d >= len(shape) or shape[at + d] != mask.shape[d]), 0)
    raise IndexError(
        f"The shape of the mask {list(mask.shape)} at index {bad} does not match the shape of the indexed tensor "
        f"{list(shape)} at index {at + bad}"
    )


def _explain_values(values: Tensor, shape: list[int]) -> None:
    raise RuntimeError(
        f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape "
        f"{shape}"
    )


# ---- flat ------------------------------------------------------------------------------------------------------------


def _check_long(x: Tensor, name: str) -> None:
    if x.dtype is not _core.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {x.dtype}")


def _explain_take(index: Tensor, input: Tensor) -> None:
    raise _out_of_range(index, input.numel()) from None


def _out_of_range(x: Tensor, size: int) -> IndexError:
    bad = next(i for i in x.reshape(-1).tolist() if not -size <= i < size)
    return IndexError(f"out of range: tried to access index {bad} on a tensor of {size} elements.")


@primitive(
    selection.take, out="same", out_apart=("input", "index"),
    samples=lambda m: [((m(3, 4), m.index(2, 5, high=12)), {})], meta="mixed",
)  # fmt: skip
def take(input, index: Tensor):
    """The elements of ``input``, taken as one dimension, at ``index``.

    Args:
        index: ``int64``, any sizes; negative ones count from the end.
    Returns:
        The sizes of ``index``, in the dtype of ``input``.
    Raises:
        IndexError: an index is out of range.
    Examples:
        >>> taeda.take(taeda.tensor([[4, 3], [2, 1]]), taeda.tensor([0, 3]))
        tensor([4, 1])
    """


take.traits["lowering"] = lambda input, index: OPS["index"](reshape(input, (-1,)), (index,))
take.vjp(input=lambda g, input_shape, index: blank(g, input_shape).put(index, g, True))


@primitive(mutates=True, samples=lambda m: [((m(3, 4), m.index(5, high=12), m(5), True), {})], keeps_strides=True)
def put(input, index: Tensor, source, accumulate=False):
    """A copy of ``input`` with ``source`` written, or added, at the positions ``index`` of ``input`` taken as one
    dimension.

    Args:
        index: ``int64``, any sizes; negative ones count from the end.
        source: as many elements as ``index``, of the dtype of ``input``.
        accumulate: add to what is there, all values for one place. Otherwise the last is what stays.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        IndexError: an index is out of range, or ``source`` and ``index`` differ in number of elements.
    Examples:
        >>> taeda.put(taeda.zeros(2, 2), taeda.tensor([1, 2]), taeda.tensor([5.0, 6.0]))
        tensor([[0., 5.],
                [6., 0.]])
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
    selection.refuse_shared(index, input)
    values = core.view_reshape(selection.unaliased(source, input), (index.numel(),))
    core_indexing.index_set(flat, [core.view_reshape(index, (index.numel(),))], 0, values, 2 if accumulate else 1)
    if not input.is_contiguous() and flat.untyped_storage() is not input.untyped_storage():
        _core.copy_tensor(input, core.view_reshape(flat, input.shape))


put.traits["lowering"] = lambda input, index, source, accumulate: reshape(
    reshape(input, (-1,)).index_put((reshape(index, (-1,)),), reshape(source, (-1,)), accumulate), input.shape
)
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


def _check_fill(input, mask, value):
    if isinstance(value, Tensor) and value.dim():
        raise RuntimeError(
            f"masked_fill only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension(s)."
        )
    if isinstance(value, Tensor) and isinstance(input, Tensor):
        selection.check_value(value, input)


@pointwise(
    operands=3, promote_from=(0,), require=_require_mask, check=_check_fill, one_value="deprecated", fits=True,
    row_major=True,
)  # fmt: skip
def masked_fill(input, mask, value):
    """``value`` where ``mask`` is true, ``input`` elsewhere.

    Args:
        input: a tensor of any sizes.
        mask: ``bool``; broadcasts with ``input``.
        value: a number, or a tensor without dimensions.
    Examples:
        >>> scores = taeda.tensor([1.0, 2.0, 3.0])
        >>> padding = taeda.tensor([False, False, True])
        >>> scores.masked_fill(padding, -math.inf)
        tensor([1., 2., -inf])
    """
    return _choose(_true(mask), value, input)


masked_fill.traits["lowering"] = lambda input, mask, value: where(mask, value, input)


masked_fill.vjp(
    input=lambda g, mask: masked_fill(g, mask, 0), value=lambda g, mask: masked_fill(g, mask.logical_not(), 0).sum()
)


def _require_condition(dtypes):
    if dtypes[0] != "bool":
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {dtypes[0]}")


@pointwise(
    operands=3, promote_from=(1, 2), require=_require_condition, method=False, inplace=False, node="Where", fits=True,
    rounds="all", float8=True,
)  # fmt: skip
def where_select(condition, input, other):
    """``input`` where ``condition`` is true, ``other`` elsewhere: :func:`where` with all its arguments."""
    return _choose(_true(condition), input, other)


where_select.traits["native_call"] = lambda *given: ("where.self", given)
where_select.traits["lowering"] = lambda condition, input, other: where(condition, input, other)
where_select.vjp(
    input=lambda g, condition: where_select(condition, g, 0), other=lambda g, condition: where_select(condition, 0, g)
)


@composite(method=False, pointwise=True, canonical=True, native_call=where_select.traits["native_call"])
def where(condition, input=None, other=None, *, out=None):
    """``input`` where ``condition`` is true, ``other`` elsewhere; of a condition alone, the places where it is true.

    Args:
        condition: ``bool``, or ``uint8`` (deprecated).
        input: a tensor or a number.
        other: a tensor or a number.
    Returns:
        The sizes to which all three broadcast, in the dtype to which ``input`` and ``other`` promote. Of a condition
        alone a tuple of index tensors, one per dimension: ``nonzero(condition, as_tuple=True)``.
    Raises:
        RuntimeError: the inputs do not broadcast, or ``condition`` is not of bools.
    Examples:
        >>> x = taeda.tensor([-2.0, 0.0, 3.0])
        >>> taeda.where(x > 0, x, 0.1 * x)
        tensor([-0.2000,  0.0000,  3.0000])
        >>> taeda.where(x > 0)
        (tensor([2]),)
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if not isinstance(condition, Tensor):
        expect_tensors("where", condition=condition)
    if condition.dtype is _core.uint8:
        warn_once(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead."
        )
        condition = condition.ne(0)
    if out is None:
        return where_select(condition, input, other)
    if out.dtype is not _core.result_type(input, other):
        raise RuntimeError(f"where(): Expected out type to be {_core.result_type(input, other)} but got {out.dtype}")
    return where_select(condition, input, other, out=out)


def _where(self, condition, other):
    """The elements of this tensor where ``condition`` is true, else those of ``other``.

    Args:
        condition: ``bool``.
        other: a tensor or a number; all three broadcast.
    Returns:
        The sizes to which all three broadcast, in the dtype to which this tensor and ``other`` promote.
    Examples:
        >>> x = taeda.tensor([-2.0, 3.0])
        >>> x.where(x > 0, 0.0)
        tensor([0., 3.])
    """
    return where(condition, self, other)


_where.__name__ = "where"
_core.install("where", _where)


@primitive(method=False, out="same", meta="values")
def argwhere(input):
    """The coordinates of the elements that are not zero.

    Returns:
        ``int64``, a matrix with a row per element that is not zero, in row-major order, and ``input.dim()`` columns.
    Examples:
        >>> taeda.argwhere(taeda.tensor([[0, 7], [8, 9]]))
        tensor([[0, 1],
                [1, 0],
                [1, 1]])
    """
    return core_indexing.true_positions(input if input.dtype is _core.bool_ else input.ne(0))


argwhere.traits["native_call"] = lambda input: ("nonzero.default", (input,))
_core.install("argwhere", argwhere)


@composite(meta="values", canonical=True)
def nonzero(input, *, as_tuple=False, out=None):
    """The indices of the elements that are not zero.

    Args:
        as_tuple: give one vector per dimension, fit for indexing, instead of a matrix.
    Returns:
        ``int64``, ``(elements, input.dim())``, the coordinates of one element in each row, in row-major order; with
        ``as_tuple`` a tuple of ``input.dim()`` vectors.
    Raises:
        RuntimeError: ``out`` is given with ``as_tuple``.
    Examples:
        >>> x = taeda.tensor([[0, 7], [8, 9]])
        >>> taeda.nonzero(x)
        tensor([[0, 1],
                [1, 0],
                [1, 1]])
        >>> x[taeda.nonzero(x, as_tuple=True)]
        tensor([7, 8, 9])
    """
    if as_tuple and out is not None:
        raise RuntimeError("nonzero(): argument 'out' is for the matrix of coordinates; leave as_tuple out")
    if not as_tuple:
        return argwhere(input) if out is None else argwhere(input, out=out)
    return argwhere(unsqueeze(input, 0) if input.dim() == 0 else input).unbind(1)


@composite(out="same", lowering=lambda input: NotImplemented)  # the result's sizes are known, its body's are not
def nonzero_static(input, *, size, fill_value=-1):
    """The first ``size`` rows of :func:`nonzero`, filled up where there are fewer: a result whose sizes are known
    beforehand.

    Args:
        size: how many rows.
        fill_value: what the missing rows hold.
    Returns:
        ``int64``, a matrix with ``size`` rows and ``input.dim()`` columns.
    Raises:
        RuntimeError: ``size`` is negative.
    Examples:
        >>> taeda.nonzero_static(taeda.tensor([0, 5, 6]), size=3)
        tensor([[ 1],
                [ 2],
                [-1]])
    """
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    # No size depends on the values, so that vmap can batch it: what is no hit, or too late a one, goes to a row behind.
    hit = (input != 0).reshape(-1)
    order = hit.cumsum(0)
    place = (order - 1).clamp(max=size).masked_fill(~hit, size)
    number = order.new_ones(order.shape).cumsum(0) - 1
    at = order.new_full((size + 1,), -1).scatter(0, place, number)[:size].unsqueeze(1)
    if not input.dim():
        return at[:, :0]
    steps = [max(1, math.prod(input.shape[d + 1 :])) for d in range(input.dim())]
    rows = cat([at // step % max(1, n) for step, n in zip(steps, input.shape, strict=True)], 1)
    return rows.masked_fill(at < 0, fill_value)


def _together(input: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    if core.same_shape(input, mask):
        return input, mask
    shape = broadcast_shapes(input.shape, mask.shape)
    return core.view_expand(input, shape), core.view_expand(mask, shape)


@primitive(
    selection.masked_select, out_apart=("input", "mask"), out="same",
    samples=lambda m: [((m(3, 4), m.mask(3, 4)), {}), ((m(3, 4), m.mask(2, 1, 4)), {})], node="Index", meta="values",
)  # fmt: skip
def masked_select(input, mask: Tensor):
    """The elements of ``input`` where ``mask`` is true, in row-major order: ``input[mask]``.

    Args:
        mask: ``bool``; broadcasts with ``input``.
    Returns:
        A vector, in the dtype of ``input``.
    Examples:
        >>> x = taeda.tensor([[1, -2], [-3, 4]])
        >>> taeda.masked_select(x, x > 0)
        tensor([1, 4])
    """


def _masked_select_backward(g, input_shape, mask):
    shape = broadcast_shapes(input_shape, mask.shape)
    return sum_to_size(masked_scatter(g.new_zeros(shape), mask, g), input_shape)


masked_select.traits["native_call"] = lambda input, mask: (
    ("index.Tensor", (input, [mask])) if core.same_shape(input, mask) else ("masked_select.default", (input, mask))
)
masked_select.vjp(input=_masked_select_backward)


@primitive(
    name="masked_scatter",
    mutates=True,
    samples=lambda m: [((m(3, 4), m.mask(3, 4), m(12)), {}), ((m(3, 4), m.mask(4), m(3, 4)), {})],
)
def _masked_scatter(input, mask, source):
    """Write the elements of ``source``, in order, where ``mask`` (broadcast to ``input``) is true."""
    if mask.dtype is not _core.bool_:
        if mask.dtype is _core.uint8:
            warnings.warn("masked_scatter_ received a mask of dtype uint8, which is deprecated; use bool", stacklevel=2)
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {input.dtype} and {source.dtype}"
        )
    # PyTorch reads what it has written where the two share memory
    source = source.clone() if source.untyped_storage() is input.untyped_storage() else source
    if not core_indexing.mask_set(input, core.view_expand(mask, input.shape), source):
        raise RuntimeError("masked_scatter: Number of elements of source < number of ones in mask")


def _masked_scatter_source(g, mask, source_shape):
    if g.is_meta:  # how many were chosen depends on values
        return g.new_empty(source_shape)
    chosen = masked_select(g, mask)
    n = 1
    for size in source_shape:
        n *= size
    rest = n - chosen.shape[0]
    if rest:
        chosen = cat((chosen, chosen.new_zeros(rest)), 0)
    return reshape(chosen, source_shape)


_masked_scatter.vjp(input=lambda g, mask: masked_fill(g, mask, 0), source=_masked_scatter_source)


@composite(canonical=True)
def masked_scatter(input, mask, source):
    """``input`` with the elements of ``source``, in order, where ``mask`` is true.

    Args:
        input: a tensor; broadcasts with ``mask``.
        mask: ``bool``.
        source: at least as many elements as ``mask`` has true ones, of the dtype of ``input``.
    Returns:
        The sizes to which ``input`` and ``mask`` broadcast.
    Raises:
        RuntimeError: ``source`` has too few elements, or another dtype.
    Examples:
        >>> mask = taeda.tensor([False, True, True])
        >>> taeda.zeros(3).masked_scatter(mask, taeda.tensor([5.0, 6.0, 7.0]))
        tensor([0., 5., 6.])
    """
    return _masked_scatter(*_broadcast(input, mask), source)


def _broadcast(input, mask):
    if core.same_shape(input, mask):
        return input, mask
    shape = broadcast_shapes(input.shape, mask.shape)
    return input.expand(shape), mask


selection.EXPLAIN.update(mask=_explain_mask, values=_explain_values, take=_explain_take, together=_together)
selection.OPS.update(
    index=index, index_put_=index_put_, masked_select=masked_select, masked_fill_=masked_fill.traits["inplace"],
    assign=_assign, tensor=make_tensor,
)  # fmt: skip
