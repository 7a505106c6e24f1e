"""ONNX ops on numbers of few bits, each with a scale and a zero point."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import int32, uint8
from ..._typed import Tensor
from ...ops import pointwise
from ...ops.extrema import clamp
from ...ops.indexing import where
from ...types import iinfo
from ..table import op
from ..values import DTYPES, FLOAT8, NARROW, code_of
from .conversion import cast
from .convolution import conv

_UINT8 = 2
_NARROW_RANGES = {21: (0, 15), 22: (-8, 7), 25: (0, 3), 26: (-2, 1)}


def _spread(x: Any, like: Tensor, axis: int, block_size: int) -> Any:
    """Scales of one axis, or of blocks along it, in a shape that broadcasts with ``like``."""
    if x is None or x.ndim == 0 or x.numel() == 1:
        return x if x is None else x.reshape(())
    axis %= like.ndim
    if x.ndim == 1 and not block_size:
        return x.reshape(-1, *[1] * (like.ndim - 1 - axis))
    return x.repeat_interleave(block_size, axis).narrow(axis, 0, like.shape[axis]) if block_size else x


def _widened(x: Any) -> Tensor | None:
    """Numbers of few bits as a dtype that computes."""
    if x is None:
        return None
    if isinstance(x, np.ndarray):
        return cast(x, to=1 if x.dtype.name.startswith("float") else 6)
    return x.float() if x.dtype.itemsize == 1 and x.is_floating_point() else x.to(int32)


@op("QuantizeLinear")
def quantize_linear(
    x: Tensor, scale: Tensor, zero_point: Any = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0,
    precision: int = 0, saturate: int = 1,
) -> Any:  # fmt: skip
    """``x / scale`` rounded half to even, plus the zero point, within the range of its type."""
    code = code_of(zero_point) if zero_point is not None else output_dtype or _UINT8
    dtype = DTYPES[precision] if precision else scale.dtype if scale.is_floating_point() else x.dtype
    zero = _spread(_widened(zero_point), x, axis, block_size)
    ratio = x.to(dtype) / _spread(scale, x, axis, block_size).to(dtype)
    if code in FLOAT8 or NARROW.get(code, "").startswith("float"):
        return cast(ratio if zero is None else ratio + zero.to(dtype), to=code, saturate=saturate)
    low, high = _NARROW_RANGES.get(code) or (iinfo(DTYPES[code]).min, iinfo(DTYPES[code]).max)
    whole = pointwise.round(ratio).double()
    return cast(clamp(whole if zero is None else whole + zero, low, high).to(int32), to=code)


@op("DequantizeLinear")
def dequantize_linear(
    x: Any, scale: Tensor, zero_point: Any = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Tensor:
    wide = _widened(x)
    assert wide is not None
    dtype = DTYPES[output_dtype] if output_dtype else scale.dtype
    zero = _spread(_widened(zero_point), wide, axis, block_size)
    centred = wide if zero is None else wide - zero
    return centred.to(dtype) * _spread(scale, wide, axis, block_size).to(dtype)


@op("DynamicQuantizeLinear")
def dynamic_quantize_linear(x: Tensor) -> tuple[Tensor, ...]:
    """uint8 with the scale and zero point for the range of ``x`` and 0."""
    low, high = clamp(x.min(), max=0), clamp(x.max(), min=0)
    scale = (high - low) / 255
    scale = where(scale == 0, 1, scale)  # all elements are zero
    zero = clamp(pointwise.round(-low / scale), 0, 255).to(uint8)
    return quantize_linear(x, scale, zero), scale, zero


def _centred(x: Tensor, zero: Tensor | None, axis: int) -> Tensor:
    """``x`` less its zero point, in double precision: sums of products of few bits are exact there."""
    wide = x.double()
    return wide if zero is None else wide - _spread(zero, x, axis, 0).double()


@op("MatMulInteger")
def matmul_integer(a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None) -> Tensor:
    if a_zero is not None and a_zero.ndim == 1 and a_zero.numel() > 1:
        a_zero = a_zero.unsqueeze(1)
    return (_centred(a, a_zero, -2) @ _centred(b, b_zero, -1)).to(int32)


@op("QLinearMatMul")
def qlinear_matmul(
    a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor, y_scale: Tensor,
    y_zero: Tensor,
) -> Tensor:  # fmt: skip
    if a_scale.ndim == 1 and a_scale.numel() > 1:
        a_scale, a_zero = a_scale.unsqueeze(1), a_zero.unsqueeze(1)
    product = _centred(a, a_zero, -2) @ _centred(b, b_zero, -1)
    return quantize_linear(product * (a_scale.double() * b_scale.double()), y_scale.double(), y_zero, axis=-1)


@op("ConvInteger")
def conv_integer(
    x: Tensor, weight: Tensor, x_zero: Tensor | None = None, w_zero: Tensor | None = None, **attributes: Any
) -> Tensor:
    return conv(_centred(x, x_zero, 1), _centred(weight, w_zero, 0), **attributes).to(int32)


@op("QLinearConv")
def qlinear_conv(
    x: Tensor, x_scale: Tensor, x_zero: Tensor, weight: Tensor, w_scale: Tensor, w_zero: Tensor, y_scale: Tensor,
    y_zero: Tensor, bias: Tensor | None = None, **attributes: Any,
) -> Tensor:  # fmt: skip
    wide = None if bias is None else bias.double()
    sums = conv(_centred(x, x_zero, 1), _centred(weight, w_zero, 0), wide, **attributes)
    scale = x_scale.double() * _spread(w_scale, sums, 1, 0).double()
    return quantize_linear(sums * scale, y_scale.double(), y_zero)
