"""Normalisation over layers, groups, batches and instances, with fused kernels forward and backward.

Where a second derivative is asked for, the first is written out in public ops instead.
"""

from __future__ import annotations

import math

from .. import _core
from .._core import HELPERS, Tensor, empty, empty_like, is_grad_enabled, launch
from .._core.reduce import Rowwise
from ..kernels import normalize as kernels
from ..kernels import target
from .table import composite, primitive

_PIECE = 32768  # elements worth a piece of their own on the thread pool


def _working(dtype):
    """What statistics are kept in."""
    return _core.float32 if dtype.itemsize == 2 else dtype


def _require_float(name, x):
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}")
    if not x.dtype.is_floating_point:
        raise RuntimeError(
            f"{name}(): expected a floating-point tensor, got {x.dtype} of shape {tuple(x.shape)}. Convert it first, "
            f"as in x.float()"
        )


def _names(*tensors):
    return tuple(None if t is None else t.dtype.name for t in tensors)


def _pointers(*tensors):
    return tuple(0 if t is None else t for t in tensors)


# ---- layer norm and RMS norm ----------------------------------------------------------------------------------------
_layer_norm = Rowwise("layer_norm", "normalize.layer_norm", "fx", "fww").affine
_layer_norm_grad = Rowwise("layer_norm_backward", "normalize.layer_norm_backward", "fxrara", "ffw").last
_rms_norm = Rowwise("rms_norm", "normalize.rms_norm", "fx", "fw").last
_rms_norm_grad = Rowwise("rms_norm_backward", "normalize.rms_norm_backward", "fxra", "ffw").last


def _check_normalized(name, input, normalized_shape, *affine):
    """The number of dimensions that are normalised, which must be the last ones."""
    if isinstance(normalized_shape, int):
        normalized_shape = (normalized_shape,)
    shape = tuple(normalized_shape)
    n = len(shape)
    if n and input.dim() >= n and tuple(input.shape[-n:]) == shape:
        for x in affine:
            if x is not None and x.shape != shape:
                raise RuntimeError(
                    f"{name}(): expected weight and bias of shape normalized_shape={list(shape)}, got {list(x.shape)}"
                )
        return n
    _require_float(name, input)
    raise RuntimeError(
        f"{name}(): given normalized_shape={list(shape)}, expected input with shape "
        f"[*, {', '.join(map(str, shape))}], but got input of size {list(input.shape)}"
    )


@primitive(_layer_norm, method=False, out=False)
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions (Ba, Kiros and Hinton 2016).

    Args:
        input: floating point, whose last sizes are ``normalized_shape``.
        normalized_shape: an int or the sizes of the dimensions that are normalised together.
        weight, bias: of the shape ``normalized_shape``, or None.
        eps: added to the variance, which is the biased one.
        cudnn_enable: accepted for compatibility.

    Raises:
        RuntimeError: the shapes do not fit.
    """


@layer_norm.vjp_all("input", "weight", "bias")
def _(g, input, normalized_shape, weight, bias, eps, needs):
    n = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    if is_grad_enabled():
        return _layer_norm_gradient(g, input, n, weight, bias, eps)
    dx, mean, rstd = _layer_norm_grad(input, n, (_like(g, input), weight), None, eps)
    dw, db = _affine_gradient(g, input, n, mean, rstd, weight, bias, needs)
    return dx, dw, db


def _like(g, input):
    """A gradient in the input's dtype."""
    return g if g.dtype is input.dtype else g.to(input.dtype)


def _affine_gradient(g, input, n, mean, rstd, weight, bias, needs):
    """Gradients of weight and bias (None where not needed): sums over all rows, in fixed blocks of rows."""
    if not ((weight is not None and needs[1]) or (bias is not None and needs[2])):
        return None, None
    shape = input.shape[input.dim() - n :]
    width = math.prod(shape)
    dw, db = _column_sums(_like(g, input).contiguous(), input.contiguous(), mean, rstd, width)
    dw = dw.reshape(shape).to(weight.dtype) if weight is not None and needs[1] else None
    db = db.reshape(shape).to(bias.dtype) if bias is not None and needs[2] else None
    return dw, db


_ROWS = 1024  # that one block of a column sum adds


def _column_sums(g, x, mean, rstd, width):
    """Sums over rows of ``g * (x - mean) * rstd`` and of ``g``, for ``[rows, width]`` contiguous operands."""
    acc = rstd.dtype
    rows = rstd.numel()
    blocks = max(-(-rows // _ROWS), 1)
    whole = blocks if rows % _ROWS == 0 else blocks - 1
    parts = empty((2, blocks, width), acc)
    if not width:
        return parts.sum(1).unbind(0)
    address = kernels.affine_backward((acc.name, acc.name, *_names(g, x, mean, rstd)), True, 1, "s")
    item, size = acc.itemsize, x.dtype.itemsize
    lanes = max(target.host().vector_bytes // item, 1)
    units = -(-width // lanes)
    outs = (0, 0, width * item, item)
    for start, count, n in ((0, whole, _ROWS), (whole, blocks - whole, rows - whole * _ROWS)):
        if not count:
            continue
        step = (width * size, 0, n * width * size, size)
        moment = (item, 0, n * item, 0)
        args = (n, 1, width, *outs, *outs, *step, *step, *moment, *moment)
        top = start * _ROWS
        tensors = (
            parts.data_ptr() + start * width * item,
            parts.data_ptr() + (blocks + start) * width * item,
            g.data_ptr() + top * width * size,
            x.data_ptr() + top * width * size,
            0 if mean is None else mean.data_ptr() + top * item,
            rstd.data_ptr() + top * item,
        )
        grain = max(8, _PIECE // (n * lanes + 1) // 8 * 8)
        launch(address, tensors, args, count * units, grain)
    return parts.sum(1).unbind(0) if blocks > 1 else (parts[0, 0], parts[1, 0])


def _layer_norm_gradient(g, input, n, weight, bias, eps):
    """The same in public ops."""
    dims, lead = tuple(range(-n, 0)), tuple(range(input.dim() - n))
    acc = _working(input.dtype)
    x, g = input.to(acc), g.to(acc)
    centred = x - x.mean(dims, True)
    rstd = (centred.square().mean(dims, True) + eps).rsqrt()
    normal = centred * rstd
    dy = g if weight is None else g * weight.to(acc)
    dx = (dy - dy.mean(dims, True) - normal * (dy * normal).mean(dims, True)) * rstd
    dw = None if weight is None else _sum_lead(g * normal, lead).to(weight.dtype)
    db = None if bias is None else _sum_lead(g, lead).to(bias.dtype)
    return dx.to(input.dtype), dw, db


def _sum_lead(x, lead):
    return x.sum(lead) if lead else x


@primitive(method=False, out=False, name="_rms_norm")
def _fused_rms_norm(input, dims, weight, eps):
    return _rms_norm(input, dims, (weight,), None, eps)


@_fused_rms_norm.vjp_all("input", "weight")
def _(g, input, dims, weight, eps, needs):
    if is_grad_enabled():
        return _rms_norm_gradient(g, input, dims, weight, eps)
    dx, rstd = _rms_norm_grad(input, dims, (_like(g, input), weight), None, eps)
    dw = _affine_gradient(g, input, dims, None, rstd, weight, None, needs)[0] if weight is not None else None
    return dx, dw


def _rms_norm_gradient(g, input, n, weight, eps):
    """The same in public ops."""
    dims, lead = tuple(range(-n, 0)), tuple(range(input.dim() - n))
    acc = _working(input.dtype)
    x, g = input.to(acc), g.to(acc)
    rstd = (x.square().mean(dims, True) + eps).rsqrt()
    normal = x * rstd
    dy = g if weight is None else g * weight.to(acc)
    dx = (dy - normal * (dy * normal).mean(dims, True)) * rstd
    dw = None if weight is None else _sum_lead(g * normal, lead).to(weight.dtype)
    return dx.to(input.dtype), dw


@composite(method=False)
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last dimensions (Zhang and Sennrich 2019).

    Args:
        input: floating point, whose last sizes are ``normalized_shape``.
        normalized_shape: an int or the sizes of the dimensions that are normalised together.
        weight: of the shape ``normalized_shape``, or None.
        eps: added to the mean square; the machine epsilon of the dtype that is computed in by default.
    """
    n = _check_normalized("rms_norm", input, normalized_shape, weight)
    if eps is None:
        eps = 2.0**-52 if input.dtype.itemsize == 8 else 2.0**-23
    return _fused_rms_norm(input, n, weight, eps)


HELPERS["normalized_shape_error"] = _check_normalized


# ---- group norm -----------------------------------------------------------------------------------------------------
@primitive(method=False, out=False, name="_group_norm")
def _fused_group_norm(input, num_groups, weight, bias, eps):
    x = input.contiguous()
    shape = _Groups(x, num_groups)
    y = empty_like(x)
    names = _names(y, x, weight, bias)
    args = (*shape.sizes, *shape.every(x), *shape.every(x), *shape.affine(weight), *shape.affine(bias), float(eps))
    if x.numel():
        address = kernels.layer_norm(names, False, 2, "s")
        launch(address, _pointers(y, x, weight, bias), args, shape.rows, shape.grain)
    return y


class _Groups:
    """Sizes and byte strides of ``[batch, groups, channels of a group, positions]``, a row being a group."""

    def __init__(self, x, groups):
        self.batch, channels = x.shape[0], x.shape[1]
        self.groups, self.channels = groups, channels // groups
        self.positions = math.prod(x.shape[2:])
        self.rows = self.batch * groups
        count = self.channels * self.positions
        self.grain = max(1, _PIECE // (count + 1))
        self.sizes = (self.positions, self.channels, groups)

    def every(self, x):
        item = x.dtype.itemsize
        count = self.channels * self.positions
        return (item, self.positions * item, self.groups * count * item, count * item)

    def affine(self, x):
        item = 0 if x is None else x.dtype.itemsize
        return (0, item, 0, self.channels * item)

    def stats(self, x):
        item = x.dtype.itemsize
        return (0, 0, self.groups * item, item)


@_fused_group_norm.vjp_all("input", "weight", "bias")
def _(g, input, num_groups, weight, bias, eps, needs):
    if is_grad_enabled():
        return _group_norm_gradient(g, input, num_groups, weight, bias, eps)
    x, g = input.contiguous(), _like(g, input).contiguous()
    shape = _Groups(x, num_groups)
    acc = _working(x.dtype)
    dx = empty_like(x)
    mean, rstd = empty((shape.batch, num_groups), acc), empty((shape.batch, num_groups), acc)
    every, stats = shape.every(x), shape.stats(mean)
    if x.numel():
        address = kernels.layer_norm_backward(_names(dx, mean, rstd, x, g, weight), False, 2, "s")
        args = (*shape.sizes, *every, *stats, *stats, *every, *every, *shape.affine(weight), float(eps))
        launch(address, _pointers(dx, mean, rstd, x, g, weight), args, shape.rows, shape.grain)
    dw = db = None
    if (weight is not None and needs[1]) or (bias is not None and needs[2]):
        dw, db = _channel_sums(g, x, mean, rstd, shape)
        dw = dw.to(weight.dtype) if weight is not None and needs[1] else None
        db = db.to(bias.dtype) if bias is not None and needs[2] else None
    return dx, dw, db


def _channel_sums(g, x, mean, rstd, shape):
    """Sums over batch and positions of ``g * (x - mean) * rstd`` and of ``g``, one per channel."""
    acc, channels = rstd.dtype, shape.groups * shape.channels
    dw, db = empty((channels,), acc), empty((channels,), acc)
    item, size = acc.itemsize, x.dtype.itemsize
    address = kernels.affine_backward((acc.name, acc.name, *_names(g, x, mean, rstd)), False, 2, "s")
    out = (0, 0, shape.channels * item, item)
    every = (size, channels * shape.positions * size, shape.channels * shape.positions * size, shape.positions * size)
    moment = (0, shape.groups * item, item, 0)
    args = (shape.positions, shape.batch, shape.channels, *out, *out, *every, *every, *moment, *moment)
    grain = max(1, _PIECE // (shape.batch * shape.positions + 1))
    launch(address, (dw, db, g, x, mean, rstd), args, channels, grain)
    return dw, db


def _group_norm_gradient(g, input, groups, weight, bias, eps):
    """The same in public ops."""
    acc = _working(input.dtype)
    batch, channels = input.shape[0], input.shape[1]
    split = (batch, groups, channels // groups, -1) if input.numel() else (batch, groups, channels // groups, 0)
    x, g = input.to(acc).reshape(split), g.to(acc).reshape(split)
    centred = x - x.mean((2, 3), True)
    rstd = (centred.square().mean((2, 3), True) + eps).rsqrt()
    normal = centred * rstd
    dy = g if weight is None else g * weight.to(acc).reshape(1, groups, -1, 1)
    dx = (dy - dy.mean((2, 3), True) - normal * (dy * normal).mean((2, 3), True)) * rstd
    dw = None if weight is None else (g * normal).sum((0, 3)).reshape(channels).to(weight.dtype)
    db = None if bias is None else g.sum((0, 3)).reshape(channels).to(bias.dtype)
    return dx.reshape(input.shape).to(input.dtype), dw, db


def _check_channels(name, input, channels, **tensors):
    for label, x in tensors.items():
        if x is not None and tuple(x.shape) != (channels,):
            raise RuntimeError(
                f"{name}(): expected {label} to be a vector of size {channels}, the number of channels of the input of "
                f"shape {list(input.shape)}, but got shape {list(x.shape)}"
            )


@composite(method=False)
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True):
    """Normalise over each group of channels and all positions (Wu and He 2018).

    Args:
        input: ``[batch, channels, *]``, floating point.
        num_groups: must divide the number of channels.
        weight, bias: one value per channel, or None.
        eps: added to the variance, which is the biased one.
        cudnn_enabled: accepted for compatibility.
    """
    _require_float("group_norm", input)
    if input.dim() < 2:
        raise RuntimeError(f"group_norm(): expected at least 2 dimensions, got input of shape {list(input.shape)}")
    if num_groups < 1 or input.shape[1] % num_groups:
        raise RuntimeError(
            f"group_norm(): expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    _check_channels("group_norm", input, input.shape[1], weight=weight, bias=bias)
    return _fused_group_norm(input, num_groups, weight, bias, eps)


# ---- batch norm -----------------------------------------------------------------------------------------------------
class _Channels:
    """Sizes and byte strides of ``[batch, channels, positions]``, a row being a channel."""

    def __init__(self, x):
        self.batch, self.channels = x.shape[0], x.shape[1]
        self.positions = math.prod(x.shape[2:])
        count = self.batch * self.positions
        self.columns = self.positions == 1  # then channels are neighbours in memory
        if self.columns:
            self.sizes = (self.batch, 1, self.channels)
            lanes = max(target.host().vector_bytes // (8 if x.dtype.itemsize == 8 else 4), 1)
            self.units = -(-self.channels // lanes)
            self.grain = max(4, _PIECE // (count * lanes + 1) // 4 * 4)
        else:
            self.sizes = (self.positions, self.batch, self.channels)
            self.units = self.channels
            self.grain = max(1, _PIECE // (count + 1))

    def every(self, x):
        item = x.dtype.itemsize
        if self.columns:
            return (self.channels * item, 0, 0, item)
        return (item, self.channels * self.positions * item, 0, self.positions * item)

    def each(self, x):
        return (0, 0, 0, 0 if x is None else x.dtype.itemsize)

    def key(self, *tensors):
        return _names(*tensors), self.columns, 1 if self.columns else 2


def _batch_norm_forward(input, weight, bias, running_mean, running_var, training, momentum, eps):
    x = input.contiguous()
    shape = _Channels(x)
    y = empty_like(x)
    acc = _working(x.dtype)
    every, each = shape.every(x), shape.each
    if not training:
        if x.numel():
            address = kernels.batch_norm_eval(*shape.key(y, x, running_mean, running_var, weight, bias))
            rows = (*each(running_mean), *each(running_var), *each(weight), *each(bias))
            args = (*shape.sizes, *every, *every, *rows, float(eps))
            tensors = _pointers(y, x, running_mean, running_var, weight, bias)
            launch(address, tensors, args, shape.units, shape.grain)
        return y, empty((0,), acc), empty((0,), acc)
    mean, rstd = empty((shape.channels,), acc), empty((shape.channels,), acc)
    tensors = (y, mean, rstd, running_mean, running_var, x, weight, bias)
    if x.numel():
        rows = (*each(mean), *each(rstd), *each(running_mean), *each(running_var))
        args = (*shape.sizes, *every, *rows, *every, *each(weight), *each(bias), float(eps), float(momentum))
        launch(kernels.batch_norm(*shape.key(*tensors)), _pointers(*tensors), args, shape.units, shape.grain)
        for moved in (running_mean, running_var):
            if moved is not None:
                _core.bump(moved)
    return y, mean, rstd


@primitive(method=False, out=False, outputs=("y", "mean", "rstd"), differentiable=[0], name="_batch_norm")
def _fused_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    return _batch_norm_forward(input, weight, bias, running_mean, running_var, training, momentum, eps)


@_fused_batch_norm.vjp_all("input", "weight", "bias")
def _(g, mean, rstd, input, weight, bias, running_mean, running_var, training, eps, needs):
    if is_grad_enabled():
        return _batch_norm_gradient(g, input, weight, bias, running_mean, running_var, training, eps)
    x, g = input.contiguous(), _like(g, input).contiguous()
    shape = _Channels(x)
    acc = _working(x.dtype)
    if not training:
        mean, rstd = running_mean.to(acc), (running_var.to(acc) + eps).rsqrt()
    dx, dw, db = empty_like(x), empty((shape.channels,), acc), empty((shape.channels,), acc)
    tensors = (dx, dw, db, g, x, mean, rstd, weight)
    every, each = shape.every(x), shape.each
    if x.numel():
        address = kernels.batch_norm_backward(*shape.key(*tensors), bool(training))
        rows = (*every, *each(dw), *each(db), *every, *every, *each(mean), *each(rstd), *each(weight))
        launch(address, _pointers(*tensors), (*shape.sizes, *rows), shape.units, shape.grain)
    else:
        dw, db = dw.zero_(), db.zero_()
    dw = dw.to(weight.dtype) if weight is not None and needs[1] else None
    return dx, dw, db.to(bias.dtype) if bias is not None and needs[2] else None


def _batch_norm_gradient(g, input, weight, bias, running_mean, running_var, training, eps):
    """The same in public ops."""
    acc = _working(input.dtype)
    dims = (0, *range(2, input.dim()))
    shape = (1, -1, *(1,) * (input.dim() - 2))
    x, g = input.to(acc), g.to(acc)
    dy = g if weight is None else g * weight.to(acc).reshape(shape)
    if training:
        centred = x - x.mean(dims, True)
        rstd = (centred.square().mean(dims, True) + eps).rsqrt()
        normal = centred * rstd
        dx = (dy - dy.mean(dims, True) - normal * (dy * normal).mean(dims, True)) * rstd
    else:
        rstd = (running_var.to(acc) + eps).rsqrt().reshape(shape)
        normal = (x - running_mean.to(acc).reshape(shape)) * rstd
        dx = dy * rstd
    dw = None if weight is None else (g * normal).sum(dims).to(weight.dtype)
    db = None if bias is None else g.sum(dims).to(bias.dtype)
    return dx.to(input.dtype), dw, db


@composite(method=False)
def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05):
    """Normalise each channel over batch and positions (Ioffe and Szegedy 2015).

    Args:
        input: ``[batch, channels, *]``, floating point.
        running_mean, running_var: one value per channel. With ``training`` they are moved towards the batch's (and may
            be None); without, they are what is normalised by.
        weight, bias: one value per channel, or None.
        training: normalise by the batch's own statistics.
        momentum: the share of the batch in the running statistics, whose variance is the unbiased one.
        eps: added to the variance.
    """
    _require_float("batch_norm", input)
    if input.dim() < 2:
        raise RuntimeError(f"batch_norm(): expected at least 2 dimensions, got input of shape {list(input.shape)}")
    channels = input.shape[1]
    named = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    _check_channels("batch_norm", input, channels, **named)
    if training:
        if input.shape[0] * math.prod(input.shape[2:]) == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    elif running_mean is None or running_var is None:
        raise RuntimeError("batch_norm(): expected running_mean and running_var to be defined when training=False")
    momentum = 0.0 if momentum is None else momentum
    return _fused_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@composite(method=False)
def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05
):
    """Normalise each channel of each sample over its positions (Ulyanov, Vedaldi and Lempitsky 2016).

    Args:
        input: ``[batch, channels, *]``, floating point.
        running_mean, running_var: one value per channel; moved towards the mean over the batch of the samples'
            statistics with ``use_input_stats``, else what is normalised by. May be None.
        weight, bias: one value per channel, or None.
        use_input_stats: normalise by each sample's own statistics.
        momentum: the share of the new statistics in the running ones.
        eps: added to the variance.
    """
    _require_float("instance_norm", input)
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    channels = input.shape[1]
    if math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    _check_channels("instance_norm", input, channels, weight=weight, bias=bias)
    if running_mean is not None or running_var is not None:
        _move_statistics(input, running_mean, running_var, momentum)
    return _fused_group_norm(input, channels, weight, bias, eps)


def _move_statistics(input, running_mean, running_var, momentum):
    x = input.detach().flatten(2)
    for running, new in ((running_mean, x.mean(2).mean(0)), (running_var, x.var(2).mean(0))):
        if running is not None:
            running.detach().mul_(1 - momentum).add_(new.to(running.dtype), alpha=momentum)
