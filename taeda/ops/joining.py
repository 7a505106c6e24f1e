"""Joining tensors, and splitting them the NumPy way."""

from __future__ import annotations

from itertools import pairwise
from operator import index

from .. import _core
from .._core import HELPERS, Tensor, moves
from .table import Ints, alias, composite, is_index, primitive
from .views import _wrap, reshape, slice_view, unbind, view_as_itself

HELPERS["copy_transposed"] = moves.copy_transposed


@primitive(moves.cat, method=False, out="type", out_apart=("tensors",), autocast="widest")
def cat(tensors, dim=0):
    """Join tensors along a dimension that they have.

    Args:
        tensors: tensors of equal sizes except in ``dim``; one-dimensional empty ones are passed over. The result has the
            dtype that all promote to.
        dim: the dimension to join along.

    Raises:
        RuntimeError: other sizes differ, or there is no tensor.
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
alias(cat, "concat", "concatenate", method=False)


@primitive(moves.stack, method=False, out="type", out_apart=("tensors",), autocast="widest")
def stack(tensors, dim=0):
    """Join tensors of one shape along a new dimension.

    Args:
        tensors: tensors of one shape. The result has the dtype that all promote to.
        dim: where the new dimension goes, between 0 and the number of dimensions.

    Raises:
        RuntimeError: the shapes differ, or there is no tensor.
    """


stack.vjp(tensors=lambda g, dim: list(unbind(g, dim)))


# ---- by direction ----------------------------------------------------------------------------------------------------


def _each(tensors, function):
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        made = tuple(function(x) for x in tensors[0])
        return made if isinstance(tensors[0], tuple) else type(tensors[0])(made)
    return function(tensors[0]) if len(tensors) == 1 else tuple(function(x) for x in tensors)


def _at_least(x, n):
    missing = n - x.dim()
    if missing <= 0:
        return view_as_itself(x)
    shape = tuple(x.shape)
    if n == 3:  # a vector is a row in the middle, a matrix a plane
        return reshape(x, (*shape, 1) if len(shape) == 2 else (1, *shape, 1) if shape else (1, 1, 1))
    return reshape(x, (1,) * missing + shape)


@composite(method=False)
def atleast_1d(*tensors):
    """Scalars as tensors of one dimension; others as they are."""
    return _each(tensors, lambda x: _at_least(x, 1))


@composite(method=False)
def atleast_2d(*tensors):
    """Tensors of fewer than two dimensions as rows; others as they are."""
    return _each(tensors, lambda x: _at_least(x, 2))


@composite(method=False)
def atleast_3d(*tensors):
    """Tensors of fewer than three dimensions with dimensions of size 1 added; others as they are."""
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
    """Join along the columns: dimension 1, or 0 for vectors."""
    tensors = tuple(atleast_1d(x) for x in _listed(tensors, "hstack"))
    return cat(tensors, 0 if tensors[0].dim() == 1 else 1)


@composite(method=False, out="type", names=("row_stack",))
def vstack(tensors):
    """Join along the rows, dimension 0; vectors are rows."""
    return cat(tuple(atleast_2d(x) for x in _listed(tensors, "vstack")), 0)


@composite(method=False, out="type")
def dstack(tensors):
    """Join along dimension 2; see :func:`atleast_3d`."""
    return cat(tuple(atleast_3d(x) for x in _listed(tensors, "dstack")), 2)


@composite(method=False, out="type")
def column_stack(tensors):
    """Join along dimension 1; vectors and scalars are columns."""
    return hstack(tuple(reshape(x, (-1, 1)) if x.dim() <= 1 else x for x in _listed(tensors, "column_stack")))


@composite(method=False)
def block_diag(*tensors):
    """A matrix with the given matrices along its diagonal and zeros elsewhere; vectors are rows."""
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

#: Views that one call makes: what asks for more is a mistake, and would take all memory before it fails.
MOST_VIEWS = 1 << 28


#: PyTorch's names of where to cut, by what it is.
_PIECES = dict.fromkeys(("sections", "indices", "tensor_indices_or_sections"), "indices_or_sections")


@composite(also=_PIECES)
def tensor_split(input, indices_or_sections, dim=0):
    """Views of pieces along ``dim``: a number of near-equal ones, or cut before the given positions."""
    if input.dim() == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    at = _wrap(dim, input.dim(), "tensor_split")
    size = input.shape[at]
    if isinstance(indices_or_sections, Tensor):
        if indices_or_sections.dim() > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor"
            )
        if indices_or_sections.dtype is not _core.int64:
            raise RuntimeError(
                f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {indices_or_sections.dtype}"
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
                f"torch.{name} requires a tensor with at least {least} dimension{'s' if least > 1 else ''}, but got a tensor "
                f"with {input.dim()} dimensions!".replace("torch.", "")
            )
        dim = dim_of(input)
        if is_index(indices_or_sections):
            size, sections = input.shape[dim], int(indices_or_sections)
            if sections <= 0 or size % sections:
                raise RuntimeError(
                    f"{name} attempted to split along dimension {dim}, but the size of the dimension {size} is not divisible "
                    f"by the split_size {sections}!"
                )
        return tensor_split(input, indices_or_sections, dim)

    split.__name__ = split.__qualname__ = name
    split.__doc__ = f"Views of pieces along dimension {dim_of.__doc__ or ''}; see :func:`tensor_split`."
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


# ---- products of sets ------------------------------------------------------------------------------------------------


@composite(method=False)
def cartesian_prod(*tensors):
    """All choices of one element of each vector, as rows."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    for x in tensors:
        if x.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    from .creation import meshgrid

    return stack([reshape(x, (-1,)) for x in meshgrid(*tensors, indexing="ij")], 1)


@composite()
def combinations(input, r=2, with_replacement=False):
    """All ways to choose ``r`` elements of a vector, in order of position, as rows."""
    if input.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty((0,))
    from .creation import arange
    from .shape import repeat_interleave

    n = input.shape[0]
    index = arange(n).unsqueeze(1)
    for _ in range(1, r):  # each row goes on with all that may follow its last one
        first = index[:, -1] + (0 if with_replacement else 1)
        counts = n - first
        rows = repeat_interleave(arange(index.shape[0]), counts)
        following = arange(rows.shape[0]) - (counts.cumsum(0) - counts - first)[rows]
        index = cat((index[rows], following.unsqueeze(1)), 1)
    return input[index]
