"""Numbers rounded to those that an integer with a scale can hold, in floating point: for training that knows of it."""

from __future__ import annotations

from .._core import Tensor
from ..kernels import scalar as s
from .activation import inside
from .exchange import tensor
from .pointwise import add, mul, no_slope, round_half_even
from .powers import reciprocal
from .table import composite, pointwise


@pointwise(
    method=False, inplace=False, operands=3, dtypes=("float",), node="FakeQuantizePerTensorAffineCachemask"
)  # fmt: skip
def _fake_quantize(input, scale, zero_point, low, high):
    """``(clamp(round(input / scale) + zero_point, low, high) - zero_point) * scale``; NaN counts as the lowest."""
    level = s.round(input * (1.0 / scale)) + zero_point
    level = s.select(level >= low, level, low)
    level = s.select(level <= high, level, high)
    return (level - zero_point) * scale


def _straight_through(g, input, scale, zero_point, low, high):
    """The gradient passes where the number was not cut off (Bengio, Leonard & Courville 2013)."""
    level = add(round_half_even(mul(input, reciprocal(scale))), zero_point)
    return inside(g, level, low - 0.5, high + 0.5)


_fake_quantize.vjp(input=_straight_through, scale=no_slope, zero_point=no_slope)


def _checked(name: str, input: Tensor, scale: Tensor, zero_point: Tensor, low: int, high: int) -> Tensor:
    if low > high:
        raise RuntimeError(f"{name}: `quant_min` should be less than or equal to `quant_max`, got {low} and {high}")
    if not input.is_floating_point():
        raise NotImplementedError(f"{name}: expected a floating-point tensor, got {input.dtype}; convert it with .to()")
    if scale.requires_grad or zero_point.requires_grad:
        raise RuntimeError(f"{name} is not differentiable with respect to argument 'scale' or 'zero_point': detach it")
    if bool(((zero_point < low) | (zero_point > high)).any()):
        raise RuntimeError(f"{name}: `zero_point` must be between `quant_min` and `quant_max`, {low} and {high}")
    wide = input.float() if input.element_size() < 4 else input
    return _fake_quantize(wide, scale.to(wide.dtype), zero_point.to(wide.dtype), low, high).to(input.dtype)


@composite(method=False)
def fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min: int, quant_max: int):
    """Round ``input`` to small integers and back: ``(clamp(round(input / scale) + zero_point, quant_min, quant_max) -
    zero_point) * scale``.

    Args:
        input: floating point, any sizes.
        scale: the step between neighbours, a number or a tensor of one element.
        zero_point: the integer that stands for 0, a number or a tensor of one element.
        quant_min: the first integer of the type that is imitated.
        quant_max: the last one.
    Returns:
        The sizes and the dtype of ``input``. Its gradient passes where nothing was cut off.
    Raises:
        RuntimeError: ``zero_point`` is not in the range, or the range is empty.
    Examples:
        >>> x = taeda.tensor([-1.0, 0.3, 100.0])
        >>> taeda.fake_quantize_per_tensor_affine(x, 0.25, 0, -128, 127)
        tensor([-1.0000,  0.2500, 31.7500])
    """
    name = "fake_quantize_per_tensor_affine"
    parts = [x if isinstance(x, Tensor) else tensor(x) for x in (scale, zero_point)]
    return _checked(name, input, *(x.reshape(()) for x in parts), quant_min, quant_max)


@composite(method=False)
def fake_quantize_per_channel_affine(
    input, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
):
    """:func:`fake_quantize_per_tensor_affine` with a scale and a zero point for each index of dimension ``axis``.
    Arguments as of :func:`fake_quantize_per_tensor_affine`.

    Args:
        scale: a vector, ``float32``, of size ``input.shape[axis]``.
        zero_point: a vector of the same size.
        axis: the dimension of the channels.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: the sizes do not fit, a zero point is not in the range, or the range is empty.
    Examples:
        >>> x, zeros = taeda.full((2, 2), 0.3), taeda.zeros(2, dtype=taeda.int32)
        >>> taeda.fake_quantize_per_channel_affine(x, taeda.tensor([0.25, 0.5]), zeros, 0, -128, 127)
        tensor([[0.2500, 0.2500],
                [0.5000, 0.5000]])
    """
    name = "fake_quantize_per_channel_affine"
    if not 0 <= axis < input.dim():
        raise RuntimeError(f"{name}: `axis` must be between 0 and number of dimensions of input, got {axis}")
    if not scale.shape == zero_point.shape == (input.shape[axis],):
        raise RuntimeError(
            f"{name}: expected a scale and a zero point for each of {input.shape[axis]} indices of dimension {axis}, "
            f"got sizes {list(scale.shape)} and {list(zero_point.shape)}"
        )
    sizes = [-1 if dim == axis else 1 for dim in range(input.dim())]
    return _checked(name, input, scale.reshape(sizes), zero_point.reshape(sizes), quant_min, quant_max)
