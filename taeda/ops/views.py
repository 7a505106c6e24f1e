"""Views: the same memory with other sizes and strides."""

from __future__ import annotations

from .. import _core
from .._core import Tensor, renamed
from .._core import tensor as core
from .._core.plan import once_per_form
from .._warn import warn_once
from .creation import arange
from .table import OPS, Ints, alias, checked, composite, primitive, spread, view

# ---- dimensions ------------------------------------------------------------------------------------------------------


@view(core.view_transpose)
def transpose(input, dim0, dim1):
    """A view with dimensions ``dim0`` and ``dim1`` swapped.

    Args:
        dim0: a dimension; negative ones count from the end.
        dim1: the one to swap it with.
    Returns:
        A view of the sizes of ``input`` with those of the two dimensions swapped: no element moves.
    Raises:
        IndexError: there is no such dimension.
    Examples:
        >>> x = taeda.tensor([[1, 2, 3], [4, 5, 6]])
        >>> taeda.transpose(x, 0, 1)
        tensor([[1, 4],
                [2, 5],
                [3, 6]])
    """


def _permuted(input, dim0, dim1):
    order = list(range(input.dim()))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return input.permute(order)


transpose.traits["lowering"] = _permuted


transpose.vjp(input=lambda g, dim0, dim1: transpose(g, dim0, dim1))
swapaxes = alias(transpose, "swapaxes")
swapdims = alias(transpose, "swapdims")


@view(core.view_permute, variadic="dims", canonical=True)
def permute(input, dims):
    """A view with the dimensions in the order ``dims``: ``out.shape[i]`` is ``input.shape[dims[i]]``.

    Args:
        dims: every dimension once, as one list or tuple; the method takes them one by one too.
    Returns:
        A view of ``input``: no element moves.
    Raises:
        RuntimeError: a dimension is missing or occurs twice.
        IndexError: there is no such dimension.
    Examples:
        >>> image = taeda.zeros(32, 48, 3)  # height, width, channels
        >>> taeda.permute(image, (2, 0, 1)).shape
        taeda.Size([3, 32, 48])
    """


def _inverse(dims):
    inverse = [0] * len(dims)
    for i, d in enumerate(dims):
        inverse[d % len(dims)] = i
    return tuple(inverse)


permute.vjp(input=lambda g, dims: permute(g, _inverse(dims)))


@composite(native=True, moves=True)
def t(input):
    """The transpose of a matrix; a vector, or a tensor without dimensions, is given back.

    Args:
        input: a tensor of at most two dimensions.
    Returns:
        A view of ``input``, ``(n, m)`` for ``(m, n)``.
    Raises:
        RuntimeError: ``input`` has more dimensions.
    Examples:
        >>> taeda.t(taeda.tensor([[1, 2, 3], [4, 5, 6]]))
        tensor([[1, 4],
                [2, 5],
                [3, 6]])
    """
    if input.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.dim()}D")
    return transpose(input, 0, 1) if input.dim() == 2 else view_as_itself(input)


@once_per_form
def _moved(n, source, destination):
    """The order of ``n`` dimensions in which ``source`` are at ``destination``."""
    source = _core.whole_numbers(source, "movedim", "source")
    destination = _core.whole_numbers(destination, "movedim", "destination")
    source = source if isinstance(source, tuple) else (source,)
    destination = destination if isinstance(destination, tuple) else (destination,)
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number "
            f"of dims as destination ({list(destination)} dims)"
        )
    source = [_core.wrapped_dim(d, n, "movedim") for d in source]
    destination = [_core.wrapped_dim(d, n, "movedim") for d in destination]
    if len(set(source)) != len(source) or len(set(destination)) != len(destination):
        raise RuntimeError(f"movedim: repeated dim in source or destination ({source}, {destination})")
    order = [d for d in range(n) if d not in source]
    for at, d in sorted(zip(destination, source, strict=True)):
        order.insert(at, d)
    return tuple(order[:n])


@composite(names=("moveaxis",))
def movedim(input, source, destination):
    """A view with dimensions ``source`` moved to ``destination``; the others stay in their order.

    Args:
        source: a dimension, or several in a list or tuple.
        destination: where each goes.
    Returns:
        A view of ``input``: no element moves.
    Raises:
        RuntimeError: the numbers of dimensions differ, or one occurs twice.
        IndexError: there is no such dimension.
    Examples:
        >>> taeda.movedim(taeda.zeros(32, 48, 3), 2, 0).shape
        taeda.Size([3, 32, 48])
    """
    return permute(input, _moved(input.dim(), source, destination))


moveaxis = renamed(movedim, "moveaxis")


@view(core.view_squeeze, spreads="dim", canonical=True)
def squeeze(input, dim=None):
    """A view without the dimensions of size 1: all of them, or those in ``dim``.

    Name the dimension where you can: a batch of one example also has a size of 1.

    Args:
        dim: a dimension, or several in a tuple; those of another size than 1 stay. Default: all.
    Returns:
        A view of ``input``.
    Raises:
        IndexError: there is no such dimension.
    Examples:
        >>> x = taeda.tensor([[[1], [2], [3]]])
        >>> taeda.squeeze(x)
        tensor([1, 2, 3])
        >>> taeda.squeeze(x, 2)
        tensor([[1, 2, 3]])
    """


squeeze.vjp(input=lambda g, input_shape: reshape(g, input_shape))


@view(core.view_unsqueeze, canonical=True)
def unsqueeze(input, dim):
    """A view with a dimension of size 1 put in at ``dim``.

    Args:
        dim: the place of the new dimension in the result; negative ones count from its end.
    Returns:
        A view of the sizes of ``input`` with a 1 put in at ``dim``.
    Raises:
        IndexError: the result has no such dimension.
    Examples:
        >>> x = taeda.tensor([1, 2, 3])
        >>> taeda.unsqueeze(x, 0)
        tensor([[1, 2, 3]])
        >>> taeda.unsqueeze(x, 1)
        tensor([[1],
                [2],
                [3]])
    """


unsqueeze.vjp(input=lambda g, input_shape: reshape(g, input_shape))


@view(core.view_expand, variadic="size", canonical=True)
def expand(input, size, *, implicit=False):
    """A view in which dimensions of size 1 are repeated, without copying.

    Args:
        size: the sizes of the result; -1 keeps a size, leading ones are added. Also one by one.
        implicit: accepted.
    Returns:
        A view of ``input``, whose elements may not be written one by one.
    Raises:
        RuntimeError: a size other than 1 would change, or there are fewer sizes than dimensions.
    Examples:
        >>> taeda.tensor([[1], [2]]).expand(2, 3)
        tensor([[1, 1, 1],
                [2, 2, 2]])
    """


expand.vjp(input=lambda g, input_shape: sum_to(g, input_shape))


@composite(meta="shape")
def expand_as(input, other):
    """:meth:`Tensor.expand` to the sizes of ``other``.

    Args:
        other: a tensor with the sizes.
    Returns:
        A view of ``input``.
    Raises:
        RuntimeError: ``input`` cannot be expanded to these sizes.
    Examples:
        >>> taeda.tensor([[1], [2]]).expand_as(taeda.zeros(2, 3))
        tensor([[1, 1, 1],
                [2, 2, 2]])
    """
    return expand(input, other.shape)


@composite(method=False)
def broadcast_to(input, size: Ints):
    """``input`` expanded to the sizes ``size``: dimensions of size 1 are repeated, without copying.

    Args:
        size: the sizes of the result; missing leading dimensions are added.
    Returns:
        A view of ``input``, whose elements may not be written one by one.
    Raises:
        RuntimeError: a size other than 1 would change.
    Examples:
        >>> taeda.broadcast_to(taeda.tensor([1, 2, 3]), (2, 3))
        tensor([[1, 2, 3],
                [1, 2, 3]])
    """
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"broadcast_to(): argument 'size' must be a tuple of ints, not {type(size).__name__}")
    return expand(input, size)


_core.install("broadcast_to", expand)


@composite(method=False)
def broadcast_shapes(*shapes):
    """The shape to which shapes broadcast: aligned at the last dimension, where sizes are equal or 1.

    Args:
        shapes: tuples of sizes, or single sizes.
    Returns:
        A :class:`Size`.
    Raises:
        RuntimeError: the shapes do not broadcast.
    Examples:
        >>> taeda.broadcast_shapes((5, 1), (3,), (1, 1))
        taeda.Size([5, 3])
    """
    shapes = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    if any(size < 0 for shape in shapes for size in shape):
        raise ValueError(f"broadcast_shapes: sizes are not negative, got {', '.join(map(str, shapes))}")
    if shapes and shapes.count(shapes[0]) == len(shapes):
        return _core.Size(shapes[0])
    n = max((len(shape) for shape in shapes), default=0)
    result = [1] * n
    for shape in shapes:
        for i, size in enumerate(shape):
            at = n - len(shape) + i
            if size != 1 and size != result[at]:
                if result[at] != 1:
                    raise RuntimeError(
                        "Shape mismatch: objects cannot be broadcast to a single shape: " + ", ".join(map(str, shapes))
                    )
                result[at] = size
    return _core.Size(result)


@composite(method=False)
def broadcast_tensors(*tensors):
    """Every tensor expanded to the shape to which all broadcast.

    Args:
        tensors: tensors.
    Returns:
        A tuple of views, each of the dtype of its tensor.
    Raises:
        RuntimeError: the shapes do not broadcast.
    Examples:
        >>> column, row = taeda.tensor([[10], [20]]), taeda.tensor([1, 2, 3])
        >>> taeda.broadcast_tensors(column, row)[0]
        tensor([[10, 10, 10],
                [20, 20, 20]])
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    shape = broadcast_shapes(*[x.shape for x in tensors])
    return tuple([x if x.shape == shape else expand(x, shape) for x in tensors])


@composite()
def sum_to_size(input, *args, size=None):
    """Sums over dimensions so that the result has the given sizes: the adjoint of :meth:`Tensor.expand`.

    Args:
        args: the sizes, one by one or as one list or tuple, which expand to those of ``input``.
        size: the same by name.
    Returns:
        A tensor of those sizes, of the dtype that :func:`sum` gives where something is summed.
    Raises:
        RuntimeError: the sizes do not expand to those of ``input``.
    Examples:
        >>> taeda.ones(2, 3).sum_to_size(1, 3)
        tensor([[2., 2., 2.]])
    """
    shape = tuple(spread(args, size))
    if tuple(input.shape) == shape:
        return input if shape else input.sum()
    lead = input.dim() - len(shape)
    if lead < 0 or any(n != 1 and n != input.shape[lead + i] for i, n in enumerate(shape)):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(input.shape)}}}.")
    return sum_to(input, shape)


def sum_to(g, shape):
    """``g`` summed over the dimensions that sizes ``shape`` were broadcast along: for derivatives, nothing is
    checked."""
    sizes = g.shape
    lead = len(sizes) - len(shape)
    if sizes[lead:] == shape:  # as of a bias
        return g if not lead else g.sum(0) if lead == 1 else g.sum(tuple(range(lead)))
    dims = [*range(lead), *(i + lead for i, n in enumerate(shape) if n == 1 and sizes[i + lead] != 1)]
    return reshape(g.sum(dims), shape)


# ---- sizes -----------------------------------------------------------------------------------------------------------


@view(core.view_view, variadic="size", canonical=True, name="view")
def view_(input, size=None, dtype=None):
    """A view of the same elements with other sizes, or of the same bytes as another dtype.

    Args:
        size: the sizes, one by one or as one list or tuple; one may be -1, which stands for what is left. Or a dtype.
        dtype: a dtype by name.
    Returns:
        A view of ``input`` of the sizes ``size``, or of the other dtype.
    Raises:
        RuntimeError: the numbers of elements differ, or the strides do not allow a view: use :meth:`Tensor.reshape`.
    Examples:
        >>> x = taeda.arange(6)
        >>> x.view(2, 3)
        tensor([[0, 1, 2],
                [3, 4, 5]])
        >>> taeda.tensor([1.0]).view(taeda.int32)
        tensor([1065353216], dtype=taeda.int32)
    """


def _view_backward(g, input_shape, size, dtype):
    if isinstance(size, _core.dtype) or dtype is not None:
        raise RuntimeError("view(dtype): the derivative of a reinterpretation of bits is not defined")
    return reshape(g, input_shape)


view_.vjp(input=_view_backward)


@view(core.view_reshape, variadic="shape", node="View", canonical=True)
def reshape(input, shape):
    """The elements in row-major order with the sizes ``shape``.

    Args:
        shape: sizes with as many elements as ``input`` has; one may be -1, which stands for the size that is left.
    Returns:
        A view of ``input`` where its strides allow, else a copy.
    Raises:
        RuntimeError: the numbers of elements differ.
    Examples:
        >>> x = taeda.arange(6)
        >>> taeda.reshape(x, (2, 3))
        tensor([[0, 1, 2],
                [3, 4, 5]])
        >>> x.reshape(3, -1).shape
        taeda.Size([3, 2])
    """


reshape.vjp(input=lambda g, input_shape: reshape(g, input_shape))


@composite(meta="shape")
def view_as(input, other):
    """A view with the sizes of ``other``.

    Args:
        other: a tensor with as many elements.
    Returns:
        A view of ``input``.
    Raises:
        RuntimeError: as of :meth:`Tensor.view`.
    Examples:
        >>> taeda.arange(4).view_as(taeda.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    return view_(input, other.shape)


@composite(meta="shape")
def reshape_as(input, other):
    """:func:`reshape` to the sizes of ``other``.

    Args:
        other: a tensor with as many elements.
    Returns:
        A view where strides allow, else a copy.
    Raises:
        RuntimeError: the sizes are not for as many elements.
    Examples:
        >>> taeda.arange(4).reshape_as(taeda.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    return reshape(input, other.shape)


@composite()
def flatten(input, start_dim=0, end_dim=-1):
    """Dimensions ``start_dim`` to ``end_dim`` merged into one.

    Args:
        input: a tensor of any sizes; without dimensions it becomes a vector of one element.
        start_dim: the first dimension to merge; negative ones count from the end.
        end_dim: the last one.
    Returns:
        A view where strides allow, else a copy.
    Raises:
        IndexError: there is no such dimension.
        RuntimeError: ``start_dim`` is behind ``end_dim``.
    Examples:
        >>> images = taeda.zeros(10, 3, 8, 8)
        >>> taeda.flatten(images, 1).shape  # one vector per image
        taeda.Size([10, 192])
    """
    if end_dim == -1 and start_dim == 0 and input.dim() > 1:  # the common case, first
        return reshape(input, (-1,))
    sizes = core.merged_sizes(input, start_dim, end_dim)
    return input if sizes is None else reshape(input, sizes)


@composite()
def ravel(input):
    """All elements in one dimension, in row-major order.

    Returns:
        A vector: a view where strides allow, else a copy.
    Examples:
        >>> taeda.ravel(taeda.tensor([[1, 2], [3, 4]]))
        tensor([1, 2, 3, 4])
    """
    return reshape(input.contiguous(), (-1,))


@composite()
def unflatten(input, dim, sizes):
    """Dimension ``dim`` split into ``sizes``: the reverse of :func:`flatten`.

    Args:
        input: a tensor of at least one dimension.
        dim: the dimension to split.
        sizes: what it becomes; one may be -1.
    Returns:
        A view of ``input``.
    Raises:
        RuntimeError: the product of ``sizes`` is not the size of the dimension.
    Examples:
        >>> heads = taeda.unflatten(taeda.zeros(10, 64), 1, (8, 8))
        >>> heads.shape
        taeda.Size([10, 8, 8])
    """
    at = _core.wrapped_dim(dim, input.dim(), "unflatten")
    sizes = tuple(sizes) if not isinstance(sizes, int) else (sizes,)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    size = input.shape[at]
    known = 1
    for n in sizes:
        known *= n if n != -1 else 1
    if (-1 not in sizes and known != size) or (-1 in sizes and (known == 0 or size % known)):
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {at} ({size}) in the input"
        )
    sizes = tuple(size // known if n == -1 else n for n in sizes)
    return view_(input, (*input.shape[:at], *sizes, *input.shape[at + 1 :]))


def view_as_itself(input):
    """A view of all of ``input``."""
    return view_alias(input)


@view(lambda input: _core.strided_view(input, input.shape, input.stride()), method=False)
def view_alias(input):
    """A differentiable view with the same sizes and strides."""


view_alias.traits["lowering"] = lambda input: input[...]
view_alias.traits["native_call"] = lambda x: ("alias.default", (x,))
view_alias.vjp(input=lambda g: g)


# ---- parts -----------------------------------------------------------------------------------------------------------


def _index_name(saved):
    """The name of the last step of PyTorch's, which takes one index at a time."""
    index = saved.get("index")
    steps = [i for i in (index if isinstance(index, tuple) else (index,)) if i is not Ellipsis and i != slice(None)]
    if not steps:
        return "Alias"
    return "Unsqueeze" if steps[-1] is None else "Slice" if isinstance(steps[-1], slice) else "Select"


@view(core.basic_getitem, method=False, node=_index_name)
def basic_index(input, index):
    """A view for an index made of ints, slices, None and Ellipsis."""


def _place(g, input_shape, index):
    return index_backward(g, input_shape, index)


basic_index.vjp(input=_place)
_core.bind_getitem(basic_index)
basic_index.traits["operator"] = "__getitem__"


@primitive(method=False, out=False, moves=True)
def index_backward(grad, shape, index):
    """Zeros of sizes ``shape`` with ``grad`` at ``index``: the adjoint of basic indexing."""
    result = zeros(shape, grad.dtype)
    _core.copy_tensor(core.basic_getitem(result, index), grad)
    return result


def _placed(grad, shape, index):
    result = grad.new_zeros(shape)
    result[index] = grad
    return result


index_backward.traits["lowering"] = _placed
index_backward.vjp(grad=lambda g, index: basic_index(g, index))


def zeros(shape, dtype):
    """A zero-filled tensor; the low-level form that derivatives use."""
    result = _core.empty(shape, dtype)
    core.zero(result)
    return result


def blank(like, shape):
    """Zeros for an op that writes into a copy of them: they are one zero in memory, so only the copy is filled."""
    return like.new_zeros(()).expand(shape)


@view(core.view_select, canonical=True)
def select(input, dim, index: int):
    """The slice at ``index`` along ``dim``, without that dimension: ``input[index]`` for ``dim=0``.

    Args:
        input: a tensor of at least one dimension.
        dim: the dimension that is indexed.
        index: an int; negative ones count from the end.
    Returns:
        A view of the sizes of ``input`` without that of ``dim``.
    Raises:
        IndexError: there is no such dimension or index.
    Examples:
        >>> taeda.select(taeda.tensor([[1, 2, 3], [4, 5, 6]]), 1, 2)
        tensor([3, 6])
    """


def _at(dim, index, n):
    return (slice(None),) * (dim % n) + (index,)


select.vjp(input=lambda g, input_shape, dim, index: index_backward(g, input_shape, _at(dim, index, len(input_shape))))


@view(core.view_slice, method=False)
def slice_view(input, dim=0, start=None, end=None, step=1):
    """A view of every ``step``-th element from ``start`` to before ``end`` along ``dim``."""


slice_view.traits["native_call"] = lambda input, dim=0, start=None, end=None, step=1: (
    "slice.Tensor", (input, dim, start, end, *([] if step == 1 else [step])),
)  # fmt: skip
slice_view.traits["lowering"] = lambda input, dim, start, end, step: input[
    _at(dim, slice(start, end, step), input.dim())
]
slice_view.vjp(
    input=lambda g, input_shape, dim, start, end, step: index_backward(
        g, input_shape, _at(dim, slice(start, end, step), len(input_shape))
    )
)


@composite()
def narrow(input, dim, start, length: int):
    """``length`` elements from ``start`` along ``dim``: ``input[start:start + length]`` for ``dim=0``.

    Args:
        input: a tensor of at least one dimension.
        dim: the dimension that is cut.
        start: the first index, an int or a tensor without dimensions; negative ones count from the end.
        length: how many.
    Returns:
        A view of ``input``.
    Raises:
        RuntimeError: the range goes past the end.
        IndexError: there is no such dimension.
    Examples:
        >>> taeda.narrow(taeda.tensor([[1, 2, 3], [4, 5, 6]]), 1, 1, 2)
        tensor([[2, 3],
                [5, 6]])
    """
    n = input.dim()
    if start.__class__ is int and -n <= dim < n and 0 <= start <= start + length <= input.size(dim):
        return slice_view(input, dim, start, start + length, 1)  # the common case, first
    if input.dim() == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    at = _core.wrapped_dim(dim, input.dim(), "narrow")
    size = input.shape[at]
    if isinstance(start, Tensor) and (start.dim() or start.dtype is _core.bool_ or start.dtype.is_floating_point):
        raise RuntimeError(
            f"narrow(): start must be an 0-dim integral Tensor, got {start.dtype}, shape {list(start.shape)}"
        )
    start = int(start) if isinstance(start, Tensor) else _core.whole_numbers(start, "narrow", "start")
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative, got {length}")
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    if start < 0:
        start += size
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return slice_view(input, at, start, start + length, 1)


narrow.lowering = lambda input, dim, start, length: input[_at(dim, slice(start, start + length), input.dim())]


@view(core.view_diagonal, canonical=True)
def diagonal(input, offset=0, dim1=0, dim2=1):
    """The diagonal of dimensions ``dim1`` and ``dim2``, as the last dimension: ``out[..., i] = input[..., i, i +
    offset]``.

    Args:
        input: a tensor of at least two dimensions.
        offset: which diagonal: 0 the main one, positive ones above it.
        dim1: the dimension of the rows.
        dim2: that of the columns.
    Returns:
        A view of the sizes of ``input`` without those of ``dim1`` and ``dim2``, then the length of the diagonal.
    Raises:
        RuntimeError: the dimensions are the same.
        IndexError: there is no such dimension.
    Examples:
        >>> x = taeda.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
        >>> taeda.diagonal(x)
        tensor([1, 5, 9])
        >>> taeda.diagonal(x, 1)
        tensor([2, 6])
    """


@primitive(method=False, out=False)
def diagonal_backward(grad, shape, offset, dim1, dim2):
    """Zeros with ``grad`` on a diagonal."""
    result = zeros(shape, grad.dtype)
    _core.copy_tensor(core.view_diagonal(result, offset, dim1, dim2), grad)
    return result


def on_diagonal(src, input, offset, dim1, dim2):
    """``input`` with ``src`` on a diagonal, by a comparison of coordinates."""
    n = input.dim()
    first, second = dim1 % n, dim2 % n
    order = [*(d for d in range(n) if d not in (first, second)), first, second]
    base = permute(input, order)
    rows, columns = base.shape[-2:]
    side = rows if offset >= 0 else columns
    if src.shape[-1] != side:
        src = OPS["constant_pad_nd"](src, (0, side - src.shape[-1]))
    src = unsqueeze(src, -1 if offset >= 0 else -2)
    here = unsqueeze(arange(rows), -1) + offset == arange(columns)
    return permute(OPS["where"](here, src, base), _inverse(order))


diagonal_backward.traits["lowering"] = lambda grad, shape, offset, dim1, dim2: on_diagonal(
    grad, grad.new_zeros(shape), offset, dim1, dim2
)
diagonal_backward.vjp(grad=lambda g, offset, dim1, dim2: diagonal(g, offset, dim1, dim2))
diagonal.vjp(input=lambda g, input_shape, offset, dim1, dim2: diagonal_backward(g, input_shape, offset, dim1, dim2))


@view(core.view_unfold)
def unfold(input, dimension, size: int, step: int):
    """A view of windows along a dimension; the window is the last dimension of the result.

    Args:
        input: a tensor of at least one dimension.
        dimension: which one.
        size: elements in a window.
        step: elements from a window to the next.
    Returns:
        A view of the sizes of ``input``, but with ``(size_of_dimension - size) // step + 1`` windows in
        ``dimension``, and ``size`` at the end.
    Raises:
        RuntimeError: ``size`` is larger than the dimension, or ``step`` is not positive.
    Examples:
        >>> taeda.arange(5).unfold(0, 3, 1)
        tensor([[0, 1, 2],
                [1, 2, 3],
                [2, 3, 4]])
    """


@primitive(method=False, out=False)
def unfold_backward(grad, shape, dimension, size, step):
    """Sum windows back to where they came from."""
    result = zeros(shape, grad.dtype)
    if not shape:
        _core.copy_tensor(core.view_unfold(result, dimension, size, step), grad)
        return result
    windows = core.view_unfold(result, dimension, size, step)
    last = windows.dim() - 1
    for i in range(size):
        place = core.view_select(windows, last, i)
        place.add_(core.view_select(grad, last, i))
    return result


unfold_backward.vjp(grad=lambda g, dimension, size, step: unfold(g, dimension, size, step))
unfold.vjp(input=lambda g, input_shape, dimension, size, step: unfold_backward(g, input_shape, dimension, size, step))


@composite(canonical=True)
def as_strided(input, size, stride, storage_offset: int | None = None):
    """A view with any sizes and strides on the memory of ``input``: element ``(i, j)`` is at ``storage_offset + i *
    stride[0] + j * stride[1]``.

    Args:
        input: a tensor of any sizes; only its memory counts.
        size: the sizes.
        stride: the strides, in elements, none of them negative.
        storage_offset: the first element. Default: that of ``input``.
    Returns:
        A view of the memory, in which elements may occur several times.
    Raises:
        RuntimeError: it would reach beyond the memory, or sizes and strides have different lengths.
    Examples:
        >>> x = taeda.arange(5)
        >>> taeda.as_strided(x, (3, 3), (1, 1))  # windows of three, without a copy
        tensor([[0, 1, 2],
                [1, 2, 3],
                [2, 3, 4]])
    """
    if any(step < 0 for step in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    return _view_of_storage(input, size, stride, storage_offset)


def _view_of_storage(input, size, stride, storage_offset=None):
    own = input.storage_offset()
    return strided_window(input, size, stride, own if storage_offset is None else storage_offset, input.stride(), own)


@view(lambda input, size, stride, offset, *own: core.view_as_strided(input, size, stride, offset), method=False)
def strided_window(input, size, stride, storage_offset, input_stride, input_offset):
    """:func:`as_strided`, told the strides and the offset of ``input``, which its derivative needs."""


strided_window.traits["native_call"] = lambda input, size, stride, offset, own_stride, own_offset: (
    "as_strided.default",
    (input, list(size), list(stride), *(() if offset == own_offset else (offset,))),
)


def _as_strided_backward(g, input_shape, size, stride, storage_offset, input_stride, input_offset):
    """Gradients add up where elements of the view share memory. Computed on the input's own storage layout."""
    offset = storage_offset - input_offset
    low = min(offset + sum(min((n - 1) * st, 0) for n, st in zip(size, stride, strict=True)), 0)
    low = min(low, sum(min((n - 1) * st, 0) for n, st in zip(input_shape, input_stride, strict=True)))
    high = offset + sum(max((n - 1) * st, 0) for n, st in zip(size, stride, strict=True))
    span = max(high, sum(max((n - 1) * st, 0) for n, st in zip(input_shape, input_stride, strict=True))) - low + 1
    index = _view_of_storage(arange(span), size, stride, offset - low).reshape(-1)
    flat = g.new_zeros(span).index_add(0, index, g.reshape(-1))
    if _overlaps(input_shape, input_stride):  # a place that several elements of the input show: each has its share
        shown = _view_of_storage(arange(span), input_shape, input_stride, -low).reshape(-1)
        counts = g.new_zeros(span, dtype=g.dtype.to_real())
        flat = flat / counts.index_add(0, shown, counts.new_ones(shown.shape)).clamp(min=1)
    return _view_of_storage(flat, input_shape, input_stride, -low)


strided_window.vjp(input=_as_strided_backward)


def _overlaps(sizes, strides):
    """Whether elements may share memory (True also for a few odd layouts in which none do)."""
    reach = 0
    for step, n in sorted((abs(st), n) for n, st in zip(sizes, strides, strict=True) if n > 1):
        if step <= reach:
            return True
        reach += step * (n - 1)
    return False


# ---- complex ---------------------------------------------------------------------------------------------------------


@view(core.view_as_real_body, method=False)
def view_as_real(input):
    """A complex tensor as a real one with a last dimension ``(real, imaginary)``.

    Args:
        input: complex, any sizes.
    Returns:
        A view of ``input``, of sizes ``(*input.shape, 2)`` and of the dtype of its parts.
    Raises:
        RuntimeError: ``input`` is not complex, or is a conjugated view.
    Examples:
        >>> taeda.view_as_real(taeda.tensor([1 + 2j, 3 - 4j]))
        tensor([[ 1.,  2.],
                [ 3., -4.]])
    """


@view(core.view_as_complex_body, method=False, autocast="float32")
def view_as_complex(input):
    """A real tensor whose last dimension is ``(real, imaginary)`` as a complex one.

    Args:
        input: ``float16``, ``float32`` or ``float64``, of sizes ``(..., 2)``; the last dimension has stride 1.
    Returns:
        A view of the sizes of ``input`` without the last, with the complex dtype of that precision.
    Raises:
        RuntimeError: the dtype, the last size or the strides are others.
    Examples:
        >>> taeda.view_as_complex(taeda.tensor([[1.0, 2.0], [3.0, -4.0]]))
        tensor([1.+2.j, 3.-4.j])
    """


view_as_real.vjp(input=lambda g: view_as_complex(g.contiguous()))
view_as_complex.vjp(input=lambda g: view_as_real(g.resolve_conj()))


@view(
    core.view_real, method=False, additive=True,
    lowering=lambda input: view_as_real(input)[..., 0] if input.is_complex() else input,
)  # fmt: skip
def real(input):
    """The real part; a real tensor is given back.

    Returns:
        A view of the sizes of ``input``, real: of the dtype of its parts.
    Examples:
        >>> taeda.real(taeda.tensor([1 + 2j, 3 - 4j]))
        tensor([1., 3.])
    """


@view(core.view_imag, method=False, lowering=lambda input: view_as_real(input)[..., 1])
def imag_view(input):
    """The imaginary part, as a view."""


@composite(method=False, additive=True)
def imag(input):
    """The imaginary part of a complex tensor.

    Args:
        input: complex, any sizes.
    Returns:
        A view of the sizes of ``input``, real: of the dtype of its parts.
    Raises:
        RuntimeError: ``input`` is real.
    Examples:
        >>> taeda.imag(taeda.tensor([1 + 2j, 3 - 4j]))
        tensor([ 2., -4.])
    """
    if not input.is_complex():
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return imag_view(input)


def _part_of_complex(g, part):
    """``g`` as the real parts (``part`` 0) or the imaginary ones (1) of complex numbers whose other parts are 0."""
    return view_as_complex(index_backward(g, (*g.shape, 2), (Ellipsis, part)))


real.vjp(input=lambda g, input_dtype: _part_of_complex(g, 0) if input_dtype.is_complex else g)
imag_view.vjp(input=lambda g: _part_of_complex(g, 1))


# ---- properties of Tensor --------------------------------------------------------------------------------------------


def _warn_of_order(dims):
    if dims == 0:
        warn_once("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.", 4)
    else:
        warn_once(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*taeda.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.",
            4,
        )


def _reversed(input):
    """The dimensions in reverse order, as a view: of a matrix the transpose. Others than matrices are deprecated; see
    ``mT`` and ``permute``.

    Examples:
        >>> taeda.tensor([[1, 2, 3], [4, 5, 6]]).T
        tensor([[1, 4],
                [2, 5],
                [3, 6]])
    """
    dims = input.dim()
    if dims == 2:
        return permute(input, (1, 0))
    _warn_of_order(dims)
    return permute(input, tuple(range(dims - 1, -1, -1)))


def _matrix_transpose(input):
    """The last two dimensions swapped, as a view: the transposes of matrices.

    Examples:
        >>> taeda.zeros(10, 2, 3).mT.shape
        taeda.Size([10, 3, 2])
    """
    if input.dim() == 0:
        return input
    if input.dim() < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {input.dim()}-D tensor."
        )
    return transpose(input, -2, -1)


@composite()
def adjoint(input):
    """The conjugate transpose of the last two dimensions: ``out[..., i, j] = conj(input[..., j, i])``.

    Args:
        input: a tensor of at least two dimensions.
    Returns:
        A view of ``input``, ``(..., n, m)`` for ``(..., m, n)``.
    Raises:
        RuntimeError: ``input`` is a vector.
    Examples:
        >>> taeda.adjoint(taeda.tensor([[1 + 1j, 2], [3, 4j]]))
        tensor([[1.-1.j, 3.-0.j],
                [2.-0.j, 0.-4.j]])
    """
    return _matrix_transpose(input).conj()


def _hermitian(input):
    """The conjugate transpose of a matrix; a tensor without dimensions is given back.

    Examples:
        >>> taeda.tensor([[1 + 1j, 2], [3, 4]]).H.resolve_conj()[0]
        tensor([1.-1.j, 3.-0.j])
    """
    if input.dim() not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {input.dim()}-D tensor.")
    return transpose(input, 0, 1).conj() if input.dim() else input.conj()


def _set_part(part):
    def write(input, value):
        part(input).copy_(value) if isinstance(value, Tensor) else part(input).fill_(value)

    return write


for _name, _getter, _setter in (
    ("T", _reversed, None), ("mT", _matrix_transpose, None), ("H", _hermitian, None), ("mH", adjoint, None),
    ("real", real, _set_part(real)), ("imag", imag, _set_part(imag)),
):  # fmt: skip
    _core.install(_name, property(_getter, _setter, doc=_getter.__doc__))


# ---- in-place and copying forms of views -----------------------------------------------------------------------------


def _replace(input, made):
    """Make ``input`` the view ``made``: an in-place change of sizes and strides, not of elements."""
    if hasattr(made, "_replace"):
        return made._replace(input)
    return core.change_form(input, made)


def _in_place_view(function, name):
    def form(input, *args, **kwargs):
        return _replace(input, function(input, *args, **kwargs))

    form.__name__ = form.__qualname__ = name
    form.__doc__ = f"In-place form of :func:`{name[:-1]}`: changes sizes and strides, moves nothing."
    form.meta, form.functional = "form", function  # type: ignore[attr-defined]
    form.__wrapped__ = function  # type: ignore[attr-defined]
    _core.install(name, _core.Composite(form, **checked(form)))


for _function, _name in (
    (squeeze, "squeeze_"), (unsqueeze, "unsqueeze_"), (transpose, "transpose_"), (transpose, "swapaxes_"),
    (transpose, "swapdims_"), (t, "t_"), (as_strided, "as_strided_"),
):  # fmt: skip
    _in_place_view(_function, _name)


@composite(
    lowering=lambda input, size, stride, dtype, device: OPS["empty_strided"](
        size, stride, dtype=dtype or input.dtype, device=input.device if device is None else device
    ),
    native=True,
)
def new_empty_strided(input, size, stride, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A tensor of the given sizes and strides with the dtype and the device of ``input``, whose elements are not set.

    Args:
        size: a list or tuple of sizes.
        stride: the strides, in elements.
    Returns:
        A tensor of those sizes.
    Raises:
        RuntimeError: there are not as many strides as sizes.
    Examples:
        >>> taeda.ones(1).new_empty_strided((2, 3), (1, 2)).stride()
        (1, 2)
    """
    return _core.empty_strided(size, stride, dtype or input.dtype).requires_grad_(requires_grad)


@composite(meta="values")
def is_nonzero(input):
    """Whether the one element of ``input`` is not zero, as a Python bool: what ``if x:`` asks.

    Args:
        input: a tensor of one element.
    Returns:
        A bool.
    Raises:
        RuntimeError: ``input`` has no element, or several.
    Examples:
        >>> taeda.is_nonzero(taeda.tensor([0.0]))
        False
    """
    return bool(input)


@composite()
def dim_order(input, *, ambiguity_check=False):
    """The dimensions from the outermost in memory to the innermost.

    Args:
        ambiguity_check: raise an error where several orders are right; or a list of memory formats to choose from.
    Returns:
        A tuple of ints.
    Raises:
        RuntimeError: the order is not unique, with ``ambiguity_check``.
    Examples:
        >>> taeda.zeros(2, 3, 4).transpose(0, 2).dim_order()
        (2, 1, 0)
    """
    if ambiguity_check:
        if isinstance(ambiguity_check, (list, tuple)):
            clear = sum(input.is_contiguous(memory_format=form) for form in ambiguity_check) == 1
        else:
            clear = 1 not in input.shape and len(set(input.stride())) == input.dim()
        if not clear:
            raise RuntimeError(
                f"dim_order: a tensor of shape {tuple(input.shape)} and strides {input.stride()} does not have unique "
                f"dim order, or is not in exactly one of the given memory formats"
            )
    return tuple(sorted(range(input.dim()), key=lambda d: (-input.stride(d), d)))


@composite()
def as_subclass(input, cls):
    """``input`` as an object of a subclass of Tensor: a view of it.

    Args:
        cls: the class.
    Returns:
        An object of that class, with the memory, the sizes and the dtype of ``input``.
    Raises:
        TypeError: ``cls`` is no subclass of Tensor.
    Examples:
        >>> class Image(taeda.Tensor):
        ...     pass
        >>> type(taeda.zeros(2, 2).as_subclass(Image)).__name__
        'Image'
    """
    if hasattr(input, "_of_class"):
        return input._of_class(cls)
    cls = getattr(cls, "_alone", cls)  # the class that vmap wrapped
    recorded = _core.is_recorded() or not input.requires_grad
    if recorded and input._without_memory is None:  # of sparse and nested tensors there are no views
        input = _core.label_node(input.view_as(input), "AliasBackward0")
    return core.as_subclass(input, cls)
