"""Convolution and transposed convolution in one, two and three dimensions, and the ops that unfold images into columns.

The gradients are ops themselves (``_conv_input``, ``_conv_weight``), each linear in two tensors, so that every
derivative of the three is again among the three.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .. import _core
from .._core import Tensor
from .._core import conv as core
from .._core.formats import is_channels_last, keep_format
from .._core.mends import not_tensor
from . import flops
from .creation import arange
from .matmul import _conj
from .table import OPS, composite, primitive
from .views import reshape, squeeze, unsqueeze

# ---- algorithms ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def without_algorithms(*names: str) -> Iterator[None]:
    """Convolutions do without these algorithms (``core.NAMES_OF_ALGORITHMS``) in the block, on all threads.

    What is wrong with an algorithm, and right without it, is its fault: leave them out one by one.

    Raises:
        ValueError: a name is unknown, or of an algorithm that no other can stand for.
    """
    before = core.leave_out(names)
    planned = [op for op in OPS.values() if isinstance(op, _core.Op) and op.kept_plans is not None]
    try:
        for op in planned:
            op.keep_plans(True)
        yield
    finally:
        core.leave_out(before)
        for op in planned:
            op.keep_plans(True)


# ---- geometry --------------------------------------------------------------------------------------------------------


def _tuple(value, n: int, name: str, label: str) -> tuple[int, ...]:
    """An int or a sequence of ``n`` (or one) as a tuple of ``n``."""
    value = _core.whole_numbers(value, name, label)
    if isinstance(value, int):
        return (value,) * n
    if len(value) == 1:
        return value * n
    if len(value) != n:
        raise RuntimeError(
            f"{name}: expected {label} to be a single integer value or a list of {n} values to match the convolution "
            f"dimensions, but got {label}={list(value)}"
        )
    return value


def _steps(name, n, w_shape, stride, padding, dilation):
    """``(stride, padding, dilation)`` as tuples, and how many more zeros are put after a dimension than before it."""
    if type(stride) is type(padding) is type(dilation) is tuple and len(stride) == len(padding) == len(dilation) == n:
        return stride, padding, dilation, (0,) * n
    stride, dilation = _tuple(stride, n, name, "stride"), _tuple(dilation, n, name, "dilation")
    if not isinstance(padding, str):
        return stride, _tuple(padding, n, name, "padding"), dilation, (0,) * n
    if padding not in ("same", "valid"):
        raise RuntimeError(f"{name}: Invalid padding string: '{padding}'; expected 'same', 'valid' or numbers")
    if padding == "same" and any(s != 1 for s in stride):
        raise RuntimeError(f"{name}: padding='same' is not supported for strided convolutions, got stride={stride}")
    both = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilation, w_shape[2:], strict=True)]
    return stride, tuple(b // 2 for b in both), dilation, tuple(b % 2 for b in both)


def _channels_mend(shape, want):
    """The end of a message about a wrong number of channels: how to mend an input of ``shape``."""
    last = len(shape) - 1
    if shape[-1] == want:
        return f"; it has its channels last: give input.permute(0, {last}, {', '.join(map(str, range(1, last)))})"
    return f"; a layer with in_channels={shape[1]} takes it"


def _misfit(name, x_shape, w_shape, bias, stride, padding, dilation, end, groups) -> RuntimeError:
    """Reason why `core.convolution` refuses arguments of the right types."""
    if min(stride) <= 0 or min(padding) < 0 or min(dilation) <= 0 or groups <= 0:
        what = "non-positive stride is not supported" if min(stride) <= 0 else "negative padding is not supported"
        if min(dilation) <= 0:
            what = "dilation should be greater than zero"
        if groups <= 0:
            what = "non-positive groups is not supported"
        text = f"{what} (stride={stride}, padding={padding}, dilation={dilation}, groups={groups})"
    elif x_shape[1] != w_shape[1] * groups:
        text = (
            f"Given groups={groups}, weight of size {list(w_shape)}, expected input{list(x_shape)} to have "
            f"{w_shape[1] * groups} channels, but got {x_shape[1]} channels instead"
            f"{_channels_mend(x_shape, w_shape[1] * groups)}"
        )
    elif w_shape[0] % groups:
        text = (
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size {list(w_shape)} instead"
        )
    else:
        _check_bias(name, w_shape, w_shape[0], bias)
        sizes = [i + 2 * p + e for i, p, e in zip(x_shape[2:], padding, end, strict=True)]
        spread = [d * (k - 1) + 1 for d, k in zip(dilation, w_shape[2:], strict=True)]
        text = (
            f"Calculated padded input size per channel: ({' x '.join(map(str, sizes))}). Kernel size: "
            f"({' x '.join(map(str, spread))}). Kernel size can't be greater than actual input size"
        )
        if all(size >= n for size, n in zip(sizes, spread, strict=True)):
            text = f"expected padding and dilation of less than 2**31, got padding={padding}, dilation={dilation}"
    return RuntimeError(f"{name}: {text}")


def _check_bias(name: str, w_shape, channels: int, bias) -> None:
    if bias is not None and (bias.dim() != 1 or bias.shape[0] != channels):
        raise RuntimeError(
            f"{name}: Given weight of size {list(w_shape)}, expected bias to be 1-dimensional with {channels} "
            f"elements, but got bias of size {list(bias.shape)} instead"
        )


def _check(name: str, n: int, input: Tensor, weight: Tensor, bias) -> None:
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(
            f"{name}: Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.shape)}"
        )
    if weight.dim() != n + 2:
        raise RuntimeError(f"{name}: expected a weight of {n + 2} dimensions, but got size {list(weight.shape)}")
    for label, x in (("weight", weight), ("bias", bias)):
        if x is not None and not isinstance(x, Tensor):
            raise not_tensor(f"{name}(): argument '{label}'", x)
        if x is not None and x.dtype is not input.dtype:
            raise RuntimeError(
                f"{name}: expected scalar type {input.dtype.name} but found {x.dtype.name}: input and {label} must "
                f"have one dtype"
            )
    if input.dtype.name == "bool":
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")


# ---- complex numbers -------------------------------------------------------------------------------------------------


def _by_parts(linear, a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """A bilinear function of complex tensors from the one of real tensors."""
    ar, ai, br, bi = a.real, a.imag, b.real, b.imag
    real = linear(ar, br) - linear(ai, bi)
    imag = linear(ar, bi) + linear(ai, br)
    out = keep_format(_core.empty(real.shape, a.dtype), a if is_channels_last(a) else b)
    _core.copy_tensor(out.real, real)
    _core.copy_tensor(out.imag, imag)
    if bias is not None:
        out = out + reshape(bias, (-1, *(1,) * (out.dim() - 2)))
    return out


# ---- the three bilinear maps -----------------------------------------------------------------------------------------


@primitive(method=False, out=False, flops=flops.convolution, planned=True)
def _convolution(input, weight, size, stride, padding, dilation, groups):
    """Convolution to spatial sizes ``size``; every geometry argument is a tuple that has been checked."""
    if input.is_complex():
        return _by_parts(lambda a, b: core.forward(a, b, None, size, stride, padding, dilation, groups), input, weight)
    return core.forward(input, weight, None, size, stride, padding, dilation, groups)


@primitive(method=False, out=False, flops=flops.transposed_convolution, planned=True)
def _conv_input(grad, weight, size, stride, padding, dilation, groups):
    """The gradient of the input of :func:`_convolution`; ``size`` are the input's spatial sizes."""
    if grad.is_complex():
        return _by_parts(
            lambda a, b: core.input_gradient(a, b, None, size, stride, padding, dilation, groups), grad, weight
        )
    return core.input_gradient(grad, weight, None, size, stride, padding, dilation, groups)


@primitive(method=False, out=False, flops=flops.convolution_weight, planned=True)
def _conv_weight(input, grad, kernel, stride, padding, dilation, groups):
    """The gradient of the weights of :func:`_convolution`; ``kernel`` are the kernel's spatial sizes."""

    def real(x, g):
        sums = core.weight_gradient(x, g, kernel, stride, padding, dilation, groups)
        sums = sums[0] if sums.shape[0] == 1 else sums.sum(0)
        return keep_format(reshape(sums, (g.shape[1], x.shape[1] // groups, *kernel)).to(x.dtype), x)

    return _by_parts(real, input, grad) if input.is_complex() else real(input, grad)


def _space(shape) -> tuple[int, ...]:
    return tuple(shape[2:])


_convolution.vjp(
    input=lambda g, input_shape, weight, stride, padding, dilation, groups: _conv_input(
        g, _conj(weight), _space(input_shape), stride, padding, dilation, groups
    ),
    weight=lambda g, input, weight_shape, stride, padding, dilation, groups: _conv_weight(
        _conj(input), g, _space(weight_shape), stride, padding, dilation, groups
    ),
)
_conv_input.vjp(
    grad=lambda g, grad_shape, weight, stride, padding, dilation, groups: _convolution(
        g, _conj(weight), _space(grad_shape), stride, padding, dilation, groups
    ),
    weight=lambda g, grad, weight_shape, stride, padding, dilation, groups: _conv_weight(
        g, _conj(grad), _space(weight_shape), stride, padding, dilation, groups
    ),
)
_conv_weight.vjp(
    input=lambda g, input_shape, grad, stride, padding, dilation, groups: _conv_input(
        _conj(grad), g, _space(input_shape), stride, padding, dilation, groups
    ),
    grad=lambda g, grad_shape, input, stride, padding, dilation, groups: _convolution(
        _conj(input), g, _space(grad_shape), stride, padding, dilation, groups
    ),
)


# ---- convolution -----------------------------------------------------------------------------------------------------


def _forward(name, n, input, weight, bias, stride, padding, dilation, groups):
    out = core.convolution(n, input, weight, bias, stride, padding, dilation, groups)
    if out is not None:
        return out
    _check(name, n, input, weight, bias)
    if input.dim() == n + 1:
        input = unsqueeze(input, 0)
        return squeeze(_forward(name, n, input, weight, bias, stride, padding, dilation, groups), 0)
    *steps, end = _steps(name, n, weight.shape, stride, padding, dilation)

    def real(input, weight, bias=None):
        out = core.convolution(n, input, weight, bias, *steps, groups, end)
        if out is None:
            raise _misfit(name, input.shape, weight.shape, bias, *steps, end, groups)
        return out

    if not input.is_complex():
        return real(input, weight, bias)
    _check_bias(name, weight.shape, weight.shape[0], bias)
    return _by_parts(real, input, weight, bias)


def _grad_input(name, n):
    def gradient(g, input_shape, weight, stride, padding, dilation, groups):
        single = len(input_shape) == n + 1
        shape = (1, *input_shape) if single else input_shape
        *rest, _ = _steps(name, n, weight.shape, stride, padding, dilation)
        out = _conv_input(unsqueeze(g, 0) if single else g, _conj(weight), _space(shape), *rest, groups)
        return squeeze(out, 0) if single else out

    return gradient


def _grad_weight(name, n):
    def gradient(g, input, weight_shape, stride, padding, dilation, groups):
        if input.dim() == n + 1:
            g, input = unsqueeze(g, 0), unsqueeze(input, 0)
        *rest, _ = _steps(name, n, weight_shape, stride, padding, dilation)
        return _conv_weight(_conj(input), g, _space(weight_shape), *rest, groups)

    return gradient


def _grad_bias(n):
    return lambda g: g.sum((0, *range(2, n + 2)) if g.dim() == n + 2 else tuple(range(1, n + 1)))


_ARGUMENTS = """

    Args:
        input: ``(n, in_channels, {space})``, or without ``n``.
        weight: ``({weight}, {kernel})``, of the same dtype.
        bias: what is added per channel, ``(out_channels,)``, or None.
        stride: the step from a window to the next, an int or one per spatial dimension.
        padding: {padding}
        dilation: the distance of a window's elements, an int or one per spatial dimension.
        output_padding: added to the size of the result on one side, an int or one per spatial dimension; smaller than
            ``stride`` or ``dilation``.
        groups: channels are split into that many groups, each of which sees its own input alone.
    Returns:
        ``(n, out_channels, {out})`` with {size}.
    Raises:
        RuntimeError: sizes, dtypes or ``groups`` do not fit, or the kernel is larger than the padded input.
    Examples:
        >>> x, weight = taeda.ones({sample}), taeda.ones({kernels})
        >>> taeda.{name}(x, weight, stride=2).shape
        taeda.Size({result})
    """


@primitive(method=False, node="Convolution", flops=flops.convolution, sums_over=1, autocast="lower", planned=True)
def conv1d(input, weight: Tensor, bias=None, stride=1, padding: Any = 0, dilation=1, groups=1):
    return _forward("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@primitive(method=False, node="Convolution", flops=flops.convolution, sums_over=1, autocast="lower", planned=True)
def conv2d(input, weight: Tensor, bias=None, stride=1, padding: Any = 0, dilation=1, groups=1):
    return _forward("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@primitive(method=False, node="Convolution", flops=flops.convolution, sums_over=1, autocast="lower", planned=True)
def conv3d(input, weight: Tensor, bias=None, stride=1, padding: Any = 0, dilation=1, groups=1):
    return _forward("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def _document(op, n: int, what: str, weight: str, padding: str, size: str, result: int) -> None:
    space = "dhw"[3 - n :]
    op.__doc__ = what + _ARGUMENTS.format(
        name=op.name,
        space=", ".join(space),
        kernel=", ".join("k" + x for x in space),
        out=", ".join(x + "_out" for x in space),
        weight=weight,
        padding=padding,
        size=size,
        sample=", ".join(["1", "3", *["8"] * n]),
        kernels=", ".join([*(["3", "6"] if "transpose" in op.name else ["6", "3"]), *["2"] * n]),
        result=[1, 6, *[result] * n],
    )


def _as_convolution(input, weight, bias, stride, padding, dilation, groups):
    """The same by the canonical op, which has numbers for padding."""
    n = weight.dim() - 2
    *steps, end = _steps("conv", n, weight.shape, stride, padding, dilation)
    if any(end):
        input = OPS["constant_pad_nd"](input, [x for more in reversed(end) for x in (0, more)])
    if input.dim() == n + 1:
        return squeeze(_as_convolution(unsqueeze(input, 0), weight, bias, *steps, groups), 0)
    return OPS["convolution"](input, weight, bias, *steps, False, (0,) * n, groups)


for _n, _op in ((1, conv1d), (2, conv2d), (3, conv3d)):
    _op.traits["lowering"] = _as_convolution
    _document(
        _op,
        _n,
        "Every output is a weighted sum of a window of the input: the cross-correlation with ``weight``.\n\n"
        "    In one dimension: ``out[n, o, x]`` is the sum over channels ``c`` and taps ``k`` of\n"
        "    ``weight[o, c, k] * input[n, c, x * stride + k * dilation - padding]``, plus ``bias[o]``.",
        "out_channels, in_channels / groups",
        "zeros that are put before and after each spatial dimension, an int or one per dimension;\n"
        '            ``"valid"`` for none, ``"same"`` for as many as keep the size (with stride 1).',
        "``size_out = floor((size + 2 * padding - dilation * (k - 1) - 1) / stride) + 1``",
        4,
    )
    _op.vjp(input=_grad_input(_op.name, _n), weight=_grad_weight(_op.name, _n), bias=_grad_bias(_n))


# ---- transposed convolution ------------------------------------------------------------------------------------------


def _transposed_geometry(name, n, x_shape, w_shape, bias, stride, padding, output_padding, groups, dilation):
    stride, padding = _tuple(stride, n, name, "stride"), _tuple(padding, n, name, "padding")
    dilation, extra = _tuple(dilation, n, name, "dilation"), _tuple(output_padding, n, name, "output_padding")
    if min(stride) <= 0 or min(padding) < 0 or min(dilation) <= 0 or groups <= 0 or min(extra) < 0:
        raise RuntimeError(
            f"{name}: stride, dilation and groups must be positive and paddings not negative, got stride={stride}, "
            f"padding={padding}, output_padding={extra}, dilation={dilation}, groups={groups}"
        )
    if any(e >= s and e >= d for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise RuntimeError(
            f"{name}: output padding must be smaller than either stride or dilation, but got output_padding={extra}, "
            f"stride={stride}, dilation={dilation}"
        )
    if x_shape[1] != w_shape[0]:
        raise RuntimeError(
            f"{name}: Given transposed=1, weight of size {list(w_shape)}, expected input{list(x_shape)} to have "
            f"{w_shape[0]} channels, but got {x_shape[1]} channels instead{_channels_mend(x_shape, w_shape[0])}"
        )
    if w_shape[0] % groups:
        raise RuntimeError(f"{name}: expected weight {list(w_shape)} to be divisible by groups={groups} at dimension 0")
    _check_bias(name, w_shape, w_shape[1] * groups, bias)
    size = tuple(
        (i - 1) * s - 2 * p + d * (k - 1) + e + 1
        for i, s, p, d, k, e in zip(x_shape[2:], stride, padding, dilation, w_shape[2:], extra, strict=True)
    )
    if min(size) <= 0:
        raise RuntimeError(
            f"{name}: Given input size per channel: {tuple(x_shape[2:])}. Calculated output size: {size} is too small"
        )
    return size, stride, padding, dilation


def _as_transposed(input, weight, bias, stride, padding, output_padding, groups, dilation):
    """The same by the canonical op."""
    n = weight.dim() - 2
    stride, padding, output_padding, dilation = (
        _tuple(x, n, "conv_transpose", "size") for x in (stride, padding, output_padding, dilation)
    )
    if input.dim() == n + 1:
        input = unsqueeze(input, 0)
        return squeeze(_as_transposed(input, weight, bias, stride, padding, output_padding, groups, dilation), 0)
    return OPS["convolution"](input, weight, bias, stride, padding, dilation, True, output_padding, groups)


def _transposed(name, n, input, weight, bias, stride, padding, output_padding, groups, dilation):
    _check(name, n, input, weight, bias)
    single = input.dim() == n + 1
    if single:
        input = unsqueeze(input, 0)
    geometry = _transposed_geometry(
        name, n, input.shape, weight.shape, bias, stride, padding, output_padding, groups, dilation
    )
    if input.is_complex():
        out = _by_parts(lambda a, b: core.input_gradient(a, b, None, *geometry, groups), input, weight, bias)
    else:
        out = core.input_gradient(input, weight, bias, *geometry, groups)
    return squeeze(out, 0) if single else out


@primitive(method=False, node="Convolution", flops=flops.transposed_convolution, autocast="lower", planned=True)
def conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return _transposed("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@primitive(method=False, node="Convolution", flops=flops.transposed_convolution, autocast="lower", planned=True)
def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return _transposed("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@primitive(method=False, node="Convolution", flops=flops.transposed_convolution, autocast="lower", planned=True)
def conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return _transposed("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def _transposed_grad_input(name, n):
    def gradient(g, input_shape, weight, stride, padding, output_padding, groups, dilation):
        single = len(input_shape) == n + 1
        shape = (1, *input_shape) if single else input_shape
        rest = [_tuple(v, n, name, "") for v in (stride, padding, dilation)]
        out = _convolution(unsqueeze(g, 0) if single else g, _conj(weight), _space(shape), *rest, groups)
        return squeeze(out, 0) if single else out

    return gradient


def _transposed_grad_weight(name, n):
    def gradient(g, input, weight_shape, stride, padding, output_padding, groups, dilation):
        if input.dim() == n + 1:
            g, input = unsqueeze(g, 0), unsqueeze(input, 0)
        rest = [_tuple(v, n, name, "") for v in (stride, padding, dilation)]
        return _conv_weight(g, _conj(input), _space(weight_shape), *rest, groups)

    return gradient


for _n, _op in ((1, conv_transpose1d), (2, conv_transpose2d), (3, conv_transpose3d)):
    _op.traits["lowering"] = _as_transposed
    _document(
        _op,
        _n,
        "Transposed convolution: every input spreads a weighted window over the output, a layer that enlarges.\n\n"
        "    It is the gradient of a convolution with the same arguments by its input.",
        "in_channels, out_channels / groups",
        "elements that are cut off the result at each side of each spatial dimension, an int or one per dimension.",
        "``size_out = (size - 1) * stride - 2 * padding + dilation * (k - 1) +\n        output_padding + 1``",
        16,
    )
    _op.vjp(
        input=_transposed_grad_input(_op.name, _n), weight=_transposed_grad_weight(_op.name, _n), bias=_grad_bias(_n)
    )


@composite(method=False, autocast="lower")
def conv_tbc(input, weight, bias, pad=0):
    """A convolution in one dimension of a sequence whose time comes first: ``out[t, n, o]`` is the sum of ``input[t + k
    - pad, n, c] * weight[k, c, o]`` over ``k`` and ``c``, plus ``bias[o]``.

    Args:
        input: ``(time, batch, in_channels)``.
        weight: ``(taps, in_channels, out_channels)``.
        bias: ``(out_channels,)``.
        pad: how many zeros are put before and after the time.
    Returns:
        ``(time + 2 * pad - taps + 1, batch, out_channels)``, of the dtype that all have.
    Raises:
        RuntimeError: the sizes do not fit.
    Examples:
        >>> taeda.conv_tbc(taeda.ones(5, 1, 2), taeda.ones(3, 2, 1), taeda.zeros(1)).flatten()
        tensor([6., 6., 6.])
    """
    out = conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return out.permute(2, 0, 1)


# ---- columns ---------------------------------------------------------------------------------------------------------


def _pair(value, name: str, label: str) -> tuple[int, ...]:
    """One number for both dimensions, or two. PyTorch checks a pair in either case."""
    return _tuple(value if isinstance(value, (tuple, list)) else (value, value), 2, name, label)


def _blocks(name, kernel_size, dilation, padding, stride, space):
    kernel, dilation = _pair(kernel_size, name, "kernel_size"), _pair(dilation, name, "dilation")
    padding, stride = _pair(padding, name, "padding"), _pair(stride, name, "stride")
    if min(kernel) <= 0 or min(dilation) <= 0 or min(stride) <= 0 or min(padding) < 0:
        raise RuntimeError(
            f"{name}: kernel size, dilation and stride should be greater than zero and padding not negative, but got "
            f"kernel_size={kernel}, dilation={dilation}, stride={stride}, padding={padding}"
        )
    count = tuple(
        (i + 2 * p - d * (k - 1) - 1) // s + 1
        for i, p, d, k, s in zip(space, padding, dilation, kernel, stride, strict=True)
    )
    if min(count) <= 0:
        raise RuntimeError(
            f"{name}: the array of sliding blocks has shape {count} for spatial size {tuple(space)}, "
            f"kernel_size={kernel}, dilation={dilation}, padding={padding}, stride={stride}; its components must be at "
            "least one"
        )
    return kernel, dilation, padding, stride, count


def _taps(kernel, dilation, padding, stride, count, space):
    """Per tap: where its columns lie in the blocks and where in the image, cut at the border."""

    def cut(tap, axis):
        start = tap * dilation[axis] - padding[axis]
        low = max(0, -(start // stride[axis]))
        high = min(count[axis], (space[axis] - 1 - start) // stride[axis] + 1)
        first = start + low * stride[axis]
        return slice(low, max(high, low)), slice(first, first + (max(high, low) - low) * stride[axis], stride[axis])

    for y in range(kernel[0]):
        for x in range(kernel[1]):
            (by, iy), (bx, ix) = cut(y, 0), cut(x, 1)
            if by.stop > by.start and bx.stop > bx.start:
                yield y, x, (by, bx), (iy, ix)


@primitive(
    method=False, name="_unfold_columns", batch="fold", node="Im2Col", planned=True,
    native_call=lambda input, *numbers: (
        "im2col.default", (input, *([*_pair(x, "unfold", "kernel_size")] for x in numbers))
    ),
)  # fmt: skip
def _im2col(input, kernel_size, dilation=1, padding=0, stride=1):
    kernel, dilation, padding, stride, count = _blocks(
        "unfold", kernel_size, dilation, padding, stride, input.shape[2:]
    )
    n, c, height, width = input.shape
    if any(padding):
        image = _core.empty((n, c, height + 2 * padding[0], width + 2 * padding[1]), input.dtype)
        _core.zero(image)
        _core.copy_tensor(image[:, :, padding[0] : padding[0] + height, padding[1] : padding[1] + width], input)
        input = image
    *outer, row, column = input.stride()
    steps = (*outer, dilation[0] * row, dilation[1] * column, stride[0] * row, stride[1] * column)
    out = _core.empty((n, c, *kernel, *count), input.dtype)
    _core.copy_tensor(out, _core.strided_view(input, (n, c, *kernel, *count), steps))
    return _core.strided_view(
        out,
        (n, c * kernel[0] * kernel[1], count[0] * count[1]),
        (c * kernel[0] * kernel[1] * count[0] * count[1], count[0] * count[1], 1),
    )


@primitive(method=False, name="_fold_columns", batch="fold", planned=True)
def _col2im(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    size = _pair(output_size, "fold", "output_size")
    kernel, dilation, padding, stride, count = _blocks("fold", kernel_size, dilation, padding, stride, size)
    n, c = input.shape[0], input.shape[1] // (kernel[0] * kernel[1])
    columns = input.reshape(n, c, *kernel, *count)
    out = _core.empty((n, c, *size), input.dtype)
    _core.zero(out)
    *outer, row, column = out.stride()
    *given, down, across, by, bx = columns.stride()
    for y, x, block, image in _taps(kernel, dilation, padding, stride, count, size):
        shape = (n, c, *(s.stop - s.start for s in block))
        steps, first = (*outer, stride[0] * row, stride[1] * column), image[0].start * row + image[1].start * column
        at = y * down + x * across + block[0].start * by + block[1].start * bx
        place = _core.strided_view(out, shape, steps, first)
        place.add_(_core.strided_view(columns, shape, (*given, by, bx), at))
    return out


def _columns_by_index(input, kernel_size, dilation, padding, stride):
    kernel, dilation, padding, stride, count = _blocks(
        "unfold", kernel_size, dilation, padding, stride, input.shape[2:]
    )
    x = OPS["constant_pad_nd"](input, (padding[1], padding[1], padding[0], padding[0]))
    rows, columns = (
        (arange(kernel[d]) * dilation[d]).unsqueeze(-1) + arange(count[d]) * stride[d] for d in (0, 1)
    )  # [of the window, of windows]
    made = OPS["index"](x, (None, None, rows.unsqueeze(-1).unsqueeze(-1), columns))
    n, c = input.shape[:2]
    return made.permute(0, 1, 2, 4, 3, 5).reshape(n, c * kernel[0] * kernel[1], count[0] * count[1])


_im2col.traits["lowering"] = _columns_by_index
_im2col.vjp(
    input=lambda g, input_shape, kernel_size, dilation, padding, stride: _col2im(
        g, tuple(input_shape[2:]), kernel_size, dilation, padding, stride
    )
)
_col2im.vjp(input=lambda g, kernel_size, dilation, padding, stride: _im2col(g, kernel_size, dilation, padding, stride))


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The sliding blocks of an image, each as a column: what a convolution multiplies by its kernel.

    Args:
        input: ``(N, C, H, W)`` or ``(C, H, W)``; floating-point.
        kernel_size: size of the blocks, one number or two.
        dilation: step between the elements of a block.
        padding: zeros on both sides.
        stride: step between blocks.

    Returns:
        ``(N, C * kh * kw, L)`` or ``(C * kh * kw, L)``, with as many columns ``L`` as a convolution has outputs.

    Raises:
        RuntimeError: ``input`` has other dimensions, or a block is larger than the image.

    Examples:
        >>> F.unfold(taeda.arange(9.0).reshape(1, 1, 3, 3), kernel_size=2)
        tensor([[[0., 1., 3., 4.],
                 [1., 2., 4., 5.],
                 [3., 4., 6., 7.],
                 [4., 5., 7., 8.]]])
    """
    if input.dim() not in (3, 4) or not input.shape[-3]:
        raise RuntimeError(f"unfold: expected 3D or 4D input with channels, but got input of size {list(input.shape)}")
    if input.dim() == 3:
        return squeeze(_im2col(unsqueeze(input, 0), kernel_size, dilation, padding, stride), 0)
    return _im2col(input, kernel_size, dilation, padding, stride)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Adds up blocks into an image, each at its place: the adjoint of :func:`unfold`.

    Args:
        input: ``(N, C * kh * kw, L)`` or ``(C * kh * kw, L)``, ``L`` blocks; floating-point.
        output_size: ``(H, W)`` of the image.
        kernel_size: size of the blocks, one number or two.
        dilation: step between the elements of a block.
        padding: how far blocks reach beyond the image.
        stride: step between blocks.

    Returns:
        ``(N, C, H, W)`` or ``(C, H, W)``.

    Raises:
        RuntimeError: ``L`` is not the number of blocks, or ``input`` has other dimensions.

    Examples:
        >>> blocks = F.unfold(taeda.ones(1, 1, 3, 3), 2)
        >>> F.fold(blocks, (3, 3), 2)  # by how many blocks each pixel is covered
        tensor([[[[1., 2., 1.],
                  [2., 4., 2.],
                  [1., 2., 1.]]]])
    """
    if input.dim() not in (2, 3) or not input.shape[-2]:
        raise RuntimeError(f"fold: expected 2D or 3D input with channels, but got input of size {list(input.shape)}")
    single = input.dim() == 2
    x = unsqueeze(input, 0) if single else input
    size, kernel = _pair(output_size, "fold", "output_size"), _pair(kernel_size, "fold", "kernel_size")
    *_, count = _blocks("fold", kernel_size, dilation, padding, stride, size)
    if x.shape[1] % (kernel[0] * kernel[1]):
        raise RuntimeError(
            f"fold: Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={x.shape[1]} and kernel_size={kernel}"
        )
    if x.shape[2] != count[0] * count[1]:
        raise RuntimeError(
            f"fold: Given output_size={size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, "
            f"stride={stride}, expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{count[0]} * {count[1]} = {count[0] * count[1]}, but got input.size(2)={x.shape[2]}"
        )
    out = _col2im(x, output_size, kernel_size, dilation, padding, stride)
    return squeeze(out, 0) if single else out
