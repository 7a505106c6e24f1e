"""Tables of vectors looked up by integers, bags of them, and one-hot codes."""

from __future__ import annotations

from .. import _core
from .._core import Tensor, selection
from .._core import indexing as core_indexing
from .._core import tensor as core
from ..kernels import bags as kernels
from .creation import arange
from .indexing import masked_fill
from .joining import cat
from .reduction import extent
from .scatter import gather, index_add, index_reduce
from .shape import _positions
from .table import composite, expect_tensors, primitive
from .views import reshape, unsqueeze


def _check_indices(indices: Tensor, name: str) -> None:
    if indices.dtype.name not in ("int64", "int32"):
        raise RuntimeError(
            f"{name}: Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
            f"but got {indices.dtype} instead; convert them with long()"
        )


@primitive(
    selection.embedding,
    method=False,
    samples=lambda m: [
        ((m(5, 3), m.index(2, 4, high=5)), {}),
        ((m(5, 3), m.index(6, high=5)), {"scale_grad_by_freq": False}),
    ],
    meta="mixed",
    canonical=True,
)
def embedding(weight, indices: Tensor, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """Rows of ``weight`` at ``indices``: ``weight[indices]``, a vector for each word.

    Args:
        weight: ``(rows, width)``.
        indices: ``int64`` or ``int32``, any sizes.
        padding_idx: a row that gets no gradient; -1 for none.
        scale_grad_by_freq: divide a row's gradient by how often it was asked for.
        sparse: make the gradient of ``weight`` a sparse tensor of the rows that were asked for.
    Returns:
        The sizes of ``indices`` with ``width`` added; the dtype of ``weight``.
    Raises:
        IndexError: an index is out of range.
    Examples:
        >>> weight = taeda.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
        >>> taeda.embedding(weight, taeda.tensor([2, 1, 2]))
        tensor([[3., 4.],
                [1., 2.],
                [3., 4.]])
    """


@primitive(method=False, out=False, canonical=True)
def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    """The gradient of an embedding's table: rows of ``grad_output`` added up by index, in their order."""
    width = grad_output.shape[-1]
    result = _core.empty((num_weights, width), grad_output.dtype)
    core.zero(result)
    if grad_output.numel():
        core_indexing.index_set(result, [indices], 0, grad_output, 2, False)
        if scale_grad_by_freq:
            counts = _times(reshape(indices, (-1,)), num_weights)
            result = result / unsqueeze(counts.to(result.dtype), 1)
        if padding_idx >= 0:
            core.zero(core.view_select(result, 0, padding_idx))
    return result


def _embedding_backward(g, weight_shape, indices, padding_idx, scale_grad_by_freq, sparse):
    if sparse:
        return _sparse_backward(g, weight_shape, indices, padding_idx, scale_grad_by_freq)
    return embedding_dense_backward(g, indices, weight_shape[0], padding_idx, scale_grad_by_freq)


def _sparse_backward(g, weight_shape, indices, padding_idx, scale_grad_by_freq):
    """The gradient of the table as one entry for each index."""
    from .sparse import make  # subclasses of Tensor are made after all methods are installed (taeda/overrides.py)

    if scale_grad_by_freq:
        raise RuntimeError(
            "embedding_backward: scale_grad_by_freq not supported with sparse gradients; use sparse=False"
        )
    rows = reshape(indices, (-1,)).to(_core.int64, copy=True)
    values = reshape(g, (rows.shape[0], weight_shape[1]))
    if padding_idx >= 0:
        kept = rows != padding_idx
        rows, values = rows[kept], values[kept]
    return make(unsqueeze(rows, 0), values, weight_shape)


def _times(places: Tensor, count: int) -> Tensor:
    """The count of each number below ``count`` in ``places``, at least 1: the divisor of a mean."""
    return index_add(places.new_zeros(count), 0, places, places.new_ones(1).expand(places.shape)).clamp(min=1)


def _embedding_second(g, indices, num_weights, padding_idx, scale_grad_by_freq):
    if scale_grad_by_freq:
        counts = _times(reshape(indices, (-1,)), num_weights)
        g = g / unsqueeze(counts.to(g.dtype), 1)
    result = embedding(g, indices)
    return masked_fill(result, unsqueeze(indices == padding_idx, -1), 0) if padding_idx >= 0 else result


embedding.vjp(weight=_embedding_backward)
embedding_dense_backward.vjp(grad_output=_embedding_second)


@composite(method=False)
def embedding_renorm_(weight, indices, max_norm, norm_type=2.0):
    """Scales down, in place, the rows of ``weight`` at ``indices`` whose norm is above ``max_norm``, to that norm.

    Args:
        weight: ``(rows, width)``, floating point.
        indices: ``int64`` or ``int32``, any sizes.
        max_norm: the largest norm that a row keeps.
        norm_type: which norm: 2 for lengths.
    Returns:
        ``weight``.
    Raises:
        IndexError: an index is out of range.
    Examples:
        >>> taeda.embedding_renorm_(taeda.tensor([[3.0, 4.0], [30.0, 40.0]]), taeda.tensor([1]), 5.0).round()
        tensor([[3., 4.],
                [3., 4.]])
    """
    expect_tensors("embedding_renorm_", weight=weight, indices=indices)
    _check_indices(indices, "embedding_renorm_")
    previous = _core.record_nothing()
    try:
        rows = reshape(indices, (-1,)).unique()
        chosen = weight[rows]
        norms = chosen.norm(norm_type, 1, True)
        scale = (max_norm / (norms + 1e-7)).clamp(max=1.0)
        weight.index_copy_(0, rows.to(_core.int64), chosen * scale)
    finally:
        _core.restore_grad_mode(previous)
    return weight


def bags(
    weight, input, offsets=None, mode="mean", scale_grad_by_freq=False, per_sample_weights=None,
    include_last_offset=False, padding_idx=None, sparse=False,
):  # fmt: skip
    """Sums, means or maxima of bags of rows of ``weight``: what ``nn.functional.embedding_bag`` computes.

    Args:
        weight: ``(rows, width)``.
        input: ``(bags, items)``, or a vector that ``offsets`` cuts into bags.
        per_sample_weights: in the shape of ``input``; for ``mode="sum"``.
        include_last_offset: whether ``offsets`` ends with the end of the last bag.
        padding_idx: a row that is left out.
        sparse: the gradient of ``weight`` is a sparse tensor of the rows that were asked for.

    Returns:
        ``(bags, width)``; an empty bag is zero.
    """
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None:
        if mode != "sum":
            raise NotImplementedError(
                f"embedding_bag: per_sample_weights was not None: only mode='sum' supports it, got {mode!r}"
            )
        if per_sample_weights.shape != input.shape:
            raise ValueError(
                f"embedding_bag: If per_sample_weights ({list(per_sample_weights.shape)}) is not None, then it must "
                f"have the same shape as the input ({list(input.shape)})"
            )
        if per_sample_weights.dtype is not weight.dtype:
            raise RuntimeError(
                f"embedding_bag: expected weight and per_sample_weights of one dtype, got {weight.dtype} and "
                f"{per_sample_weights.dtype}"
            )
        per_sample_weights = reshape(per_sample_weights, (-1,))
    if not weight.dtype.is_floating_point:
        raise RuntimeError(f"embedding_bag: expected weight of a floating point dtype, got {weight.dtype}")
    if padding_idx is not None:
        padding_idx = _padding_row(padding_idx, weight.shape[0])
    plain = padding_idx is None and per_sample_weights is None and not (scale_grad_by_freq or sparse)
    if plain and weight.dim() == 2:
        items = _edges_of(input, offsets, include_last_offset)
        return _bag_maxima(weight, *items)[0] if mode == "max" else _bag_totals(weight, *items, mode == "mean")
    flat, bag, count = _bag_of_each(input, offsets, include_last_offset)
    if per_sample_weights is not None:
        per_sample_weights = per_sample_weights[: flat.shape[0]]
    if padding_idx is not None and not flat.is_meta:  # on meta: how many are kept depends on values
        kept = flat != padding_idx
        flat, bag = flat[kept], bag[kept]
        per_sample_weights = per_sample_weights[kept] if per_sample_weights is not None else None
    try:
        rows = embedding(weight, flat, -1, scale_grad_by_freq, sparse)
    except IndexError as error:
        raise RuntimeError(f"embedding_bag: {error}") from None
    if per_sample_weights is not None:
        rows = rows * unsqueeze(per_sample_weights, 1)
    empty = rows.new_zeros((count, weight.shape[1]))
    if mode == "max":
        return index_reduce(empty, 0, bag, rows, "amax", include_self=False)
    total = index_add(empty, 0, bag, rows)
    if mode == "mean":
        total = total / unsqueeze(_times(bag, count).to(total.dtype), 1)
    return total


def _padding_row(row, rows):
    """The number of the row that is left out, counted from the start."""
    if type(row) is not int:
        raise TypeError(f"embedding_bag(): argument 'padding_idx' must be int, not {type(row).__name__}")
    if not -rows <= row < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got {row}"
        )
    return row % rows


@primitive(method=False, out=False, planned=True)
def _bag_totals(weight, indices, edges, mean):
    """Sums or means of the rows at ``indices[edges[b]:edges[b + 1]]``."""
    out = _core.empty((edges.shape[0] - 1, weight.shape[1]), weight.dtype)
    _launch_bags(kernels.bag_totals(weight.dtype.name, mean), (out,), weight, indices, edges)
    return out


def _launch_bags(address: int, outs: tuple[Tensor, ...], weight: Tensor, indices: Tensor, edges: Tensor) -> None:
    """Run a kernel over bags of rows of ``weight``, whose numbers are checked."""
    width, flat, count = weight.shape[1], indices.to(_core.int64).contiguous(), edges.shape[0] - 1
    if flat.shape[0] and not flat.is_meta:
        low, high = extent(flat)
        if low < 0 or high >= weight.shape[0]:
            raise RuntimeError(
                f"embedding_bag: index {low if low < 0 else high} is out of range for a table of {weight.shape[0]} rows"
            )
    grain = max(1, 32768 * count // (flat.shape[0] * width + count + 1))
    _core.launch(address, (*outs, weight.contiguous(), flat, edges.contiguous()), (width,), count, grain)


def _bag_backward(g, weight_shape, indices, edges, mean):
    lengths = edges[1:] - edges[:-1]
    if mean:
        g = g / unsqueeze(lengths.clamp(min=1).to(g.dtype), 1)
    return embedding_dense_backward(
        embedding(g, _positions(lengths, indices.shape[0])), indices, weight_shape[0], -1, False
    )


_bag_totals.vjp(weight=_bag_backward)


@primitive(method=False, out=False, outputs=("values", "rows"), differentiable=[0], planned=True)
def _bag_maxima(weight, indices, edges):
    """Maxima of the same rows, and the numbers of the rows that they are from: -1 for empty bags."""
    shape = (edges.shape[0] - 1, weight.shape[1])
    outs = _core.empty(shape, weight.dtype), _core.empty(shape, _core.int64)
    _launch_bags(kernels.bag_maxima(weight.dtype.name), outs, weight, indices, edges)
    return outs


@primitive(method=False, out=False, planned=True)
def _bag_spread(grad, rows, count):
    """``grad`` added up in a table of ``count`` rows, where ``rows`` says."""
    bags_, width = grad.shape
    out = _core.empty((count, width), grad.dtype)
    core.zero(out)
    address = kernels.bag_spread(grad.dtype.name)
    _core.launch(address, (out, grad.contiguous(), rows.contiguous()), (width, bags_), width, 1 + 16384 // (bags_ + 1))
    return out


_bag_maxima.vjp(weight=lambda g, rows, weight_shape: _bag_spread(g, rows, weight_shape[0]))
_bag_spread.vjp(grad=lambda g, rows: masked_fill(gather(g, 0, rows.clamp(min=0)), rows < 0, 0))


def _bag_of_each(input, offsets, include_last_offset):
    """The indices as a vector, the bag that each is in, and the number of bags."""
    flat, edges = _edges_of(input, offsets, include_last_offset)
    lengths = edges[1:] - edges[:-1]
    return flat, _positions(lengths, flat.shape[0]), lengths.shape[0]


def _edges_of(input, offsets, include_last_offset):
    """The indices as a vector, and where in it bags begin, with its end."""
    if offsets is not None and offsets.dtype is not input.dtype:
        input = input.to(_core.promote_types(input.dtype, offsets.dtype))
    _check_indices(input, "embedding_bag")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                "sequences."
            )
        count, length = input.shape
        return reshape(input, (-1,)), arange(count + 1) * length
    if input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    edges = offsets.to(_core.int64)
    n = input.shape[0]
    known = edges.shape[0] and not edges.is_meta
    first, last = (extent(edges[0]), extent(edges[-1])) if known else ((0, 0), (0, 0))
    if first != (0, 0):
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {first[0] or first[1]}"
        )
    if last[1] > n:
        raise RuntimeError(f"offsets[-1] can not be greater than input's length({n}), got offsets[-1] of {last[1]}")
    if include_last_offset:
        if not edges.shape[0]:
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
        if known and last[0] == last[1]:  # indices after the last bag belong to no bag
            input = input[: last[1]]
    else:
        edges = cat((edges, edges.new_full((1,), n)), 0)
    if edges.shape[0] > 1 and known and extent(edges[1:] - edges[:-1])[0] < 0:
        raise RuntimeError("embedding_bag: expected offsets that do not decrease, and none beyond the end of input")
    return input, edges


@composite(method=False)
def one_hot(tensor, num_classes=-1):
    """Class numbers as vectors of zeros with a single one.

    Args:
        tensor: class numbers, any shape, int64.
        num_classes: length of the vectors; -1 for one more than the largest number.

    Returns:
        ``(*, num_classes)``, int64.

    Raises:
        RuntimeError: a number is negative or too large, or the dtype is another.

    Examples:
        >>> F.one_hot(taeda.tensor([0, 2, 1]))
        tensor([[1, 0, 0],
                [0, 0, 1],
                [0, 1, 0]])
    """
    if tensor.dtype is not _core.int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor, got {tensor.dtype}")
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return tensor.new_empty((*tensor.shape, num_classes))
    least, most = (0, num_classes - 1) if tensor.is_meta and num_classes > 0 else extent(tensor)
    if least < 0:
        raise RuntimeError("Class values must be non-negative.")
    top = most + 1
    if num_classes == -1:
        num_classes = top
    elif num_classes < 1:
        raise RuntimeError("num_classes should be positive")
    elif top > num_classes:
        raise RuntimeError(f"Class values must be smaller than num_classes, got {top - 1} for {num_classes} classes.")
    return tensor.new_zeros((*tensor.shape, num_classes)).scatter_(-1, unsqueeze(tensor, -1), 1)
