"""Batch and group norm by sums per channel of memory that is ``[image, row, channel]``: see ``kernels.channel_norm``.

Statistics are ``[image, channel]``; batch norm takes a batch for one image.
"""

from __future__ import annotations

from .. import _core
from .._core import Tensor, empty, empty_like, launch
from .._core.callbacks import callbacks
from .._core.machine import stream_bytes
from .._core.reduce import chunks_of_columns, few_long_rows
from ..kernels import channel_norm as kernels
from ..kernels import target

#: Elements from which sums are taken by blocks of rows; below, columns of what is in the cache do.
LEAST = 1 << 17
#: Elements of an image for which a launch of its own is worth while.
LEAST_IMAGE = 1 << 14
#: Bytes of what there is one of per channel, times inputs, from which several rows share it.
SEVERAL = 8192


def working(dtype):
    """The dtype in which statistics are kept."""
    return _core.float32 if dtype.itemsize == 2 else dtype


def in_parts(x: Tensor) -> bool:
    """Whether sums over the channels of a batch are taken in parts, since threads share them and there are few."""
    if x.numel() < 4096 or x.dim() < 2:
        return False
    channels = x.shape[1]
    count = x.numel() // channels
    if count > x.shape[0]:
        return few_long_rows(channels, count)
    return chunks_of_columns(count, channels, x.dtype.itemsize) > 0


def _streams(x: Tensor, moved: int) -> bool:
    """Whether a result like ``x`` is stored past the cache when ``moved`` tensors like it are read and written."""
    size = x.dtype.itemsize
    return size >= 4 and x.shape[-1] * size % 64 == 0 and x.numel() * size * moved >= stream_bytes()


def _blocks(x: Tensor):
    """Sizes for the kernels that sum, and how many blocks there are."""
    images, rows, channels = x.shape
    most = kernels.rows_in_block(channels)
    blocks = -(-rows // most)
    return (rows, channels, most, blocks), images * blocks


def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and sum of squared differences from it, in float64."""
    images, _, channels = x.shape
    args, tasks = _blocks(x)
    states = empty((tasks, 3, channels), working(x.dtype))
    launch(kernels.channel_moments(x.dtype.name), (states, x), args, tasks, 1)
    mean, square = (empty((images, channels), _core.float64) for _ in range(2))
    lanes = max(target.here().vector_bytes // 8, 1)
    units = images * -(-channels // lanes)
    grain = max(1, 4096 // args[3])
    launch(kernels.channel_merge(x.dtype.name), (mean, square, states), args, units, grain)
    return mean, square


def products(g: Tensor, x: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of ``g * (x - mean)`` and of ``g``."""
    images, _, channels = x.shape
    args, tasks = _blocks(x)
    states = empty((images, args[3], 2, channels), working(x.dtype))
    launch(kernels.channel_gradients(x.dtype.name), (states, g, x, mean), args, tasks, 1)
    return tuple(states.sum(1).unbind(1))


def _apply(kernel, inputs, coefficients, last: bool) -> Tensor:
    x = inputs[0]
    images, rows, width = x.shape
    out = empty_like(x)
    size, item = x.dtype.itemsize, coefficients[0].dtype.itemsize
    every, one = (size, width * size), (item, 0) if last else (0, item)
    # 4096 x 2048: 4.6 ms so and 4.3 by several rows, its gradients 8.6 and 6.6; 50000 x 256 4.9 and 5.7, gradients 9.8
    # and 9.1.
    wide = last and width * item * len(coefficients) * len(inputs) >= SEVERAL
    args = (width,) if wide else (width, rows, *every * (1 + len(inputs)), *one * len(coefficients))
    address = kernel(x.dtype.name, "w" if wide else "c" if last else "s", _streams(x, 1 + len(inputs)))
    # One set of coefficients for all images, or one for each.
    columns = [c.contiguous() if c.dim() == 1 else c.contiguous().unbind(0) for c in coefficients]
    grain = max(1, 65536 // width)
    if images == 1:
        launch(address, (out, *inputs, *(c if isinstance(c, Tensor) else c[0] for c in columns)), args, rows, grain)
        return out
    for i, parts in enumerate(zip(out.unbind(0), *(t.unbind(0) for t in inputs), strict=True)):
        launch(address, (*parts, *(c if isinstance(c, Tensor) else c[i] for c in columns)), args, rows, grain)
    return out


def apply(x: Tensor, mean: Tensor, scale: Tensor, bias: Tensor, last: bool = True) -> Tensor:
    """``(x - mean) * scale + bias``; not ``last``: of ``[image, channel, position]``."""
    return _apply(kernels.channel_apply, (x,), (mean, scale, bias), last)


def apply_gradient(
    g: Tensor, x: Tensor, mean: Tensor, scale: Tensor, slope: Tensor, level: Tensor, last: bool = True
) -> Tensor:
    """``g * scale + (x - mean) * slope + level``."""
    return _apply(kernels.channel_apply_gradient, (g, x), (mean, scale, slope, level), last)


def _rows_of(x):
    """``[image, position, channel]`` of an image with channels last."""
    return x.permute(0, *range(2, x.dim()), 1).flatten(1, -2).contiguous()


def _image_of(y, like):
    """The inverse of :func:`_rows_of`."""
    n = like.dim()
    return y.reshape(like.shape[0], *like.shape[2:], like.shape[1]).permute(0, n - 1, *range(1, n - 1))


def _group_moments(x, groups, eps):
    """Mean and inverse deviation of each group of ``[image, position, channel]``, given for each channel."""
    images, positions, channels = x.shape
    split = (images, groups, channels // groups)
    means, squares = (part.reshape(split) for part in moments(x))
    mean = means.mean(2, keepdim=True)
    square = squares.sum(2, keepdim=True) + (means - mean).square().sum(2, keepdim=True) * positions
    rstd = (square / (positions * split[2]) + eps).rsqrt()
    return (part.to(working(x.dtype)).expand(split).reshape(images, channels) for part in (mean, rstd))


def group_norm(input, groups, weight, bias, eps):
    """Group norm of an image with channels last."""
    x = _rows_of(input)
    mean, rstd = _group_moments(x, groups, eps)
    scale = rstd if weight is None else rstd * weight.to(rstd.dtype)
    level = empty((x.shape[2],), rstd.dtype).zero_() if bias is None else bias.to(rstd.dtype)
    return _image_of(apply(x, mean, scale, level), input)


def group_norm_gradient(g, input, groups, weight, eps):
    """Gradients of input, weight and bias of :func:`group_norm`."""
    x, g = _rows_of(input), _rows_of(g)
    mean, rstd = _group_moments(x, groups, eps)
    dot, total = products(g, x, mean)
    dot = dot * rstd
    scale = rstd if weight is None else rstd * weight.to(rstd.dtype)
    split, count = (x.shape[0], groups, -1), x.shape[1] * (x.shape[2] // groups)

    def of_group(each):  # the mean over the group of what its channels add to it
        if weight is not None:
            each = each * weight.to(each.dtype)
        sums = each.reshape(split).sum(2, keepdim=True) / -count
        return sums.expand(x.shape[0], groups, x.shape[2] // groups).reshape(mean.shape) * rstd

    dx = apply_gradient(g, x, mean, scale, of_group(dot) * rstd, of_group(total))
    return _image_of(dx, input), dot.sum(0), total.sum(0)


def coefficients(mean, var, weight, bias, eps):
    """``mean, scale, level`` of :func:`apply`, from statistics of the dtype that they are computed in."""
    return scaled(mean, (var + eps).rsqrt(), weight, bias)


def scaled(mean, rstd, weight, bias):
    """``mean, scale, level`` of :func:`apply`."""
    scale = rstd if weight is None else rstd * weight.to(rstd.dtype)
    return mean, scale, empty(mean.shape, rstd.dtype).zero_() if bias is None else bias.to(rstd.dtype)


def statistics(x, running_mean, running_var, momentum, eps):
    """Mean and inverse deviation of each channel of ``[positions, channels]``; the running statistics move.

    Of those :func:`in_parts`, for images with channels first as well.
    """
    acc, n = working(x.dtype), x.numel() // x.shape[1]
    if in_parts(x):
        mean, variance = callbacks.long_rows("moments", x)
        unbiased = variance * (n / max(n - 1, 1))
    else:
        mean, square = (part[0] for part in moments(x.unsqueeze(0)))
        variance, unbiased = square / n, square / max(n - 1, 1)
    rstd = (variance + eps).rsqrt().to(acc)
    for running, new in ((running_mean, mean), (running_var, unbiased)):
        if running is not None:
            running.copy_(running * (1 - momentum) + new.to(acc) * momentum)
    return mean.to(acc), rstd


def batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    """Batch norm of ``[positions, channels]``, with the statistics of the batch (empty where not ``training``).

    Inference, for images with channels first as well.
    """
    acc = working(x.dtype)
    if training:
        kept = mean, rstd = statistics(x, running_mean, running_var, momentum, eps)
    else:
        mean, rstd = running_mean.to(acc), (running_var.to(acc) + eps).rsqrt()
        kept = empty((0,), acc), empty((0,), acc)
    terms = scaled(mean, rstd, weight, bias)
    if x.dim() > 2:
        return apply(x.flatten(2), *terms, False).reshape(x.shape), *kept
    return apply(x.unsqueeze(0), *terms)[0], *kept


def batch_norm_gradient(g, x, mean, rstd, weight, training):
    """Gradients of input, weight and bias of :func:`batch_norm`."""
    g, x, n = g.unsqueeze(0), x.unsqueeze(0), x.shape[0]
    dot, total = (part[0] for part in products(g, x, mean))
    dot = dot * rstd
    scale = rstd if weight is None else rstd * weight.to(rstd.dtype)
    zero = empty(mean.shape, mean.dtype).zero_()
    slope, level = (-dot * rstd * scale / n, -total * scale / n) if training else (zero, zero)
    return apply_gradient(g, x, mean, scale, slope, level)[0], dot, total
