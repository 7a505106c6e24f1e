"""Rearranging elements: flips, rolls, repetition, padding."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor, block_copy
from .._core import indexing as core_indexing
from .._core import tensor as core
from .._core.formats import is_channels_last
from ..kernels import indexing as index_kernels
from .scatter import index_select
from .table import OPS, composite, is_index, primitive, spread, traits
from .views import narrow, reshape, transpose

_LAUNCH = 1 << 15


# ---- order -----------------------------------------------------------------------------------------------------------


@primitive(
    block_copy.flip, variadic="dims", samples=lambda m: [((m(3, 4), d), {}) for d in ((0,), (1,), (0, 1), ())],
    batch="along", canonical=True, moves=True,
)  # fmt: skip
def flip(input, dims):
    """The elements in reverse order along ``dims``.

    Args:
        dims: the dimensions to reverse, each at most once.
    Returns:
        The sizes and the dtype of ``input``. A copy.
    Raises:
        RuntimeError: a dimension occurs twice.
        IndexError: there is no such dimension.
    Examples:
        >>> taeda.flip(taeda.tensor([[1, 2, 3], [4, 5, 6]]), (1,))
        tensor([[3, 2, 1],
                [6, 5, 4]])
    """


flip.vjp(input=lambda g, dims: flip(g, dims))


@composite()
def fliplr(input):
    """The columns in reverse order: :func:`flip` of dimension 1.

    Args:
        input: a tensor of at least two dimensions.
    Returns:
        The sizes and the dtype of ``input``. A copy.
    Raises:
        RuntimeError: ``input`` has fewer dimensions.
    Examples:
        >>> taeda.fliplr(taeda.tensor([[1, 2], [3, 4]]))
        tensor([[2, 1],
                [4, 3]])
    """
    if input.dim() < 2:
        raise RuntimeError(f"Input must be >= 2-d, got shape {list(input.shape)}")
    return flip(input, (1,))


@composite()
def flipud(input):
    """The rows in reverse order: :func:`flip` of dimension 0.

    Args:
        input: a tensor of at least one dimension.
    Returns:
        The sizes and the dtype of ``input``. A copy.
    Raises:
        RuntimeError: ``input`` has no dimension.
    Examples:
        >>> taeda.flipud(taeda.tensor([[1, 2], [3, 4]]))
        tensor([[3, 4],
                [1, 2]])
    """
    if input.dim() < 1:
        raise RuntimeError(f"Input must be >= 1-d, got shape {list(input.shape)}")
    return flip(input, (0,))


@composite()
def rot90(input, k=1, dims=(0, 1)):
    """A rotation by ``k`` quarter turns in the plane of two dimensions, from the first towards the second.

    Args:
        input: a tensor of at least two dimensions.
        k: how many quarter turns; negative ones turn the other way.
        dims: two dimensions.
    Returns:
        The sizes of ``input``, for odd ``k`` with those of the two dimensions swapped. The dtype is that of
        ``input``.
    Raises:
        RuntimeError: ``dims`` are not two different dimensions.
    Examples:
        >>> taeda.rot90(taeda.tensor([[1, 2], [3, 4]]))
        tensor([[2, 4],
                [1, 3]])
    """
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.dim() < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.dim()}")
    first, second = (_core.wrapped_dim(d, input.dim(), "rot90") for d in dims)
    if first == second:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    k = k % 4  # not in place: it may be a tensor
    if k == 0:
        return input.clone(memory_format=_core.contiguous_format)
    if k == 2:
        return flip(input, (first, second))
    transposed = flip(input, (second if k == 1 else first,))
    return transpose(transposed, first, second)


@primitive(block_copy.roll, samples=lambda m: [((m(3, 4), 2), {}), ((m(3, 4), (1, -5), (0, 1)), {})], moves=True)
def roll(input, shifts, dims=None):
    """The elements moved by ``shifts`` along ``dims``; those that fall off the end come back at the start.

    Args:
        shifts: by how many places, one int per dimension.
        dims: along which dimensions. Without it the elements are taken as one dimension.
    Returns:
        The sizes and the dtype of ``input``. A copy.
    Raises:
        RuntimeError: there are not as many ``shifts`` as ``dims``.
    Examples:
        >>> taeda.roll(taeda.tensor([1, 2, 3, 4]), 1)
        tensor([4, 1, 2, 3])
        >>> taeda.roll(taeda.tensor([[1, 2], [3, 4], [5, 6]]), -1, 0)
        tensor([[3, 4],
                [5, 6],
                [1, 2]])
    """


def _rolled_in_parts(input, shifts, dims):
    if dims is None or dims == ():
        flat = reshape(input, (-1,))
        return reshape(_rolled_in_parts(flat, shifts, 0), input.shape)
    shifts = (shifts,) if is_index(shifts) else shifts
    for shift, d in zip(shifts, (dims,) if is_index(dims) else dims, strict=True):
        size = input.shape[d]
        if size:
            at = (size - shift) % size
            input = OPS["cat"]([narrow(input, d, at, size - at), narrow(input, d, 0, at)], d)
    return input


roll.traits["lowering"] = _rolled_in_parts


def _roll_backward(g, shifts, dims):
    back = -shifts if isinstance(shifts, int) else tuple(-n for n in shifts)
    return roll(g, back, dims)


roll.vjp(input=_roll_backward)


# ---- repetition ------------------------------------------------------------------------------------------------------


@primitive(
    block_copy.repeat, variadic="repeats", samples=lambda m: [((m(3, 4), (2, 1, 3)), {}), ((m(3), (2,)), {})],
    canonical=True, moves=True,
)  # fmt: skip
def repeat(input, repeats):
    """The whole of ``input`` side by side, ``repeats[i]`` times along dimension ``i``, as a copy.

    Args:
        repeats: a count per dimension, one by one or as one list or tuple; further ones come first.
    Returns:
        The sizes of ``input`` times the counts.
    Raises:
        RuntimeError: there are fewer counts than dimensions, or one is negative.
    Examples:
        >>> taeda.tensor([1, 2]).repeat(2, 2)
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]])
    """


def _repeat_backward(g, input_shape, repeats):
    repeats = (repeats,) if is_index(repeats) else tuple(repeats)
    if 0 in repeats:
        return g.new_zeros(input_shape)
    shape = (1,) * (len(repeats) - len(input_shape)) + tuple(input_shape)
    g = reshape(g, tuple(x for pair in zip(repeats, shape, strict=True) for x in pair))
    if repeats:
        g = g.sum(tuple(range(0, 2 * len(repeats), 2)))
    return reshape(g, input_shape)


repeat.vjp(input=_repeat_backward)


@composite()
def tile(input, *args, dims=None):
    """``input`` repeated as a whole: :func:`Tensor.repeat`, where missing leading counts are 1.

    Args:
        args: how often along each dimension, one by one or as one list or tuple.
        dims: the same by name.
    Returns:
        A copy: the sizes of ``input``, multiplied by the counts. The dtype is that of ``input``.
    Raises:
        RuntimeError: a count is negative.
    Examples:
        >>> taeda.tile(taeda.tensor([1, 2]), (3,))
        tensor([1, 2, 1, 2, 1, 2])
        >>> taeda.tile(taeda.tensor([[1, 2]]), (2, 2))
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]])
    """
    dims = tuple(spread(args, dims))
    return repeat(input, (1,) * (input.dim() - len(dims)) + dims)


@primitive(method=False, out=False)
def _positions(repeats, output_size):
    """``i`` repeated ``repeats[i]`` times."""
    if repeats.dim() != 1:
        raise RuntimeError(f"repeat_interleave only accept 1D vector as repeat, got shape {list(repeats.shape)}")
    if repeats.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"repeats has to be Long or Int tensor, got {repeats.dtype}")
    if repeats.is_meta and output_size is not None:
        return _core.empty((output_size,), _core.int64)
    counts = core_indexing.int64_index(repeats)
    n = counts.shape[0]
    if n and int(counts.min()) < 0:
        raise RuntimeError("repeats can not be negative")
    if n and int(counts.max()) > (1 << 62) // n:
        raise RuntimeError(f"repeat_interleave: the sum of repeats, of up to {int(counts.max())}, is too large")
    starts = _core.empty((n + 1,), _core.int64)
    _core.launch(index_kernels.running_total(), (starts, counts), (n,), 1, 1)
    total = int(core.view_select(starts, 0, n).item())
    if output_size is not None and output_size != total:
        raise RuntimeError(f"repeat_interleave: output_size ({output_size}) must be the sum of repeats ({total})")
    out = _core.empty((total,), _core.int64)
    if total:
        _core.launch(index_kernels.repeat_positions(), (out, starts), (), n, max(_LAUNCH * n // total, 1))
    return out


@primitive(
    block_copy.repeat_each, method=False, out=False, samples=lambda m: [((m(3, 4), 2, 1), {}), ((m(3), 3, 0), {})]
)
def repeat_each(input, repeats, dim):
    """Each slice along ``dim`` repeated in place a number of times: :func:`repeat_interleave` of a number."""


def _repeated_by_expand(input, repeats, dim):
    shape = input.shape
    made = input.unsqueeze(dim + 1).expand((*shape[: dim + 1], repeats, *shape[dim + 1 :]))
    return reshape(made, (*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]))


repeat_each.traits["lowering"] = _repeated_by_expand
repeat_each.vjp(
    input=lambda g, input_shape, repeats, dim: reshape(
        g, (*input_shape[: dim + 1], repeats, *input_shape[dim + 1 :])
    ).sum(dim + 1)
)


@composite()
def repeat_interleave(input: Any = None, repeats: Any = None, dim=None, *, output_size=None):
    """Each element, or slice along ``dim``, repeated where it stands.

    Args:
        input: a tensor of any sizes. One of ``input`` and ``repeats`` alone is taken for ``repeats``, and the result is
            positions.
        repeats: a count, or a vector with one count per slice.
        dim: along which dimension. Without it the elements are taken as one dimension.
        output_size: the sum of ``repeats``, if it is known.
    Returns:
        A copy of the dtype of ``input``, with ``sum(repeats)`` slices along ``dim``.
    Raises:
        RuntimeError: a count is negative, or there are not as many as slices.
    Examples:
        >>> x = taeda.tensor([1, 2, 3])
        >>> taeda.repeat_interleave(x, 2)
        tensor([1, 1, 2, 2, 3, 3])
        >>> taeda.repeat_interleave(x, taeda.tensor([3, 0, 1]))
        tensor([1, 1, 1, 3])
    """
    if repeats is None or input is None:
        return _positions(input if repeats is None else repeats, output_size)
    if dim is None:
        input, dim = reshape(input, (-1,)), 0
    at = _core.wrapped_dim(dim, input.dim(), "repeat_interleave")
    if input.dim() == 0:
        input = reshape(input, (1,))
    size = input.shape[at]
    if not isinstance(repeats, Tensor) or (repeats.numel() == 1 and size != 1):
        whole = not isinstance(repeats, Tensor)
        count = _core.whole_numbers(repeats, "repeat_interleave", "repeats") if whole else int(repeats)
        return repeat_each(input, count, at)
    repeats = reshape(repeats, (-1,)) if repeats.dim() == 0 else repeats
    if repeats.dim() == 1 and repeats.shape[0] != size:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.shape[0]} and "
            f"input.size({at}) = {size}"
        )
    return index_select(input, at, _positions(repeats, output_size))


# ---- padding ---------------------------------------------------------------------------------------------------------


def _padded(shape, pad):
    """New sizes, and the amounts that each dimension gets before and after."""
    n = len(shape)
    if len(pad) % 2 or len(pad) // 2 > n:
        raise RuntimeError(
            "Length of pad should be even and no more than twice the number of dimensions of the input: got "
            f"{list(pad)} for shape {list(shape)}"
        )
    sides = [(0, 0)] * (n - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    sizes = [size + a + b for size, (a, b) in zip(shape, sides, strict=True)]
    for d, size in enumerate(sizes):
        if size < 0:
            raise RuntimeError(
                f"The input size {shape[d]}, plus negative padding {sides[d][0]} and {sides[d][1]}, resulted in a "
                f"negative output size, which is invalid. Check dimension {d} of your input."
            )
    return sizes, sides


@primitive(
    block_copy.pad_constant, method=False, batch="trailing", canonical=True,
    samples=lambda m: [((m(3, 4), (1, 2)), {}), ((m(3, 4), (-1, 2, 1, 0), 5), {})],
)  # fmt: skip
def constant_pad_nd(input, pad, value=0):
    """``input`` with ``value`` around it.

    Args:
        pad: ``(before, after)`` of the last dimension, then of the one before it, and so on; negative amounts cut off.
        value: a number.
    Returns:
        The padded tensor, a copy.
    Raises:
        RuntimeError: ``pad`` has an odd length or is too long, or a size would be negative.
    Examples:
        >>> taeda.constant_pad_nd(taeda.tensor([[1, 2], [3, 4]]), (1, 1), 0)
        tensor([[0, 1, 2, 0],
                [0, 3, 4, 0]])
    """


constant_pad_nd.vjp(input=lambda g, pad: constant_pad_nd(g, tuple(-n for n in pad), 0))


_EDGE_SAMPLES = lambda m: [((m(5, 6), (1, 2, 2, 0), mode), {}) for mode in ("reflect", "replicate", "circular")]  # noqa: E731


@primitive(
    block_copy.pad_edges, method=False, out=False, batch="trailing", samples=_EDGE_SAMPLES, canonical=True, planned=True
)
def edge_pad(input, pad, mode):
    """``input`` extended beyond its edges; amounts as for :func:`constant_pad_nd`, none negative."""


_PADDINGS = {"reflect": "reflection", "replicate": "replication"}


def _native_padding(input, pad, mode):
    size = len(pad) // 2
    if mode in _PADDINGS and size < 4:
        return f"{_PADDINGS[mode]}_pad{size}d.default", (input, list(pad))
    return "edge_pad.default", (input, pad, mode)


edge_pad.traits["native_call"] = _native_padding


@primitive(method=False, out=False, batch="trailing", samples=_EDGE_SAMPLES, planned=True)
def edge_pad_backward(input, pad, mode):
    """The adjoint of :func:`edge_pad`: in the opposite order, padding is added to the elements that it copied, and cut
    off.
    """
    inside, pairs = block_copy.edges(input.clone(), pad, mode)
    if inside.numel():
        for beside, shown in reversed(pairs):
            for d in range(shown.dim()):
                if shown.stride(d) == 0 and shown.shape[d] > 1:  # one slice is shown in several places
                    beside, shown = beside.sum(d, True), narrow(shown, d, 0, 1)
            shown.add_(beside)
    last = is_channels_last(input)
    return inside.contiguous(memory_format=_LAST[input.dim()]) if last else inside.contiguous()


edge_pad.vjp(input=lambda g, pad, mode: edge_pad_backward(g, pad, mode))
edge_pad_backward.vjp(input=lambda g, pad, mode: edge_pad(g, pad, mode))


#: The format with channels last, by the number of dimensions.
_LAST = {4: _core.channels_last, 5: _core.channels_last_3d}


def keep_channels_last(out: Tensor, like: Tensor) -> Tensor:
    """``out`` with channels last in memory if ``like`` has them there."""
    if not is_channels_last(like):
        return out
    return out.contiguous(memory_format=_LAST[out.dim()])


@traits(
    autocast=lambda input, pad, mode="constant", value=None: (
        "float32" if mode == "replicate" or (mode == "reflect" and len(pad) < 6) else None
    ),
    canonical=True,
)
def pad(input, pad, mode="constant", value=None):
    """Pads the last dimensions, or cuts them where an amount is negative.

    Args:
        input: any shape and dtype; all but ``"constant"`` need one or two dimensions more than are padded.
        pad: amounts before and after the last dimension, then the one before it, and so on.
        mode: ``"constant"``, ``"reflect"`` (without repeating the edge), ``"replicate"`` or ``"circular"``.
        value: for ``"constant"``; 0 if None.

    Returns:
        The sizes of ``input``, plus the amounts. Its dtype.

    Raises:
        RuntimeError: there are too many amounts, or more than there is to reflect.
        NotImplementedError: the mode is not for that many dimensions.

    Examples:
        >>> F.pad(taeda.tensor([[1, 2, 3]]), (1, 2))
        tensor([[0, 1, 2, 3, 0, 0]])
        >>> F.pad(taeda.tensor([[1.0, 2.0, 3.0]]), (2, 0), mode="reflect")
        tensor([[3., 2., 1., 2., 3.]])
    """
    if type(mode) is not str or not isinstance(pad, (tuple, list)):
        what, kind, given = ("mode", "str", mode) if type(mode) is not str else ("pad", "a tuple of ints", pad)
        raise TypeError(f"pad(): argument {what!r} must be {kind}, not {type(given).__name__}")
    pad = _core.whole_numbers(pad, "pad", "pad")
    if mode == "constant":
        if value is not None and not isinstance(value, Tensor):
            if isinstance(value, complex):
                raise TypeError("pad(): argument 'value' (position 4) must be float, not complex")
            _core.fitting(float(value), input.dtype)
        return constant_pad_nd(input, pad, 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value:
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if isinstance(pad, tuple) and block_copy.fits(input, pad, mode):
        return edge_pad(input, pad, mode)
    count, dims = len(pad) // 2, input.dim()
    if len(pad) % 2 or count > dims or min(pad, default=0) < 0:
        _padded(input.shape, pad)  # raises the error
    if count not in (dims - 1, dims - 2):
        raise NotImplementedError(
            f"Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now: pad {list(pad)} with shape "
            f"{list(input.shape)}"
        )
    shape = tuple(input.shape)
    if mode != "circular" and 0 in shape[dims - count - 1 :]:
        raise RuntimeError(f"{mode} padding takes no empty dimension but that of the batch, got {list(shape)}")
    rest = [shape[dims - 1 - i] + pad[2 * i] + pad[2 * i + 1] for i in range(count)]
    if mode != "circular" and (min(rest, default=1) < 0 or max(rest, default=1) == 0):
        raise RuntimeError(f"{mode} padding {tuple(pad)} leaves nothing of input {list(shape)}")
    for i in range(count):
        before, after = pad[2 * i], pad[2 * i + 1]
        d = dims - 1 - i
        size = shape[d]
        if mode == "reflect" and max(before, after) >= size:
            raise RuntimeError(
                f"Padding size should be less than the corresponding input dimension, but got: padding ({before}, "
                f"{after}) at dimension {d} of input {list(input.shape)}"
            )
        left = size + min(before, 0) + min(after, 0)
        if mode == "circular" and max(before, after) > min(size, max(left, 0)):
            raise RuntimeError(
                f"Padding value causes wrapping around more than once: ({before}, {after}) at dimension {d} of "
                f"{list(input.shape)}"
            )
        if size == 0 and (before or after):
            raise RuntimeError(f"{mode} padding of dimension {d}, which has no elements (shape {list(input.shape)})")
        if mode == "circular" and left < size:
            input = narrow(input, d, max(-before, 0), left)
    amounts = tuple(max(n, 0) for n in pad)
    made = edge_pad(input, amounts, mode) if any(amounts) else input
    if min(pad) < 0 and mode != "circular":  # what is cut off may be shown beyond the other edge
        for i in range(count):
            d = dims - 1 - i
            made = narrow(made, d, max(-pad[2 * i], 0), shape[d] + pad[2 * i] + pad[2 * i + 1])
        made = made.contiguous()
    return made if any(amounts) else made.clone()  # a copy even where nothing is added
