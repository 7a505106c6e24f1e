"""The standard's extension of linear algebra, on :mod:`taeda.linalg`. Matrices are the last two dimensions."""

from __future__ import annotations

from typing import Any, NamedTuple

import taeda

from .._typed import Tensor
from ._arranging import matmul, matrix_transpose, tensordot, vecdot
from ._dtypes import _public
from ._elementwise import _promoted
from ._reductions import sum as _sum


class EighResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The Cholesky factor of symmetric or Hermitian positive definite matrices."""
    return taeda.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements along ``axis``, which counts from the end."""
    first, second = _promoted("cross", x1, x2)
    ndim = max(first.ndim, second.ndim)
    first, second = (x.reshape((1,) * (ndim - x.ndim) + x.shape) for x in (first, second))
    return taeda.linalg.cross(first, second, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """Determinants."""
    return taeda.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Diagonals."""
    return taeda.diagonal(x, offset, -2, -1)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues, in ascending order, and eigenvectors of symmetric or Hermitian matrices."""
    return EighResult(*taeda.linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric or Hermitian matrices, in ascending order."""
    return taeda.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """Inverses."""
    return taeda.linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Norms of matrices."""
    return taeda.linalg.matrix_norm(x, ord, (-2, -1), keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Matrices to a whole power."""
    return taeda.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The number of singular values larger than ``rtol`` times the largest one.

    Raises:
        ValueError: ``x`` has fewer than two dimensions.
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_rank: expected at least two dimensions, got {x.ndim}")
    return taeda.linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of an element of one vector with one of the other."""
    return taeda.outer(*_promoted("outer", x1, x2))


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """Moore-Penrose pseudo-inverses; singular values of up to ``rtol`` times the largest one count as zero."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * taeda.finfo(x.dtype).eps
    return taeda.linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """QR decompositions."""
    return QRResult(*taeda.linalg.qr(x, mode=mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Signs of determinants and logarithms of their absolute values."""
    return SlogdetResult(*taeda.linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution of ``x1 @ y = x2``. Only an array of one dimension is a vector, anything else a stack of
    matrices."""
    a, b = _promoted("solve", x1, x2)
    vector = b.ndim == 1
    b = b.unsqueeze(-1) if vector else b
    # stacks of one shape, for taeda.linalg.solve to see no vectors in matrices
    shape = taeda.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    solution = taeda.linalg.solve(a.expand(shape + a.shape[-2:]), b.expand(shape + b.shape[-2:]))
    return solution.squeeze(-1) if vector else solution


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular value decompositions ``U @ diag(S) @ Vh``."""
    return SVDResult(*taeda.linalg.svd(x, full_matrices=full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """Singular values, in descending order."""
    return taeda.linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Sums of diagonals, by the rules of ``sum``."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """Norms of vectors along ``axis``, or of all elements as one vector."""
    if axis == ():
        return taeda.abs(x) if ord != 0 else (x != 0).to(taeda.abs(x).dtype)
    return taeda.linalg.vector_norm(x, ord, axis, keepdims)


__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot", *_public(globals())]
