"""Joining tensors, and splitting them: each is the derivative of the other."""

from __future__ import annotations

from itertools import pairwise
from operator import index

from .. import _core
from .._core import Tensor, block_copy, renamed
from .._core import tensor as core
from .._core.callbacks import callbacks
from .table import Ints, alias, composite, is_index, primitive, view
from .views import reshape, slice_view, unsqueeze

callbacks.copy_transposed = block_copy.copy_transposed


@primitive(
    block_copy.cat, method=False, out="type", out_apart=("tensors",), autocast="widest", canonical=True, moves=True
)  # fmt: skip
def cat(tensors, dim=0):
    """The tensors one after the other along a dimension that they have.

    Args:
        tensors: a list or tuple of tensors of equal sizes except in ``dim``. Vectors without elements are passed over.
        dim: the dimension to join along.
    Returns:
        The sizes of the tensors, with their sum in ``dim``. The dtype is the one to which all promote.
    Raises:
        RuntimeError: other sizes differ.
        ValueError: there is no tensor.
        IndexError: there is no such dimension.
    Examples:
        >>> a, b = taeda.tensor([[1, 2]]), taeda.tensor([[3, 4], [5, 6]])
        >>> taeda.cat((a, b))
        tensor([[1, 2],
                [3, 4],
                [5, 6]])
        >>> taeda.cat((a.t(), b), dim=1)
        tensor([[1, 3, 4],
                [2, 5, 6]])
    """


def _cat_backward(g, tensors_shape, dim, needs):
    n = g.dim()
    at = dim % max(n, 1)
    grads, start = [], 0
    for shape, needed in zip(tensors_shape, needs, strict=True):
        if len(shape) != n:  # a one-dimensional empty tensor among others
            grads.append(g.new_zeros(shape) if needed else None)
            continue
        stop = start + shape[at]
        grads.append(slice_view(g, at, start, stop, 1) if needed else None)
        start = stop
    return grads


cat.vjp(tensors=_cat_backward)
concat = alias(cat, "concat", method=False)
concatenate = alias(cat, "concatenate", method=False)


@primitive(block_copy.stack, method=False, out="type", out_apart=("tensors",), autocast="widest", moves=True)
def stack(tensors, dim=0):
    """The tensors side by side along a new dimension: ``stack(tensors)[i]`` is ``tensors[i]``.

    Args:
        tensors: a list or tuple of tensors of one shape.
        dim: where the new dimension goes, from 0 to the number of dimensions; negative ones count from the end.
    Returns:
        The sizes of one tensor, with ``len(tensors)`` put in at ``dim``. The dtype is the one to which all promote.
    Raises:
        RuntimeError: the shapes differ, or there is no tensor.
        IndexError: ``dim`` is out of range.
    Examples:
        >>> a, b = taeda.tensor([1, 2, 3]), taeda.tensor([4, 5, 6])
        >>> taeda.stack((a, b))
        tensor([[1, 2, 3],
                [4, 5, 6]])
        >>> taeda.stack((a, b), dim=1)
        tensor([[1, 4],
                [2, 5],
                [3, 6]])
    """


stack.traits["lowering"] = lambda tensors, dim: cat([x.unsqueeze(dim) for x in tensors], dim)


stack.vjp(tensors=lambda g, dim: list(unbind(g, dim)))


@primitive(
    method=False,
    out=False,
    decomposition=lambda pieces, dim, stacked: stack(pieces, dim) if stacked else cat(pieces, dim),
)
def adjoined(pieces, dim, stacked):
    """``pieces`` joined without a copy where they lie side by side already, as gradients that attention makes.

    For derivatives: nothing else writes to their pieces. ``stacked``: along a new dimension.
    """
    joined = block_copy.adjoining(pieces, dim, stacked)
    return (stack if stacked else cat)(pieces, dim) if joined is None else joined


# ---- by direction ----------------------------------------------------------------------------------------------------


def _each(tensors, function):
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        made = tuple(function(x) for x in tensors[0])
        return made if isinstance(tensors[0], tuple) else type(tensors[0])(made)
    return function(tensors[0]) if len(tensors) == 1 else tuple(function(x) for x in tensors)


def _at_least(x, n):
    missing = n - x.dim()
    if missing <= 0:
        return x
    shape = tuple(x.shape)
    if n == 3:  # a vector is a row in the middle, a matrix a plane
        return reshape(x, (*shape, 1) if len(shape) == 2 else (1, *shape, 1) if shape else (1, 1, 1))
    return reshape(x, (1,) * missing + shape)


@composite(method=False)
def atleast_1d(*tensors):
    """Tensors without dimensions as vectors of one element; others as they are.

    Args:
        tensors: one or more tensors, or a list or tuple of them.
    Returns:
        A tensor for one argument, else a tuple. Views, of the dtypes of the arguments.
    Examples:
        >>> taeda.atleast_1d(taeda.tensor(3))
        tensor([3])
    """
    return _each(tensors, lambda x: _at_least(x, 1))


@composite(method=False)
def atleast_2d(*tensors):
    """Tensors of fewer than two dimensions as matrices of one row; others as they are.
    The rest as of :func:`atleast_1d`.

    Returns:
        A tensor for one argument, else a tuple: ``()`` becomes ``(1, 1)``, and ``(n,)`` becomes ``(1, n)``. Views, of
        the dtypes of the arguments.

    Examples:
        >>> taeda.atleast_2d(taeda.tensor([1, 2]))
        tensor([[1, 2]])
    """
    return _each(tensors, lambda x: _at_least(x, 2))


@composite(method=False)
def atleast_3d(*tensors):
    """Tensors of fewer than three dimensions with dimensions of size 1 added; others as they are.

    Args:
        tensors: one or more tensors, or a list or tuple of them.
    Returns:
        A tensor for one argument, else a tuple: ``()`` becomes ``(1, 1, 1)``, ``(n,)`` becomes ``(1, n, 1)`` and
        ``(m, n)`` becomes ``(m, n, 1)``. Views, of the dtypes of the arguments.
    Examples:
        >>> taeda.atleast_3d(taeda.zeros(2), taeda.zeros(2, 3))[0].shape
        taeda.Size([1, 2, 1])
    """
    return _each(tensors, lambda x: _at_least(x, 3))


def _listed(tensors, name):
    tensors = tuple(tensors)
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}(): expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
    return tensors


@composite(method=False, out="type")
def hstack(tensors):
    """The tensors side by side: joined along dimension 1, vectors along dimension 0.

    Args:
        tensors: a list or tuple of tensors; those without dimensions count as vectors of one element.
    Returns:
        As :func:`cat`.
    Raises:
        RuntimeError: other sizes differ, or there is no tensor.
    Examples:
        >>> taeda.hstack((taeda.tensor([1, 2]), taeda.tensor([3])))
        tensor([1, 2, 3])
        >>> taeda.hstack((taeda.eye(2), taeda.full((2, 1), 5.0)))
        tensor([[1., 0., 5.],
                [0., 1., 5.]])
    """
    tensors = [x if x.dim() else _at_least(x, 1) for x in _listed(tensors, "hstack")]
    return cat(tensors, 0 if tensors[0].dim() == 1 else 1)


@composite(method=False, out="type", names=("row_stack",))
def vstack(tensors):
    """The tensors below each other: joined along dimension 0, vectors as rows.

    Args:
        tensors: a list or tuple of tensors.
    Returns:
        As :func:`cat` of :func:`atleast_2d` of each.
    Raises:
        RuntimeError: other sizes differ, or there is no tensor.
    Examples:
        >>> taeda.vstack((taeda.tensor([1, 2]), taeda.tensor([[3, 4], [5, 6]])))
        tensor([[1, 2],
                [3, 4],
                [5, 6]])
    """
    return cat([x if x.dim() > 1 else _at_least(x, 2) for x in _listed(tensors, "vstack")], 0)


row_stack = renamed(vstack, "row_stack")


@composite(method=False, out="type")
def dstack(tensors):
    """The tensors behind each other: joined along dimension 2, after :func:`atleast_3d`.

    Args:
        tensors: a list or tuple of tensors.
    Returns:
        As :func:`cat` of :func:`atleast_3d` of each.
    Raises:
        RuntimeError: other sizes differ, or there is no tensor.
    Examples:
        >>> red, green, blue = taeda.zeros(4, 4), taeda.ones(4, 4), taeda.zeros(4, 4)
        >>> taeda.dstack((red, green, blue)).shape
        taeda.Size([4, 4, 3])
    """
    return cat(tuple(atleast_3d(x) for x in _listed(tensors, "dstack")), 2)


@composite(method=False, out="type")
def column_stack(tensors):
    """The tensors side by side: joined along dimension 1, vectors as columns. Arguments as of :func:`vstack`.

    Returns:
        As :func:`cat` along dimension 1.
    Raises:
        RuntimeError: other sizes differ, or there is no tensor.
    Examples:
        >>> taeda.column_stack((taeda.tensor([1, 2]), taeda.tensor([3, 4])))
        tensor([[1, 3],
                [2, 4]])
    """
    return hstack(tuple(reshape(x, (-1, 1)) if x.dim() <= 1 else x for x in _listed(tensors, "column_stack")))


@composite(method=False)
def block_diag(*tensors):
    """A matrix with the given matrices along its diagonal and zeros elsewhere.

    Args:
        tensors: tensors of at most two dimensions; vectors count as rows, numbers as matrices of one element.
    Returns:
        A matrix whose sizes are the sums of theirs. The dtype is the one to which all promote.
    Raises:
        RuntimeError: a tensor has more dimensions.
    Examples:
        >>> taeda.block_diag(taeda.tensor([[1, 2], [3, 4]]), taeda.tensor([5, 6]))
        tensor([[1, 2, 0, 0],
                [3, 4, 0, 0],
                [0, 0, 5, 6]])
    """
    blocks = []
    for i, x in enumerate(tensors):
        if x.dim() > 2:
            raise RuntimeError(
                f"block_diag(): Input tensors must have 2 or fewer dimensions. Input {i} has {x.dim()} dimensions"
            )
        blocks.append(atleast_2d(x))
    if not blocks:
        return _core.empty((1, 0))
    width = sum(x.shape[1] for x in blocks)
    dtype = blocks[0].dtype
    for x in blocks[1:]:
        dtype = _core.promote_types(dtype, x.dtype)
    rows, start = [], 0
    for x in blocks:
        row = [x.new_zeros((x.shape[0], start), dtype=dtype), x]
        start += x.shape[1]
        rows.append(cat([*row, x.new_zeros((x.shape[0], width - start), dtype=dtype)], 1))
    return cat(rows, 0)


# ---- splitting -------------------------------------------------------------------------------------------------------


@view(core.view_unbind)
def unbind(input, dim=0):
    """The slices along ``dim``, without that dimension: what :func:`stack` joined.

    Args:
        input: a tensor of at least one dimension.
        dim: the dimension that is taken apart.
    Returns:
        A tuple of ``input.shape[dim]`` views.
    Raises:
        IndexError: there is no such dimension.
    Examples:
        >>> x, y = taeda.tensor([[1, 2, 3], [4, 5, 6]]).unbind()
        >>> x, y
        (tensor([1, 2, 3]), tensor([4, 5, 6]))
    """


unbind.vjp(input=lambda g, dim: unsqueeze(g, dim) if isinstance(g, Tensor) else adjoined(g, dim, True))
unbind.traits["lowering"] = lambda input, dim: tuple([input.select(dim, i) for i in range(input.shape[dim])])


@view(core.view_split, method=False, node="Split", canonical=True)
def split_with_sizes(input, split_sizes, dim=0):
    """Consecutive pieces of sizes ``split_sizes`` along ``dim``.

    Args:
        input: a tensor of at least one dimension.
        split_sizes: a list or tuple of sizes, whose sum is ``input.shape[dim]``.
        dim: the dimension to cut.
    Returns:
        A tuple of views.
    Raises:
        RuntimeError: the sizes do not add up, or one is negative.
    Examples:
        >>> taeda.split_with_sizes(taeda.arange(5), [2, 3])
        (tensor([0, 1]), tensor([2, 3, 4]))
    """


def _split_backward(g, split_sizes, dim):
    # `split_sizes` is kept because callers read it from the node (`_saved_split_sizes`).
    return g if isinstance(g, Tensor) else adjoined(g, dim, False)


split_with_sizes.vjp(input=_split_backward)
_core.install("split_with_sizes", split_with_sizes)


@composite(native=True, moves=True)
def split(tensor, split_size_or_sections: Ints = None, dim=0, *, split_size=None):
    """Consecutive pieces along ``dim``: all of one size, or of the sizes in a list.

    Args:
        tensor: a tensor of at least one dimension.
        split_size_or_sections: the size of each piece (the last may be smaller), or a list of sizes whose sum is that
            of the dimension.
        dim: the dimension to cut.
        split_size: what the method calls ``split_size_or_sections``.
    Returns:
        A tuple of views, of the dtype of the tensor.
    Raises:
        RuntimeError: the sizes do not add up, or one is negative.
    Examples:
        >>> taeda.split(taeda.arange(5), 2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
        >>> query, key, value = taeda.zeros(10, 96).split([32, 32, 32], dim=1)
        >>> query.shape
        taeda.Size([10, 32])
    """
    if split_size_or_sections is None:
        if split_size is None:
            raise TypeError('split() missing 1 required positional arguments: "split_size"')
        split_size_or_sections = split_size
    if tensor.dim() == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    at = _core.wrapped_dim(dim, tensor.dim(), "split")
    size = tensor.shape[at]
    if isinstance(split_size_or_sections, (list, tuple)):
        sections = [n if isinstance(n, int) else int(n) for n in split_size_or_sections]  # it may be symbolic
        if sum(sections) != size or any(n < 0 for n in sections):
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension "
                f"{at}), but got split_sizes={sections}"
            )
        return split_with_sizes(tensor, sections, at)
    step = int(split_size_or_sections)
    if step < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={step}")
    if step == 0 and size != 0:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
    return split_with_sizes(tensor, _pieces(size, step) if size else [0], at)


def _pieces(size: int, step: int) -> list[int]:
    """The sizes of pieces of ``step`` elements, of which the last may be smaller."""
    whole, rest = divmod(size, step)
    return [step] * whole + [rest] if rest else [step] * whole


@composite()
def chunk(input, chunks, dim=0):
    """At most ``chunks`` pieces of equal size along ``dim``; the last may be smaller. There are fewer where the size
    does not allow as many. The rest as of :func:`split_with_sizes`.

    Args:
        chunks: how many pieces, at least 1.
    Returns:
        A tuple of views of the sizes of ``input``, but in ``dim``.
    Raises:
        RuntimeError: ``input`` has no dimension, or ``chunks`` is not positive.
    Examples:
        >>> taeda.arange(7).chunk(3)
        (tensor([0, 1, 2]), tensor([3, 4, 5]), tensor([6]))
        >>> len(taeda.arange(6).chunk(4))  # pieces of 2, of which there are 3
        3
    """
    if input.dim() == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    chunks = index(chunks)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    at = _core.wrapped_dim(dim, input.dim(), "chunk")
    size = input.shape[at]
    step = -(-size // chunks)
    return split_with_sizes(input, _pieces(size, step) if step else [0] * chunks, at)


@composite()
def unsafe_split(tensor, split_size, dim=0):
    """:func:`split`, whose pieces the graph does not take for views: each may be written in place on its own.

    Args:
        tensor: a tensor of at least one dimension.
        split_size: the size of each piece, or a list of sizes.
        dim: the dimension to cut.
    Returns:
        A tuple of tensors, of the sizes of ``tensor`` but in ``dim`` and of its dtype.
    Raises:
        RuntimeError: the tensor has no dimension, or the size of a piece is negative.
        IndexError: there is no such dimension.
    Examples:
        >>> taeda.unsafe_split(taeda.arange(4), 2)
        (tensor([0, 1]), tensor([2, 3]))
    """
    return tuple(core.untie(x) for x in split(tensor, split_size, dim))


@composite()
def unsafe_chunk(input, chunks, dim=0):
    """:func:`chunk`, whose pieces the graph does not take for views: each may be written in place on its own.
    Arguments as of :func:`chunk`.

    Returns:
        A tuple of tensors, of the sizes of ``input`` but in ``dim`` and of its dtype.

    Raises:
        RuntimeError: ``input`` has no dimension, or ``chunks`` is not positive.
        IndexError: there is no such dimension.

    Examples:
        >>> taeda.unsafe_chunk(taeda.arange(4), 2)
        (tensor([0, 1]), tensor([2, 3]))
    """
    return tuple(core.untie(x) for x in chunk(input, chunks, dim))


@composite()
def unsafe_split_with_sizes(input, split_sizes, dim=0):
    """:func:`split_with_sizes`, whose pieces the graph does not take for views: each may be written in place on its
    own. The rest as of :func:`unsafe_chunk`.

    Args:
        split_sizes: a list of sizes.

    Returns:
        A tuple of tensors, of the sizes of ``input`` but in ``dim`` and of its dtype.

    Raises:
        RuntimeError: ``split_sizes`` do not add up to the size of ``dim``.
        IndexError: there is no such dimension.

    Examples:
        >>> taeda.unsafe_split_with_sizes(taeda.arange(4), [1, 3])
        (tensor([0]), tensor([1, 2, 3]))
    """
    return tuple(core.untie(x) for x in split_with_sizes(input, split_sizes, dim))


# ---- splitting the NumPy way -----------------------------------------------------------------------------------------

#: Views that one call makes: what asks for more is a mistake, and would take all memory before it fails.
MOST_VIEWS = 1 << 28


#: PyTorch's names of the argument that says where to cut, by its type.
_PIECES = dict.fromkeys(("sections", "indices", "tensor_indices_or_sections"), "indices_or_sections")


@composite(also=_PIECES)
def tensor_split(input, indices_or_sections, dim=0):
    """Pieces along ``dim``: ``n`` of nearly equal size, or cut before the given positions. Sizes need not divide.

    Args:
        input: a tensor of at least one dimension.
        indices_or_sections: a number of pieces, of which the first ``size % n`` have one element more; or positions, a
            list, tuple or vector, where a new piece begins.
        dim: the dimension to cut.
    Returns:
        A tuple of views; a piece may be empty.
    Raises:
        RuntimeError: the number of pieces is not positive.
    Examples:
        >>> taeda.tensor_split(taeda.arange(7), 3)
        (tensor([0, 1, 2]), tensor([3, 4]), tensor([5, 6]))
        >>> taeda.tensor_split(taeda.arange(7), (1, 4))
        (tensor([0]), tensor([1, 2, 3]), tensor([4, 5, 6]))
    """
    if input.dim() == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    at = _core.wrapped_dim(dim, input.dim(), "tensor_split")
    size = input.shape[at]
    if isinstance(indices_or_sections, Tensor):
        if indices_or_sections.dim() > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor"
            )
        if indices_or_sections.dtype is not _core.int64:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{indices_or_sections.dtype}"
            )
        indices_or_sections = indices_or_sections.tolist()
    if is_index(indices_or_sections):
        sections = index(indices_or_sections)
        if sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        if sections > MOST_VIEWS:
            raise RuntimeError(f"tensor_split: cannot make {sections} views; at most {MOST_VIEWS} at once")
        short, more = divmod(size, sections)
        pieces = list(pairwise(i * short + min(i, more) for i in range(sections + 1)))
    else:
        if not isinstance(indices_or_sections, (tuple, list)):
            raise TypeError(
                "tensor_split(): argument 'indices_or_sections' must be an int or a tuple of ints, not "
                f"{type(indices_or_sections).__name__}"
            )
        cuts = _core.whole_numbers(indices_or_sections, "tensor_split", "indices_or_sections")
        pieces = list(zip([0, *cuts], [*cuts, size], strict=True))
    return tuple(slice_view(input, at, start, stop, 1) for start, stop in pieces)


def _directional_split(name, least, dim_of):
    def split(input, indices_or_sections: Ints):
        if input.dim() < least:
            raise RuntimeError(
                f"{name} requires a tensor with at least {least} dimension{'s' if least > 1 else ''}, but got a "
                f"tensor with {input.dim()} dimensions!"
            )
        dim = dim_of(input)
        if is_index(indices_or_sections):
            size, sections = input.shape[dim], int(indices_or_sections)
            if sections <= 0 or size % sections:
                raise RuntimeError(
                    f"{name} attempted to split along dimension {dim}, but the size of the dimension {size} is not "
                    f"divisible by the split_size {sections}!"
                )
        return tensor_split(input, indices_or_sections, dim)

    split.__name__ = split.__qualname__ = name
    split.__doc__ = f"""Pieces along dimension {dim_of.__doc__}: so many of equal size, or cut before given positions.

    Args:
        input: a tensor of at least {least} dimension{"s" * (least > 1)}.
        indices_or_sections: a number that divides the size; or positions, where a new piece begins.
    Returns:
        A tuple of views, as of :func:`tensor_split`.
    Raises:
        RuntimeError: ``input`` has fewer dimensions, or the number does not divide the size.
    Examples:
        >>> first, second = taeda.{name}(taeda.zeros({", ".join(["4"] * least)}), 2)
        >>> first.shape
        taeda.Size({[4] * (least - 1) + [2] if least != 2 else [2, 4]})
    """
    return composite(also=_PIECES, spreads="indices_or_sections")(split)


def _columns(input):
    """1 (0 for vectors)"""
    return 0 if input.dim() == 1 else 1


def _rows(input):
    """0"""
    return 0


def _depth(input):
    """2"""
    return 2


hsplit = _directional_split("hsplit", 1, _columns)
vsplit = _directional_split("vsplit", 2, _rows)
dsplit = _directional_split("dsplit", 3, _depth)
