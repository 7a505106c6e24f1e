"""Activation functions, with fused derivatives where networks run them often."""

from __future__ import annotations

import math

from .. import _core
from .._core import Tensor
from ..kernels import scalar as s
from ._lazy import np
from .comparison import gt
from .elementary import exp, expm1, sigmoid, sigmoid_backward, tanh
from .indexing import where
from .pointwise import add, mul, mul_conj, neg, no_slope, rsub, sub, times_itself, true_divide
from .powers import pow
from .table import Number, before_write, composite, pointwise

SQRT_HALF = math.sqrt(0.5)
SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
DENSITY = 1 / math.sqrt(2 * math.pi)  # the density of the standard normal at 0
REAL = ("int", "float")
FLOAT = ("float",)


def erf(x):
    """The error function of an array, for references."""
    return np.vectorize(math.erf, otypes=[float])(x)


def _zero(x):
    return s.like(x, 0)


# ---- rectifiers -----------------------------------------------------------------------------------------------------


@pointwise(dtypes=REAL, reference=lambda x: np.maximum(x, 0), canonical=True)
def relu(input):
    """``max(input, 0)``, the rectified linear unit.

    Examples:
        >>> taeda.relu(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """
    return s.at_least(input, 0)


@pointwise(method=False, inplace=False, dtypes=REAL)
def relu_backward(grad, output):
    """``grad`` where ``output`` is positive or NaN, else 0."""
    return s.select(output <= 0, _zero(grad), grad)


relu_backward.traits["native_call"] = lambda grad, output: ("threshold_backward.default", (grad, output, 0))
relu_backward.vjp(grad=lambda g, output: relu_backward(g, output), output=no_slope)
relu.vjp(input=lambda g, out: relu_backward(g, out))


@pointwise(method=False, operands=1, dtypes=REAL, reference=lambda x: np.clip(x, -1, 1), fits=True)
def hardtanh(input, min_val=-1.0, max_val=1.0):
    """``input`` held between ``min_val`` and ``max_val``."""
    return s.at_most(s.at_least(input, min_val), max_val)


@pointwise(method=False, inplace=False, operands=2, dtypes=FLOAT, second=False)
def inside(grad, input, low, high):
    """``grad`` where ``low < input < high``, else 0."""
    return s.select((input > low) & (input < high), grad, _zero(grad))


inside.vjp(grad=lambda g, input, low, high: inside(g, input, low, high), input=no_slope)


@pointwise(method=False, inplace=False, operands=2, dtypes=FLOAT, second=False)
def not_outside(grad, input, low, high):
    """0 where ``input <= low`` or ``input >= high``, else ``grad``, as where ``input`` is NaN."""
    return s.select((input <= low) | (input >= high), _zero(grad), grad)


not_outside.vjp(grad=lambda g, input, low, high: not_outside(g, input, low, high), input=no_slope)
hardtanh.vjp(input=lambda g, input, min_val, max_val: not_outside(g, input, min_val, max_val))


@pointwise(method=False, dtypes=REAL, reference=lambda x: np.clip(x, 0, 6))
def relu6(input):
    """``min(max(input, 0), 6)``."""
    return s.at_most(s.at_least(input, 0), 6)


relu6.vjp(input=lambda g, input: not_outside(g, input, 0.0, 6.0))


@pointwise(method=False, operands=1, dtypes=FLOAT, reference=lambda x: np.where(x > 0, x, 0.01 * x), fits_work=True)
def leaky_relu(input, negative_slope=0.01):
    """``input`` where positive, else ``negative_slope * input``."""
    return s.select(input > 0, input, input * negative_slope)


@pointwise(method=False, inplace=False, operands=2, dtypes=FLOAT, second=False)
def leaky_relu_backward(grad, input, negative_slope):
    """``grad`` where ``input`` is positive, else ``negative_slope * grad``."""
    return s.select(input > 0, grad, grad * negative_slope)


leaky_relu_backward.vjp(
    grad=lambda g, input, negative_slope: leaky_relu_backward(g, input, negative_slope), input=no_slope
)
leaky_relu.vjp(input=lambda g, input, negative_slope: leaky_relu_backward(g, input, negative_slope))


@pointwise(method=False, inplace=False, dtypes=FLOAT)
def prelu_kernel(input, weight):
    """``input`` where positive, else ``weight * input``; the shapes broadcast."""
    return s.select(input > 0, input, input * weight)


prelu_kernel.traits["native_call"] = lambda input, weight: ("_prelu_kernel.default", (input, weight))
prelu_kernel.vjp(
    input=lambda g, input, weight: prelu_slope(g, input, weight), weight=lambda g, input: neg(mul(g, relu(neg(input))))
)


@pointwise(method=False, inplace=False, operands=3, dtypes=FLOAT)
def prelu_slope(grad, input, weight):
    """``grad`` where ``input`` is positive, else ``weight * grad``."""
    return s.select(input > 0, grad, grad * weight)


prelu_slope.vjp(
    grad=lambda g, input, weight: prelu_slope(g, input, weight),
    input=no_slope,
    weight=lambda g, grad, input: mul(g, sub(grad, relu_backward(grad, input))),
)


@composite(autocast="lower")
def prelu(input, weight):
    """``input`` where it is positive, ``weight * input`` elsewhere (He et al. 2015, "Delving Deep into Rectifiers").

    Args:
        input: floating point, ``(n, channels, *)``.
        weight: one number, or one per channel.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: there are not as many weights as channels.
    Examples:
        >>> taeda.prelu(taeda.tensor([-4.0, 2.0]), taeda.tensor([0.25]))
        tensor([-1.,  2.])
    """
    if weight.dtype is not input.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {input.dtype} and {weight.dtype}")
    if weight.dim() > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}")
    if weight.numel() != 1 and weight.dim() == 1:
        channels = input.shape[1] if input.dim() > 1 else 1
        if weight.numel() != channels:
            raise RuntimeError(
                f"prelu: mismatch of parameter numbers and input channel size: {weight.numel()} weights for an input "
                f"of shape {list(input.shape)}, whose channel size is {channels}"
            )
        weight = weight.reshape([1, channels] + [1] * (input.dim() - 2))
    elif weight.dim() == 1 and input.dim() != 1:
        weight = weight.reshape([])
    return prelu_kernel(input, weight)


@composite(method=False, random="noise")
def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    """``input`` where it is positive, ``slope * input`` elsewhere, with a random slope in training (Xu et al. 2015,
    "Empirical Evaluation of Rectified Activations").

    Args:
        input: floating point, any sizes.
        lower: the smallest slope.
        upper: the largest one.
        training: draw a slope for each negative element; otherwise the slope is ``(lower + upper) / 2``.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: ``lower`` is above ``upper``.
        NotImplementedError: ``input`` is not of floating point.
    Examples:
        >>> taeda.rrelu(taeda.tensor([-4.0, 2.0]), 0.25, 0.75)
        tensor([-2.,  2.])
    """
    if not training:
        return leaky_relu(input, _mean_slope(lower, upper))
    return mul(input, _drawn_slopes(input, lower, upper, generator))


def _mean_slope(lower, upper):
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise RuntimeError(f"rrelu: expected finite bounds, got {lower} and {upper}")
    if lower > upper:
        raise RuntimeError(f"rrelu: lower bound should be at most the upper bound, got {lower} and {upper}")
    return (lower + upper) / 2


def _drawn_slopes(input, lower, upper, generator):
    """As in PyTorch, a double is drawn for each element that needs one, in order; the others have slope 1."""
    _mean_slope(lower, upper)
    if not input.is_floating_point():
        raise NotImplementedError(
            f"\"rrelu\" not implemented for '{input.dtype}': expected floating point input; convert it with .to(dtype)"
        )
    negative = input.detach() <= 0
    count = input.numel() if input.is_meta else int(negative.sum())
    slopes = input.new_empty([count], dtype=_core.float64).uniform_(lower, upper, generator=generator)
    return input.new_ones(input.shape).masked_scatter(negative, slopes.to(input.dtype))


@composite(method=False, functional=rrelu, random="noise")
def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    """In-place form of :func:`rrelu`."""
    if not training:
        return leaky_relu.traits["inplace"](input, _mean_slope(lower, upper))
    return input.mul_(_drawn_slopes(input, lower, upper, generator))


@pointwise(method=False, operands=1, dtypes=REAL, fits=("value",), fits_work=("threshold",))
def threshold(input, threshold: Number, value: Number):
    """``input`` where it is above ``threshold`` (or NaN), ``value`` elsewhere.

    Args:
        threshold: a number.
        value: a number.
    Examples:
        >>> taeda.threshold(taeda.tensor([0.1, 0.6, 2.0]), 0.5, 0.0)
        tensor([0.0000, 0.6000, 2.0000])
    """
    return s.select(input <= threshold, s.like(input, 0) + value, input)


@pointwise(method=False, inplace=False, operands=2, dtypes=REAL, second=False)
def threshold_backward(grad, input, threshold):
    """``grad`` where ``input`` is above ``threshold`` or NaN, else 0."""
    return s.select(input <= threshold, _zero(grad), grad)


threshold_backward.vjp(grad=lambda g, input, threshold: threshold_backward(g, input, threshold), input=no_slope)
threshold.vjp(input=lambda g, input, threshold: threshold_backward(g, input, threshold))


# ---- exponential units ----------------------------------------------------------------------------------------------


@pointwise(
    method=False, operands=1, dtypes=FLOAT, reference=lambda x: np.where(x > 0, x, np.expm1(x)), node="Elu",
    fits_work=True,
)  # fmt: skip
def elu_kernel(input, alpha, scale, input_scale, *, unit=False):
    """``scale * input`` where positive, else ``scale * alpha * expm1(input_scale * input)``; ``unit``: all three are
    1."""
    if unit:
        return s.select(input > 0, input, s.expm1_negative(input))
    return s.select(input > 0, input * scale, s.expm1_negative(input * input_scale) * (alpha * scale))


@pointwise(method=False, inplace=False, operands=2, dtypes=FLOAT)
def elu_backward(grad, input, alpha, scale, input_scale):
    """The derivative of :func:`elu_kernel`, times ``grad``."""
    return grad * s.select(
        input <= 0, s.exp(input * input_scale) * (alpha * scale * input_scale), s.like(input, 0.0) + scale
    )


def _elu_bend(g, grad, input, alpha, scale, input_scale):
    slope = elu_backward(mul(g, grad), input, alpha, scale, input_scale)
    return mul(sub(slope, relu_backward(slope, input)), input_scale)


elu_kernel.vjp(input=lambda g, input, alpha, scale, input_scale: elu_backward(g, input, alpha, scale, input_scale))
elu_backward.vjp(
    grad=lambda g, input, alpha, scale, input_scale: elu_backward(g, input, alpha, scale, input_scale), input=_elu_bend
)


@composite(method=False, pointwise=True)
def elu(input, alpha=1.0):
    """Exponential linear unit (Clevert et al. 2015): ``input`` where positive, else ``alpha * (exp(input) - 1)``."""
    alpha = float(alpha)
    return elu_kernel(input, alpha, 1.0, 1.0, unit=alpha == 1)


@composite(method=False, functional=elu)
def elu_(input, alpha=1.0, scale=1.0, input_scale=1.0):
    """In-place form of :func:`elu`; of ``scale * elu(input)``, with ``input_scale`` within the exponential."""
    alpha, scale, input_scale = float(alpha), float(scale), float(input_scale)
    return elu_kernel.traits["inplace"](input, alpha, scale, input_scale, unit=alpha == scale == input_scale == 1)


@composite(method=False, pointwise=True)
def celu(input, alpha=1.0):
    """``max(input, 0) + min(alpha * (exp(input / alpha) - 1), 0)``, whose slope is continuous (Barron 2017,
    "Continuously Differentiable Exponential Linear Units").

    Args:
        input: floating point, any sizes.
        alpha: the negative of the limit for small ``input``; not 0.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: ``alpha`` is 0.
    Examples:
        >>> taeda.celu(taeda.tensor([-100.0, 0.0, 2.0]))
        tensor([-1.,  0.,  2.])
    """
    if alpha == 0:
        raise RuntimeError("celu: ZeroDivisionError: alpha cannot be 0 for CELU")
    if alpha < 0:  # the exponential grows below 0, where elu_kernel expects it to fall
        return where(gt(input, 0), input, mul(expm1(mul(input, 1.0 / alpha)), alpha))
    return elu_kernel(input, float(alpha), 1.0, 1.0 / alpha)


@composite(method=False, functional=celu)
def celu_(input, alpha=1.0):
    """In-place form of :func:`celu`."""
    if alpha == 0:
        raise RuntimeError("celu: ZeroDivisionError: alpha cannot be 0 for CELU")
    if alpha < 0:
        return input.copy_(celu(before_write(input), alpha))
    return elu_kernel.traits["inplace"](input, float(alpha), 1.0, 1.0 / alpha)


SELU = (1.6732632423543772, 1.0507009873554805, 1.0)


@composite(method=False)
def selu(input):
    """``scale * (max(input, 0) + min(alpha * (exp(input) - 1), 0))`` with ``scale = 1.0507`` and ``alpha = 1.6733``,
    which keep mean 0 and variance 1 from layer to layer (Klambauer et al. 2017, "Self-Normalizing Neural Networks").
    The rest as of :func:`rrelu`.

    Raises:
        NotImplementedError: ``input`` is not floating point.

    Examples:
        >>> taeda.selu(taeda.tensor([-100.0, 0.0, 1.0]))
        tensor([-1.7581,  0.0000,  1.0507])
    """
    return elu_kernel(input, *SELU)


@composite(method=False, functional=selu)
def selu_(input):
    """In-place form of :func:`selu`."""
    return elu_kernel.traits["inplace"](input, *SELU)


# ---- smooth units ---------------------------------------------------------------------------------------------------


@pointwise(
    method=False, inplace=False, operands=1, dtypes=FLOAT, reference=lambda x: x * (1 + erf(x * SQRT_HALF)) / 2,
    out_dtype="same", canonical=True,
)  # fmt: skip
def gelu(input, *, approximate="none"):
    """``x * P(X <= x)`` for standard normal ``X``, ``x * (1 + erf(x / sqrt(2))) / 2``: the Gaussian error linear unit.

    Source: Hendrycks & Gimpel 2016, "Gaussian Error Linear Units (GELUs)".

    Args:
        approximate: ``"none"``, or ``"tanh"`` for ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``.

    Raises:
        RuntimeError: ``approximate`` is something else.

    Examples:
        >>> F.gelu(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.1587,  0.0000,  1.9545])
    """
    if approximate == "tanh":
        # (1 + tanh(u)) / 2 = 1 / (1 + 2 ** (-2 u log2(e))): where PyTorch's sum cancels, still 1e4 times as exact
        factor = -2 * SQRT_2_OVER_PI / math.log(2)
        return s.over_one_and_exp2(input, input * s.fma(input * input, 0.044715 * factor, factor))
    if approximate != "none":
        raise RuntimeError(f"gelu: approximate argument must be either none or tanh, got {approximate!r}")
    return s.gelu(input)


@pointwise(method=False, inplace=False, operands=2, dtypes=FLOAT)
def gelu_backward(grad, input, *, approximate="none"):
    """The derivative of :func:`gelu`, times ``grad``."""
    if approximate == "tanh":  # with y = (1 + tanh(u)) / 2, the derivative of y is 2 y (1 - y) u'
        square = input * input
        y = s.sigmoid(input * (square * (2 * 0.044715 * SQRT_2_OVER_PI) + 2 * SQRT_2_OVER_PI))
        slope = square * (6 * 0.044715 * SQRT_2_OVER_PI) + 2 * SQRT_2_OVER_PI
        return grad * s.fma(s.fma(-y, y, y) * input, slope, y)
    return grad * s.gelu_slope(input)


def _gelu_bend(g, grad, input, approximate):
    if approximate == "tanh":
        cubic = mul(add(input, mul(pow(input, 3), 0.044715)), SQRT_2_OVER_PI)
        t = tanh(cubic)
        inner = mul(add(mul(times_itself(input), 3 * 0.044715), 1), SQRT_2_OVER_PI)
        inner_slope = mul(input, 6 * 0.044715 * SQRT_2_OVER_PI)
        bell = rsub(times_itself(t), 1)
        bend = mul(bell, sub(add(inner, mul(mul(input, inner_slope), 0.5)), mul(mul(input, t), times_itself(inner))))
        return mul(mul(g, grad), bend)
    normal = mul(exp(mul(times_itself(input), -0.5)), DENSITY)
    return mul(mul(g, grad), mul(normal, rsub(times_itself(input), 2)))


gelu.vjp(input=lambda g, input, approximate: gelu_backward(g, input, approximate=approximate))
gelu_backward.vjp(grad=lambda g, input, approximate: gelu_backward(g, input, approximate=approximate), input=_gelu_bend)


@pointwise(method=False, dtypes=("float", "complex"), reference=lambda x: x / (1 + np.exp(-x)))
def silu(input):
    """``input * sigmoid(input)``, also called swish: a smooth ReLU.

    Examples:
        >>> F.silu(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.2689,  0.0000,  1.7616])
    """
    return s.gated(input, input)


@pointwise(method=False, inplace=False, dtypes=("float", "complex"))
def silu_backward(grad, input):
    """The derivative of :func:`silu` (its conjugate where complex), times ``grad``."""
    input = s.conj(input)
    y = s.sigmoid(input)
    return grad * (y * (input * (1.0 - y) + 1.0))


def _silu_bend(g, grad, input):
    y = sigmoid(input)
    slope = mul(y, rsub(y, 1))
    bend = mul(slope, add(mul(input, add(mul(y, -2), 1)), 2))
    return mul_conj(mul_conj(grad, g), bend)


silu.traits["lowering"] = lambda input: mul(input, sigmoid(input))
silu.vjp(input=lambda g, input: silu_backward(g, input))
silu_backward.vjp(grad=lambda g, input: silu_backward(g, input.conj()), input=_silu_bend)


@pointwise(
    method=False, operands=1, inplace=False, dtypes=FLOAT, reference=lambda x: np.log1p(np.exp(x)), out_dtype="same",
    fits_work=True,
)  # fmt: skip
def softplus(input, beta=1.0, threshold=20.0):
    """``log(1 + exp(beta * input)) / beta``; ``input`` itself where ``beta * input`` is above ``threshold``.

    Args:
        beta: how sharp the bend at 0 is.
        threshold: where the function is a straight line.

    Examples:
        >>> F.softplus(taeda.tensor([-1.0, 0.0, 30.0]))
        tensor([ 0.3133,  0.6931, 30.0000])
    """
    scaled = input * beta
    return s.select(scaled > threshold, input, s.softplus(scaled) * (1.0 / beta))


@pointwise(method=False, inplace=False, operands=2, dtypes=FLOAT)
def softplus_backward(grad, input, beta, threshold):
    """The derivative of :func:`softplus`, times ``grad``."""
    scaled = input * beta
    return s.select(scaled > threshold, grad, grad * s.sigmoid(scaled))


def _softplus_bend(g, grad, input, beta, threshold):
    y = sigmoid(mul(input, beta))
    bend = mul(mul(y, rsub(y, 1)), beta)
    total = mul(mul(g, grad), bend)
    return sub(total, threshold_backward(total, mul(input, beta), threshold))


softplus.vjp(input=lambda g, input, beta, threshold: softplus_backward(g, input, beta, threshold))
softplus_backward.vjp(
    grad=lambda g, input, beta, threshold: softplus_backward(g, input, beta, threshold), input=_softplus_bend
)


def _mish_parts(x):
    """``x``, ``e = exp(x)`` and ``e (e + 2)``, where ``tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2)``.

    ``x`` is held below 40, from where on that quotient is 1 and its derivative 0 whatever ``x`` they are multiplied by.
    """
    x = s.at_most(x, 40.0)
    e = s.exp_negative(x)
    return x, e, e * (e + 2.0)


@pointwise(method=False, dtypes=FLOAT, reference=lambda x: x * np.tanh(np.log1p(np.exp(x))))
def mish(input):
    """``input * tanh(log(1 + exp(input)))`` (Misra 2019).

    Examples:
        >>> F.mish(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.3034,  0.0000,  1.9440])
    """
    _, _, product = _mish_parts(input)
    return product / (product + 2.0) * input


@pointwise(method=False, inplace=False, dtypes=FLOAT)
def mish_backward(grad, input):
    """The derivative of :func:`mish`, times ``grad``."""
    x, e, product = _mish_parts(input)
    inverse = 1.0 / (product + 2.0)
    bend = x * inverse * (e * (e + 1.0)) * 4.0
    return grad * inverse * (product + bend)


def _mish_bend(g, grad, input):
    t, y = tanh(softplus(input)), sigmoid(input)
    gap = rsub(times_itself(t), 1)
    inner = add(mul(mul(input, y), rsub(y, 1)), mul(y, 2))
    bend = mul(gap, sub(inner, mul(mul(input, t), mul(times_itself(y), 2))))
    return mul(mul(g, grad), bend)


mish.vjp(input=lambda g, input: mish_backward(g, input))
mish_backward.vjp(grad=lambda g, input: mish_backward(g, input), input=_mish_bend)


@pointwise(
    method=False, inplace=False, dtypes=FLOAT, reference=lambda x: -np.log1p(np.exp(-x)), node="LogSigmoid",
    out_dtype="same",
)  # fmt: skip
def logsigmoid(input):
    """``log(1 / (1 + exp(-input)))``, exact where the sigmoid is too small for its dtype.

    Examples:
        >>> F.logsigmoid(taeda.tensor([-200.0, 0.0]))
        tensor([-200.0000,   -0.6931])
    """
    return s.log_sigmoid(input)


logsigmoid.vjp(input=lambda g, input: mul(g, sigmoid(neg(input))))


@pointwise(promote="float", method=False, inplace=False, reference=lambda x: x - np.tanh(x), copied=("input",))
def tanhshrink(input):
    """``input - tanh(input)``.

    Examples:
        >>> F.tanhshrink(taeda.tensor([-1.0, 0.0, 3.0]))
        tensor([-0.2384,  0.0000,  2.0049])
    """
    return input - s.tanh(input)


tanhshrink.vjp(input=lambda g, input: mul_conj(g, times_itself(tanh(input))))


@pointwise(promote="float", method=False, inplace=False, reference=lambda x: x / (1 + np.abs(x)))
def softsign(input):
    """``input / (1 + abs(input))``: between -1 and 1.

    Examples:
        >>> F.softsign(taeda.tensor([-1.0, 0.0, 3.0]))
        tensor([-0.5000,  0.0000,  0.7500])
    """
    return input / (s.abs(input) + 1.0)


def _softsign_slope(g, input):
    size = add(input.abs(), 1)
    slope = true_divide(g, times_itself(size))
    if not input.is_complex():
        return slope
    # z / (1 + |z|) is not holomorphic: g / size less the part that acts through |z|
    along = true_divide(mul_conj(g, input).real, times_itself(size))
    return sub(true_divide(g, size), mul(along, input.sgn()))


softsign.vjp(input=_softsign_slope)


# ---- piecewise linear units -----------------------------------------------------------------------------------------


@pointwise(method=False, dtypes=FLOAT, reference=lambda x: np.clip(x / 6 + 0.5, 0, 1))
def hardsigmoid(input):
    """``min(max(input + 3, 0), 6) / 6``: the sigmoid from three straight lines.

    Examples:
        >>> F.hardsigmoid(taeda.tensor([-4.0, 0.0, 1.5, 4.0]))
        tensor([0.0000, 0.5000, 0.7500, 1.0000])
    """
    return s.at_most(s.at_least(input + 3.0, 0.0), 6.0) / 6.0


hardsigmoid.vjp(input=lambda g, input: mul(inside(g, input, -3.0, 3.0), 1 / 6))


@pointwise(method=False, dtypes=FLOAT, reference=lambda x: x * np.clip(x / 6 + 0.5, 0, 1))
def hardswish(input):
    """``input * min(max(input + 3, 0), 6) / 6`` (Howard et al. 2019).

    Examples:
        >>> F.hardswish(taeda.tensor([0.0, 1.5, 4.0]))
        tensor([0.0000, 1.1250, 4.0000])
    """
    return input * s.at_most(s.at_least(input + 3.0, 0.0), 6.0) / 6.0


@pointwise(method=False, inplace=False, dtypes=FLOAT)
def hardswish_backward(grad, input):
    """The derivative of :func:`hardswish`, times ``grad``."""
    middle = grad * (input / 3.0 + 0.5)
    return s.select(input <= -3.0, _zero(grad), s.select(input < 3.0, middle, grad))


hardswish_backward.vjp(
    grad=lambda g, input: hardswish_backward(g, input),
    input=lambda g, grad, input: mul(inside(mul(g, grad), input, -3.0, 3.0), 1 / 3),
)
hardswish.vjp(input=lambda g, input: hardswish_backward(g, input))


@pointwise(
    operands=1, inplace=False, dtypes=FLOAT, reference=lambda x: np.where(np.abs(x) > 0.5, x, 0), out_dtype="same",
    fits=True,
)  # fmt: skip
def hardshrink(input, lambd=0.5):
    """``input`` where ``|input| > lambd``, 0 elsewhere.

    Args:
        input: floating point, any sizes.
        lambd: a number, not negative.
    Examples:
        >>> taeda.hardshrink(taeda.tensor([-1.0, 0.25, 2.0]))
        tensor([-1.,  0.,  2.])
    """
    return s.select((input >= -lambd) & (input <= lambd), _zero(input), input)


def _check_lambda(input, lambd=0.5):
    if not isinstance(lambd, Tensor) and not lambd >= 0:
        raise RuntimeError(f"softshrink: lambda must be at least 0, got {lambd}")


@pointwise(
    method=False, operands=1, inplace=False, dtypes=FLOAT, check=_check_lambda,
    reference=lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0), out_dtype="same", fits=True,
)  # fmt: skip
def softshrink(input, lambd=0.5):
    """``input`` moved towards 0 by ``lambd``, and 0 where its size is at most ``lambd``.

    Args:
        lambd: the bound, at least 0.

    Raises:
        RuntimeError: ``lambd`` is negative.

    Examples:
        >>> F.softshrink(taeda.tensor([-1.0, 0.3, 2.0]))
        tensor([-0.5000,  0.0000,  1.5000])
    """
    return s.select(input > lambd, input - lambd, s.select(input < -lambd, input + lambd, input * 0.0))


@pointwise(method=False, inplace=False, operands=2, dtypes=FLOAT, second=False)
def shrink_backward(grad, input, lambd):
    """``grad`` where the size of ``input`` exceeds ``lambd``, else 0."""
    return s.select((input >= -lambd) & (input <= lambd), _zero(grad), grad)


shrink_backward.vjp(grad=lambda g, input, lambd: shrink_backward(g, input, lambd), input=no_slope)
hardshrink.vjp(input=lambda g, input, lambd: shrink_backward(g, input, lambd))
softshrink.vjp(input=lambda g, input, lambd: shrink_backward(g, input, lambd))


@pointwise(method=False, inplace=False, dtypes=FLOAT, reference=lambda x, y: x / (1 + np.exp(-y)), node="Glu")
def gated(input, gate):
    """``input * sigmoid(gate)``."""
    return s.gated(input, gate)


gated.vjp(
    input=lambda g, gate: gated(g, gate), gate=lambda g, input, gate: sigmoid_backward(mul(g, input), sigmoid(gate))
)


@composite(method=False)
def glu(input, dim=-1):
    """``a * sigmoid(b)`` of the halves ``a`` and ``b`` of ``input`` along ``dim`` (Dauphin et al. 2016).

    Args:
        input: ``(*, n, *)`` with an even ``n`` at ``dim``; floating-point.
        dim: the dimension that is halved.

    Returns:
        ``(*, n / 2, *)``, of the dtype of ``input``.

    Raises:
        RuntimeError: the size at ``dim`` is odd, or ``input`` has no dimension.

    Examples:
        >>> F.glu(taeda.tensor([[1.0, 2.0, 0.0, 100.0]]))
        tensor([[0.5000, 2.0000]])
    """
    if input.dim() == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    size = input.size(dim)
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    before = (slice(None),) * (dim % input.dim())  # indexing costs a fifth of what chunk does
    return gated(input[(*before, slice(size // 2))], input[(*before, slice(size // 2, size))])
