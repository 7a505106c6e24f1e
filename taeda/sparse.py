"""Functions of sparse tensors in coordinate form, under PyTorch's names; see :func:`taeda.sparse_coo_tensor`."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from .ops import sparse as _coordinates
from .ops.sparse import SparseTensor
from .ops.views import _wrap

__all__ = ["SparseTensor", "addmm", "check_sparse_tensor_invariants", "log_softmax", "mm", "softmax", "sum"]


def _expect_sparse(name: str, input: Any) -> None:
    if not isinstance(input, SparseTensor):
        what = "a dense tensor" if isinstance(input, Tensor) else type(input).__name__
        kind = NotImplementedError if isinstance(input, Tensor) else TypeError
        raise kind(f"sparse.{name}: expected a sparse tensor, got {what}; use taeda.{name}, or input.to_sparse()")


def mm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """``mat1 @ mat2`` with a sparse ``mat1``; dense unless both are sparse."""
    return taeda.mm(mat1, mat2)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)`` with a sparse ``mat1``."""
    return taeda.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all elements, or along ``dim``, where it is sparse as long as a sparse dimension is left."""
    _expect_sparse("sum", input)
    if dim is None:
        return input.sum(dtype=dtype)
    dims = {_wrap(d, input.dim(), "sparse.sum") for d in ((dim,) if isinstance(dim, int) else dim)}
    kept = [d for d in range(input.sparse_dim()) if d not in dims]
    values = input._values() if dtype is None else input._values().to(dtype)
    inner = [d - input.sparse_dim() + 1 for d in dims if d >= input.sparse_dim()]
    values = values.sum(inner) if inner else values
    if not kept:
        return values.sum(0)
    size = [s for d, s in enumerate(input.shape) if d not in dims]
    same = len(kept) == input.sparse_dim() and input.is_coalesced()
    return _coordinates.make(input._indices()[kept], values, size, same)


def _normalised(function: Any, input: SparseTensor, dim: int, dtype: Any) -> SparseTensor:
    _expect_sparse(function.__name__, input)
    x = input.coalesce()
    x = x if dtype is None else x.to(dtype)
    dim = _wrap(dim, x.dim(), function.__name__)
    if dim >= x.sparse_dim():
        return _coordinates.make(x._indices(), function(x._values(), dim - x.sparse_dim() + 1), x.shape, True)
    places = tuple(x._indices().unbind(0))
    dense = taeda.full(x.shape, float("-inf"), dtype=x.dtype).index_put(places, x._values())
    return _coordinates.make(x._indices(), function(dense, dim)[places], x.shape, True)


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Softmax along ``dim`` of the elements that are kept, the others being minus infinity."""
    return _normalised(taeda.softmax, input, dim, dtype)


def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of :func:`softmax`."""
    return _normalised(taeda.log_softmax, input, dim, dtype)


class check_sparse_tensor_invariants:
    """Whether new sparse tensors are checked: they always are, so this changes nothing."""

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
