"""Reductions over segments of a dimension, and a few ops that programs know from PyTorch's generated code."""

from __future__ import annotations

import math

from .. import _core
from .._core import Tensor
from .creation import arange, full, zeros
from .indexing import index, index_put, where
from .joining import cat
from .reduction import extent
from .scatter import scatter_reduce
from .sorting import searchsorted
from .table import Ints, composite
from .views import as_strided, reshape

_SEGMENT = {
    "sum": ("sum", 0), "mean": ("sum", 0), "prod": ("prod", 1), "max": ("amax", -math.inf), "min": ("amin", math.inf),
}  # fmt: skip
_OTHER_NAMES = {"amax": "max", "amin": "min"}


@composite(method=False)
def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """Reduces consecutive segments of ``data`` along ``axis``, which is the last dimension of ``lengths`` or
    ``offsets``.

    Args:
        data: floating point, any sizes.
        reduce: ``"sum"``, ``"mean"``, ``"max"`` (or ``"amax"``), ``"min"`` (or ``"amin"``) or ``"prod"``.
        lengths: how long each segment is: ``int64``, ``(..., segments)``, with the leading dimensions of ``data``.
        indices: not supported, as in PyTorch; leave it out.
        offsets: where each segment begins, and where the last one ends: ``(..., segments + 1)``, instead of
            ``lengths``.
        axis: the dimension of ``data`` that is cut into segments.
        unsafe: do not check that the lengths add up.
        initial: what a reduction begins with, which is the result for an empty segment. Default: NaN for a mean, else
            what does not change a result.
    Returns:
        The sizes of ``data`` with the number of segments in ``axis``.
    Raises:
        RuntimeError: lengths are negative or do not add up to the size of ``axis``, or neither they nor offsets are
            given.
    Examples:
        >>> data = taeda.tensor([1.0, 2.0, 3.0, 4.0])
        >>> taeda.segment_reduce(data, "sum", lengths=taeda.tensor([1, 3]))
        tensor([1., 9.])
    """
    reduce = _OTHER_NAMES.get(reduce, reduce)
    if reduce not in _SEGMENT:
        raise RuntimeError(
            f"segment_reduce(): unsupported reduction given: expected one of {', '.join(_SEGMENT)}, got {reduce!r}"
        )
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    axis = _core.wrapped_dim(axis, data.dim(), "segment_reduce")
    if offsets is None:
        if not unsafe:
            _check_lengths(data, lengths, axis)
        total = lengths.long().cumsum(-1)
        offsets = cat((total.new_zeros((*total.shape[:-1], 1)), total), -1)
    else:
        offsets = offsets.long()
        lengths = offsets[..., 1:] - offsets[..., :-1]
    n, size = lengths.shape[-1], data.shape[axis]
    places = arange(size).expand(*offsets.shape[:-1], size).contiguous()
    place = searchsorted(offsets.contiguous(), places, right=True) - 1
    place = where(place < 0, n, place)  # elements outside all segments go to an extra one, which is dropped
    how, identity = _SEGMENT[reduce]
    apart = initial is not None and reduce in ("max", "min")  # a tie with it takes nothing of the gradient
    first = identity if initial is None or apart else initial
    start = full((*data.shape[:axis], n + 1, *data.shape[axis + 1 :]), first, dtype=data.dtype)
    inner = (1,) * (data.dim() - axis - 1)
    result = scatter_reduce(start, axis, reshape(place, (*place.shape, *inner)).expand(data.shape), data, how)
    result = result.narrow(axis, 0, n).contiguous()
    if apart:
        result = where(result >= initial if reduce == "max" else result <= initial, result, initial)
    if reduce == "mean":
        count = reshape(lengths, (*lengths.shape, *inner)).expand(result.shape)
        empty = math.nan if initial is None else initial
        result = where(count > 0, result / count.clamp(min=1), full((), empty, dtype=result.dtype))
    return result


def _check_lengths(data, lengths, axis):
    if lengths.dim() != axis + 1 or lengths.shape[:-1] != data.shape[:axis]:
        raise RuntimeError(
            f"segment_reduce(): expected lengths of shape {(*data.shape[:axis], 'segments')} for data of shape "
            f"{tuple(data.shape)} and axis {axis}, got {tuple(lengths.shape)}"
        )
    if lengths.numel() and not lengths.is_meta and extent(lengths)[0] < 0:
        raise RuntimeError("segment_reduce(): lengths contains negative value!")
    totals = lengths.sum(-1)
    if totals.numel() and not totals.is_meta and extent(totals) != (data.shape[axis],) * 2:
        raise RuntimeError(
            f"segment_reduce(): Expected all rows of lengths along axis to sum to data.size(axis) = {data.shape[axis]}"
        )


@composite(method=False, out="type")
def _chunk_cat(tensors, dim, num_chunks):
    """Each tensor cut into ``num_chunks`` equal pieces along ``dim``, zeros added, and the pieces joined flattened."""
    tensors = tuple(tensors)
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks < 1:
        raise RuntimeError(f"_chunk_cat expects positive num_chunks, got {num_chunks}")
    at = _core.wrapped_dim(dim, tensors[0].dim(), "_chunk_cat")
    pieces = []
    for x in tensors:
        if x.numel() == 0 or x.shape[:at] != tensors[0].shape[:at] or x.dtype is not tensors[0].dtype:
            raise RuntimeError("_chunk_cat expects tensors that are not empty, of one dtype and one leading shape")
        step = -(-x.shape[at] // num_chunks)
        shape = (*x.shape[:at], num_chunks * step - x.shape[at], *x.shape[at + 1 :])
        x = cat((x, zeros(shape, dtype=x.dtype)), at) if shape[at] else x
        pieces.append(reshape(x, (*x.shape[:at], num_chunks, -1)))
    return cat(pieces, at + 1)


@composite(out="same")
def hash_tensor(input, dim: Ints | None = None, *, keepdim=False, mode=0):
    """A number that depends on the bits of the elements, as ``float64`` or integers of 64 bits, joined by exclusive or.
    Equal contents have equal hashes, whatever their order.

    Args:
        dim: one or several dimensions. Default: all.
        mode: 0, the only one there is.
    Returns:
        ``uint64``, the sizes of ``input`` without those of the reduced dimensions.
    Examples:
        >>> taeda.hash_tensor(taeda.tensor([1, 2, 4]))
        tensor(7, dtype=taeda.uint64)
    """
    if mode != 0:
        raise RuntimeError(f"hash_tensor(): unknown mode {mode}, expected 0 (exclusive or)")
    n = input.dim()
    dims = tuple(range(n)) if dim is None or dim == () or dim == [] else (dim,) if isinstance(dim, int) else tuple(dim)
    dims = sorted({_core.wrapped_dim(d, n, "hash_tensor") for d in dims}) if n else []
    bits = input.double().view(_core.int64) if input.is_floating_point() else input.to(_core.int64)
    kept = [d for d in range(n) if d not in dims]
    bits = bits.permute((*kept, *dims)).reshape(
        [*(input.shape[d] for d in kept), math.prod(input.shape[d] for d in dims)]
    )
    while bits.shape[-1] > 1:
        half = bits.shape[-1] // 2
        rest = bits[..., 2 * half :]
        bits = cat((bits[..., :half] ^ bits[..., half : 2 * half], rest), -1)
    shape = [1 if d in dims else size for d, size in enumerate(input.shape) if keepdim or d not in dims]
    if bits.shape[-1] == 0:
        return zeros(shape, dtype=_core.uint64)
    return reshape(bits, shape).view(_core.uint64).clone()


def _within(input, indices):
    return tuple(
        i.clamp(-size, size - 1) if isinstance(i, Tensor) else i for i, size in zip(indices, input.shape, strict=False)
    )


@composite(method=False)
def _unsafe_masked_index(input, mask, indices, fill):
    """``input[indices]`` where ``mask`` is true, ``fill`` elsewhere, where indices may be out of range."""
    if input.numel() == 0:
        return full((), fill, dtype=input.dtype).expand(mask.shape).clone()
    return index(input, _within(input, indices)).masked_fill(~mask, fill)


@composite(method=False)
def _unsafe_masked_index_put_accumulate(input, mask, indices, values):
    """``input`` with ``values`` added at ``indices`` where ``mask`` is true; elsewhere indices may be out of range."""
    if input.numel() == 0:
        return input.clone()
    return index_put(input, _within(input, indices), values.masked_fill(~mask, 0), True)


@composite()
def slice_inverse(input, src, dim=0, start=None, end=None, step=1):
    """The whole from which the slice ``input`` was cut: a view with the sizes of ``src``.

    Args:
        input: the slice.
        src: a tensor with the sizes and strides of the whole.
        dim: the dimension that was sliced.
        start: where the slice began.
        end: where it ended.
        step: its step.
    Returns:
        A view of the memory of ``input``.
    Raises:
        RuntimeError: the sizes reach beyond the memory of ``input``.
    Examples:
        >>> whole = taeda.arange(4)
        >>> taeda.slice_inverse(whole[1:3], whole, 0, 1, 3)
        tensor([0, 1, 2, 3])
    """
    return as_strided(input, src.shape, src.stride(), src.storage_offset())
