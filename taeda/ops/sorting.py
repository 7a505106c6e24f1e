"""Sorting, and ops that need an order: largest, k-th, medians, modes, distinct values, search, counts."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor, ordering
from .._core import indexing as core_indexing
from .._core import tensor as core
from ..kernels import indexing as index_kernels
from ..kernels import sort as kernels
from ._choices import choice, picked, picked_one
from .copies import convert
from .creation import full
from .reduction import extent
from .table import composite, no_derivative, primitive
from .views import reshape

# ---- sorting ---------------------------------------------------------------------------------------------------------


@choice(ordering.sort, "sort", out_aligned=("input",), canonical=True)
def sort(input, dim=-1, descending=False, stable=None):
    """The elements in order along ``dim``, and where each was. Always stable: equal elements keep their order.

    Args:
        input: a tensor of any sizes, not complex.
        dim: the dimension. Default: the last.
        descending: largest first.
        stable: accepted; the order is stable in either case.
    Returns:
        ``(values, indices)``, named, of the sizes of ``input``; ``indices`` (``int64``) count along ``dim``. NaN counts
        as larger than everything.
    Raises:
        IndexError: there is no such dimension.
    Examples:
        >>> values, indices = taeda.sort(taeda.tensor([3, 1, 2]))
        >>> values, indices
        (tensor([1, 2, 3]), tensor([1, 2, 0]))
    """


sort.vjp(input=picked)


@composite(out="same")
def argsort(input, dim=-1, descending=False, stable=False):
    """The indices that bring ``dim`` into order: ``input[argsort(input)]`` is sorted. See :func:`sort`.
    The rest as of :func:`sort`.

    Returns:
        ``int64``, of the sizes of ``input``.

    Raises:
        IndexError: there is no such dimension.
        RuntimeError: ``input`` is complex.

    Examples:
        >>> taeda.argsort(taeda.tensor([30, 10, 20]), descending=True)
        tensor([0, 2, 1])
    """
    return sort(input, dim, descending)[1]


@composite(out="same", out_aligned=("input",))
def msort(input):
    """The elements in ascending order along dimension 0.

    Args:
        input: a tensor of any sizes, not complex.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: ``input`` is complex.
    Examples:
        >>> taeda.msort(taeda.tensor([[3, 1], [2, 5]]))
        tensor([[2, 1],
                [3, 5]])
    """
    return sort(input, 0)[0]


@choice(ordering.topk, "topk", out_aligned=("input",), canonical=True)
def topk(input, k, dim=-1, largest=True, sorted=True):
    """The ``k`` largest (or smallest) elements along ``dim``, in order, and where they are; of equal ones the first
    come first. Arguments as of :func:`sort`.

    Args:
        k: how many.
        largest: the largest ones, else the smallest.
        sorted: accepted; the result is sorted in either case.
    Returns:
        ``(values, indices)``, named: the sizes of ``input`` with ``k`` in ``dim``; ``indices`` are ``int64``.
    Raises:
        RuntimeError: ``k`` is negative or more than there are.
    Examples:
        >>> scores = taeda.tensor([0.125, 0.5, 0.25, 0.75])
        >>> values, classes = taeda.topk(scores, 2)
        >>> values, classes
        (tensor([0.7500, 0.5000]), tensor([3, 1]))
    """


topk.vjp(input=picked)


# ---- one of each row -------------------------------------------------------------------------------------------------


@choice(ordering.kthvalue, "kthvalue", out_apart=("input",))
def kthvalue(input, k, dim=-1, keepdim=False):
    """The ``k``-th smallest element along ``dim``, and where it is. Arguments as of :func:`sort`.

    Args:
        k: which one, counted from 1.
    Returns:
        ``(values, indices)``, named: each is ``input`` without the dimension ``dim``.
    Raises:
        RuntimeError: ``k`` is out of range.
    Examples:
        >>> value, index = taeda.kthvalue(taeda.tensor([30, 10, 20]), 2)
        >>> value, index
        (tensor(20), tensor(2))
    """


kthvalue.vjp(input=picked_one)


@choice(ordering.median, "median", method=False, out=False)
def median_dim(input, dim, keepdim=False):
    """The median along a dimension and its index; see :func:`median`."""


@choice(ordering.nanmedian, "nanmedian", method=False, out=False)
def nanmedian_dim(input, dim, keepdim=False):
    """The median along a dimension, without NaN, and its index."""


median_dim.vjp(input=picked_one)
nanmedian_dim.vjp(input=picked_one)


@primitive(ordering.median_all, method=False, out=False)
def median_all(input):
    """The median of all elements; see :func:`median`."""


median_all.traits["native_call"] = lambda x: ("median.default", (x,))


@primitive(ordering.nanmedian_all, method=False, out=False)
def nanmedian_all(input):
    """The median of all elements that are not NaN."""


nanmedian_all.traits["native_call"] = lambda x: ("nanmedian.default", (x,))


def _shared(g, input, out):
    """The gradient of one value, shared by all elements that have it."""
    same = (input == out) | ((input != input) & (out != out))
    return same.to(g.dtype) * (g / same.sum().to(g.dtype))


median_all.vjp(input=_shared)
nanmedian_all.vjp(input=_shared)


@composite(out="same")
def median(input, dim=None, keepdim=False):
    """The element in the middle of the order; of an even number of elements the lower of the two. NaN where there is
    one.

    Args:
        input: a tensor of any sizes, not complex.
        dim: one dimension. Default: all elements.
    Returns:
        A tensor without dimensions, NaN where there are no elements; with ``dim`` ``(values, indices)``, named, each
        ``input`` without that dimension.
    Raises:
        IndexError: the dimension has no elements, or there is no such dimension.
    Examples:
        >>> taeda.median(taeda.tensor([1.0, 100.0, 3.0, 2.0]))
        tensor(2.)
        >>> taeda.median(taeda.tensor([[3, 1, 2], [9, 7, 8]]), 1).values
        tensor([2, 8])
    """
    return median_all(input) if dim is None else median_dim(input, dim, keepdim)


@composite(out="same")
def nanmedian(input, dim=None, keepdim=False):
    """:func:`median` of the elements that are not NaN. Arguments as of :func:`median`.

    Returns:
        A tensor without dimensions; with ``dim`` ``(values, indices)``, named, each ``input`` without that dimension.

    Raises:
        IndexError: there is no such dimension.
        RuntimeError: ``input`` is complex.

    Examples:
        >>> taeda.nanmedian(taeda.tensor([1.0, math.nan, 3.0]))
        tensor(1.)
    """
    return nanmedian_all(input) if dim is None else nanmedian_dim(input, dim, keepdim)


@choice(ordering.mode, "mode", out_aligned=("input",))
def mode(input, dim=-1, keepdim=False):
    """The most frequent value along ``dim``, the smallest of equally frequent ones, and where it is last.
    Arguments as of :func:`sort`.

    Returns:
        ``(values, indices)``, named: each is ``input`` without the dimension ``dim``.
    Raises:
        IndexError: there are no elements, or there is no such dimension.
    Examples:
        >>> value, index = taeda.mode(taeda.tensor([6, 5, 1, 5, 6]))
        >>> value, index
        (tensor(5), tensor(3))
    """


mode.vjp(input=picked_one)


# ---- distinct values -------------------------------------------------------------------------------------------------


def _runs(flags: Tensor, starts: Tensor, n: int, places: Tensor | None, inverse: bool, counts: bool):
    """The number of each item's run, and the lengths of the runs.

    ``flags`` are set where a run begins. ``starts`` says how many flags come before each block.
    """
    numbers = lengths = None
    if inverse:
        numbers = _core.empty((n,), _core.int64)
        blocks = -(-n // index_kernels.BLOCK)
        address = kernels.run_numbers(places is None)
        _core.launch(address, (numbers, flags, starts, places if places is not None else 0), (n,), blocks, 4)
    if counts:
        first = core_indexing.true_positions(flags, starts)
        lengths = _core.empty((first.shape[0],), _core.int64)
        _core.launch(kernels.run_lengths(), (lengths, first), (first.shape[0], n), first.shape[0], 1 << 14)
    return numbers, lengths


def _flags(ordered: Tensor) -> Tensor:
    flags = _core.empty(ordered.shape, _core.bool_)
    _core.launch(kernels.run_starts(ordered.dtype.name), (flags, ordered), (), ordered.shape[0], 1 << 16)
    return flags


def _answer(values, numbers, lengths, return_inverse, return_counts):
    result = [values]
    if return_inverse:
        result.append(numbers)
    if return_counts:
        result.append(lengths)
    return result[0] if len(result) == 1 else tuple(result)


def _plain(input: Tensor, name: str) -> Tensor:
    if input.is_complex():
        raise NotImplementedError(f"{name}: not implemented for {input.dtype}, which has no order")
    return input.detach()


def _empty_longs(shape) -> Tensor:
    return _core.empty(shape, _core.int64)


@primitive(out=False, meta="values", batch="sized by values")
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct values, in ascending order. Arguments as of :func:`topk`.

    Args:
        return_inverse: also where each element is among them.
        return_counts: also how many of each there are.
        dim: find distinct slices along this dimension instead.
    Returns:
        A vector of the values. With a flag a tuple: then the inverse (``int64``, of the sizes of ``input``, or a vector
        for ``dim``) and the counts (``int64``, one per value).
    Raises:
        NotImplementedError: ``input`` is complex.
        IndexError: there is no such dimension.
    Examples:
        >>> x = taeda.tensor([3, 1, 3, 2])
        >>> taeda.unique(x)
        tensor([1, 2, 3])
        >>> values, inverse, counts = taeda.unique(x, return_inverse=True, return_counts=True)
        >>> values[inverse], counts
        (tensor([3, 1, 3, 2]), tensor([1, 1, 2]))
    """
    if dim is not None:
        return _unique_slices(input, dim, return_inverse, return_counts, False)
    flat = reshape(_plain(input, "unique"), (-1,)).contiguous()
    n = flat.shape[0]
    if n == 0:
        return _answer(flat, _empty_longs(input.shape), _empty_longs((0,)), return_inverse, return_counts)
    ordered, places = ordering.sort_rows(flat, n)
    flags = _flags(ordered)
    starts, _ = core_indexing.mask_starts(flags)
    numbers, lengths = _runs(flags, starts, n, places, return_inverse, return_counts)
    if numbers is not None:
        numbers = core.view_reshape(numbers, input.shape)
    return _answer(core_indexing.mask_get(ordered, flags, starts), numbers, lengths, return_inverse, return_counts)


@primitive(out=False, meta="values", batch="sized by values")
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """One element of each run of equal ones.

    Args:
        return_inverse: also which run each element belongs to.
        return_counts: also how long each run is.
        dim: find runs of equal slices along this dimension instead.
    Returns:
        A vector of the values, of the dtype of ``input``; with a flag a tuple, as :func:`unique` gives it.
    Raises:
        NotImplementedError: ``input`` is complex.
        IndexError: there is no such dimension.
    Examples:
        >>> taeda.unique_consecutive(taeda.tensor([1, 1, 2, 2, 2, 1]), return_counts=True)
        (tensor([1, 2, 1]), tensor([2, 3, 1]))
    """
    if dim is not None:
        return _unique_slices(input, dim, return_inverse, return_counts, True)
    flat = reshape(_plain(input, "unique_consecutive"), (-1,)).contiguous()
    n = flat.shape[0]
    if n == 0:
        return _answer(flat, _empty_longs(input.shape), _empty_longs((0,)), return_inverse, return_counts)
    flags = _flags(flat)
    starts, _ = core_indexing.mask_starts(flags)
    numbers, lengths = _runs(flags, starts, n, None, return_inverse, return_counts)
    if numbers is not None:
        numbers = core.view_reshape(numbers, input.shape)
    return _answer(core_indexing.mask_get(flat, flags, starts), numbers, lengths, return_inverse, return_counts)


unique.vjp(input=no_derivative("unique", "input"))
unique_consecutive.vjp(input=no_derivative("unique_consecutive", "input"))


@primitive(method=False, out=False, batch="sized by values")
def unique_dim(input, dim, sorted=True, return_inverse=False, return_counts=False):
    """:func:`unique` slices along ``dim``; always gives all three results."""
    return _unique_slices(input, dim, True, True, False)


unique_dim.vjp(input=no_derivative("unique_dim", "input"))


def _unique_slices(input, dim, return_inverse, return_counts, consecutive):
    at = _core.wrapped_dim(dim, input.dim(), "unique_dim")
    moved = _plain(input, "unique_dim").movedim(at, 0).contiguous()
    n = moved.shape[0]
    if moved.numel() == 0:
        if n and any(size == 0 for d, size in enumerate(input.shape) if d != at):
            raise RuntimeError(
                "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied: "
                f"{list(input.shape)}"
            )
        return _answer(input.detach(), _empty_longs((0,)), _empty_longs((0,)), return_inverse, return_counts)
    matrix, sizes = core.view_reshape(moved, (n, -1)), moved.shape[1:]
    places = None
    if not consecutive:
        places, matrix = _in_order(matrix)
    flags = _core.empty((n,), _core.bool_)
    flags.fill_(True)
    if n > 1:
        core.view_slice(flags, 0, 1, n, 1).copy_(_differs(matrix))
    starts, _ = core_indexing.mask_starts(flags)
    numbers, lengths = _runs(flags, starts, n, places, return_inverse, return_counts)
    firsts = core.view_select(core_indexing.true_positions(flags, starts), 1, 0)
    values = core.view_reshape(_rows_at(matrix, firsts), (firsts.shape[0], *sizes))
    return _answer(values.movedim(0, at), numbers, lengths, return_inverse, return_counts)


def _differs(matrix: Tensor) -> Tensor:
    """Whether each row but the first differs from the one before."""
    return (matrix[1:] != matrix[:-1]).any(1)


def _in_order(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The order of the rows, and the matrix in it: by the first columns, by as many as it takes to tell rows apart."""
    n, columns = matrix.shape
    count = min(columns, 4)
    while True:
        places = None
        for k in reversed(range(count)):  # each stable sort keeps the order of the later columns
            column = core.view_select(matrix, 1, k)
            order = ordering.sort_rows(_rows_at(column, places).contiguous(), n)[1]
            places = order if places is None else _rows_at(places, order)
        ordered = _rows_at(matrix, places)
        if count == columns or not (_differs(ordered) & ~_differs(ordered[:, :count])).any():
            return places, ordered
        count = min(columns, 4 * count)


def _rows_at(x: Tensor, places: Tensor | None) -> Tensor:
    """The slices of ``x`` at ``places`` of the first dimension; None means all."""
    return x if places is None else core_indexing.index_get(x, [places], 0, False)


# ---- search ----------------------------------------------------------------------------------------------------------


@composite(method=False, out="same")
def searchsorted(sorted_sequence, input: Any, *, out_int32=False, right=False, side=None, sorter=None):
    """The places of values in a sorted sequence: the number of items that come before.

    Args:
        sorted_sequence: an ascending vector, or rows whose leading dimensions are those of ``input``.
        input: a tensor or a number.
        out_int32: give ``int32`` in place of ``int64``.
        right: after equal items, rather than before them.
        side: ``"right"`` or ``"left"``: the same as ``right``.
        sorter: indices that sort ``sorted_sequence``, if it is not sorted.
    Returns:
        Positions, of the sizes of ``input``.
    Raises:
        RuntimeError: the leading dimensions do not fit, or ``side`` and ``right`` contradict each other.
    Examples:
        >>> edges = taeda.tensor([1, 3, 5])
        >>> taeda.searchsorted(edges, taeda.tensor([0, 3, 6]))
        tensor([0, 1, 3])
        >>> taeda.searchsorted(edges, taeda.tensor([0, 3, 6]), right=True)
        tensor([0, 2, 3])
    """
    if side not in (None, "left", "right"):
        raise RuntimeError(f"searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if not isinstance(input, Tensor):
        number_dtype = sorted_sequence.dtype if sorted_sequence.is_floating_point() else None
        if number_dtype is not None and isinstance(input, float):  # numbers beyond the dtype's range become infinite
            input = full((), input, dtype=_core.float64).to(number_dtype)
        else:
            input = full((), input, dtype=number_dtype)
    if sorter is not None:
        if sorter.shape != sorted_sequence.shape:
            raise RuntimeError(
                f"searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                f"{list(sorted_sequence.shape)} and got sorter tensor {list(sorter.shape)}"
            )
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    return _search(sorted_sequence, input, right or side == "right", out_int32)


@primitive(ordering.search, method=False, out=False)
def _search(sequence, values, right, out_int32):
    """:func:`searchsorted` on tensors."""


@composite(method=False, out="same")
def bucketize(input: Any, boundaries, *, out_int32=False, right=False):
    """The bucket of each value: :func:`searchsorted` in a vector of boundaries. Arguments as of :func:`searchsorted`.

    Args:
        boundaries: an ascending vector.
        right: a value that equals a boundary goes behind it.
    Returns:
        Numbers of buckets, of the sizes of ``input``; 0 is below all boundaries.
    Raises:
        RuntimeError: ``boundaries`` is no vector.
    Examples:
        >>> ages = taeda.tensor([5, 17, 18, 70])
        >>> taeda.bucketize(ages, taeda.tensor([18, 65]), right=True)
        tensor([0, 0, 1, 2])
    """
    if boundaries.dim() != 1:
        raise RuntimeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


# ---- counts ----------------------------------------------------------------------------------------------------------


@primitive(
    out=False,
    samples=lambda m: [((m.index(9, high=4), m(9)), {"minlength": 6}), ((m.index(9, high=4),), {})],
    meta="values",
)
def bincount(input, weights=None, minlength=0):
    """The count of each number from 0 on in a vector, or the sum of its weights.

    Args:
        input: a vector of integers, not negative.
        weights: what each element counts, of the same size. Default: 1.
        minlength: give at least so many counts.
    Returns:
        ``max(input) + 1`` counts, ``int64``; with weights their sums, floating point.
    Raises:
        RuntimeError: a number is negative, or the shapes do not fit.
    Examples:
        >>> taeda.bincount(taeda.tensor([0, 3, 0, 1]))
        tensor([2, 1, 0, 1])
    """
    if minlength < 0:
        raise RuntimeError(f"minlength should be >= 0, got {minlength}")
    if input.dtype.is_floating_point or input.dtype.is_complex or input.dtype is _core.bool_:
        raise NotImplementedError(f'"bincount_cpu" not implemented for {input.dtype}')
    if input.dim() != 1:
        raise RuntimeError(f"bincount only supports 1-d non-negative integral inputs, got shape {list(input.shape)}")
    index = core_indexing.int64_index(input)
    n = index.shape[0]
    low, high = extent(index) if n else (0, -1)
    if low < 0:
        raise RuntimeError(f"bincount only supports 1-d non-negative integral inputs, got {low}")
    top = high + 1
    if weights is not None and tuple(weights.shape) != (n,):
        raise RuntimeError(
            f"weights should be 1-d and have the same length as input, got {list(weights.shape)} for "
            f"{list(input.shape)}"
        )
    if weights is None:
        return core_indexing.counts(index, max(top, minlength))
    dtype = _core.float32 if weights.dtype is _core.float32 else _core.float64
    weights = convert(weights, dtype).contiguous()
    out = _core.empty((max(top, minlength),), dtype)
    core.zero(out)
    if n:
        _core.launch(index_kernels.bincount(dtype.name), (out, index, weights), (n,), 1, 1)
    return out


bincount.vjp(weights=no_derivative("bincount", "weights"))


@primitive(out="same")
def histc(input, bins: int = 100, min=0, max=0):
    """The number of elements in each of ``bins`` equal intervals between ``min`` and ``max``.

    Args:
        input: floating point, any sizes. Elements outside, and NaN, are left out.
        bins: how many intervals.
        min: the lower end.
        max: the upper end; where both are equal, those of the data.
    Returns:
        A vector of ``bins`` counts, in the dtype of ``input``.
    Raises:
        RuntimeError: ``min`` is above ``max``, or ``bins`` is not positive.
    Examples:
        >>> taeda.histc(taeda.tensor([1.0, 2.0, 1.5, 9.0]), bins=3, min=0, max=3)
        tensor([0., 2., 1.])
    """
    if bins <= 0:
        raise RuntimeError(f"histc(): bins must be > 0, but got {bins}")
    if not input.is_floating_point():
        raise NotImplementedError(f'"histogram_cpu" not implemented for {input.dtype}')
    low, high = float(_core.fitting(min, input.dtype)), float(_core.fitting(max, input.dtype))
    flat = core.view_reshape(input, (-1,)).contiguous()
    if low == high and flat.numel() and not flat.is_meta:
        low, high = float(flat.amin()), float(flat.amax())
    if low == high:
        low, high = low - 1, high + 1
    if not (abs(low) < float("inf") and abs(high) < float("inf")):
        raise RuntimeError(f"histc(): range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"histc(): max must be larger than min, got {low} and {high}")
    counts = _core.empty((bins,), _core.int64)
    core.zero(counts)
    address = index_kernels.histogram(input.dtype.name)
    _core.launch(address, (counts, flat), (flat.numel(), bins, low, high), 1, 1)
    return counts.to(input.dtype)
