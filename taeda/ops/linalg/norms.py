"""Norms of matrices, and the norm functions of PyTorch's earlier interface."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._core import promote_types, wrapped_dim
from ..reduction import vector_norm
from ..table import composite
from .lapack import check_float, check_matrix, check_tensor
from .svd import linalg_svdvals


@composite(method=False, out="same")
def linalg_matrix_norm(A, ord: Any = "fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """A norm of the matrices in two dimensions.

    Args:
        A: ``(..., m, n)``, floating point or complex.
        ord: ``"fro"`` (the root of the sum of squares), ``"nuc"`` (the sum of the singular values), 2 or -2 (the
            largest or smallest of them), 1 or -1 (the largest or smallest sum of a column's absolute values), inf or
            -inf (of a row's).
        dim: the two dimensions of the matrices.
        dtype: what ``A`` is converted to first. Default: its own.
    Returns:
        ``A`` without these dimensions, real.
    Raises:
        RuntimeError: ``A`` is of integers, ``ord`` is another, or the dimensions are the same.
    Examples:
        >>> A = taeda.tensor([[1.0, -2.0], [2.0, 4.0]])
        >>> taeda.linalg.matrix_norm(A), taeda.linalg.matrix_norm(A, 1)
        (tensor(5.), tensor(6.))
    """
    name = "linalg.matrix_norm"
    check_matrix(A, name)
    if not isinstance(dim, Sequence) or len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {dim}")
    if not (A.is_floating_point() or A.is_complex()):
        check_float(A, name)
    if dtype is not None:
        _check_dtype(A, dtype, name)
        A = A.to(dtype)
    first, second = (wrapped_dim(d, A.dim(), name) for d in dim)
    if first == second:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    if ord == "fro":
        return vector_norm(A, 2, (first, second), keepdim)
    if ord in ("nuc", 2, -2):
        S = linalg_svdvals(A if (first, second) == (A.dim() - 2, A.dim() - 1) else A.movedim((first, second), (-2, -1)))
        made = S.sum(-1) if ord == "nuc" else _extreme(S, -1, False, ord > 0)
        if keepdim:
            made = made.unsqueeze(-1).unsqueeze(-1).movedim((-2, -1), (first, second))
        return made
    if ord not in (1, -1, math.inf, -math.inf):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    along, other = (first, second) if abs(ord) == 1 else (second, first)
    sums = vector_norm(A, 1, along, True)
    made = _extreme(sums, other, True, ord > 0)
    return made if keepdim else made.squeeze((first, second))


def _extreme(x, dim, keepdim, largest):
    """The largest or the smallest magnitude; the largest of none is 0."""
    if not largest:
        return x.amin(dim, keepdim)
    return x.amax(dim, keepdim) if x.shape[dim] else x.sum(dim, keepdim=keepdim)


def _check_dtype(A, dtype, name):
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: dtype should be floating point or complex. Got {dtype}")
    if A.is_complex() != dtype.is_complex:
        raise RuntimeError(
            f"{name}: dtype should be {'complex' if A.is_complex() else 'real'} for inputs of {A.dtype}. Got {dtype}"
        )
    if promote_types(A.dtype, dtype) != dtype:
        raise RuntimeError(
            f"{name}: the dtype of the input ({A.dtype}) should be convertible without narrowing to {dtype}"
        )


@composite(method=False, out="same")
def linalg_norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """A vector norm or a matrix norm, by the number of dimensions. :func:`taeda.linalg.vector_norm` and
    :func:`taeda.linalg.matrix_norm` say more clearly what is meant.

    Args:
        A: floating point or complex.
        ord: which norm, as for these. Default: the 2-norm of all elements.
        dim: one dimension for vectors, two for matrices. Default: all, of at most two where ``ord`` is given.
        dtype: what ``A`` is converted to first. Default: its own.
    Returns:
        ``A`` without these dimensions, real.
    Raises:
        RuntimeError: ``A`` is of integers, or the number of dimensions does not fit.
    Examples:
        >>> taeda.linalg.norm(taeda.tensor([3.0, 4.0]))
        tensor(5.)
    """
    check_tensor(A, "linalg.norm")
    dims = (dim,) if isinstance(dim, int) else None if dim is None else tuple(dim)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if isinstance(ord, str):
        if (dims is not None and len(dims) != 2) or (dims is None and A.dim() != 2):
            raise RuntimeError(
                f"linalg.norm: order {ord!r} is for matrices: got dim={dim} and an input of {A.dim()} dimensions"
            )
        return linalg_matrix_norm(A, ord, dims or (0, 1), keepdim, dtype=dtype)
    if dims is None and ord is not None:
        if A.dim() not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.dim()}D."
            )
        dims = tuple(range(A.dim()))
    if ord is not None and dims is not None and len(dims) == 2:
        return linalg_matrix_norm(A, ord, dims, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dims, keepdim, dtype=dtype)


@composite(method=False, out="same")
def nuclear_norm(input, dim: Any = (-2, -1), keepdim=False):
    """The sum of the singular values of matrices: ``taeda.linalg.matrix_norm(input, "nuc")``, which is preferred.

    Args:
        input: ``(..., m, n)``.
        dim: the two dimensions of the matrices; may be left out, ``nuclear_norm(input, keepdim)``.
    Returns:
        ``input`` without these dimensions.
    Examples:
        >>> taeda.nuclear_norm(taeda.tensor([[3.0, 0.0], [0.0, -2.0]])).round(decimals=4)
        tensor(5.)
    """
    if isinstance(dim, bool):
        dim, keepdim = (-2, -1), dim
    if dim == (-2, -1) and input.dim() < 2:
        raise RuntimeError(
            f"linalg.nuclear_norm: Expected a tensor with 2 or more dimensions, but got {input.dim()} dimensions"
        )
    return linalg_matrix_norm(input, "nuc", tuple(dim), keepdim)


@composite(method=False, out="same")
def frobenius_norm(input, dim=None, keepdim=False):
    """The square root of the sum of squared absolute values over one or two dimensions.

    Args:
        input: floating point or complex.
        dim: one or two dimensions. Default: all.
    Returns:
        The sizes of ``input`` without those of these dimensions, real.
    Examples:
        >>> taeda.frobenius_norm(taeda.tensor([[1.0, 2.0], [2.0, 4.0]]))
        tensor(5.)
    """
    dims = () if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead.")
    return vector_norm(input, 2, dims or None, keepdim)


@composite(method=False)
def norm_except_dim(v, pow=2, dim=0):
    """The norms over all dimensions but one, as weight normalisation needs them.

    Args:
        v: floating point, any sizes.
        pow: which norm.
        dim: the dimension that is kept; -1 keeps none.
    Returns:
        The sizes of ``v`` with 1 in the other dimensions. The dtype is that of ``v``.
    Raises:
        RuntimeError: ``v`` is neither floating point nor complex.
    Examples:
        >>> taeda.norm_except_dim(taeda.tensor([[3.0, 4.0], [5.0, 12.0]]))
        tensor([[ 5.],
                [13.]])
    """
    if dim == -1:
        return vector_norm(v, pow)
    if v.dim() == 1:
        return vector_norm(v.unsqueeze(-1), pow, -1)
    return vector_norm(v, pow, [d for d in range(v.dim()) if d != dim % v.dim()], True)
