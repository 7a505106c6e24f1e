"""Helpers of the distributions: broadcasting of parameters, probabilities and log-odds, triangles of matrices."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

from .._core import Size, Tensor, get_default_dtype
from ..autograd import enable_grad
from ..func.batched import Batched
from ..ops.creation import arange, empty
from ..ops.exchange import tensor
from ..ops.views import broadcast_tensors
from ..types import finfo

euler_constant = 0.57721566490153286060

__all__ = [
    "broadcast_all", "clamp_probs", "euler_constant", "lazy_property", "logits_to_probs", "probs_to_logits",
    "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor) or hasattr(type(x), "__torch_function__")


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors and numbers as tensors of one shape; numbers take the dtype of the first tensor, or the default one.

    Args:
        *values: tensors and numbers.
    Returns:
        A tensor for each.
    Raises:
        ValueError: one is neither a tensor nor a number.
    """
    if not all(_is_tensor(v) or isinstance(v, Number) for v in values):
        kinds = ", ".join(type(v).__name__ for v in values)
        raise ValueError(f"Input arguments must all be tensors or numbers, got {kinds}")
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype, device = (get_default_dtype(), None) if like is None else (like.dtype, like.device)
    return tuple(broadcast_tensors(*(v if _is_tensor(v) else tensor(v, dtype=dtype, device=device) for v in values)))


def _standard_normal(shape: Any, dtype: Any, device: Any = None) -> Tensor:
    return empty(Size(shape), dtype=dtype, device=device).normal_()


def all_true(x: Tensor) -> bool:
    """Whether all elements are true; under ``vmap`` those of all examples."""
    return bool((x._whole() if isinstance(x, Batched) else x).all())


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last ``dim`` dimensions."""
    return value if dim == 0 else value.reshape((*value.shape[:-dim], -1)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log-odds (``is_binary``), or of log-probabilities along the last dimension, up to a constant."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept away from 0 and 1 by the precision of their dtype."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log-odds of probabilities (``is_binary``), or their logarithms."""
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


class formula(property):
    """A property that is one expression. It takes its documentation from the base class, unless it is given.

    Args:
        fget: from the instance to the value.
        doc: what the value is.
    """

    def __init__(self, fget: Callable[[Any], Any], doc: str | None = None):
        super().__init__(fget)
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        if self.__doc__ is None:
            self.__doc__ = getattr(getattr(super(owner, owner), name, None), "__doc__", None)


class lazy_property:
    """A property that is computed when first asked for, with gradients, and kept as an attribute of the instance."""

    def __init__(self, wrapped: Callable):
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def _tril_mask(n: int, diag: int) -> Tensor:
    """(n, n) bool: on and below diagonal ``diag``."""
    columns = arange(n)
    return columns <= columns.unsqueeze(-1) + diag


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on and below a diagonal, row by row.

    Args:
        mat: (..., n, n).
        diag: which diagonal, from ``-n`` to ``n - 1``.
    Returns:
        (..., number of elements).
    Raises:
        ValueError: there is no such diagonal.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _tril_mask(n, diag)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The matrix with the given elements on and below a diagonal, and zeros above.

    Args:
        vec: (..., number of elements), row by row.
        diag: which diagonal.
    Returns:
        (..., n, n).
    Raises:
        ValueError: no square matrix has as many elements there.
    """
    count, n = vec.shape[-1], 0
    while (have := int(_tril_mask(n, diag).sum()) if n else 0) < count:
        n += 1
    if have != count:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower triangular part of a square "
            "D x D matrix."
        )
    mat = vec.new_zeros((*vec.shape[:-1], n, n))
    mat[..., _tril_mask(n, diag)] = vec
    return mat
