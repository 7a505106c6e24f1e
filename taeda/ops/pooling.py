"""Pooling: maximum, average and power mean over windows, adaptive and fractional windows, and max unpooling."""

from __future__ import annotations

import math

from .. import _core
from .._core import Tensor, expect_bool
from .._core.deferred_max_pool import Placed
from .._core.formats import is_channels_last, keep_format
from .._core.fusion import defers_ops
from .._core.plan import once_per_form
from .._core.planners import kept
from ..kernels import pool as kernels
from ..kernels import pool_last
from .creation import arange
from .exchange import tensor
from .out import write_out
from .random import rand
from .reduction import extent
from .resample import Line, resampled
from .table import expect_tensors, primitive, traits
from .views import blank, reshape

_COMPUTE = {"float16": _core.float32, "bfloat16": _core.float32, "uint8": _core.int32, "int8": _core.int32}
_COMPUTE |= {"int16": _core.int32, "uint16": _core.int32}
_REAL = frozenset(("float32", "float64", "int32", "int64", *_COMPUTE))


# ---- geometry --------------------------------------------------------------------------------------------------------


def _tuple(value, n: int, name: str, label: str, repeats: bool = True) -> tuple[int, ...]:
    value = _core.whole_numbers(value, name, label)
    if isinstance(value, int):
        return (value,) * n
    if len(value) == 1 and repeats:
        return value * n
    if len(value) != n:
        raise RuntimeError(f"{name}: {label} must be a single int, or a tuple of {n} ints, got {value}")
    return value


def _shape_of(name: str, input: Tensor) -> _core.Size:
    if not isinstance(input, Tensor):
        expect_tensors(name, input=input)
    return input.shape


def _require_floats(name: str, input: Tensor) -> None:
    """Refuse whole numbers and bools, as PyTorch does for these functions."""
    if isinstance(input, Tensor) and not (input.is_floating_point() or input.is_complex()):
        raise NotImplementedError(f"\"{name}\" not implemented for '{input.dtype.name}'; convert with .float()")


def _check_shape(name: str, n: int, shape, first: int | None = None) -> None:
    """Refuse an input with the wrong number of dimensions, or with an empty one from ``first`` (the channels) on."""
    first = len(shape) - n - 1 if first is None else first
    if len(shape) not in (n + 1, n + 2) or 0 in shape[first:]:
        raise RuntimeError(
            f"{name}: Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got: {list(shape)}"
        )


@once_per_form
def _window(name, n, shape, kernel_size, stride, padding, dilation, ceil_mode):
    """Checked ``(size of the output, kernel, stride, padding, dilation)``."""
    expect_bool(name, "ceil_mode", ceil_mode)
    _check_shape(name, n, shape)
    kernel = _tuple(kernel_size, n, name, "kernel_size")
    left_out = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    stride = kernel if left_out else _tuple(stride, n, name, "stride")
    padding, dilation = _tuple(padding, n, name, "padding"), _tuple(dilation, n, name, "dilation")
    size = _windows(name, tuple(shape[-n - 1 :]), kernel, stride, padding, dilation, ceil_mode)
    return size, kernel, stride, padding, dilation


def _windows(name, shape, kernel, stride, padding, dilation, ceil_mode) -> tuple[int, ...]:
    """The number of windows along each spatial dimension of ``shape``, which begins with the channels."""
    channels, *space = shape
    if min(kernel) <= 0 or min(stride) <= 0 or min(dilation) <= 0:
        raise RuntimeError(
            f"{name}: kernel size, stride and dilation should be greater than zero, but got kernel_size={kernel}, "
            f"stride={stride}, dilation={dilation}"
        )
    if max(*kernel, *stride, *padding, *dilation) >= 1 << 31:
        raise RuntimeError(
            f"{name}: value cannot be converted to type int without overflow: kernel_size={kernel}, stride={stride}, "
            f"padding={padding}, dilation={dilation}"
        )
    for p, k in zip(padding, kernel, strict=True):
        if p < 0 or p > k // 2:
            raise RuntimeError(
                f"{name}: pad should be at most half of kernel size and not negative, but got pad={p} and "
                f"kernel_size={k}"
            )
    size = []
    for i, k, s, p, d in zip(space, kernel, stride, padding, dilation, strict=True):
        o = (i + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (o - 1) * s >= i + p:  # the last window must start inside the image or its left padding
            o -= 1
        size.append(o)
    if min(size) < 1:
        sizes = "x".join(map(str, shape)), "x".join(map(str, (channels, *size)))
        raise RuntimeError(
            f"{name}: Given input size: ({sizes[0]}). Calculated output size: ({sizes[1]}). Output size is too small"
        )
    return tuple(size)


def _merged(h, w):
    """Two neighbouring dimensions as one, None if windows are not the same in one: each is the numbers of
    ``POOL_ARGS``, from sizes to padding."""
    (oh, ih, kh, sh, dh, ph), (ow, iw, kw, _, dw, pw) = h, w
    if ow == 1 and kw == iw and pw == 0 and (iw == 1 or dh == dw == 1):  # windows of whole lines
        return oh, ih * iw, kh * iw, sh * iw, dh, ph * iw
    if h[2:] == w[2:] == (1, 1, 1, 0):  # windows of one element
        return oh * ow, ih * iw, *h[2:]
    return None


def _args(space, size, kernel, stride, padding, dilation, adaptive=0, divide=1):
    dims = list(zip(size, space, kernel, stride, dilation, padding, strict=True))
    while len(dims) > 1 and not adaptive and (merged := _merged(*dims[-2:])) is not None:
        dims[-2:] = [merged]
    dims = [(1, 1, 1, 1, 1, 0)] * (3 - len(dims)) + dims
    return kernels.PoolArgs(*(n for numbers in zip(*dims, strict=True) for n in numbers), adaptive, divide)


def _ready(name: str, input: Tensor) -> Tensor:
    """``input`` contiguous, in a dtype that has kernels."""
    if input.dtype.name not in _REAL:
        raise NotImplementedError(f"\"{name}\" not implemented for '{input.dtype.name}'")
    return input.to(_COMPUTE.get(input.dtype.name, input.dtype)).contiguous()


def _in_memory(x: Tensor) -> Tensor:
    """``[batch, *positions, channels]``, contiguous, of an image with channels last; in a dtype that has kernels."""
    x = x if x.is_floating_point() else x.to(_COMPUTE.get(x.dtype.name, x.dtype))
    return x.permute(0, *range(2, x.dim()), 1).contiguous()


def _as_image(x: Tensor) -> Tensor:
    """The inverse of :func:`_in_memory`."""
    return x.permute(0, x.dim() - 1, *range(1, x.dim() - 1))


def _has_channels_last(x: Tensor, n: int) -> bool:
    """Whether ``x`` is a batch of images of ``n`` dimensions, laid out with channels last: a volume without a batch may
    look like one of images with fewer."""
    return x.dim() == n + 2 and is_channels_last(x)


def _launch_last(kind: str, input: Tensor, size, args) -> list[Tensor]:
    """:func:`_launch` of an image with channels last, which stay so."""
    x, channels = _in_memory(input), input.shape[1]
    shape = (input.shape[0], *size, channels)
    outs = [_core.empty(shape, x.dtype)]
    if kind == "argmax":
        outs.append(_core.empty(shape, _core.int64))
    rows = outs[0].numel() // (args.ow * channels) if outs[0].numel() else 0
    grain = max(1, 32768 // max(1, args.ow * channels * args.kd * args.kh * args.kw))
    plain = not args.adaptive and max(args.dd, args.dh, args.dw) == 1
    _core.launch(pool_last.pool_last(x.dtype.name, kind, plain), (*outs, x), (*args, channels), rows, grain)
    outs[0] = outs[0].to(input.dtype)
    return [_as_image(out) for out in outs]


def _side_by_side(args) -> bool:
    """Whether windows divide a contiguous plane into pieces, one after the other."""
    lines = args.id == args.ih == args.kd == args.kh == args.dw == 1 and args.pd == args.ph == args.pw == 0
    return lines and args.kw == args.sw and args.iw == args.ow * args.kw


def _reduced(kind: str, windows: Tensor, divide: int):
    """Reduction over the last dimension of ``windows``."""
    if kind == "max":
        return windows.amax(-1)
    y = windows.sum(-1)
    return y / (divide if divide > 0 else windows.shape[-1]) if y.is_floating_point() else y


def _launch(name: str, kind: str, input: Tensor, size, args) -> list[Tensor]:
    n = len(size)
    if input.dtype.name in _REAL and _has_channels_last(input, n):
        return _launch_last(kind, input, size, args)
    shape = (*input.shape[:-n], *size)
    if kind != "argmax" and _side_by_side(args) and (args.ow == 1 or args.kw not in kernels.STRIDES):
        x = input if kind != "sum" else _ready(name, input)
        windows = x.reshape((*input.shape[:-n], args.ow, args.kw))
        return [_reduced(kind, windows, args.divide).reshape(shape).to(input.dtype)]
    x = _ready(name, input)
    outs = [_core.empty(shape, x.dtype)]
    if kind == "argmax":
        outs.append(_core.empty(shape, _core.int64))
    rows = outs[0].numel() // args.ow if outs[0].numel() else 0
    work = args.ow * args.kd * args.kh * args.kw
    stride = args.sw if args.sw in kernels.STRIDES and not args.adaptive else 0
    plain = not args.adaptive and max(args.dd, args.dh, args.dw) == 1
    if plain and not stride and args.kd * args.kh * args.kw >= 8:
        stride = kernels.LONG if args.kw >= 64 else kernels.ALONG
    kernel = kernels.pool(x.dtype.name, kind, stride, plain)
    _core.launch(kernel, (*outs, x), tuple(args), rows, max(1, 32768 // max(1, work)))
    if x.dtype is not input.dtype:
        outs[0] = outs[0].to(input.dtype)
    return [keep_format(out, input) for out in outs] if n > 1 else outs


def _by_space(form, smallest=1):
    """The name in the graph, by the number of dimensions that windows have."""
    return lambda saved: form.format(max(len(saved.get("size") or (2, 2)), smallest))


# ---- maximum ---------------------------------------------------------------------------------------------------------


@primitive(
    method=False, out=False, outputs=("values", "indices"), differentiable=[0], batch="fold",
    node=_by_space("MaxPool{}DWithIndices", 2), planned=True,
)  # fmt: skip
def _max_pool(input, size, kernel, stride, padding, dilation, adaptive=0):
    """Maxima of windows and where in its plane each was found."""
    args = _args(input.shape[-len(size) :], size, kernel, stride, padding, dilation, adaptive)
    return tuple(_launch("max_pool", "argmax", input, size, args))


def _max_pool_first(input, size, kernel, stride, padding, dilation, adaptive):
    return _max_pool(input, size, kernel, stride, padding, dilation, adaptive)[0]


@primitive(method=False, out=False, batch="fold", decomposition=_max_pool_first, planned=True)
def _max_pool_values(input, size, kernel, stride, padding, dilation, adaptive=0):
    """Maxima of windows alone, which is faster where no derivative asks for their places."""
    args = _args(input.shape[-len(size) :], size, kernel, stride, padding, dilation, adaptive)
    return _launch("max_pool", "max", input, size, args)[0]


def _gathered(kind: str, tensors, space, windows) -> Tensor:
    """The gradient of images with channels last and sizes ``space``; ``windows`` are size, stride and padding."""
    tensors = [_in_memory(x) for x in tensors]
    grad = tensors[0]
    batch, *size, channels = grad.shape
    kernel, stride, padding = windows
    out = _core.empty((batch, *space, channels), grad.dtype)
    args = _args(space, size, kernel, stride, padding, (1,) * len(size))
    rows = out.numel() // (args.iw * channels) if out.numel() else 0
    grain = max(1, 32768 // max(1, args.iw * channels))
    _core.launch(pool_last.pool_back_last(grad.dtype.name, kind), (out, *tensors), (*args, channels), rows, grain)
    return _as_image(out)


@primitive(method=False, out=False, batch="fold", planned=True)
def _max_pool_adjoint(grad, indices, space, windows=None):
    """``grad`` summed into the places that ``indices`` name in planes of sizes ``space``.

    ``windows`` are their size, stride and padding where these are fixed and have no gaps.
    """
    if windows is not None and grad.dtype.name in _REAL and _has_channels_last(indices, len(space)):
        return _gathered("argmax", (grad, indices), space, windows).to(grad.dtype)
    g = grad.contiguous() if grad.dtype.itemsize == 2 else _ready("max_pool_backward", grad)
    shape = (*grad.shape[: -len(space)], *space)
    key, inputs, grain = _placing(g.dtype.name, grad.shape, space, windows)
    out = _core.empty(shape, g.dtype)
    units = math.prod(shape[: -len(space)])
    _core.launch(kernels.pool_place(*key), (out, g, indices.contiguous()), (math.prod(space), inputs), units, grain)
    return keep_format(out.to(grad.dtype), indices)


def _placing(dtype: str, shape, space, windows) -> tuple[tuple[str, bool], int, int]:
    """The key of the kernel that puts gradients of this shape into planes, gradients in a plane, planes in a piece."""
    inputs = math.prod(shape[-len(space) :])
    apart = windows is not None and all(k <= s for k, s in zip(*windows[:2], strict=True))
    return (dtype, apart), inputs, max(1, 32768 // max(inputs + math.prod(space), 1))


@kept
def _planes(dtype: str, shape, space, windows) -> Placed:
    """Adds gradients of this shape to planes, with an epilogue."""
    key, inputs, grain = _placing(dtype, shape, space, windows)
    return Placed(key, (*shape[: -len(space)], *space), len(space), inputs, grain)


@primitive(method=False, out=False, batch="fold")
def _deferred_max_pool_adjoint(grad, indices, space, windows=None):
    """:func:`_max_pool_adjoint`, deferred until the op that uses the result runs."""
    made = None
    if grad.dtype in (_core.float32, _core.float64) and not _has_channels_last(indices, len(space)):
        made = _planes(grad.dtype.name, tuple(grad.shape), space, windows).defer(grad, indices)
    return _max_pool_adjoint(grad, indices, space, windows) if made is None else made


def _at(x: Tensor, indices: Tensor, n: int) -> Tensor:
    """The elements of each plane of ``x`` that ``indices`` name."""
    lead = x.shape[:-n]
    return reshape(reshape(x, (*lead, -1)).gather(-1, reshape(indices, (*lead, -1))), indices.shape)


def _max_pool_gradient(g, input_shape, indices, size, kernel, stride, padding, dilation, adaptive):
    adjoint = _deferred_max_pool_adjoint if defers_ops() else _max_pool_adjoint
    windows = None if adaptive or max(dilation) > 1 else (kernel, stride, padding)
    if max(dilation) > 1 and max(padding):  # a window of padding alone has the index -1
        g, indices = g.masked_fill(indices < 0, 0.0), indices.clamp(min=0)
    return adjoint(g, indices, tuple(input_shape[-len(size) :]), windows)


_max_pool.vjp(input=_max_pool_gradient)
for _op in (_max_pool_adjoint, _deferred_max_pool_adjoint):
    _op.vjp(grad=lambda g, indices, space: _at(g, indices, len(space)))


def _maximum(name, n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    size, *rest = _window(name, n, _shape_of(name, input), kernel_size, stride, padding, dilation, ceil_mode)
    return _max_of(input, size, rest, 0, return_indices)


def _max_of(input, size, rest, adaptive, return_indices):
    if len(size) == 3 and input.dim() == 4 and not input.is_contiguous() and input.permute(1, 2, 3, 0).is_contiguous():
        batch = input.permute(1, 2, 3, 0).unsqueeze(0).permute(0, 4, 1, 2, 3)  # PyTorch keeps this layout of volumes
        made = _max_of(batch, size, rest, adaptive, return_indices)
        return tuple(x.squeeze(0) for x in made) if return_indices else made.squeeze(0)
    if return_indices:
        return tuple(_max_pool(input, size, *rest, adaptive))
    return _max_pool_values(input, size, *rest, adaptive)


_DOC = """{first}

    Args:
        input: ``(n, channels, {space})``, or without ``n``.
        kernel_size: the size of the window, an int or one per spatial dimension.
        stride: the step from a window to the next, an int or one per spatial dimension. Default: ``kernel_size``.
        padding: what is put before and after each spatial dimension, at most half of the window: {padding}.
        dilation: the distance of a window's elements, an int or one per spatial dimension.
        ceil_mode: also take a last window that is partly outside.
        return_indices: also give where in its plane each maximum was found (``int64``).
        count_include_pad: whether padding counts as elements.
        divisor_override: what sums are divided by, in place of the number of elements.
    Returns:
        ``(n, channels, {out})`` with ``size_out = floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) /
        stride) + 1`` (``ceil`` with ``ceil_mode``).
    Raises:
        RuntimeError: a window does not fit, or the padding is more than half of it.
    Examples:
        >>> x = taeda.arange({numbers}).reshape({sizes})
        >>> taeda.nn.functional.{name}(x, 2).flatten()
        tensor({values})
    """
_SAMPLES = {
    1: ("6.0", "1, 1, 6", ["[1., 3., 5.]", "[0.5000, 2.5000, 4.5000]"]),
    2: ("16.0", "1, 1, 4, 4", ["[ 5.,  7., 13., 15.]", "[ 2.5000,  4.5000, 10.5000, 12.5000]"]),
    3: ("8.0", "1, 1, 2, 2, 2", ["[7.]", "[3.5000]"]),
}


@traits(canonical=True)
def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    if not return_indices:
        _require_floats("max_pool1d", input)
    return _maximum("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@traits(canonical=True)
def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    return _maximum("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@traits(
    autocast=lambda *args, return_indices=False, **_: None if return_indices or True in args[6:] else "float32",
    canonical=True,
)
def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    return _maximum("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _adaptive_size(name, n, shape, output_size, first):
    """Checked sizes of the output and of the input."""
    one = isinstance(output_size, int) or (n == 1 and not isinstance(output_size, (tuple, list)))
    if one:
        wanted = (_core.whole_numbers(output_size, name, "output_size"),) * n
    else:
        wanted = tuple(
            None if o is None and n > 1 else _core.whole_numbers((o,), name, "output_size")[0] for o in output_size
        )
    if n > 1 and isinstance(output_size, (tuple, list)) and len(wanted) >= len(shape):
        raise ValueError(f"{name}: Input dimension should be at least {len(wanted) + 1}, got shape {list(shape)}")
    _check_shape(name, n, shape, first)
    if len(wanted) != n:
        raise RuntimeError(f"{name}: output_size must be an int or a tuple of {n} ints (or None), got {output_size}")
    space = tuple(shape[-n:])
    size = tuple(i if o is None else o for i, o in zip(space, wanted, strict=True))
    if min(size) < 0:
        raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0 but received {size}")
    return size, space


def _even_windows(size, space):
    """The sizes of windows that divide ``space`` without rest; None if there are none."""
    if min(size) and all(i % o == 0 for i, o in zip(space, size, strict=True)):
        return tuple(i // o for i, o in zip(space, size, strict=True))
    return None


@once_per_form
def _adaptive_maxima(name, n, shape, output_size):
    """``(size of the output, (kernel, stride, padding, dilation), adaptive)``."""
    size, space = _adaptive_size(name, n, shape, output_size, 1)
    zeros, ones, kernel = (0,) * n, (1,) * n, _even_windows(size, space)
    if kernel is not None:
        return size, (kernel, kernel, zeros, ones), 0
    kernel = tuple(0 if o == 0 else i // o + 2 for i, o in zip(space, size, strict=True))
    return size, (kernel, ones, zeros, ones), 1


def _adaptive_max(name, n, input, output_size, return_indices):
    _require_floats(name, input)
    return _max_of(input, *_adaptive_maxima(name, n, _shape_of(name, input), output_size), return_indices)


def adaptive_max_pool1d(input, output_size, return_indices=False):
    return _adaptive_max("adaptive_max_pool1d", 1, input, output_size, return_indices)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    return _adaptive_max("adaptive_max_pool2d", 2, input, output_size, return_indices)


@traits(autocast="float32")
def adaptive_max_pool3d(input, output_size, return_indices=False):
    return _adaptive_max("adaptive_max_pool3d", 3, input.contiguous(), output_size, return_indices)


# ---- average ---------------------------------------------------------------------------------------------------------


@primitive(method=False, out=False, batch="fold", node=_by_space("AvgPool{}D"), planned=True)
def _avg_pool(input, size, kernel, stride, padding, divide=1):
    """Sums of windows over ``divide`` (see ``kernels.pool.POOL_ARGS``)."""
    whole = input.dtype is _core.int64
    if not input.is_floating_point() and not whole:
        raise NotImplementedError(f"\"avg_pool\" not implemented for '{input.dtype.name}'; convert with .float()")
    space = input.shape[-len(size) :]
    args = _args(space, size, kernel, stride, padding, (1,) * len(size), 0, divide)
    out = _launch("avg_pool", "sum", input, size, args)[0]
    return _divided(out, space, kernel, stride, padding, divide) if whole else out  # the kernel divides no integers


@primitive(method=False, out=False, batch="fold", planned=True)
def _sum_pool_adjoint(grad, space, kernel, stride, padding):
    """Every element of an image of sizes ``space`` gets the sum of ``grad`` over the windows that it lies in."""
    n = len(space)
    if grad.dtype.name in _REAL and _has_channels_last(grad, n):
        return _gathered("sum", (grad,), space, (kernel, stride, padding)).to(grad.dtype)
    g = _ready("avg_pool_backward", grad)
    out = _core.empty((*grad.shape[:-n], *space), g.dtype)
    args = _args(space, grad.shape[-n:], kernel, stride, padding, (1,) * n)
    rows = out.numel() // args.iw if out.numel() else 0
    windows = math.prod(-(-k // s) for k, s in zip(kernel, stride, strict=True))  # with an element in common
    grain = max(1, 32768 // (args.iw * windows))
    beside = args.kw == args.sw in (2, 4) and not args.pw
    step = args.sw if beside or args.sw == 1 else -2 if args.sw == 2 else 0
    _core.launch(kernels.pool_spread(g.dtype.name, step), (out, g), tuple(args), rows, grain)
    return keep_format(out.to(grad.dtype), grad)


def _divided(g: Tensor, space, kernel, stride, padding, divide) -> Tensor:
    """``g`` over the size of each window, towards zero where it is of integers."""
    rounding = None if g.is_floating_point() else "trunc"
    if divide > 0:
        return g if divide == 1 else g.div(divide, rounding_mode=rounding)
    n = len(kernel)
    for d, (o, i, k, s, p) in enumerate(zip(g.shape[-n:], space, kernel, stride, padding, strict=True)):
        low, high = (-p, i + p) if divide < 0 else (0, i)
        sizes = [min(j * s - p + k, high) - max(j * s - p, low) for j in range(o)]
        g = g.div(tensor(sizes, dtype=g.dtype).reshape((o, *(1,) * (n - 1 - d))), rounding_mode=rounding)
    return g


_avg_pool.vjp(
    input=lambda g, input_shape, size, kernel, stride, padding, divide: _sum_pool_adjoint(
        _divided(g, input_shape[-len(size) :], kernel, stride, padding, divide),
        tuple(input_shape[-len(size) :]),
        kernel,
        stride,
        padding,
    )
)
_sum_pool_adjoint.vjp(
    grad=lambda g, grad_shape, space, kernel, stride, padding: _avg_pool(
        g, tuple(grad_shape[-len(space) :]), kernel, stride, padding
    )
)


@once_per_form
def _averaging(name, n, shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    """Whether the result is negated, and the checked ``(size of the output, kernel, stride, padding, divide)``."""
    size, kernel, stride, padding, _ = _window(name, n, shape, kernel_size, stride, padding, 1, ceil_mode)
    if n == 3 and any(i < k for i, k in zip(shape[-3:], kernel, strict=True)):
        raise RuntimeError(f"{name}: input image {tuple(shape[-3:])} smaller than kernel size {kernel}")
    expect_bool(name, "count_include_pad", count_include_pad)
    divide = math.prod(kernel) if not any(padding) and not ceil_mode else -1 if count_include_pad else 0
    if divisor_override is None:
        return False, (size, kernel, stride, padding, divide)
    divisor = _core.whole_numbers(divisor_override, name, "divisor_override")
    if divisor == 0:
        raise RuntimeError(f"{name}: divisor must be not zero")
    return divisor < 0, (size, kernel, stride, padding, abs(divisor))


def _average(name, n, input, *window):
    negated, form = _averaging(name, n, _shape_of(name, input), *window)
    y = _avg_pool(input, *form)
    return -y if negated else y


@traits(canonical=True)
def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    return _average("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@traits(canonical=True)
def avg_pool2d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None, *,
    out=None,
):  # fmt: skip
    y = _average("avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return y if out is None else write_out(avg_pool2d, out, y)


@traits(autocast="float32", canonical=True)
def avg_pool3d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None, *,
    out=None,
):  # fmt: skip
    y = _average("avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return y.contiguous() if out is None else write_out(avg_pool3d, out, y)


for _n, _max, _avg in ((1, max_pool1d, avg_pool1d), (2, max_pool2d, avg_pool2d), (3, max_pool3d, avg_pool3d)):
    _numbers, _sizes, _values = _SAMPLES[_n]
    for _pool, _first, _padding, _value in (
        (_max, "The largest element of each window.", "minus infinity", _values[0]),
        (_avg, "The mean of the elements of each window.", "zeros", _values[1]),
    ):
        _pool.__doc__ = _DOC.format(
            first=_first, padding=_padding, space=", ".join("dhw"[3 - _n :]), name=_pool.__name__, numbers=_numbers,
            out=", ".join(x + "_out" for x in "dhw"[3 - _n :]), sizes=_sizes, values=_value,
        )  # fmt: skip
for _avg in (avg_pool2d, avg_pool3d):
    _avg.has_out, _avg.traits = True, {"out_dtype": "same"}  # as `with_out` says it, whose calls take longer


def _mean_of_planes(input, n):
    """The mean of each plane. Its memory is channels-last if that of ``input`` is."""
    if not _has_channels_last(input, n):
        return input.mean(tuple(range(-n, 0)), keepdim=True)
    means = input.permute((0, *range(2, n + 2), 1)).mean(tuple(range(1, n + 1)), keepdim=True)
    return means.permute((0, n + 1, *range(1, n + 1)))


def _adaptive_avg(name, n, input, output_size):
    if output_size.__class__ is int and output_size == 1 and (input.dim() in (2, 3) if n == 1 else input.dim() >= n):
        # PyTorch takes any number of leading dimensions here, and images without elements
        return _mean_of_planes(input, n)
    size, kernel, lines = _adaptive_means(name, n, _shape_of(name, input), output_size)
    if math.prod(size) == 1:
        return _mean_of_planes(input, n)
    if min(size) == 0:
        return input.mean(tuple(range(-n, 0)), keepdim=True).expand((*input.shape[:-n], *size))
    if not input.is_floating_point():
        raise NotImplementedError(f"\"{name}\" not implemented for '{input.dtype.name}'; convert with .float()")
    if kernel is not None:
        if kernel[-1] in kernels.STRIDES or _has_channels_last(input, n):
            return _avg_pool(input, size, kernel, kernel, (0,) * n, math.prod(kernel))
        if n == 1:
            return reshape(input, (*input.shape[:-1], *size, *kernel)).mean(-1)
    return resampled(input, lines)


@once_per_form
def _adaptive_means(name, n, shape, output_size):
    """``(size of the output, kernel, lines)``. A mean over a box is one mean per dimension, as lines describe; a kernel
    stands for windows of one size."""
    size, space = _adaptive_size(name, n, shape, output_size, -n)
    lines = [None if i == o else Line("area", i, o, 0.0, False, False) for i, o in zip(space, size, strict=True)]
    return size, _even_windows(size, space), lines


@traits(canonical=True)
def adaptive_avg_pool1d(input, output_size):
    return _adaptive_avg("adaptive_avg_pool1d", 1, input, output_size)


@traits(canonical=True)
def adaptive_avg_pool2d(input, output_size):
    return _adaptive_avg("adaptive_avg_pool2d", 2, input, output_size)


@traits(autocast="float32", canonical=True)
def adaptive_avg_pool3d(input, output_size):
    y = _adaptive_avg("adaptive_avg_pool3d", 3, input, output_size)
    return y if math.prod(y.shape[-3:]) == 1 else y.contiguous()


for _what, _ops in (
    ("Average", (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)),
    ("Maximum", (adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d)),
):
    for _op in _ops:
        _op.__doc__ = f"""{_what} over windows that are chosen so that the result has the sizes ``output_size``.

    Window ``o`` of ``n`` in a dimension of ``i`` elements runs from ``floor(o * i / n)`` to ``ceil((o + 1) * i / n)``.

    Args:
        input: ``(n, channels, ...)`` with the spatial dimensions last, or without ``n``.
        output_size: an int or one per spatial dimension; None keeps a size.
        return_indices: also give where in its plane each maximum was found (``int64``).
    Returns:
        The sizes of ``input`` with ``output_size`` in the spatial dimensions. The dtype is that of ``input``.
    Raises:
        RuntimeError: ``input`` has another number of dimensions.
        NotImplementedError: the dtype cannot be pooled; an average needs a floating-point one.
    Examples:
        >>> x = taeda.zeros({", ".join(["1", "3", *["7"] * int(_op.__name__[-2])])})
        >>> taeda.nn.functional.{_op.__name__}(x, 2).shape
        taeda.Size({[1, 3, *[2] * int(_op.__name__[-2])]})
    """


# ---- fractional windows ----------------------------------------------------------------------------------------------


def _fractional(name, n, input, kernel_size, output_size, output_ratio, return_indices, samples):
    """Windows of a fixed size at pseudo-random places (Graham 2014, https://arxiv.org/abs/1412.6071)."""
    kernel = _tuple(kernel_size, n, name, "kernel_size", repeats=False)
    shape = _shape_of(name, input)
    _check_shape(name, n, shape)
    space = tuple(shape[-n:])
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{name}: requires specifying exactly one of output_size and output_ratio")
    if output_size is None:
        ratio = (output_ratio,) * n if isinstance(output_ratio, float) else tuple(output_ratio)
        if any(not 0 < r < 1 for r in ratio):
            raise ValueError(f"{name}: output_ratio must be between 0 and 1 (got {output_ratio})")
        size = tuple(int(i * r) for i, r in zip(space, ratio, strict=True))
    else:
        size = _tuple(output_size, n, name, "output_size", repeats=False)
    for i, k, o in zip(space, kernel, size, strict=True):
        if k <= 0 or o < 0 or o + k - 1 > i - (n == 3):  # three dimensions leave one over, as in PyTorch
            raise RuntimeError(f"{name}: expected a kernel and an output that fit the input's {i}, got {k} and {o}")
    single = input.dim() == n + 1
    x = input.unsqueeze(0) if single else input
    batch, channels = x.shape[:2]
    if samples is None:
        samples = rand((1 if single else batch, channels, n), dtype=input.dtype)
    if samples.dtype is not x.dtype or samples.dim() != 3 or samples.shape[1:] != (channels, n) or len(samples) < batch:
        raise RuntimeError(
            f"{name}: expected _random_samples of shape ({batch}, {channels}, {n}) and {x.dtype}, got "
            f"{tuple(samples.shape)} and {samples.dtype}"
        )
    samples = samples[:batch]
    flat = None
    for d in range(n):
        i, k, o = space[d], kernel[d], size[d]
        u = samples[..., 1 - d if n == 2 else d].unsqueeze(
            -1
        )  # in two dimensions PyTorch's first sample is the width's
        alpha = (i - k) / (o - 1) if o > 1 else 0.0
        places = arange(o, dtype=input.dtype)
        start = ((places + u) * alpha).to(_core.int64) - (u * alpha).to(_core.int64)
        last = tensor([j == o - 1 for j in range(o)])
        start = start.masked_fill(last, i - k)  # [batch, channels, o]
        index = (start.unsqueeze(-1) + arange(k)).reshape(
            batch, channels, *(1,) * d, o, *(1,) * (n - 1), k, *(1,) * (n - 1 - d)
        )
        index = index.reshape(
            batch, channels, *(o if e == d else 1 for e in range(n)), *(k if e == d else 1 for e in range(n))
        )
        flat = index if flat is None else flat * i + index
    flat = flat.reshape(batch, channels, math.prod(size), math.prod(kernel))
    planes = x.reshape(batch, channels, math.prod(space))
    values, tap = planes.gather(-1, flat.flatten(2)).reshape(flat.shape).max(-1)
    values = values.reshape(batch, channels, *size)
    values = values.squeeze(0) if single else values
    if not return_indices:
        return values
    indices = flat.gather(-1, tap.unsqueeze(-1)).reshape(batch, channels, *size)
    return values, indices.squeeze(0) if single else indices


@traits(autocast="float32", random="noise")
def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """The largest element of windows at pseudo-random, uneven steps, so that an image shrinks by any factor.

    Source: Graham 2014, "Fractional Max-Pooling".

    Args:
        input: ``(N, C, H, W)`` or ``(C, H, W)``; floating-point.
        kernel_size: size of the window, one number or two.
        output_size: size of the result, one number or two; or give ``output_ratio``.
        output_ratio: its ratio to that of ``input``, between 0 and 1, one number or two.
        return_indices: give also where the maxima were, int64: places in the flattened image of a channel.

    Returns:
        ``(N, C, *output_size)`` or ``(C, *output_size)``; with ``return_indices`` two of them.

    Raises:
        ValueError: not just one of size and ratio is given, or a ratio is out of range.
        RuntimeError: the window is too large.

    Examples:
        >>> F.fractional_max_pool2d(taeda.randn(8, 3, 20, 20), 2, output_ratio=0.7).shape
        taeda.Size([8, 3, 14, 14])
    """
    return _fractional(
        "fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )


@traits(autocast="float32", random="noise")
def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """The largest element of windows at pseudo-random, uneven steps, so that a volume shrinks by any factor.

    Source: Graham 2014, "Fractional Max-Pooling".

    Args:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``; floating-point.
        kernel_size: size of the window, one number or three.
        output_size: size of the result, one number or three; or give ``output_ratio``.
        output_ratio: its ratio to that of ``input``, between 0 and 1, one number or three.
        return_indices: give also where the maxima were, int64: places in the flattened volume of a channel.

    Returns:
        ``(N, C, *output_size)`` or ``(C, *output_size)``; with ``return_indices`` two of them.

    Raises:
        ValueError: not just one of size and ratio is given, or a ratio is out of range.
        RuntimeError: the window is too large.

    Examples:
        >>> F.fractional_max_pool3d(taeda.randn(2, 3, 10, 10, 10), 2, output_size=7).shape
        taeda.Size([2, 3, 7, 7, 7])
    """
    return _fractional(
        "fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )


# ---- unpooling -------------------------------------------------------------------------------------------------------


def _unpool(name, n, input, indices, kernel_size, stride, padding, output_size):
    kernel = _tuple(kernel_size, n, name, "kernel_size")
    stride = kernel if stride is None else _tuple(stride, n, name, "stride")
    padding = _tuple(padding, n, name, "padding")
    if input.shape != indices.shape:
        raise RuntimeError(
            f"{name}: Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got "
            f"indices tensor with shape: {list(indices.shape)}"
        )
    if indices.dtype is not _core.int64:
        raise RuntimeError(f"{name}: elements in indices should be type int64 but got: {indices.dtype.name}")
    default = tuple(
        (i - 1) * s - 2 * p + k for i, s, p, k in zip(input.shape[-n:], stride, padding, kernel, strict=True)
    )
    if output_size is None:
        space = default
    else:
        space = tuple(output_size)[-n:]
        for got, want, s in zip(space, default, stride, strict=True):
            if not want - s < got < want + s:
                raise ValueError(f"{name}: invalid output_size {tuple(space)}: must be within one stride of {default}")
    return unpooled(name, input, indices, space)


def unpooled(name, input, indices, space):
    """``input`` at the places that ``indices`` name in images of sizes ``space``, zero elsewhere."""
    n, total = len(space), math.prod(space)
    lead = input.shape[:-n]
    low, high = extent(indices) if indices.numel() and not indices.is_meta else (0, 0)
    if low < 0 or high >= max(total, 1):
        raise RuntimeError(
            f"{name}: found an invalid max index {high if low >= 0 else low} for an output of size {space}"
        )
    out = blank(input, (*lead, total)).scatter(-1, indices.flatten(-n), input.flatten(-n))
    out = reshape(out, (*lead, *space))
    return out.contiguous(memory_format=_core.channels_last) if n == 2 and is_channels_last(input) else out


@traits(autocast="float32")
def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Pooled values back at the places where :func:`max_pool1d` found them, zero elsewhere.

    Args:
        input: ``(N, C, L)`` or ``(C, L)``; floating-point.
        indices: the same sizes, int64, as the pooling gave them.
        kernel_size: that of the pooling.
        stride: that of the pooling; ``kernel_size`` if None.
        padding: that of the pooling.
        output_size: size of the result; ``(L - 1) * stride - 2 * padding + kernel_size`` if None.

    Returns:
        The sizes of ``input`` but for the last.

    Raises:
        RuntimeError: the sizes do not fit, or an index is out of range.
        ValueError: ``output_size`` does not fit.

    Examples:
        >>> y, places = F.max_pool1d(taeda.tensor([[[1.0, 3.0, 8.0, 2.0]]]), 2, return_indices=True)
        >>> F.max_unpool1d(y, places, 2)
        tensor([[[0., 3., 8., 0.]]])
    """
    return _unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


@traits(autocast="float32")
def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Pooled values back at the places where :func:`max_pool2d` found them, zero elsewhere.
    Arguments as of :func:`nn.functional.max_unpool1d`.

    Args:
        input: ``(N, C, H, W)`` or ``(C, H, W)``; floating-point.
        output_size: sizes of the result; ``(L - 1) * stride - 2 * padding + kernel_size`` for each if None.

    Returns:
        The sizes of ``input`` but for the last two.

    Raises:
        RuntimeError: the sizes do not fit, or an index is out of range.
        ValueError: ``output_size`` does not fit.

    Examples:
        >>> y, places = F.max_pool2d(taeda.tensor([[[1.0, 3.0], [8.0, 2.0]]]), 2, return_indices=True)
        >>> F.max_unpool2d(y, places, 2)
        tensor([[[0., 0.],
                 [8., 0.]]])
    """
    return _unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


@traits(autocast="float32")
def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Pooled values back at the places where :func:`max_pool3d` found them, zero elsewhere.
    Arguments as of :func:`nn.functional.max_unpool2d`.

    Args:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``; floating-point.
    Returns:
        The sizes of ``input`` but for the last three.

    Raises:
        RuntimeError: the sizes do not fit, or an index is out of range.
        ValueError: ``output_size`` does not fit.

    Examples:
        >>> y, places = F.max_pool3d(taeda.randn(2, 3, 4, 6, 6), 2, return_indices=True)
        >>> F.max_unpool3d(y, places, 2).shape
        taeda.Size([2, 3, 4, 6, 6])
    """
    return _unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)
