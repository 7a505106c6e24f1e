"""Elementary functions: exponentials, logarithms, trigonometric and hyperbolic functions, and their close kin."""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from ..kernels import scalar as s
from ._lazy import np
from .copies import to_dtype
from .extrema import refused_gradient
from .joining import stack
from .pointwise import (
    FLOATS,
    add,
    div_conj,
    mul,
    mul_conj,
    neg,
    no_slope,
    over_nonzero,
    rsub,
    times_itself,
    true_divide,
    where_nonzero,
)
from .powers import pow
from .table import OPS, Number, alias, composite, expect_tensors, no_derivative, pointwise, result_type
from .views import broadcast_tensors, view_as_complex

LN2, LN10, PI = 0.6931471805599453, 2.302585092994046, 3.141592653589793


# ---- exponentials and logarithms ------------------------------------------------------------------------------------


@pointwise(promote="float", reference="exp", canonical=True)
def exp(input):
    """``e ** input``.

    Examples:
        >>> taeda.exp(taeda.tensor([0.0, 1.0, -math.inf]))
        tensor([1.0000, 2.7183, 0.0000])
    """
    return s.exp(input)


@pointwise(promote="float", reference="exp2")
def exp2(input):
    """``2 ** input``.

    Examples:
        >>> taeda.exp2(taeda.tensor([0.0, 3.0, -1.0]))
        tensor([1.0000, 8.0000, 0.5000])
    """
    return s.exp2(input)


@pointwise(promote="float", reference="expm1", canonical=True)
def expm1(input):
    """``e ** input - 1``, exact also for small ``input``, where the difference would cancel.

    Examples:
        >>> taeda.expm1(taeda.tensor([1e-10])), taeda.exp(taeda.tensor([1e-10])) - 1
        (tensor([1.0000e-10]), tensor([0.]))
    """
    return s.expm1(input)


@pointwise(promote="float", reference="log", domain=(0.1, 4), canonical=True)
def log(input):
    """The natural logarithm: -inf of 0, NaN of negative numbers.

    Examples:
        >>> taeda.log(taeda.tensor([1.0, 2.0, 0.0]))
        tensor([0.0000, 0.6931,   -inf])
    """
    return s.log(input)


@pointwise(promote="float", reference="log2", domain=(0.1, 4), canonical=True)
def log2(input):
    """The logarithm to base 2: -inf of 0, NaN of negative numbers.

    Examples:
        >>> taeda.log2(taeda.tensor([3.0, 8.0, 0.0]))
        tensor([1.5850, 3.0000,   -inf])
    """
    return s.log2(input)


@pointwise(promote="float", reference="log10", domain=(0.1, 4), canonical=True)
def log10(input):
    """The logarithm to base 10: -inf of 0, NaN of negative numbers.

    Examples:
        >>> taeda.log10(taeda.tensor([2.0, 1000.0, 0.0]))
        tensor([0.3010, 3.0000,   -inf])
    """
    return s.log10(input)


@pointwise(promote="float", reference="log1p", domain=(-0.9, 4), canonical=True)
def log1p(input):
    """``log(1 + input)``, exact also for small ``input``, where the sum would be 1.

    Examples:
        >>> taeda.log1p(taeda.tensor([1e-10])), taeda.log(1 + taeda.tensor([1e-10]))
        (tensor([1.0000e-10]), tensor([0.]))
    """
    return s.log1p(input)


exp.vjp(input=lambda g, out: mul_conj(g, out))
exp2.vjp(input=lambda g, out: mul_conj(g, mul(out, LN2)))
expm1.vjp(input=lambda g, out: mul_conj(g, add(out, 1)))
log.vjp(input=lambda g, input: div_conj(g, input))
log2.vjp(input=lambda g, input: div_conj(g, mul(input, LN2)))
log10.vjp(input=lambda g, input: div_conj(g, mul(input, LN10)))
log1p.vjp(input=lambda g, input: div_conj(g, add(input, 1)))


@pointwise(promote="float", inplace=False, reference="logaddexp", tensors=("input", "other"))
def logaddexp(input, other):
    """``log(exp(input) + exp(other))`` without overflow: the sum of two probabilities that are given as logarithms.

    Examples:
        >>> taeda.logaddexp(taeda.tensor([100.0]), taeda.tensor([100.0]))
        tensor([100.6931])
    """
    return s.logaddexp(input, other)


@pointwise(promote="float", dtypes=("float",), inplace=False, reference="logaddexp2", tensors=("input", "other"))
def logaddexp2(input, other):
    """``log2(2 ** input + 2 ** other)`` without overflow.

    Examples:
        >>> taeda.logaddexp2(taeda.tensor([200.0]), taeda.tensor([199.0]))
        tensor([200.5850])
    """
    return s.logaddexp2(input, other)


@pointwise(method=False, inplace=False, dtypes=FLOATS)
def logistic_difference(input, other):
    """``1 / (1 + exp(other - input))``, the weight of ``input`` in logaddexp; a half of equal infinities."""
    return s.sigmoid(s.select(input == other, s.constant(input, 0.0), input - other))


def _difference_slope(g, out):
    return mul_conj(g, mul(out, rsub(out, 1)))


logistic_difference.vjp(input=_difference_slope, other=lambda g, out: neg(_difference_slope(g, out)))
logaddexp.vjp(
    input=lambda g, input, other: mul_conj(g, logistic_difference(input, other)),
    other=lambda g, input, other: mul_conj(g, logistic_difference(other, input)),
)
logaddexp2.vjp(
    input=lambda g, input, other: mul(g, logistic_difference(mul(input, LN2), mul(other, LN2))),
    other=lambda g, input, other: mul(g, logistic_difference(mul(other, LN2), mul(input, LN2))),
)


@pointwise(promote="float", dtypes=("float",), domain=((-2, 2), (0.1, 4)))
def xlogy(input, other):
    """``input * log(other)``, 0 where ``input`` is 0 and ``other`` is not NaN: a term of an entropy.

    Examples:
        >>> taeda.xlogy(taeda.tensor([0.0, 2.0]), taeda.tensor([0.0, 2.0]))
        tensor([0.0000, 1.3863])
    """
    return s.xlogy(input, other)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, domain=((-2, 2), (-0.9, 4)))
def xlog1py(input, other):
    """``input * log1p(other)``, 0 where ``input`` is 0 and ``other`` is not NaN.

    Examples:
        >>> taeda.special.xlog1py(taeda.tensor([0.0, 2.0]), taeda.tensor([-1.0, 1.0]))
        tensor([0.0000, 1.3863])
    """
    return s.xlog1py(input, other)


def _logarithm_slope(op, g, input, other, pole):
    """``g`` times the logarithm; 0 where both the logarithm and its factor vanish or are undefined."""
    hidden = (input == 0) & (other <= pole)
    return op(g, other).masked_fill(hidden, 0) if isinstance(hidden, Tensor) else op(g, other)


xlogy.vjp(
    input=lambda g, input, other: _logarithm_slope(xlogy, g, input, other, 0),
    other=lambda g, input, other: true_divide(mul(g, input), other),
)
xlog1py.vjp(
    input=lambda g, input, other: _logarithm_slope(xlog1py, g, input, other, -1),
    other=lambda g, input, other: true_divide(mul(g, input), add(other, 1)),
)


# ---- trigonometry ---------------------------------------------------------------------------------------------------


@pointwise(promote="float", reference="sin", canonical=True)
def sin(input):
    """The sine of an angle in radians.

    Examples:
        >>> taeda.sin(taeda.tensor([0.0, math.pi / 6, math.pi / 2]))
        tensor([0.0000, 0.5000, 1.0000])
    """
    return s.sin(input)


@pointwise(promote="float", reference="cos", canonical=True)
def cos(input):
    """The cosine of an angle in radians.

    Examples:
        >>> taeda.cos(taeda.tensor([0.0, math.pi / 3, math.pi]))
        tensor([ 1.0000,  0.5000, -1.0000])
    """
    return s.cos(input)


@pointwise(promote="float", reference="tan", domain=(-1, 1), canonical=True)
def tan(input):
    """The tangent of an angle in radians.

    Examples:
        >>> taeda.tan(taeda.tensor([0.0, 0.5]))
        tensor([0.0000, 0.5463])
    """
    return s.tan(input)


@pointwise(promote="float", reference="arcsin", domain=(-0.9, 0.9), canonical=True)
def asin(input):
    """The arc sine in radians, in [-pi/2, pi/2]; NaN outside of [-1, 1].

    Examples:
        >>> taeda.asin(taeda.tensor([0.0, 0.5, 2.0]))
        tensor([0.0000, 0.5236,    nan])
    """
    return s.asin(input)


@pointwise(promote="float", reference="arccos", domain=(-0.9, 0.9), canonical=True)
def acos(input):
    """The arc cosine in radians, in [0, pi]; NaN outside of [-1, 1].

    Examples:
        >>> taeda.acos(taeda.tensor([1.0, 0.5, -1.0]))
        tensor([0.0000, 1.0472, 3.1416])
    """
    return s.acos(input)


@pointwise(promote="float", reference="arctan", canonical=True)
def atan(input):
    """The arc tangent in radians, in [-pi/2, pi/2].

    Examples:
        >>> taeda.atan(taeda.tensor([0.0, 1.0, math.inf]))
        tensor([0.0000, 0.7854, 1.5708])
    """
    return s.atan(input)


@pointwise(promote="float", dtypes=("float",), reference="arctan2", tensors=("input", "other"), canonical=True)
def atan2(input, other):
    """The angle in radians, in [-pi, pi], of the point with abscissa ``other`` and ordinate ``input``, which is
    ``atan(input / other)`` in the right quadrant.

    Examples:
        >>> y, x = taeda.tensor([1.0, 1.0, -1.0]), taeda.tensor([1.0, -1.0, -1.0])
        >>> taeda.rad2deg(taeda.atan2(y, x)).round()
        tensor([  45.,  135., -135.])
    """
    return s.atan2(input, other)


sin.vjp(input=lambda g, input: mul_conj(g, cos(input)))
cos.vjp(input=lambda g, input: neg(mul_conj(g, sin(input))))
tan.vjp(input=lambda g, out: mul_conj(g, add(times_itself(out), 1)))
asin.vjp(input=lambda g, input: mul_conj(g, _root_of_gap(input)))
acos.vjp(input=lambda g, input: neg(mul_conj(g, _root_of_gap(input))))
atan.vjp(input=lambda g, input: div_conj(g, add(times_itself(input), 1)))


def _root_of_gap(input):
    return pow(rsub(times_itself(input), 1), -0.5)


def _over_square(g, x, a, b):
    """``g * x / (a^2 + b^2)``, 0 at the origin; the squares may be beyond the range of the dtype."""
    size = OPS["hypot"](a, b)
    return mul(g, over_nonzero(over_nonzero(x, size), size))


atan2.vjp(
    input=lambda g, input, other: _over_square(g, other, input, other),
    other=lambda g, input, other: neg(_over_square(g, input, input, other)),
)


@pointwise(promote="float", reference="sinh", canonical=True)
def sinh(input):
    """The hyperbolic sine, ``(exp(input) - exp(-input)) / 2``.

    Examples:
        >>> taeda.sinh(taeda.tensor([0.0, 1.0]))
        tensor([0.0000, 1.1752])
    """
    return s.sinh(input)


@pointwise(promote="float", reference="cosh", canonical=True)
def cosh(input):
    """The hyperbolic cosine, ``(exp(input) + exp(-input)) / 2``.

    Examples:
        >>> taeda.cosh(taeda.tensor([0.0, 1.0]))
        tensor([1.0000, 1.5431])
    """
    return s.cosh(input)


@pointwise(promote="float", reference="tanh", canonical=True)
def tanh(input):
    """The hyperbolic tangent, ``(exp(input) - exp(-input)) / (exp(input) + exp(-input))``, in [-1, 1].

    Examples:
        >>> taeda.tanh(taeda.tensor([0.0, 0.5, 100.0]))
        tensor([0.0000, 0.4621, 1.0000])
    """
    return s.tanh(input)


@pointwise(promote="float", reference="arcsinh", canonical=True)
def asinh(input):
    """The inverse hyperbolic sine, ``log(input + sqrt(input ** 2 + 1))``.

    Examples:
        >>> taeda.asinh(taeda.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8814])
    """
    return s.asinh(input)


@pointwise(promote="float", reference="arccosh", domain=(1.1, 4), canonical=True)
def acosh(input):
    """The inverse hyperbolic cosine, ``log(input + sqrt(input ** 2 - 1))``; NaN below 1.

    Examples:
        >>> taeda.acosh(taeda.tensor([1.0, 2.0, 0.5]))
        tensor([0.0000, 1.3170,    nan])
    """
    return s.acosh(input)


@pointwise(promote="float", reference="arctanh", domain=(-0.9, 0.9), canonical=True)
def atanh(input):
    """The inverse hyperbolic tangent, ``log((1 + input) / (1 - input)) / 2``; NaN outside of [-1, 1].

    Examples:
        >>> taeda.atanh(taeda.tensor([0.0, 0.5, 1.0]))
        tensor([0.0000, 0.5493,    inf])
    """
    return s.atanh(input)


@pointwise(method=False, inplace=False, dtypes=FLOATS, reference=lambda g, y: g * (1 - y * y))
def tanh_backward(grad, output):
    """``grad * (1 - output ** 2)``, of the conjugate where complex."""
    output = s.conj(output)
    return grad * (1.0 - output * output)


tanh_backward.vjp(
    grad=lambda g, output: tanh_backward(g, output.conj()),
    output=lambda g, grad, output: mul_conj(mul_conj(mul(grad, -2), g), output),
)
sinh.vjp(input=lambda g, input: mul_conj(g, cosh(input)))
cosh.vjp(input=lambda g, input: mul_conj(g, sinh(input)))
tanh.vjp(input=lambda g, out: tanh_backward(g, out))
asinh.vjp(input=lambda g, input: mul_conj(g, pow(add(times_itself(input), 1), -0.5)))
acosh.vjp(input=lambda g, input: div_conj(g, _slope_root(input if input.is_complex() else input.abs())))
atanh.vjp(input=lambda g, input: div_conj(g, rsub(times_itself(input), 1)))


def _slope_root(x):
    """``sqrt(x ** 2 - 1)``, where the square may be too large."""
    return mul(pow(add(x, -1), 0.5), pow(add(x, 1), 0.5))


arcsin = alias(asin, "arcsin")
arccos = alias(acos, "arccos")
arctan = alias(atan, "arctan")
arctan2 = alias(atan2, "arctan2")
arcsinh = alias(asinh, "arcsinh")
arccosh = alias(acosh, "arccosh")
arctanh = alias(atanh, "arctanh")


@pointwise(promote="float", reference="sinc")
def sinc(input):
    """``sin(pi * input) / (pi * input)``, 1 at 0.

    Examples:
        >>> taeda.sinc(taeda.tensor([0.0, 0.5]))
        tensor([1.0000, 0.6366])
    """
    if isinstance(input, s.Complex):
        turn = input * PI
        zero = input == 0
        return s.select(zero, s.constant(input, 1), s.sin(turn) / s.select(zero, s.constant(input, 1), turn))
    rest = input - s.round(input * 0.5) * 2.0  # exact, so that whole numbers give 0
    zero = input == 0
    return s.select(zero, s.like(input, 1.0), s.sin(rest * PI) / (s.select(zero, s.like(input, 1.0), input) * PI))


def _sinc_slope(g, input):
    return mul_conj(g, where_nonzero(input, true_divide(add(cos(mul(input, PI)), sinc(input), alpha=-1), input)))


sinc.vjp(input=_sinc_slope)


@pointwise(promote="float", dtypes=("float",), reference="deg2rad")
def deg2rad(input):
    """Degrees to radians: ``input * pi / 180``.

    Examples:
        >>> taeda.deg2rad(taeda.tensor([180.0, 90.0]))
        tensor([3.1416, 1.5708])
    """
    return input * (PI / 180)


@pointwise(promote="float", dtypes=("float",), reference="rad2deg")
def rad2deg(input):
    """Radians to degrees: ``input * 180 / pi``.

    Examples:
        >>> taeda.rad2deg(taeda.tensor([math.pi, 1.0]))
        tensor([180.0000,  57.2958])
    """
    return input * (180 / PI)


deg2rad.vjp(input=lambda g: mul(g, PI / 180))
rad2deg.vjp(input=lambda g: mul(g, 180 / PI))


# ---- the logistic function ------------------------------------------------------------------------------------------


@pointwise(promote="float", reference=lambda x: 1 / (1 + np.exp(-x)), canonical=True)
def sigmoid(input):
    """``1 / (1 + exp(-input))``: any number to a probability.

    Examples:
        >>> taeda.sigmoid(taeda.tensor([0.0, 1.0, -2.0]))
        tensor([0.5000, 0.7311, 0.1192])
    """
    return s.sigmoid(input)


@pointwise(method=False, inplace=False, dtypes=FLOATS, reference=lambda g, y: g * (1 - y) * y)
def sigmoid_backward(grad, output):
    """``grad * (1 - output) * output``, of the conjugate where complex."""
    output = s.conj(output)
    return grad * ((1.0 - output) * output)


sigmoid_backward.vjp(
    grad=lambda g, output: sigmoid_backward(g, output.conj()),
    output=lambda g, grad, output: mul_conj(mul_conj(grad, g), add(mul(output, -2), 1)),
)
sigmoid.vjp(input=lambda g, out: sigmoid_backward(g, out))
alias(sigmoid, "expit", method=False)


@pointwise(promote="float", dtypes=("float",), operands=1, domain=(0.1, 0.9))
def logit(input, eps=None):
    """``log(input / (1 - input))``: the inverse of :func:`sigmoid`.

    Args:
        input: a tensor of any sizes, of numbers in [0, 1]; NaN outside.
        eps: hold ``input`` between ``eps`` and ``1 - eps`` first, so that the result is finite. Default: no.
    Examples:
        >>> taeda.logit(taeda.tensor([0.5, 0.75, 1.0]))
        tensor([0.0000, 1.0986,    inf])
        >>> taeda.logit(taeda.tensor([0.0, 1.0]), eps=0.25)
        tensor([-1.0986,  1.0986])
    """
    if eps is not None:
        input = s.select(input < eps, eps, s.select(input > 1.0 - eps, 1.0 - eps, input))
    return s.log(input / (1.0 - input))


@pointwise(method=False, inplace=False, operands=2, dtypes=("float",), domain=((-2, 2), (0.1, 0.9)))
def logit_backward(grad, input, eps=None):
    """``grad / (input * (1 - input))``; outside the bounds 0 with ``eps``, NaN without."""
    slope = grad / (input * (1.0 - input))
    low, high, outside = (0.0, 1.0, float("nan")) if eps is None else (eps, 1.0 - eps, 0.0)
    return s.select((input < low) | (input > high), s.like(grad, outside), slope)


def _logit_slope_slope(g, grad, input, eps):
    bend = true_divide(add(mul(input, 2), -1), mul(input, rsub(input, 1)))
    return mul(logit_backward(mul(g, grad), input, eps), bend)


logit_backward.vjp(grad=lambda g, input, eps: logit_backward(g, input, eps), input=_logit_slope_slope)
logit.vjp(input=lambda g, input, eps: logit_backward(g, input, eps))


# ---- parts of numbers -----------------------------------------------------------------------------------------------


@pointwise(promote="float", out="real", inplace=False, reference="angle")
def angle(input):
    """The argument of a complex number in radians, in [-pi, pi]; of a real one 0, or pi where it is negative.

    Examples:
        >>> taeda.angle(taeda.tensor([1 + 1j, -1 + 0j]))
        tensor([0.7854, 3.1416])
    """
    return s.angle(input)


def _angle_slope(g, input):
    if not input.is_complex():
        return no_slope(g)
    size = add(times_itself(input.real), times_itself(input.imag))
    return complex(
        where_nonzero(size, true_divide(neg(mul(g, input.imag)), size)),
        where_nonzero(size, true_divide(mul(g, input.real), size)),
    )


angle.vjp(input=_angle_slope)


@composite(method=False, out="same")
def complex(real, imag):
    """The complex numbers ``real + i * imag``.

    Args:
        real: the real parts, ``float16``, ``float32`` or ``float64``.
        imag: the imaginary parts, of the same dtype; both broadcast.
    Returns:
        The sizes to which both broadcast, in the complex dtype that belongs to theirs, such as ``complex64`` for
        ``float32``.
    Raises:
        RuntimeError: the dtypes are not the same, or not one of these.
    Examples:
        >>> taeda.complex(taeda.tensor([1.0, 0.0]), taeda.tensor([2.0, -1.0]))
        tensor([1.+2.j, 0.-1.j])
    """
    expect_tensors("complex", real=real, imag=imag)
    if real.dtype != imag.dtype or real.dtype not in (_core.float16, _core.float32, _core.float64):
        raise RuntimeError(
            f"complex: expected both inputs to be of one dtype, float16, float32 or float64, got {real.dtype} and "
            f"{imag.dtype}"
        )
    return view_as_complex(stack(broadcast_tensors(real, imag), -1))


@pointwise(promote="float", method=False, inplace=False, copied=("abs", "angle"))
def _real_part(abs, angle):
    """The real part of :func:`polar`."""
    return abs * s.cos(angle)


@pointwise(promote="float", method=False, inplace=False, copied=("abs", "angle"))
def _imaginary_part(abs, angle):
    """The imaginary part of :func:`polar`."""
    return abs * s.sin(angle)


_real_part.traits["lowering"] = lambda abs, angle: mul(abs, cos(angle))
_imaginary_part.traits["lowering"] = lambda abs, angle: mul(abs, sin(angle))
_real_part.vjp(
    abs=lambda g, angle: _real_part(g, angle), angle=lambda g, abs, angle: neg(_imaginary_part(mul(g, abs), angle))
)
_imaginary_part.vjp(
    abs=lambda g, angle: _imaginary_part(g, angle), angle=lambda g, abs, angle: _real_part(mul(g, abs), angle)
)


@composite(method=False, out="same", autocast="float32")
def polar(abs, angle):
    """The complex numbers ``abs * (cos(angle) + i * sin(angle))``.

    Args:
        abs: absolute values, ``float32`` or ``float64``.
        angle: angles in radians, of the same dtype; both broadcast.
    Returns:
        The sizes to which both broadcast, complex.
    Raises:
        RuntimeError: the dtypes are not the same, or not one of these.
    Examples:
        >>> z = taeda.polar(taeda.tensor([1.0, 2.0]), taeda.tensor([0.0, 0.5]))
        >>> z.abs(), z.angle()
        (tensor([1., 2.]), tensor([0.0000, 0.5000]))
    """
    expect_tensors("polar", abs=abs, angle=angle)
    if abs.dtype != angle.dtype:
        raise RuntimeError(f"polar: expected both inputs to be of one dtype, got {abs.dtype} and {angle.dtype}")
    return complex(_real_part(abs, angle), _imaginary_part(abs, angle))


# ---- bits of floats -------------------------------------------------------------------------------------------------


@pointwise(promote="float", dtypes=("float",), reference="copysign", tensors=("input",))
def copysign(input, other):
    """``|input|`` with the sign of ``other``, also that of -0.0 and NaN.

    Examples:
        >>> taeda.copysign(taeda.tensor([3.0, -3.0]), taeda.tensor([-1.0, 1.0]))
        tensor([-3.,  3.])
    """
    return s.copysign(input, other)


copysign.vjp(input=lambda g, input, out: mul(g, where_nonzero(input, true_divide(out, input))), other=no_slope)


@pointwise(dtypes=("float",), native=True, second=False, reference="nextafter", tensors=("input", "other"))
def nextafter(input, other):
    """The next floating-point number from ``input`` toward ``other``.

    Examples:
        >>> (taeda.nextafter(taeda.tensor(1.0), taeda.tensor(2.0)) - 1).item() == taeda.finfo(taeda.float32).eps
        True
    """
    return s.nextafter(input, other)


nextafter.vjp(input=lambda g, input, other: refused_gradient(g, input, other), other=no_slope)


def _like_values(input, values):
    if isinstance(values, Tensor) and isinstance(input, Tensor) and values.dtype != input.dtype:
        raise RuntimeError(f"heaviside: expected both tensors to be of one dtype, got {input.dtype} and {values.dtype}")


@pointwise(
    check=_like_values, one_dtype=True, reference="heaviside", dtypes=("bool", "int", "float"),
    tensors=("input", "values"), out_dtype="same",
)  # fmt: skip
def heaviside(input, values):
    """0 below 0, 1 above it, and ``values`` at 0.

    Raises:
        RuntimeError: the dtypes differ.

    Examples:
        >>> taeda.heaviside(taeda.tensor([-2.0, 0.0, 3.0]), taeda.tensor(0.5))
        tensor([0.0000, 0.5000, 1.0000])
    """
    return s.select(input == 0, values, s.select(input > 0, s.like(values, 1), s.like(values, 0)))


heaviside.vjp(input=no_derivative("heaviside", "input"), values=no_derivative("heaviside", "values"))


@pointwise(
    outs=("same", "int32"), outputs=("mantissa", "exponent"), result_type=result_type("frexp", "mantissa", "exponent"),
    single_grad=0, dtypes=("float",), inplace=False, second=False, out_dtype="same",
)  # fmt: skip
def frexp(input):
    """Mantissa and exponent: ``input = mantissa * 2 ** exponent`` with ``0.5 <= |mantissa| < 1``.

    Examples:
        >>> mantissa, exponent = taeda.frexp(taeda.tensor([6.0, 0.25]))
        >>> mantissa, exponent
        (tensor([0.7500, 0.5000]), tensor([ 3, -1], dtype=taeda.int32))
    """
    return s.frexp(input)


frexp.vjp(input=lambda g, exponent: true_divide(g, exp2(to_dtype(exponent, g.dtype))))


@pointwise(promote="float", method=False, inplace=False, copied=("input", "other"))
def _times_power(input, other):
    """:func:`ldexp` of floating-point numbers."""
    return input * s.exp2(other)


_times_power.traits["lowering"] = lambda input, other: mul(input, exp2(other))
_times_power.vjp(
    input=lambda g, other: mul_conj(g, exp2(other)),
    other=lambda g, input, other: mul_conj(g, mul(_times_power(input, other), LN2)),
)


@composite(inplace=True)
def ldexp(input, other: Tensor, *, out=None):
    """``input * 2 ** other``: the inverse of :func:`frexp`.

    Args:
        other: exponents; the two broadcast.
    Returns:
        The sizes to which both broadcast, floating point.
    Examples:
        >>> taeda.ldexp(taeda.tensor([0.75]), taeda.tensor([3]))
        tensor([6.])
    """
    if input.is_floating_point() and not (other.is_floating_point() or other.is_complex()):
        half = to_dtype(other // 2, input.dtype)  # 2 ** other may be too large where the product is not
        input, other = mul(input, exp2(half)), to_dtype(other, input.dtype) - half
    if out is None and input.dtype is other.dtype and other.is_floating_point() and other.itemsize > 2:
        return _times_power(input, other)  # in half precision PyTorch rounds the power, which may be infinite
    power = exp2(other)
    return mul(input, power) if out is None else mul(input, power, out=out)


@pointwise(method=False, operands=1, dtypes=FLOATS, out_dtype="same")
def replace_nonfinite(input, nan: Number, posinf: Number, neginf: Number):
    """``input`` with numbers for NaN, infinity and minus infinity."""

    def part(x):
        x = s.select(s.isposinf(x), _splat(x, posinf), x)
        x = s.select(s.isneginf(x), _splat(x, neginf), x)
        return s.select(s.isnan(x), _splat(x, nan), x)

    return s.Complex(part(input.re), part(input.im)) if isinstance(input, s.Complex) else part(input)


def _splat(x, number):
    return x.fn.splat(s.real(number), x.lanes)


def _replaced(input, nan, posinf, neginf):
    input = OPS["where"](input == float("inf"), posinf, input)
    input = OPS["where"](input == float("-inf"), neginf, input)
    return OPS["where"](input.isnan(), nan, input)


replace_nonfinite.traits["lowering"] = _replaced
replace_nonfinite.vjp(input=lambda g, input: where_finite(input, g))


@pointwise(method=False, inplace=False, dtypes=FLOATS)
def where_finite(input, other):
    """``other`` where ``input`` is finite, else 0."""
    return s.select(s.isfinite(input), other, s.constant(other, 0))


where_finite.vjp(other=lambda g, input: where_finite(input, g))

_LARGEST = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
}


def _replacements(input, nan, posinf, neginf):
    largest = _LARGEST.get(input.dtype.to_real().name, 0.0)
    return (
        0.0 if nan is None else float(nan),
        largest if posinf is None else float(posinf),
        -largest if neginf is None else float(neginf),
    )


@composite(out="same", out_aligned=("input",), pointwise=True)
def nan_to_num(input, nan=None, posinf=None, neginf=None):
    """``input`` with other numbers in place of NaN and the infinities.

    Args:
        nan: in place of NaN. Default: 0.
        posinf: in place of positive infinity. Default: the largest number of the dtype.
        neginf: in place of negative infinity. Default: the smallest one.
    Returns:
        The sizes and the dtype of ``input``.
    Examples:
        >>> taeda.nan_to_num(taeda.tensor([math.nan, math.inf, 1.0]), posinf=9.0)
        tensor([0., 9., 1.])
    """
    if not (input.is_floating_point() or input.is_complex()):
        return input.clone()
    return replace_nonfinite(input, *_replacements(input, nan, posinf, neginf))


@composite(pointwise=True, functional=nan_to_num)
def nan_to_num_(input, nan=None, posinf=None, neginf=None):
    """In-place form of :func:`nan_to_num`."""
    if not (input.is_floating_point() or input.is_complex()):
        return input
    return replace_nonfinite.traits["inplace"](input, *_replacements(input, nan, posinf, neginf))
