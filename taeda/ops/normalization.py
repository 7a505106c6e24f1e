"""Normalisation over layers and groups, with fused kernels forward and backward.

Each gradient is an op with a decomposition into public ops.
"""

from __future__ import annotations

import math

from .._core import bfloat16, empty, empty_like, float16, float32, launch
from .._core.callbacks import callbacks
from .._core.formats import is_channels_last, keep_format
from .._core.machine import stream_bytes
from .._core.reduce import CHUNK, few_long_rows
from .._core.rowwise import Rowwise
from ..kernels import normalize as kernels
from ..kernels import target
from . import _channels
from ._channels import working as _working
from .table import composite, expect_tensors, primitive

_PIECE = 32768  # elements worth a piece of their own on the thread pool


def _require_float(name, x):
    expect_tensors(name, input=x)
    if not x.dtype.is_floating_point:
        raise NotImplementedError(
            f"{name}(): expected a floating-point tensor, got {x.dtype} of shape {tuple(x.shape)}. Convert it first, "
            f"as in x.float()"
        )


def _grain(rows, count):
    """Rows of a piece: some, even where they are long, as the sums of one are taken while the one before is written."""
    return max(1, _PIECE // (count + 1), min(8, rows // 16))


def _streams(count, positions, size, moved):
    """Whether a result of ``count`` elements is stored past the cache, where ``moved`` times as many are read and
    written."""
    return size >= 4 and positions * size % 64 == 0 and count * size * moved >= stream_bytes()


def _pointers(*tensors):
    """The addresses for a kernel that expects contiguous operands."""
    return tuple([0 if t is None else t.contiguous() for t in tensors])  # a generator takes three times as long


# ---- layer norm and RMS norm ----------------------------------------------------------------------------------------
_layer_norm = Rowwise("layer_norm", "normalize.layer_norm", "fx", "fww", stream=1, chunks=True).affine
_rms_norm = Rowwise("rms_norm", "normalize.rms_norm", "fx", "fw", stream=1, chunks=True).last


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
        dtypes = {x.dtype for x in affine if x is not None}
        if name == "layer_norm" and dtypes - {input.dtype} and (dtypes != {float32} or input.dtype.itemsize > 2):
            raise RuntimeError(
                "layer_norm(): mixed dtype: expected weight and bias of the input's dtype, or of float32 beside one "
                f"of 16 bits, got {input.dtype} with {', '.join(map(str, dtypes))}"
            )
        return n
    _require_float(name, input)
    raise RuntimeError(
        f"{name}(): given normalized_shape={list(shape)}, expected input with shape "
        f"[*, {', '.join(map(str, shape))}], but got input of size {list(input.shape)}"
    )


@primitive(_layer_norm, method=False, out=False, node="NativeLayerNorm", canonical=True, repeats=True)
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True):
    """``(input - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions (Ba, Kiros and Hinton 2016, "Layer
    Normalization").

    Args:
        input: floating point, whose last sizes are ``normalized_shape``.
        normalized_shape: an int, or the sizes of the dimensions that are normalised together.
        weight: a factor per element, of the shape ``normalized_shape``, or None.
        bias: what is added, of the same shape, or None.
        eps: added to the variance, which is the biased one.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: the shapes do not fit.
    Examples:
        >>> taeda.layer_norm(taeda.tensor([[1.0, 3.0], [10.0, 14.0]]), (2,), eps=0.0)
        tensor([[-1.,  1.],
                [-1.,  1.]])
    """


@layer_norm.vjp_all("input", "weight", "bias")
def _(g, input, normalized_shape, weight, bias, eps, needs):
    n = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    return _norm_backward(g, input, n, weight, bias, eps, needs, True)


def _like(g, input):
    """A gradient in the input's dtype."""
    return g if g.dtype is input.dtype else g.to(input.dtype)


def _in_dtype(x, like):
    return x if x.dtype is like.dtype else x.to(like.dtype)


def _norm_plan(rows, width, dtype, weight, want_w, want_b, centred):
    """A plan to launch the gradients of layer norm and RMS norm, in blocks of rows that depend on the sizes alone."""
    acc = _working(dtype)
    most = min(max(rows // 32, 8), 64)
    dw, db = (acc if want else None for want in (want_w, want_b))
    size = dtype.itemsize
    stream = _streams(rows * width, width, size, 3)
    address = kernels.norm_backward(_dtype_names(dtype, dw, db, dtype, dtype, weight), centred, stream)
    every, part = (size, 0, width * size, 0), (acc.itemsize, 0, width * acc.itemsize, 0)
    row = (0 if weight is None else weight.itemsize, 0, 0, 0)
    blocks = -(-rows // most)
    args = (width, 1, 1, every, part, part, every, every, row)
    flat = [x for item in args for x in (item if type(item) is tuple else (item,))]
    return address, tuple(flat), (rows, most), blocks, max(1, _PIECE // (most * width + 1))


def _norm_gradient(grad, input, n, weight, bias, eps, centred):
    dims, lead = tuple(range(-n, 0)), tuple(range(input.dim() - n))
    acc = _working(input.dtype)
    x, g = input.to(acc), grad.to(acc)
    x = x - x.mean(dims, True) if centred else x
    rstd = (x.square().mean(dims, True) + eps).rsqrt()
    normal = x * rstd
    dy = g if weight is None else g * weight.to(acc)
    dx = dy - normal * (dy * normal).mean(dims, True)
    dx = (dx - dy.mean(dims, True) if centred else dx) * rstd
    dw = None if weight is None else _sum_lead(g * normal, lead).to(weight.dtype)
    db = None if bias is None else _sum_lead(g, lead).to(bias.dtype)
    return dx.to(input.dtype), dw, db


def _sum_lead(x, lead):
    return x.sum(lead) if lead else x


@primitive(method=False, out=False, decomposition=_norm_gradient, planned=True)
def _norm_backward(grad, input, n, weight, bias, eps, needs, centred):
    """Gradients of layer norm (``centred``) and RMS norm over the last ``n`` dimensions; those of weight and bias are
    None where not needed."""
    x, g = input.contiguous(), _like(grad, input).contiguous()
    shape = input.shape[input.dim() - n :]
    width = math.prod(shape)
    want_w, want_b = weight is not None and needs[1], bias is not None and needs[2]
    acc = _working(x.dtype)
    dx = empty_like(x)
    if not x.numel():
        zeros = empty(shape, acc).zero_()
        return dx, _in_dtype(zeros, weight) if want_w else None, _in_dtype(zeros, bias) if want_b else None
    if few_long_rows(x.numel() // width, width):
        more = g, weight, want_w or want_b, eps, centred
        dx, *sums = callbacks.long_rows("norm_backward", x, width, *more)
        wanted = zip(sums, (weight, bias), (want_w, want_b), strict=True)
        return dx, *(_in_dtype(t.reshape(shape), like) if want else None for t, like, want in wanted)
    kind = None if weight is None else weight.dtype
    plan = _norm_plan(x.numel() // width, width, x.dtype, kind, want_w, want_b, centred)
    address, args, more, blocks, grain = plan
    sizes = shape if blocks == 1 else (blocks, *shape)
    dw, db = empty(sizes, acc) if want_w else None, empty(sizes, acc) if want_b else None
    launch(address, _pointers(dx, dw, db, x, g, weight), (*args, float(eps), *more), blocks, grain)
    if blocks > 1:
        dw, db = (None if part is None else part.sum(0) for part in (dw, db))
    return dx, _in_dtype(dw, weight) if want_w else None, _in_dtype(db, bias) if want_b else None


@composite(method=False)
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """:func:`layer_norm`, with the mean and the inverse deviation of each row.

    Args:
        input: floating point, whose last sizes are ``normalized_shape``.
        normalized_shape: the sizes of the dimensions that are normalised together.
        weight: of the shape ``normalized_shape``, or None.
        bias: of the same shape, or None.
        eps: added to the variance.
    Returns:
        ``(result, mean, inverse deviation)``; the latter two have size 1 in the normalised dimensions.
    Raises:
        RuntimeError: the shapes do not fit.
    Examples:
        >>> taeda.native_layer_norm(taeda.tensor([[1.0, 3.0]]), (2,), None, None, 0.0)
        (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))
    """
    n = _check_normalized("layer_norm", input, normalized_shape, weight, bias)
    dims = tuple(range(-n, 0))
    x = input.to(_working(input.dtype))
    mean = x.mean(dims, True)
    rstd = ((x - mean).square().mean(dims, True) + eps).rsqrt()
    out = layer_norm(input, normalized_shape, weight, bias, eps)
    return out, mean.to(input.dtype).detach(), rstd.to(input.dtype).detach()


@primitive(method=False, out=False, name="_rms_norm", repeats=True, copied=("input", "weight"))
def _fused_rms_norm(input, dims, weight, eps):
    return _rms_norm(input, dims, (weight,), None, eps)


def _rms_norm_in_parts(input, dims, weight, eps):
    x = input.to(_working(input.dtype))
    made = x * (x.square().mean(tuple(range(-dims, 0)), True) + eps).rsqrt()
    return (made if weight is None else made * weight.to(made.dtype)).to(input.dtype)


_fused_rms_norm.traits["lowering"] = _rms_norm_in_parts


@_fused_rms_norm.vjp_all("input", "weight")
def _(g, input, dims, weight, eps, needs):
    return _norm_backward(g, input, dims, weight, None, eps, (*needs, False), False)[:2]


@composite(method=False)
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """``input / sqrt(mean(input ** 2) + eps) * weight`` over the last dimensions (Zhang and Sennrich 2019, "Root Mean
    Square Layer Normalization"). The rest as of :func:`layer_norm`.

    Args:
        weight: of the shape ``normalized_shape``, or None.
        eps: added to the mean square. Default: the machine epsilon of the dtype that is computed in.

    Raises:
        RuntimeError: the last sizes of ``input``, or those of ``weight``, are not ``normalized_shape``.
        NotImplementedError: ``input`` is not of a floating-point dtype.

    Examples:
        >>> taeda.rms_norm(taeda.tensor([[3.0, 4.0], [6.0, 8.0]]), (2,))
        tensor([[0.8485, 1.1314],
                [0.8485, 1.1314]])
    """
    n = _check_normalized("rms_norm", input, normalized_shape, weight)
    if input.dtype.is_complex:
        scale = (input.square().mean(tuple(range(-n, 0)), True) + (2.0**-23 if eps is None else eps)).rsqrt()
        return input * scale if weight is None else input * scale * weight
    if eps is None:
        eps = 2.0**-52 if input.dtype.itemsize == 8 else 2.0**-23
    return _fused_rms_norm(input, n, weight, eps)


callbacks.normalized_shape_error = _check_normalized


# ---- group norm -----------------------------------------------------------------------------------------------------
class _Groups:
    """Sizes and byte strides of ``[batch, groups, channels of a group, positions]``, a row being a group."""

    def __init__(self, shape, groups):
        self.batch, channels = shape[0], shape[1]
        self.groups, self.channels = groups, channels // groups
        self.positions = math.prod(shape[2:])
        self.rows = self.batch * groups
        self.count = self.channels * self.positions
        self.grain = _grain(self.rows, self.count)
        self.flat = self.positions == 1  # then the row is one dimension, the channels of the group
        self.sizes = (self.channels, 1, groups) if self.flat else (self.positions, self.channels, groups)
        self.key = (False, 1, "c") if self.flat else (False, 2, "s")

    def every(self, dtype):
        item = dtype.itemsize
        return (item, self.positions * item, self.groups * self.count * item, self.count * item)

    def affine(self, dtype):
        item = 0 if dtype is None else dtype.itemsize
        return (item, 0, 0, self.channels * item) if self.flat else (0, item, 0, self.channels * item)

    def stats(self, dtype):
        return (0, 0, self.groups * dtype.itemsize, dtype.itemsize)


def _signature(x):
    return None if x is None else (x.shape, x.dtype)


def _dtypes(*signatures):
    return [None if s is None else s[1] for s in signatures]


def _dtype_names(*dtypes):
    return tuple(None if d is None else d.name for d in dtypes)


def _group_plan(shape, dtype, groups, weight, bias):
    """A plan to launch group norm of these sizes and dtypes. The arguments are checked first."""
    if groups < 1 or len(shape) < 2 or shape[1] % groups:
        raise RuntimeError(
            "group_norm(): expected input of at least 2 dimensions whose number of channels is divisible by "
            f"num_groups, but got input of shape {list(shape)} and num_groups={groups}"
        )
    _check_channels("group_norm", shape, dtype, weight=weight, bias=bias)
    if math.prod(shape) == groups:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(shape)}")
    rows = _Groups(shape, groups)
    w, b = _dtypes(weight, bias)
    columns, *layout = rows.key
    stream = _streams(rows.rows * rows.count, rows.sizes[0], dtype.itemsize, 2)
    address = kernels.layer_norm(_dtype_names(dtype, dtype, w, b), columns, stream, *layout)
    every = rows.every(dtype)
    return address, (*rows.sizes, *every, *every, *rows.affine(w), *rows.affine(b)), rows.rows, rows.grain


@primitive(method=False, out=False, name="_group_norm", node="NativeGroupNorm", planned=True, copied=("bias",))
def _fused_group_norm(input, num_groups, weight, bias, eps):
    plan = _group_plan(input.shape, input.dtype, num_groups, _signature(weight), _signature(bias))
    if _groups_last(input):
        return _channels.group_norm(input, num_groups, weight, bias, eps)
    x = input.contiguous()
    if x.numel() >= 2 * CHUNK and few_long_rows(x.shape[0] * num_groups, math.prod(x.shape[2:])):
        return keep_format(callbacks.long_rows("group_norm", x, num_groups, weight, bias, eps), input)
    y = empty(x.shape, x.dtype)
    if x.numel():
        address, args, rows, grain = plan
        launch(address, _pointers(y, x, weight, bias), (*args, float(eps)), rows, grain)
    return keep_format(y, input)


def _group_backward_plan(shape, dtype, groups, weight):
    rows, acc = _Groups(shape, groups), _working(dtype)
    address = kernels.layer_norm_backward(_dtype_names(dtype, acc, acc, dtype, dtype, weight), *rows.key)
    every, stats = rows.every(dtype), rows.stats(acc)
    args = (*rows.sizes, *every, *stats, *stats, *every, *every, *rows.affine(weight))
    return address, args, rows.rows, rows.grain


def _image_backward_plan(shape, dtype, groups, weight):
    """A plan to launch the gradients where a channel has several positions."""
    rows, acc = _Groups(shape, groups), _working(dtype)
    stream = _streams(rows.rows * rows.count, rows.positions, dtype.itemsize, 3)
    address = kernels.group_norm_backward(_dtype_names(dtype, acc, acc, dtype, dtype, weight), stream)
    every, item = rows.every(dtype), acc.itemsize
    part = (0, item, shape[1] * item, rows.channels * item)
    args = (*rows.sizes, *every, *part, *part, *every, *every, *rows.affine(weight))
    return address, args, rows.rows, rows.grain


def _group_norm_gradient(grad, input, groups, weight, bias, eps):
    acc = _working(input.dtype)
    batch, channels = input.shape[0], input.shape[1]
    split = (batch, groups, channels // groups, -1) if input.numel() else (batch, groups, channels // groups, 0)
    x, g = input.to(acc).reshape(split), grad.to(acc).reshape(split)
    centred = x - x.mean((2, 3), True)
    rstd = (centred.square().mean((2, 3), True) + eps).rsqrt()
    normal = centred * rstd
    dy = g if weight is None else g * weight.to(acc).reshape(1, groups, -1, 1)
    dx = (dy - dy.mean((2, 3), True) - normal * (dy * normal).mean((2, 3), True)) * rstd
    dw = None if weight is None else (g * normal).sum((0, 3)).reshape(channels).to(weight.dtype)
    db = None if bias is None else g.sum((0, 3)).reshape(channels).to(bias.dtype)
    return dx.reshape(input.shape).to(input.dtype), dw, db


@primitive(method=False, out=False, decomposition=_group_norm_gradient, planned=True)
def _group_norm_backward(grad, input, groups, weight, bias, eps, needs):
    """Gradients of group norm; those of weight and bias are None where not needed."""
    if _groups_last(input):
        dx, dw, db = _channels.group_norm_gradient(_like(grad, input), input, groups, weight, eps)
        dw = _in_dtype(dw, weight) if weight is not None and needs[1] else None
        return dx, dw, _in_dtype(db, bias) if bias is not None and needs[2] else None
    x, g = input.contiguous(), _like(grad, input).contiguous()
    shape, dtype, acc = x.shape, x.dtype, _working(x.dtype)
    dx = empty_like(x)
    if x.numel() >= 2 * CHUNK and few_long_rows(shape[0] * groups, math.prod(shape[2:])):
        dx, dw, db = callbacks.long_rows("group_norm_backward", x, groups, g, weight, eps)
        dw = _in_dtype(dw.sum(0), weight) if weight is not None and needs[1] else None
        return keep_format(dx, input), dw, _in_dtype(db.sum(0), bias) if bias is not None and needs[2] else None
    if x.numel() > shape[0] * shape[1]:
        dw, db = empty(shape[:2], acc), empty(shape[:2], acc)
        plan = _image_backward_plan(shape, dtype, groups, None if weight is None else weight.dtype)
        address, args, rows, grain = plan
        launch(address, _pointers(dx, dw, db, x, g, weight), (*args, float(eps)), rows, grain)
        dw = _in_dtype(dw.sum(0), weight) if weight is not None and needs[1] else None
        return keep_format(dx, input), dw, _in_dtype(db.sum(0), bias) if bias is not None and needs[2] else None
    mean, rstd = empty((shape[0], groups), acc), empty((shape[0], groups), acc)
    if x.numel():
        plan = _group_backward_plan(shape, dtype, groups, None if weight is None else weight.dtype)
        address, args, rows, grain = plan
        launch(address, _pointers(dx, mean, rstd, x, g, weight), (*args, float(eps)), rows, grain)
    dw = db = None
    if (weight is not None and needs[1]) or (bias is not None and needs[2]):
        dw, db = _channel_sums(g, x, mean, rstd, groups)
        dw = _in_dtype(dw, weight) if weight is not None and needs[1] else None
        db = _in_dtype(db, bias) if bias is not None and needs[2] else None
    return keep_format(dx, input), dw, db


_fused_group_norm.traits["lowering"] = lambda input, num_groups, weight, bias, eps: group_norm(
    input, num_groups, weight, bias, eps
)


@_fused_group_norm.vjp_all("input", "weight", "bias")
def _(g, input, num_groups, weight, bias, eps, needs):
    return _group_norm_backward(g, input, num_groups, weight, bias, eps, needs)


def _groups_last(input):
    """Whether group norm goes by sums per channel."""
    return input.numel() >= _channels.LEAST and is_channels_last(input)


def _channel_plan(shape, dtype, groups):
    """A plan to launch the sums per channel: as rows of batch and positions, or as columns where there is one
    position."""
    rows, acc = _Groups(shape, groups), _working(dtype)
    names = _dtype_names(acc, acc, dtype, dtype, acc, acc)
    item, size, channels = acc.itemsize, dtype.itemsize, shape[1]
    out = (0, 0, rows.channels * item, item)
    if rows.flat:
        address = kernels.affine_backward(names, True, 1, "s")
        every = (channels * size, 0, rows.channels * size, size)
        moment = (groups * item, 0, item, 0)
        lanes = max(target.here().vector_bytes // item, 1)
        units = groups * -(-rows.channels // lanes)
        args = (rows.batch, 1, rows.channels, *out, *out, *every, *every, *moment, *moment)
        return address, args, units, max(8, _PIECE // (rows.batch * lanes + 1) // 8 * 8)
    address = kernels.affine_backward(names, False, 2, "s")
    every = (size, channels * rows.positions * size, rows.channels * rows.positions * size, rows.positions * size)
    moment = (0, groups * item, item, 0)
    args = (rows.positions, rows.batch, rows.channels, *out, *out, *every, *every, *moment, *moment)
    return address, args, channels, max(1, _PIECE // (rows.batch * rows.positions + 1))


def _channel_sums(g, x, mean, rstd, groups):
    """Sums over batch and positions of ``g * (x - mean) * rstd`` and of ``g``, one per channel."""
    dw, db = empty((x.shape[1],), rstd.dtype), empty((x.shape[1],), rstd.dtype)
    if not x.numel():
        return dw.zero_(), db.zero_()
    address, args, total, grain = _channel_plan(x.shape, x.dtype, groups)
    launch(address, (dw, db, g, x, mean, rstd), args, total, grain)
    return dw, db


def _check_kind(name, label, dtype, given):
    """Refuse a parameter of another dtype than the input, unless it is float32 beside half precision."""
    if given is not dtype and not (dtype in (float16, bfloat16) and given is float32):
        raise RuntimeError(f"{name}(): expected {label} of the input's dtype, {dtype}, but got {given}")


def _check_channels(name, shape, dtype, **signatures):
    for label, found in signatures.items():
        if found is not None and tuple(found[0]) != (shape[1],):
            raise RuntimeError(
                f"{name}(): expected {label} to be a vector of size {shape[1]}, the number of channels of the input of "
                f"shape {list(shape)}, but got shape {list(found[0])}"
            )
        if found is not None:
            _check_kind(name, label, dtype, found[1])


@composite(method=False, canonical=True)
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True):
    """``(input - mean) / sqrt(var + eps) * weight + bias`` with the mean and the variance of each group of channels
    over all positions (Wu and He 2018, "Group Normalization").

    Args:
        input: ``(batch, channels, *)``, floating point.
        num_groups: how many groups; it divides the number of channels.
        weight: a factor per channel, or None.
        bias: what is added per channel, or None.
        eps: added to the variance, which is the biased one.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: the channels do not divide into groups, or the sizes do not fit.
    Examples:
        >>> x = taeda.tensor([[[1.0], [3.0], [10.0], [14.0]]])
        >>> taeda.group_norm(x, 2, eps=0.0).flatten()
        tensor([-1.,  1., -1.,  1.])
    """
    _require_float("group_norm", input)
    return _fused_group_norm(input, num_groups, weight, bias, eps)
