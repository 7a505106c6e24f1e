"""Batch and instance normalisation, with fused kernels forward and backward.

The gradient is an op with a decomposition into public ops.
"""

from __future__ import annotations

import math

from .. import _core
from .._core import empty, empty_like, float32, float64, fused_batch_norm, launch
from .._core.callbacks import callbacks
from .._core.formats import is_channels_last
from .._core.fusion import defers_ops
from .._core.planners import kept
from ..kernels import normalize as kernels
from ..kernels import scalar as s
from ..kernels import target
from . import _channels
from ._channels import working as _working
from .normalization import (
    _PIECE,
    _check_channels,
    _dtypes,
    _fused_group_norm,
    _grain,
    _in_dtype,
    _like,
    _pointers,
    _require_float,
    _signature,
    _streams,
)
from .table import composite, pointwise, primitive


class _Channels:
    """Sizes and byte strides of ``[batch, channels, positions]``, a row being a channel."""

    def __init__(self, shape, dtype):
        batch, self.channels = shape[0], shape[1]
        self.positions = math.prod(shape[2:])
        self.size = dtype.itemsize
        self.count = count = batch * self.positions
        self.columns = self.positions == 1  # then channels are neighbours in memory
        if self.columns:
            self.sizes = (batch, 1, self.channels)
            lanes = max(target.here().vector_bytes // (8 if dtype.itemsize == 8 else 4), 1)
            self.units = -(-self.channels // lanes)
            self.grain = max(4, _PIECE // (count * lanes + 1) // 4 * 4)
        else:
            self.sizes = (self.positions, batch, self.channels)
            self.units = self.channels
            self.grain = _grain(self.channels, count)

    def every(self):
        if self.columns:
            return (self.channels * self.size, 0, 0, self.size)
        return (self.size, self.channels * self.positions * self.size, 0, self.positions * self.size)

    def form(self, kernel, operands, *key):
        """The key of a kernel and the arguments of its launch. ``operands`` are dtypes: in a tuple for operands of one
        value per element, else for one value per channel.
        """
        names, args = [], list(self.sizes)
        for d in operands:
            whole = type(d) is tuple
            d = d[0] if whole else d
            names.append(None if d is None else d.name)
            args += self.every() if whole else (0, 0, 0, 0 if d is None else d.itemsize)
        if not self.columns and kernel is not kernels.batch_norm_eval:
            moved = sum(type(d) is tuple for d in operands)
            key = (*key, _streams(self.channels * self.count, self.positions, self.size, moved))
        return (tuple(names), self.columns, 1 if self.columns else 2, *key), tuple(args), self.units, self.grain

    def plan(self, kernel, operands, *key):
        """The pointers and arguments of a launch."""
        key, *rest = self.form(kernel, operands, *key)
        return kernel(*key), *rest


@kept
def _batch_plan(shape, dtype, training, mean, var, weight, bias):
    """A plan to launch batch norm of these sizes and dtypes. The arguments are checked first."""
    if len(shape) < 2 and math.prod(shape):
        raise RuntimeError(f"batch_norm(): expected at least 2 dimensions, got input of shape {list(shape)}")
    if len(shape) < 2:  # no elements: PyTorch lets it pass
        return None
    _check_channels("batch_norm", shape, dtype, running_mean=mean, running_var=var, weight=weight, bias=bias)
    if training and shape[0] * math.prod(shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {shape}: use a larger batch, or "
            "eval()"
        )
    if not training and (mean is None or var is None):
        raise RuntimeError("batch_norm(): expected running_mean and running_var to be defined when training=False")
    rows, acc = _Channels(shape, dtype), _working(dtype)
    m, v, w, b = _dtypes(mean, var, weight, bias)
    if training:
        return rows.plan(kernels.batch_norm, ((dtype,), acc, acc, m, v, (dtype,), w, b))
    return rows.plan(kernels.batch_norm_eval, ((dtype,), (dtype,), m, v, w, b))


@kept
def _batch_backward_form(shape, dtype, training, weight):
    rows, acc = _Channels(shape, dtype), _working(dtype)
    operands = ((dtype,), acc, acc, (dtype,), (dtype,), acc, acc, weight)
    return rows.form(kernels.batch_norm_backward, operands, training)


@primitive(
    method=False, out=False, outputs=("y", "mean", "rstd"), differentiable=[0], name="_batch_norm",
    node="NativeBatchNorm", planned=True,
)  # fmt: skip
def _fused_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    signatures = map(_signature, (running_mean, running_var, weight, bias))
    x = _by_positions(input, input)
    plan = _batch_plan(x.shape, input.dtype, training, *signatures)
    y = empty_like(x)
    acc = _working(x.dtype)
    channels = (x.shape[1],) if training and x.dim() > 1 else (0,)
    mean, rstd = empty(channels, acc), empty(channels, acc)
    if not x.numel():
        return y, mean, rstd
    rows = x.dim() == 2
    if _channels.in_parts(x):
        moved = running_mean, running_var
        kept = _channels.statistics(x, *moved, momentum, eps) if training else (mean, rstd)
        if training:
            terms = _channels.scaled(*kept, weight, bias)
        else:
            terms = _channels.coefficients(*(t.to(acc) for t in moved), weight, bias, eps)
        return _shaped_as(normalized(x, *_per_channel(x, terms)), input), *kept
    if x.numel() >= _channels.LEAST and (rows or (not training and x.numel() >= _channels.LEAST_IMAGE * x.shape[0])):
        y, mean, rstd = _channels.batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps)
        return _shaped_as(y, input), mean, rstd
    address, args, units, grain = plan
    if training:
        tensors = _pointers(y, mean, rstd, running_mean, running_var, x, weight, bias)
        launch(address, tensors, (*args, float(eps), float(momentum)), units, grain)
        for given, moved in zip((running_mean, running_var), tensors[3:5], strict=True):
            if given is not None and given is not moved:
                given.copy_(moved)
    else:
        tensors = (y, x, running_mean, running_var, weight, bias)
        launch(address, _pointers(*tensors), (*args, float(eps)), units, grain)
    return _shaped_as(y, input), mean, rstd


def _moved(t):
    """A running statistic for the kernel that moves it, under a version counter of its own. A mode has to see how."""
    return _core.written_beside(t) if _core.current_mode() is None and t.device.type == "cpu" else t.data


@primitive(
    method=False, out=False, outputs=("y", "mean", "rstd"), differentiable=[0], name="_deferred_batch_norm",
    node="NativeBatchNorm",
)  # fmt: skip
def _deferred_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """:func:`_fused_batch_norm` in training, deferred until the op that uses the result runs. The derivative keeps
    nothing that may still move.
    """
    if _goes_between(input) and not _channels.in_parts(input):
        w, b = (neutral if x is None else x for x, neutral in zip((weight, bias), _neutral(input), strict=True))
        given = [_unread(input) if x is None else x for x in (running_mean, running_var)]
        rows = _batch_form(input.shape, input.dtype, *map(_signature, (*given, w, b)))
        made = rows.defer(_standardized, input, w, b, *given, eps, momentum)
        if made is not None:
            return made
    moved = [None if x is None else _moved(x) for x in (running_mean, running_var)]
    if not _goes_by_columns(input, running_mean, running_var, weight, bias):
        return _fused_batch_norm(input, weight, bias, *moved, True, momentum, eps)
    _batch_plan(input.shape, input.dtype, True, *map(_signature, (*moved, weight, bias)))  # the checks
    mean, rstd = _channels.statistics(_by_positions(input, input), *moved, momentum, eps)
    return normalized(input, *_per_channel(input, _channels.scaled(mean, rstd, weight, bias))), mean, rstd


def _per_channel(input, tensors):
    """One value per channel each, for arithmetic with ``input``."""
    return (x.reshape(-1, *(1,) * (input.dim() - 2)) for x in tensors)


def _neutral(input):
    """A weight and a bias that change no bit, not even the sign of a zero."""
    return (empty(input.shape[1:2], input.dtype).fill_(x) for x in (1.0, -0.0))


def _unread(input):
    """A running statistic that is not read."""
    return empty(input.shape[1:2], input.dtype).zero_()


@kept
def _batch_form(shape, dtype, *signatures):
    """The kernels and sizes that run batch norm in training for these sizes and dtypes."""
    _batch_plan(shape, dtype, True, *signatures)  # the checks
    m, v, w, b = _dtypes(*signatures)
    operands = ((dtype,), dtype, dtype, m, v, (dtype,), w, b)
    return fused_batch_norm.BatchNorm(*_Channels(shape, dtype).form(kernels.batch_norm, operands))


@pointwise(
    method=False, inplace=False, operands=5, dtypes=("float",), tensors=("input", "mean", "rstd", "weight", "bias"),
    reference=lambda x, mean, rstd, weight, bias: (x - mean) * rstd * weight + bias,
)  # fmt: skip
def _standardized(input, mean, rstd, weight, bias):
    """``(input - mean) * rstd * weight + bias``, with one rounding of the last product and the sum."""
    return s.fma((input - mean) * rstd, weight, bias)


def _by_positions(x, like):
    """``x`` contiguous; as ``[positions, channels]`` where ``like`` has its channels last in memory."""
    n, c = like.dim(), like.shape[1:2]
    if not is_channels_last(like) or like.numel() == c[0]:
        return x.contiguous()
    return x.permute(0, *range(2, n), 1).reshape(-1, *c)


def _shaped_as(y, like):
    """The result of :func:`_by_positions`, with the dimensions of ``like`` again."""
    if y.dim() == like.dim():
        return y
    if like.is_contiguous():  # one channel or one position
        return y.reshape(like.shape)
    n = like.dim()
    return y.reshape(like.shape[0], *like.shape[2:], like.shape[1]).permute(0, n - 1, *range(1, n - 1))


def _batch_norm_gradient(grad, input, weight, bias, running_mean, running_var, training, eps):
    acc = _working(input.dtype)
    dims = (0, *range(2, input.dim()))
    shape = (1, -1, *(1,) * (input.dim() - 2)) if input.dim() > 1 else (-1,)
    x, g = input.to(acc), grad.to(acc)
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


@primitive(method=False, out=False, decomposition=_batch_norm_gradient, planned=True)
def _batch_norm_backward(grad, input, weight, bias, running_mean, running_var, mean, rstd, training, eps, needs):
    """Gradients of batch norm, whose statistics were ``mean`` and ``rstd`` when ``training``; those of weight and bias
    are None where not needed."""
    x, g = _by_positions(input, input), _by_positions(_like(grad, input), input)
    acc = _working(x.dtype)
    if not training:
        mean, rstd = running_mean.to(acc), (running_var.to(acc) + eps).rsqrt()
    channels = (x.shape[1],) if x.dim() > 1 else (0,)
    if _channels.in_parts(x):
        dx, dw, db = _gradient_in_parts(g, x, mean, rstd, weight, training)
        dw = _in_dtype(dw, weight) if weight is not None and needs[1] else None
        return _shaped_as(dx, input), dw, _in_dtype(db, bias) if bias is not None and needs[2] else None
    if x.dim() == 2 and x.numel() >= _channels.LEAST:
        dx, dw, db = _channels.batch_norm_gradient(g, x, mean, rstd, weight, training)
        dw = _in_dtype(dw, weight) if weight is not None and needs[1] else None
        return _shaped_as(dx, input), dw, _in_dtype(db, bias) if bias is not None and needs[2] else None
    dx, dw, db = empty_like(x), empty(channels, acc), empty(channels, acc)
    if x.numel():
        plan = _batch_backward_form(x.shape, x.dtype, training, None if weight is None else weight.dtype)
        key, args, units, grain = plan
        tensors = _pointers(dx, dw, db, g, x, mean, rstd, weight)
        launch(kernels.batch_norm_backward(*key), tensors, args, units, grain)
    else:
        dw, db = dw.zero_(), db.zero_()
    dw = _in_dtype(dw, weight) if weight is not None and needs[1] else None
    return _shaped_as(dx, input), dw, _in_dtype(db, bias) if bias is not None and needs[2] else None


def _gradient_in_parts(g, x, mean, rstd, weight, training):
    """:func:`_channels.batch_norm_gradient` of channels that are summed in parts."""
    dot, total = callbacks.long_rows("products", g, x, mean)
    dot, n = dot * rstd, x.numel() // x.shape[1]
    scale = rstd if weight is None else rstd * weight.to(rstd.dtype)
    if not training:
        zero = empty(scale.shape, scale.dtype).zero_()
        return normalized(g, *_per_channel(x, (zero, scale, zero))), dot, total
    terms = _per_channel(x, (mean, scale, -dot * rstd * scale / n, -total * scale / n))
    return _normalized_gradient(g, x, *terms), dot, total


@primitive(method=False, out=False, decomposition=_batch_norm_gradient)
def _batch_norm_backward_between(
    grad, input, weight, bias, running_mean, running_var, mean, rstd, training, eps, needs
):
    """:func:`_batch_norm_backward` with the ops of a deferred ``grad`` as its prologue."""
    fits = grad.is_contiguous() and grad.dtype == input.dtype and (weight is None or weight.is_contiguous())
    if training and fits and _goes_between(input) and not _channels.in_parts(input):
        dx, dw, db = empty_like(input), empty_like(mean), empty_like(mean)
        key, *rest = _batch_backward_form(input.shape, input.dtype, True, None if weight is None else weight.dtype)
        tensors = (dx, dw, db, grad, input, mean, rstd, weight)
        if fused_batch_norm.compute_gradient("normalize.batch_norm_backward", key, grad, tensors, *rest):
            dw = _in_dtype(dw, weight) if weight is not None and needs[1] else None
            return dx, dw, _in_dtype(db, bias) if bias is not None and needs[2] else None
    return _batch_norm_backward(grad, input, weight, bias, running_mean, running_var, mean, rstd, training, eps, needs)


def _goes_between(input):
    """Whether kernels of batch norm of ``input`` can have a prologue and an epilogue."""
    if input.dtype not in (float32, float64) or not input.is_contiguous() or input.dim() < 3 or not input.numel():
        return False
    return input.numel() > input.shape[0] * input.shape[1]


@_fused_batch_norm.vjp_all("input", "weight", "bias")
def _(g, mean, rstd, input, weight, bias, running_mean, running_var, training, eps, needs):
    backward = _batch_norm_backward_between if defers_ops() else _batch_norm_backward
    return backward(g, input, weight, bias, running_mean, running_var, mean, rstd, training, eps, needs)


@_deferred_batch_norm.vjp_all("input", "weight", "bias")
def _(g, mean, rstd, input, weight, bias, eps, needs):
    backward = _batch_norm_backward_between if defers_ops() else _batch_norm_backward
    return backward(g, input, weight, bias, None, None, mean, rstd, True, eps, needs)


def _check_running(name, mean, var):
    if (mean is None) != (var is None):
        raise ValueError(f"{name}(): running_mean and running_var must either both be None or neither be None")
    if mean is not None and _core.is_recorded():
        for label, x in (("running_mean", mean), ("running_var", var)):
            if x.requires_grad:
                raise RuntimeError(f"{name}(): {label} has no derivative; call detach() on it")


@pointwise(
    method=False, inplace=False, operands=4, dtypes=("float",), tensors=("input", "mean", "scale", "level"),
    promote_from=(0,), reference=lambda x, mean, scale, level: (x - mean) * scale + level,
)  # fmt: skip
def normalized(input, mean, scale, level):
    """``(input - mean) * scale + level``, with one rounding of the product and the sum."""
    return s.fma(input - mean, scale, level)


normalized.vjp(
    input=lambda g, scale: g * scale,
    mean=lambda g, scale: -(g * scale),
    scale=lambda g, input, mean: g * (input - mean),
    level=lambda g: g,
)


@pointwise(
    method=False, inplace=False, operands=6, dtypes=("float",),
    tensors=("grad", "input", "mean", "scale", "slope", "level"), promote_from=(0,),
    reference=lambda g, x, mean, scale, slope, level: g * scale + (x - mean) * slope + level,
)  # fmt: skip
def _normalized_gradient(grad, input, mean, scale, slope, level):
    """``grad * scale + ((input - mean) * slope + level)``."""
    return s.fma(grad, scale, s.fma(input - mean, slope, level))


def _goes_by_columns(input, *others):
    """Whether :func:`_channels.batch_norm` would normalise ``input``, all in one dtype, with its channels last."""
    if input.dtype not in (float32, float64) or input.numel() < _channels.LEAST:
        return False
    last = (input.dim() == 2 and input.is_contiguous()) or (input.dim() > 2 and is_channels_last(input))
    return last and all(x is None or x.dtype == input.dtype for x in others)


def _is_one_pass(input, *others):
    """Whether batch norm with given statistics is fused with the ops around it: for large inputs, without gradients.

    By itself it takes a tenth longer than :func:`_channels.batch_norm`, which gives the same bits.
    """
    if not defers_ops():
        return False
    if not _goes_by_columns(input, *others):
        if input.dtype not in (float32, float64) or not input.is_contiguous() or input.dim() < 3:
            return False
        if input.numel() < max(_channels.LEAST, _channels.LEAST_IMAGE * input.shape[0]):
            return False
    given = [x for x in others if x is not None]
    needs = _core.is_recorded() and any(x.requires_grad for x in (input, *given))
    return not needs and all(x.dtype == input.dtype for x in given)


def _moves(training, running_mean):
    """Whether a call moves the running statistics."""
    return training and running_mean is not None


@composite(method=False, canonical=True, writes=_moves)
def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05):
    """Each channel to mean 0 and variance 1 over the batch: ``(x - mean) / sqrt(var + eps) * weight + bias``.

    Source: Ioffe & Szegedy 2015, "Batch Normalization: Accelerating Deep Network Training by Reducing Internal
    Covariate Shift".

    Args:
        input: ``(N, C, *)``; floating-point.
        running_mean: ``(C,)``. With ``training`` it is moved towards the batch's mean, and may be None; else it is
            ``mean``.
        running_var: ``(C,)``, likewise; what it is moved towards is the variance that is divided by the count less one.
        weight: ``(C,)``, or None for 1.
        bias: ``(C,)``, or None for 0.
        training: mean and variance (divided by the count) are those of the batch.
        momentum: the share of the batch in the running statistics.
        eps: added to the variance.

    Returns:
        The sizes and the dtype of ``input``.

    Raises:
        RuntimeError: the sizes do not fit, or there are no statistics without ``training``.
        ValueError: with ``training`` there is only one value for each channel.

    Examples:
        >>> x = taeda.tensor([[0.0, 10.0], [2.0, 30.0]])
        >>> F.batch_norm(x, None, None, training=True)
        tensor([[-1.0000, -1.0000],
                [ 1.0000,  1.0000]])
    """
    _require_float("batch_norm", input)
    _check_running("batch_norm", running_mean, running_var)
    if training and not eps > 0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    momentum = 0.0 if momentum is None else momentum
    if not training and running_mean is not None and _is_one_pass(input, running_mean, running_var, weight, bias):
        signatures = map(_signature, (running_mean, running_var, weight, bias))
        _batch_plan(input.shape, input.dtype, False, *signatures)  # the checks
        coefficients = _channels.coefficients(running_mean, running_var, weight, bias, eps)
        return normalized(input, *_per_channel(input, coefficients))
    defers = training and defers_ops() and (_goes_between(input) or _goes_by_columns(input))
    if not training or (running_mean is None and not defers):
        return _fused_batch_norm(input, weight, bias, running_mean, running_var, bool(training), momentum, eps)[0]
    if defers:
        y = _deferred_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)[0]
    else:
        # Moved, not read: the derivative does not mind that they move on, so it gets them under a version counter of
        # their own.
        moved = map(_moved, (running_mean, running_var))
        y = _fused_batch_norm(input, weight, bias, *moved, True, momentum, eps)[0]
    if running_mean is not None:
        _core.bump(running_mean)
        _core.bump(running_var)
    return y


@composite(
    method=False, writes=lambda use_input_stats, running_mean: use_input_stats is not False and running_mean is not None
)
def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05
):
    """Each channel of each sample to mean 0 and variance 1: ``(x - mean) / sqrt(var + eps) * weight + bias``.

    Source: Ulyanov, Vedaldi & Lempitsky 2016, "Instance Normalization: The Missing Ingredient for Fast Stylization".
    The rest as of :func:`nn.functional.batch_norm`.

    Args:
        running_mean: ``(C,)`` or None. With ``use_input_stats`` it is moved towards the mean over the batch; else it is
            ``mean``.
        running_var: ``(C,)`` or None, likewise.
        use_input_stats: normalise by each sample's own statistics.
        momentum: the share of the new statistics in the running ones.

    Raises:
        RuntimeError: the sizes do not fit.
        ValueError: there is only one value for each channel.

    Examples:
        >>> F.instance_norm(taeda.tensor([[[0.0, 2.0], [10.0, 30.0]]]))
        tensor([[[-1.0000,  1.0000],
                 [-1.0000,  1.0000]]])
    """
    _require_float("instance_norm", input)
    _check_running("instance_norm", running_mean, running_var)
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    channels = input.shape[1]
    if math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    y = _fused_group_norm(input, max(channels, 1), weight, bias, eps)
    if running_mean is not None:
        _check_channels(
            "instance_norm", input.shape, input.dtype,
            running_mean=_signature(running_mean), running_var=_signature(running_var),
        )  # fmt: skip
        _move_statistics(input, running_mean, running_var, momentum)
    return y.contiguous()


def _move_statistics(input, running_mean, running_var, momentum):
    x = input.detach().flatten(2)
    for running, new in ((running_mean, x.mean(2).mean(0)), (running_var, x.var(2).mean(0))):
        running.detach().mul_(1 - momentum).add_(new.to(running.dtype), alpha=momentum)
