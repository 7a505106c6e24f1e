"""Functions of sparse tensors, under PyTorch's names; see :func:`taeda.sparse_coo_tensor`."""

from __future__ import annotations

import contextlib
from typing import Any

import taeda

from . import _core
from ._typed import Tensor
from .ops import sparse as _coordinates
from .ops.compressed import CompressedTensor
from .ops.sparse import SparseTensor
from .ops.sparse_rules import hspmm, smm, sspaddmm
from .ops.sparse_shapes import resize_as_sparse_
from .ops.table import expect_tensors

__all__ = [
    "CompressedTensor", "SparseTensor", "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "hspmm",
    "log_softmax", "mm", "resize_as_sparse_", "sampled_addmm", "smm", "softmax", "spdiags", "sspaddmm", "sum",
]  # fmt: skip


def _expect_sparse(name: str, input: Any) -> None:
    if not isinstance(input, SparseTensor):
        what = "a dense tensor" if isinstance(input, Tensor) else type(input).__name__
        kind = NotImplementedError if isinstance(input, Tensor) else TypeError
        raise kind(f"sparse.{name}: expected a sparse tensor, got {what}; use taeda.{name}, or input.to_sparse()")


def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """``mat1 @ mat2`` with a sparse ``mat1``; dense unless both are sparse.

    Args:
        mat1: a sparse matrix ``(m, k)``.
        mat2: a matrix ``(k, n)``.
        reduce: what is made of the products of an element: their ``"sum"``, ``"mean"``, ``"amax"`` (``"max"``) or
            ``"amin"`` (``"min"``). Of all but the sum, ``mat1`` is in CSR layout and ``mat2`` dense, and an element
            without products is 0.
    Returns:
        ``(m, n)``.
    Raises:
        RuntimeError: there is no such ``reduce``, or a layout or a size does not fit.
    Examples:
        >>> graph = taeda.tensor([[0.0, 1.0], [1.0, 1.0]]).to_sparse()
        >>> taeda.spmm(graph, taeda.tensor([[1.0], [10.0]]))  # sums over neighbours
        tensor([[10.],
                [11.]])
    """
    if reduce == "sum":
        return taeda.mm(mat1, mat2)
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("mean", "amax", "amin"):
        raise RuntimeError(f"sparse.mm: expected reduce to be sum, mean, amax or amin, got {reduce!r}")
    expect_tensors("sparse.mm", mat1=mat1, mat2=mat2)
    if not isinstance(mat1, CompressedTensor) or not mat1.is_sparse_csr or mat2.layout is not taeda.strided:
        raise RuntimeError(f"sparse.mm with reduce={reduce!r}: expected mat1 in CSR layout and a dense mat2")
    if mat1.dim() != 2 or mat2.dim() != 2 or mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"sparse.mm: sizes {tuple(mat1.shape)} and {tuple(mat2.shape)} have no product")
    rows, columns = mat1.to_sparse_coo()._indices().unbind(0)
    products = mat1.values().unsqueeze(1) * mat2[columns]
    index = rows.unsqueeze(1).expand(products.shape)
    zeros = products.new_zeros((mat1.shape[0], mat2.shape[1]))
    return zeros.scatter_reduce(0, index, products, reduce, include_self=False)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)`` with a sparse ``mat1``.

    Args:
        mat: a dense matrix ``(m, n)``.
        mat1: a sparse matrix ``(m, k)``.
        mat2: a dense matrix ``(k, n)``.
        beta: a number.
        alpha: a number.
    Returns:
        A dense matrix ``(m, n)``.
    Raises:
        RuntimeError: the sizes or the dtypes do not fit.
    Examples:
        >>> taeda.sparse.addmm(taeda.ones(2, 2), taeda.eye(2).to_sparse(), taeda.ones(2, 2))
        tensor([[2., 2.],
                [2., 2.]])
    """
    return taeda.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all elements, or along ``dim``, where it is sparse as long as a sparse dimension is left.

    Args:
        input: a sparse tensor.
        dim: a dimension, or several in a tuple. Default: all.
        dtype: of the computation and the result. Default: that of ``input``; ``int64`` for dense sums of integers.
    Returns:
        A tensor without the dimensions ``dim``.
    Raises:
        NotImplementedError: ``input`` is dense.
    Examples:
        >>> taeda.sparse.sum(taeda.eye(3).to_sparse())
        tensor(3.)
    """
    _expect_sparse("sum", input)
    if dim is None and input.is_sparse and not (input.is_floating_point() or input.is_complex()):
        input = input.coalesce()  # entries of one place are added in their own dtype
    made = input.sum(dim, dtype=dtype)
    return made.to(input.dtype) if made.layout is not _core.strided and dtype is None else made


def _normalised(function: Any, input: SparseTensor, dim: int, dtype: Any) -> SparseTensor:
    _expect_sparse(function.__name__, input)
    x = input.coalesce()
    x = x if dtype is None else x.to(dtype)
    dim = _core.wrapped_dim(dim, x.dim(), function.__name__)
    if dim >= x.sparse_dim():
        return _coordinates.make(x._indices(), function(x._values(), dim - x.sparse_dim() + 1), x.shape, True)
    places = tuple(x._indices().unbind(0))
    dense = x._values().new_full(x.shape, float("-inf")).index_put(places, x._values())
    return _coordinates.make(x._indices(), function(dense, dim)[places], x.shape, True)


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """:func:`taeda.softmax` along ``dim`` of the elements that are kept; the others count as minus infinity.

    Args:
        input: a sparse tensor, floating point.
        dim: the dimension that sums to 1.
        dtype: what ``input`` is converted to first. Default: its own.
    Returns:
        A sparse tensor with the same places.
    Raises:
        NotImplementedError: ``input`` is dense.
    Examples:
        >>> x = taeda.tensor([[2.0, 0.0, 2.0], [0.0, 5.0, 0.0]]).to_sparse()
        >>> taeda.sparse.softmax(x, 1).to_dense()
        tensor([[0.5000, 0.0000, 0.5000],
                [0.0000, 1.0000, 0.0000]])
    """
    return _normalised(taeda.softmax, input, dim, dtype)


def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of :func:`taeda.sparse.softmax` at the elements that are kept.

    Args:
        input: a sparse tensor, floating point.
        dim: the dimension along which probabilities sum to 1.
        dtype: what ``input`` is converted to first. Default: its own.
    Returns:
        A sparse tensor with the same places.
    Raises:
        NotImplementedError: ``input`` is dense.
    Examples:
        >>> x = taeda.tensor([[2.0, 0.0, 2.0]]).to_sparse()
        >>> taeda.sparse.log_softmax(x, 1).to_dense()
        tensor([[-0.6931,  0.0000, -0.6931]])
    """
    return _normalised(taeda.log_softmax, input, dim, dtype)


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``alpha * (mat1 @ mat2) + beta * input`` at the places that the sparse ``input`` has: the others are not
    computed.

    Args:
        input: a sparse matrix ``(m, n)``, in CSR layout as in PyTorch or in coordinate form.
        mat1: a dense matrix ``(m, k)``.
        mat2: a dense matrix ``(k, n)``.
        beta: a number.
        alpha: a number.
    Returns:
        A sparse matrix with the same places.
    Raises:
        RuntimeError: the sizes or the dtypes do not fit.
    Examples:
        >>> places = taeda.eye(2).to_sparse_csr()
        >>> taeda.sparse.sampled_addmm(places, taeda.ones(2, 3), taeda.ones(3, 2), beta=0).to_dense()
        tensor([[3., 0.],
                [0., 3.]])
    """
    expect_tensors("sparse.sampled_addmm", input=input, mat1=mat1, mat2=mat2)
    layout = input.layout
    if layout is taeda.strided or mat1.dim() != 2 or mat2.dim() != 2:
        raise RuntimeError(
            "sparse.sampled_addmm: expected a sparse matrix and two dense ones; make input.to_sparse_csr()"
        )
    if (mat1.shape[0], mat2.shape[1]) != tuple(input.shape) or mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"sparse.sampled_addmm: sizes {tuple(mat1.shape)} and {tuple(mat2.shape)} have no product of size "
            f"{tuple(input.shape)}"
        )
    coo: Any = input.to_sparse(layout=taeda.sparse_coo)
    coo = coo.coalesce()
    rows, columns = coo._i.unbind(0)
    products = (mat1[rows] * mat2.t()[columns]).sum(-1)
    return _coordinates.make(coo._i, products * alpha + coo._v * beta, coo.shape, True).to_sparse(layout=layout)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """A sparse matrix whose diagonal ``offsets[k]`` is row ``k`` of ``diagonals``, read from column 0 on.

    Args:
        diagonals: a matrix with a diagonal in each row, or a vector for one.
        offsets: a vector of ints: 0 for the main diagonal, positive ones above it.
        shape: rows and columns.
        layout: which sparse layout. Default: ``taeda.sparse_coo``.
    Returns:
        A sparse matrix of sizes ``shape``.
    Raises:
        ValueError: the sizes do not fit, or an offset occurs twice.
    Examples:
        >>> diagonals = taeda.tensor([[1.0, 1.0, 1.0], [-2.0, -2.0, -2.0]])
        >>> taeda.sparse.spdiags(diagonals, taeda.tensor([1, 0]), (3, 3)).to_dense()
        tensor([[-2.,  1.,  0.],
                [ 0., -2.,  1.],
                [ 0.,  0., -2.]])
    """
    expect_tensors("sparse.spdiags", diagonals=diagonals, offsets=offsets)
    offsets = taeda.atleast_1d(offsets)
    if not 1 <= diagonals.dim() <= 2 or offsets.dim() != 1 or offsets.is_floating_point() or offsets.is_complex():
        raise ValueError(
            f"spdiags: expected diagonals of one or two dimensions and whole offsets of one, got sizes "
            f"{tuple(diagonals.shape)} and {tuple(offsets.shape)}"
        )
    if len(shape) != 2:
        raise ValueError(f"spdiags: expected a shape of two sizes, got {tuple(shape)}")
    diagonals = diagonals if diagonals.dim() == 2 else diagonals.unsqueeze(0)
    if len(offsets) != len(diagonals):
        raise ValueError(f"spdiags: expected one offset for each of {len(diagonals)} diagonals, got {len(offsets)}")
    if len(offsets.unique()) != len(offsets):
        raise ValueError(f"spdiags: offset tensor contains duplicate values: {offsets.tolist()}")
    height, width = shape
    columns = taeda.arange(min(diagonals.shape[1], width)).repeat(len(offsets))
    rows = columns - offsets.long().repeat_interleave(min(diagonals.shape[1], width))
    values = diagonals[:, :width].flatten()
    inside = (rows >= 0) & (rows < height)
    made = _coordinates.make(taeda.stack((rows[inside], columns[inside])), values[inside], (height, width))
    return made if layout is None else made.to_sparse(layout=layout)


def as_sparse_gradcheck(gradcheck: Any) -> Any:
    """``gradcheck`` itself, which takes sparse tensors as it is.

    Args:
        gradcheck: :func:`taeda.autograd.gradcheck`.
    Returns:
        The function.
    Examples:
        >>> check = taeda.sparse.as_sparse_gradcheck(taeda.autograd.gradcheck)
    """
    return gradcheck


def _legacy(dtype: Any) -> Any:
    """``torch.sparse.FloatTensor(indices, values, size)`` and its like: what old programs call."""

    def make_sparse(*args: Any, **kwargs: Any) -> Tensor:
        return _coordinates.legacy(*args, dtype=dtype, **kwargs)

    return make_sparse


FloatTensor, DoubleTensor, HalfTensor = _legacy(taeda.float32), _legacy(taeda.float64), _legacy(taeda.float16)
LongTensor, IntTensor, ShortTensor = _legacy(taeda.int64), _legacy(taeda.int32), _legacy(taeda.int16)
CharTensor, ByteTensor, BFloat16Tensor = _legacy(taeda.int8), _legacy(taeda.uint8), _legacy(taeda.bfloat16)
spmm = dsmm = mm


class check_sparse_tensor_invariants(contextlib.ContextDecorator):
    """Whether new sparse tensors are checked: they always are, so this changes nothing.

    A context manager and a decorator.

    Args:
        enable: accepted.
    Examples:
        >>> with taeda.sparse.check_sparse_tensor_invariants():
        ...     x = taeda.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,))
        >>> taeda.sparse.check_sparse_tensor_invariants.is_enabled()
        True
    """

    def __init__(self, enable: bool = True) -> None:
        self.enabled = enable

    @staticmethod
    def is_enabled() -> bool:
        """True."""
        return True

    @staticmethod
    def enable() -> None:
        """Nothing changes."""

    @staticmethod
    def disable() -> None:
        """Nothing changes."""

    def __enter__(self) -> check_sparse_tensor_invariants:
        return self

    def __exit__(self, *info: object) -> None:
        return None
