"""Matrices and grids: triangles, diagonals, coordinates, choices of elements."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._core import block_copy
from .._warn import warn_once
from .creation import arange, ones
from .joining import cat, stack
from .table import OPS, composite, primitive
from .views import diagonal, diagonal_backward, expand, reshape

# ---- triangles and diagonals -----------------------------------------------------------------------------------------


@primitive(block_copy.tril, inplace=True, out="same", batch="trailing")
def tril(input, diagonal=0):
    """The lower triangle of matrices, zero elsewhere.

    Args:
        input: ``(..., m, n)``.
        diagonal: the highest diagonal that is kept: 0 the main one, positive ones above it.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: ``input`` has fewer than two dimensions.
    Examples:
        >>> taeda.tril(taeda.ones(3, 3))  # what a causal mask lets through
        tensor([[1., 0., 0.],
                [1., 1., 0.],
                [1., 1., 1.]])
    """


def _triangle(keep: Any) -> Any:
    """The lowering of a triangle: ``keep`` says which columns, of those and rows moved by ``diagonal``, are not 0."""

    def lowered(input, diagonal):
        rows, columns = arange(input.shape[-2]).unsqueeze(-1), arange(input.shape[-1])
        return OPS["where"](keep(columns, rows + diagonal), input, input.new_zeros(()))

    return lowered


tril.traits["lowering"] = _triangle(lambda columns, rows: columns <= rows)
tril.vjp(input=lambda g, diagonal: tril(g, diagonal))


@primitive(block_copy.triu, inplace=True, out="same", batch="trailing")
def triu(input, diagonal=0):
    """The upper triangle of matrices, zero elsewhere.

    Args:
        input: ``(..., m, n)``.
        diagonal: the lowest diagonal that is kept: 0 the main one, positive ones above it.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: ``input`` has fewer than two dimensions.
    Examples:
        >>> taeda.triu(taeda.ones(3, 3), diagonal=1)
        tensor([[0., 1., 1.],
                [0., 0., 1.],
                [0., 0., 0.]])
    """


triu.traits["lowering"] = _triangle(lambda columns, rows: columns >= rows)
triu.vjp(input=lambda g, diagonal: triu(g, diagonal))


def _triangle_indices(row, col, offset, dtype, lower, name):
    if dtype not in (None, _core.int32, _core.int64):
        raise NotImplementedError(f"{name}: expected dtype int32 or int64, as of indices, got {dtype}")
    if row < 0 or col < 0:
        raise RuntimeError(f"{name}: row and col must be non-negative, got {row} and {col}")
    # The rows and columns that the triangle reaches, at least half of which it fills.
    top, left = (max(-offset, 0), 0) if lower else (0, max(offset, 0))
    height, width = (row - top, min(col, row + offset)) if lower else (min(row, col - offset), col - left)
    if height <= 0 or width <= 0:
        return _core.empty((2, 0), dtype or _core.int64)
    if _core.empty((0,)).is_meta:
        first = min(offset + top + 1, width) if lower else width - max(height - 1 + offset - left, 0)  # of a row
        growing = min(width - first, height)  # rows, each with one element more
        count = growing * first + growing * (growing - 1) // 2 + (height - growing) * width
        return _core.empty((2, count), dtype or _core.int64)
    part = ones((height, width), dtype=_core.bool_)
    part = tril(part, offset + top) if lower else triu(part, offset - left)
    found = part.nonzero().to(dtype or _core.int64).T.contiguous()
    if top or left:
        found[0 if lower else 1] += top or left
        _core.set_version(found, 0)
    return found


def _known(lower: bool, name: str) -> Any:
    """The lowering of coordinates that follow from numbers alone: a constant."""

    def lowered(row, col, offset, dtype):
        with _core.modes([]):
            return _triangle_indices(row, col, offset, dtype, lower, name)

    return lowered


@composite(method=False, meta="numbers", lowering=_known(True, "tril_indices"))
def tril_indices(row: int, col: int, offset=0, *, dtype=None, device=None, layout=None, pin_memory=False):
    """The coordinates of the elements in the lower triangle of a matrix, row by row.

    Args:
        row: number of rows of the matrix.
        col: number of its columns.
        offset: the highest diagonal that counts: 0 the main one, positive ones above it.
        dtype: dtype of the result. Default: ``int64``.
    Returns:
        ``(2, n)``: row numbers, then column numbers.
    Raises:
        RuntimeError: a size is negative.
        NotImplementedError: ``dtype`` is neither ``int32`` nor ``int64``.
    Examples:
        >>> taeda.tril_indices(3, 3)
        tensor([[0, 1, 1, 2, 2, 2],
                [0, 0, 1, 0, 1, 2]])
        >>> x = taeda.arange(9).reshape(3, 3)
        >>> x[*taeda.tril_indices(3, 3, -1)]  # below the diagonal
        tensor([3, 6, 7])
    """
    return _triangle_indices(row, col, offset, dtype, True, "tril_indices")


@composite(method=False, meta="numbers", lowering=_known(False, "triu_indices"))
def triu_indices(row: int, col: int, offset=0, *, dtype=None, device=None, layout=None, pin_memory=False):
    """The coordinates of the elements in the upper triangle of a matrix, row by row.
    The rest as of :func:`tril_indices`.

    Args:
        offset: the lowest diagonal that counts: 0 the main one, positive ones above it.

    Raises:
        RuntimeError: ``row`` or ``col`` is negative.
        NotImplementedError: the dtype is neither ``int32`` nor ``int64``.

    Examples:
        >>> taeda.triu_indices(3, 3, 1)  # every pair of three things, once
        tensor([[0, 0, 1],
                [1, 2, 2]])
    """
    return _triangle_indices(row, col, offset, dtype, False, "triu_indices")


@composite()
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Matrices with the last dimension of ``input`` on a diagonal and zeros elsewhere.

    Args:
        input: ``(..., n)``.
        offset: which diagonal: 0 the main one, positive ones above it.
        dim1: where the dimension of the rows goes.
        dim2: where that of the columns goes.
    Returns:
        ``(..., n + |offset|, n + |offset|)``. The dtype is that of ``input``.
    Raises:
        RuntimeError: the two dimensions are the same.
    Examples:
        >>> taeda.diag_embed(taeda.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
        >>> taeda.diag_embed(taeda.ones(10, 3)).shape
        taeda.Size([10, 3, 3])
    """
    n = input.dim() + 1
    first, second = _core.wrapped_dim(dim1, n, "diag_embed"), _core.wrapped_dim(dim2, n, "diag_embed")
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if input.dim() == 0:
        raise RuntimeError("diag_embed: input must have at least 1 dimension")
    side = input.shape[-1] + abs(offset)
    shape = list(input.shape[:-1])
    for d in sorted((first, second)):
        shape.insert(d, side)
    return diagonal_backward(input, tuple(shape), offset, first, second)


@composite(out="same")
def diag(input, diagonal=0):
    """A matrix with a vector on its diagonal, or the diagonal of a matrix.

    Args:
        input: a vector of ``n`` elements, or a matrix.
        diagonal: which diagonal: 0 the main one, positive ones above it.
    Returns:
        Of a vector a square matrix with ``n + |diagonal|`` rows; of a matrix a vector. The dtype is that of
        ``input``.
    Raises:
        RuntimeError: ``input`` has another number of dimensions.
    Examples:
        >>> taeda.diag(taeda.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
        >>> taeda.diag(taeda.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    if input.dim() == 1:
        side = input.shape[0] + abs(diagonal)
        return diagonal_backward(input, (side, side), diagonal, 0, 1)
    if input.dim() == 2:
        return _diagonal(input, diagonal).clone()
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.dim()}D")


_diagonal = diagonal


@composite()
def diagflat(input, offset=0):
    """A matrix with all elements of ``input`` on its diagonal and zeros elsewhere.

    Args:
        offset: which diagonal: 0 the main one, positive ones above it.
    Returns:
        A square matrix with ``input.numel() + |offset|`` rows. The dtype is that of ``input``.
    Examples:
        >>> taeda.diagflat(taeda.tensor([1, 2]), 1)
        tensor([[0, 1, 0],
                [0, 0, 2],
                [0, 0, 0]])
    """
    return diag_embed(reshape(input, (-1,)), offset)


@composite()
def fill_diagonal_(input, fill_value, wrap=False):
    """Writes ``fill_value`` on the main diagonal, in place.

    Args:
        input: at least two dimensions; of more than two, all of one size.
        fill_value: a number.
        wrap: of a tall matrix, start again below the diagonal's end.
    Returns:
        ``input``.
    Raises:
        RuntimeError: ``input`` has fewer dimensions, or the sizes differ.
    Examples:
        >>> taeda.zeros(2, 2).fill_diagonal_(5)
        tensor([[5., 0.],
                [0., 5.]])
    """
    if input.dim() < 2:
        raise RuntimeError(f"fill_diagonal_: dimensions must larger than 1, got shape {list(input.shape)}")
    if input.dim() > 2 and len(set(input.shape)) > 1:
        raise RuntimeError(f"fill_diagonal_: all dimensions of input must be of equal length, got {list(input.shape)}")
    step = sum(input.stride())
    length = min(input.shape)
    input.as_strided((length,), (step,), input.storage_offset()).fill_(fill_value)
    if wrap and input.dim() == 2 and input.shape[0] > input.shape[1] + 1:
        rows, columns = input.shape
        start = input.storage_offset() + input.stride(0) * (columns + 1)
        left = (rows * columns - columns * (columns + 1) + columns) // (columns + 1)
        input.as_strided((left,), (step,), start).fill_(fill_value)
    return input


# ---- grids -----------------------------------------------------------------------------------------------------------


@composite(method=False)
def meshgrid(*tensors, indexing=None):
    """The coordinates of a grid: for each vector a tensor that has its element at every point.

    Args:
        tensors: vectors, or tensors without dimensions, of one dtype.
        indexing: ``"ij"`` (default): dimension ``i`` belongs to the ``i``-th vector; ``"xy"`` swaps the first two.
    Returns:
        A tuple of views, each of the sizes of the vectors together.
    Raises:
        RuntimeError: the dtypes differ, or ``indexing`` is another.
    Examples:
        >>> rows, columns = taeda.meshgrid(taeda.arange(2), taeda.arange(3), indexing="ij")
        >>> rows, columns
        (tensor([[0, 0, 0],
                [1, 1, 1]]), tensor([[0, 1, 2],
                [0, 1, 2]]))
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if indexing is None:
        warn_once(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument: indexing='ij' "
            "is what is done without"
        )
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for x in tensors:
        if x.dim() > 1:
            raise RuntimeError(f"meshgrid: Expected scalar or 1D tensor in the tensor list but got: {list(x.shape)}")
        if x.dtype is not tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(tensors) >= 2
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    n = len(tensors)
    shape = tuple(x.numel() for x in tensors)
    grids = [expand(reshape(x, (1,) * d + (-1,) + (1,) * (n - d - 1)), shape) for d, x in enumerate(tensors)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@composite(method=False)
def vander(x, N: int | None = None, increasing=False):
    """The Vandermonde matrix: powers of the elements, as columns.

    Args:
        x: a vector ``(n,)``.
        N: how many powers. Default: ``n``.
        increasing: from power 0 up, rather than down to it.
    Returns:
        ``(n, N)``. The dtype is that of ``x``; ``int64`` for integers.
    Raises:
        RuntimeError: ``x`` is no vector, or ``N`` is negative.
    Examples:
        >>> taeda.vander(taeda.tensor([1, 2, 3]), increasing=True)
        tensor([[1, 1, 1],
                [1, 2, 4],
                [1, 3, 9]])
    """
    if x.dim() != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor, got shape {list(x.shape)}")
    n = x.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError(f"N must be non-negative, got {n}")
    powers = arange(n) if increasing else arange(n - 1, -1, -1) if n else arange(0)
    x = x if x.is_floating_point() or x.is_complex() else x.to(_core.int64)
    return x.unsqueeze(1) ** powers


# ---- products of sets ------------------------------------------------------------------------------------------------


@composite(method=False)
def cartesian_prod(*tensors):
    """All choices of one element of each vector, as rows.

    Args:
        tensors: vectors of one dtype.
    Returns:
        ``(product of their sizes, their number)``; of one vector the vector itself.
    Raises:
        RuntimeError: an argument is no vector.
    Examples:
        >>> taeda.cartesian_prod(taeda.tensor([1, 2]), taeda.tensor([5, 6]))
        tensor([[1, 5],
                [1, 6],
                [2, 5],
                [2, 6]])
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    for x in tensors:
        if x.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([reshape(x, (-1,)) for x in meshgrid(*tensors, indexing="ij")], 1)


@composite()
def combinations(input, r=2, with_replacement=False):
    """All ways to choose ``r`` elements of a vector, in order of position, as rows.

    Args:
        input: a vector.
        r: how many to choose.
        with_replacement: whether an element may be chosen several times.
    Returns:
        ``(number of ways, r)``. The dtype is that of ``input``.
    Raises:
        RuntimeError: ``input`` is no vector, or ``r`` is negative.
    Examples:
        >>> taeda.combinations(taeda.tensor([1, 2, 3]))
        tensor([[1, 2],
                [1, 3],
                [2, 3]])
    """
    if input.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty((0,))
    n = input.shape[0]
    if r > n and not (with_replacement and n):
        return input.new_empty((0, r))
    if r > 64:  # PyTorch's limit, the most dimensions of a tensor
        raise RuntimeError(f"combinations: expected at most 64 elements at a time, got {r}")
    index = arange(n).unsqueeze(1)
    for k in range(2, r + 1):  # each row goes on with all that may follow its last one
        first = index[:, -1] + (0 if with_replacement else 1)
        counts = n - first
        many = math.comb(n + k - 1, k) if with_replacement and n else math.comb(n, k)
        rows = arange(index.shape[0]).repeat_interleave(counts, output_size=many)
        following = arange(rows.shape[0]) - (counts.cumsum(0) - counts - first)[rows]
        index = cat((index[rows], following.unsqueeze(1)), 1)
    return input[index]
