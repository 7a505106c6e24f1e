"""``make_tensor``: random tensors of any dtype and layout."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .._typed import Tensor
from ..ops.creation import empty
from ..ops.random import randint
from ..ops.views import view_as_real
from ..types import finfo, iinfo


def make_tensor(
    *shape: Any, dtype: Any, device: Any = "cpu", low: float | None = None, high: float | None = None,
    requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor of uniformly distributed values in ``[low, high)``, the same as PyTorch's for the same seed.

    Args:
        shape: sizes, one by one or as a sequence.
        dtype: of the result.
        device: of the result.
        low: the lower end, cut to what the dtype can hold. Default: -9 for signed integers, floating-point and complex
            numbers, 0 for the rest.
        high: the upper end, likewise. Default: 2 for bool, 10 for integers, 9 for floating-point and complex numbers
            (both parts).
        requires_grad: whether operations on the result are recorded.
        noncontiguous: give every second element of a tensor twice as long (where there are two elements or more).
        exclude_zero: put the smallest positive number in place of zero: one, or the smallest normal one.
        memory_format: order of the strides.
    Raises:
        ValueError: the interval is empty or NaN, or outside of what the dtype can hold; ``requires_grad`` of integers;
            both ``noncontiguous`` and ``memory_format``.
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else tuple(shape)
    floating = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not floating:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    low, high = _interval(dtype, low, high, floating)
    doubled = noncontiguous and math.prod(sizes) > 1
    full = (*sizes[:-1], 2 * sizes[-1]) if doubled else sizes
    result = (
        _uniform(full, dtype, low, high, device) if floating else randint(low, high, full, dtype=dtype, device=device)
    )
    if doubled:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        tiny = finfo(dtype).tiny if floating else 1
        result[result == 0] = complex(tiny, tiny) if dtype.is_complex else tiny
    return result.requires_grad_() if requires_grad else result


def _uniform(sizes: tuple, dtype: Any, low: float, high: float, device: Any) -> Tensor:
    result = empty(sizes, dtype=dtype, device=device)
    numbers = view_as_real(result) if dtype.is_complex else result
    if high - low > finfo(dtype).max:  # the width of the interval would be infinite
        numbers.uniform_(low / 2, high / 2).mul_(2)
    else:
        numbers.uniform_(low, high)
    return result


def _interval(dtype: Any, low: Any, high: Any, floating: bool) -> tuple[Any, Any]:
    """Defaults filled in, cut to the range of ``dtype``, and whole for integers."""
    if floating:
        info = finfo(dtype)
        least, end, default = info.min, info.max, (-9, 9)
    elif dtype.name == "bool":
        least, end, default = 0, 2, (0, 2)
    else:
        integers = iinfo(dtype)
        # randint's end is an int64
        least, end = integers.min, min(integers.max + 1, 2**63 - 1)
        default = (-9, 10) if dtype.is_signed else (0, 10)
    low = default[0] if low is None else low
    high = default[1] if high is None else high
    if low != low or high != high:
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and floating:
        warnings.warn(
            "make_tensor: an empty interval, low == high, is deprecated for floating-point types; use taeda.full(...)",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= end:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{least}, {end})"
        )
    low, high = min(max(low, least), end), min(max(high, least), end)
    return (low, high) if floating else (math.ceil(low), math.ceil(high))
