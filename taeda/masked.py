"""Reductions and normalisations that take a mask: what it leaves out counts as if it were not there.

Every function takes ``mask``, bool, broadcast to the sizes of ``input``: True keeps an element, and without a mask all
are kept. ``dim`` is an int or a tuple of ints, all dimensions by default. A left-out element becomes what does not
change the result (0 in a sum, 1 in a product, ``-inf`` in a maximum); where nothing is kept that is the result, and NaN
for what has none, such as a mean.
"""

from __future__ import annotations

import math
from typing import Any

from . import _core
from ._core import Tensor
from .linalg import vector_norm
from .ops.creation import full_like, ones_like
from .ops.indexing import where
from .ops.reduction import extent
from .ops.scatter import _identity_of
from .ops.table import OPS, expect_tensors

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip


def _mask(mask: Tensor | None, input: Tensor, name: str) -> Tensor | None:
    """The mask in the sizes of ``input``: a copy, so that the caller's may be written before the backward pass."""
    expect_tensors(f"masked.{name}", input=input, **({} if mask is None else {"mask": mask}))
    if mask is None:
        return None
    if mask.dim() > input.dim():
        raise IndexError(
            f"masked.{name}: expected a mask of at most {input.dim()} dimensions, those of the input, got shape "
            f"{tuple(mask.shape)} for input of shape {tuple(input.shape)}"
        )
    return mask.to(_core.bool_, copy=True).expand(input.shape)


def _filled(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    return input if mask is None else where(mask, input, full_like(input, value))


def _dims(dim: Any, input: Tensor) -> tuple[int, ...]:
    """``dim`` as a tuple of dimensions from 0."""
    n = input.dim()
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(n))
    dims = []
    for d in (dim,) if isinstance(dim, int) else dim:
        d = _core.wrapped_dim(d, n, "masked")
        if d in dims:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if n:
            dims.append(d)
    return tuple(dims)


def _total_dtype(input: Tensor, dtype: Any) -> Any:
    if dtype is not None:
        return dtype
    return input.dtype if input.is_floating_point() or input.is_complex() else _core.int64


def _float_dtype(input: Tensor, dtype: Any) -> Any:
    dtype = input.dtype if dtype is None else dtype
    if not isinstance(dtype, _core.dtype):
        raise TypeError(f"argument 'dtype' must be taeda.dtype, not {dtype.__class__.__name__}")
    return dtype if dtype.is_floating_point or dtype.is_complex else _core.float32


# ---- totals ---------------------------------------------------------------------------------------------------------


def sum(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Sum of the kept elements; 0 where there are none. Integers and bools are summed as int64."""
    kept = _filled(input, _mask(mask, input, "sum"), 0)
    return kept.sum(_dims(dim, input), keepdim, dtype=_total_dtype(input, dtype))


def prod(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Product of the kept elements; 1 where there are none. Integers and bools are multiplied as int64."""
    result = _filled(input, _mask(mask, input, "prod"), 1)
    result = result.to(_total_dtype(input, dtype))
    dims = (0,) if isinstance(dim, int) and not input.dim() else _dims(dim, input)
    for d in sorted(dims, reverse=True):
        result = result.prod(d, keepdim)
    return result


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running sum along ``dim`` of the kept elements."""
    kept = _filled(input, _mask(mask, input, "cumsum"), 0)
    return kept.cumsum(_dims(dim, input)[0] if input.dim() else 0, dtype=dtype or input.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running product along ``dim`` of the kept elements."""
    kept = _filled(input, _mask(mask, input, "cumprod"), 1)
    return kept.cumprod(_dims(dim, input)[0] if input.dim() else 0, dtype=dtype or input.dtype)


# ---- extremes -------------------------------------------------------------------------------------------------------


def _replaced(name: str, op: str, input: Tensor, dtype: Any, mask: Tensor | None) -> Tensor:
    """``input`` in ``dtype``, with what changes nothing under ``op``, amax or amin, where it is left out."""
    input = input if dtype is None else input.to(dtype)
    return _filled(input, _mask(mask, input, name), _identity_of(op, input.dtype))


def amax(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Largest kept element; ``-inf``, or the smallest integer, where there is none."""
    return _replaced("amax", "amax", input, dtype, mask).amax(_dims(dim, input), keepdim)


def amin(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Smallest kept element; ``inf``, or the largest integer, where there is none."""
    return _replaced("amin", "amin", input, dtype, mask).amin(_dims(dim, input), keepdim)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Position of the largest kept element along ``dim`` (in the flattened tensor by default), in the dtype of
    ``input``."""
    kept = _replaced("argmax", "amax", input, dtype, mask)
    return kept.argmax(dim, keepdim).to(kept.dtype)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Position of the smallest kept element along ``dim`` (in the flattened tensor by default), in the dtype of
    ``input``."""
    kept = _replaced("argmin", "amin", input, dtype, mask)
    return kept.argmin(dim, keepdim).to(kept.dtype)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Median of the kept elements along ``dim``, the lower of two in the middle; NaN where there are none.

    Args:
        input: any shape; floating-point or integers.
        dim: the dimension.
        keepdim: keep it, with size 1.
        dtype: of the result; that of ``input`` by default.
        mask: true for elements that are kept; broadcasts to ``input``.

    Returns:
        The sizes of ``input`` without ``dim``.

    Raises:
        ValueError: a kept element is NaN, or elements of an integer dtype are left out (there is no value for none).
    """
    input = input if dtype is None else input.to(dtype)
    mask = _mask(mask, input, "median")
    dim = _dims(dim, input)[0] if input.dim() else 0
    if input.is_floating_point():
        kept = _filled(input, mask, math.nan)
        if input.numel() and _has_values(input) and extent(input.isnan())[1]:
            raise ValueError(
                "masked median expects no fully masked out rows if dtype is not floating point, and no NaN"
            )
        return kept.nanmedian(dim, keepdim)[0]
    if mask is not None and mask.numel() and _has_values(mask) and not extent(mask)[0]:
        raise ValueError(
            f"masked median of {input.dtype} has no value for what is left out; convert to a floating dtype"
        )
    return input.median(dim, keepdim)[0]


def _has_values(x: Tensor) -> bool:
    """Whether they can be looked at: neither on device meta, nor while a program is recorded."""
    return not x.is_meta and not hasattr(_core.current_mode(), "control_flow")


# ---- moments and norms ----------------------------------------------------------------------------------------------


def _count(input: Tensor, dims: tuple[int, ...], mask: Tensor | None) -> Any:
    """The number of elements that are kept."""
    if mask is None:
        return math.prod(input.shape[d] for d in dims)
    return mask.sum(dims, True, dtype=_core.int64)


def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Mean of the kept elements; NaN where there are none."""
    mask = _mask(mask, input, "mean")
    dtype = dtype or input.dtype
    dims = _dims(dim, input)
    if mask is None:
        return input.to(dtype).mean(dims, keepdim)
    total = sum(input, dims, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / ones_like(input, dtype=_total_dtype(mask, None)).masked_fill(~mask, 0).sum(dims, keepdim)


def _variance(
    name: str, input: Tensor, dim: Any, unbiased: Any, correction: Any, keepdim: bool, dtype: Any, mask: Any
) -> Tensor:
    if unbiased is not None and correction is not None:
        raise ValueError(f"masked.{name}: give either 'unbiased' or 'correction', not both")
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    correction = correction if correction is not None else 1 if unbiased or unbiased is None else 0
    mask = _mask(mask, input, name)
    x = input.to(_float_dtype(input, dtype))
    dims = _dims(dim, input)
    count = _count(x, dims, mask)
    rest = _filled(x - _filled(x, mask, 0).sum(dims, True) / count, mask, 0)
    total = (rest * rest.conj_physical()).sum(dims, keepdim)
    if mask is None:
        return total / max(count - correction, 0)
    count = mask.sum(dims, keepdim)
    return (total / ((count - correction).clamp(min=0) if correction else count)).to(x.dtype)


def var(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Variance of the kept elements: squared deviations over their number less ``correction`` (1 by default).

    Integers are taken as float32; the variance of complex numbers has their dtype.
    """
    return _variance("var", input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Standard deviation of the kept elements: the square root of :func:`var`."""
    return _variance("std", input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def norm(
    input: Tensor, ord: float = 2.0, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """``ord``-norm of the kept elements; where there are none 0, or ``inf`` for a negative ``ord``."""
    kept = _filled(input, _mask(mask, input, "norm"), math.inf if ord < 0 else 0)
    return vector_norm(kept, ord, _dims(dim, input), keepdim, dtype=dtype)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The kept elements over their ``ord``-norm along ``dim`` (``eps`` if that is less), 0 elsewhere."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    kept = _filled(input, _mask(mask, input, "normalize"), 0)
    return (kept if dtype is None else kept.to(dtype)) / size.clamp(min=eps)


# ---- exponentials ---------------------------------------------------------------------------------------------------


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Softmax of the kept elements along ``dim``, 0 elsewhere; NaN where nothing is kept."""
    return _replaced("softmax", "amax", input, dtype, mask).softmax(dim)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Logarithm of :func:`softmax`: ``-inf`` at what is left out."""
    return _replaced("log_softmax", "amax", input, dtype, mask).log_softmax(dim)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """:func:`softmax` of ``-input``."""
    return (-_replaced("softmin", "amin", input, dtype, mask)).softmax(dim)


def logsumexp(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Logarithm of the sum of exponentials of the kept elements; ``-inf`` where there are none."""
    mask = _mask(mask, input, "logsumexp")
    if input.is_complex() and dtype is None:
        kept = _filled(input, mask, -math.inf)
    else:
        kept = _replaced("logsumexp", "amax", input, dtype, mask)
    return OPS["logsumexp"](kept, _dims(dim, input), keepdim).to(dtype or kept.dtype)


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: Any = None, input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """``log(exp(input) + exp(other))``, in which an element left out counts as ``-inf``."""
    expect_tensors("masked.logaddexp", input=input, other=other)
    input, other = (x if dtype is None else x.to(dtype) for x in (input, other))
    first = _filled(input, _mask(input_mask, input, "logaddexp"), -math.inf)
    return first.logaddexp(_filled(other, _mask(other_mask, other, "logaddexp"), -math.inf))


def __getattr__(name: str) -> Any:
    if name not in ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    from . import _masked_tensor

    return getattr(_masked_tensor, name)
