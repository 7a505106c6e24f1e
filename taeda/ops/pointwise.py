"""Arithmetic, element by element: sums, products, quotients, powers, rounding, extrema and what joins them.

The derivative of a function of complex numbers is taken as PyTorch takes it: the gradient is multiplied by the
conjugate of the derivative, which for real numbers is the derivative.
"""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from ..kernels import scalar as s
from ._lazy import np
from .copies import convert, to_dtype
from .table import alias, can_cast, composite, expect_tensors, pointwise
from .views import zeros

NUMBER = ("int", "float", "complex")
REAL = ("int", "float")
FLOATS = ("float", "complex")


def no_slope(g):
    """The gradient through a function that is constant almost everywhere."""
    return zeros(g.shape, g.dtype)


def _check_alpha(input, other, alpha=1):
    """A whole number of whole numbers stays whole: ``alpha`` may not be a fraction."""
    if isinstance(alpha, float) and not any(
        (x.is_floating_point() or x.is_complex()) if isinstance(x, Tensor) else isinstance(x, (float, complex))
        for x in (input, other)
    ):
        raise RuntimeError(
            f"For integral input tensors, argument alpha must not be a floating point number (got alpha={alpha})"
        )


def _times(x, factor):
    """``x * factor``, and ``x`` itself for the default factor, 1."""
    return x if isinstance(factor, int) and factor == 1 else x * factor


# ---- sums and products ----------------------------------------------------------------------------------------------


@pointwise(numbers=True, check=_check_alpha, reference=lambda *x: np.add(*x))
def add(input, other, *, alpha=1):
    """``input + alpha * other``; of bools, whether either holds.

    Args:
        input, other: tensors of shapes that broadcast, or numbers.
        alpha: a number, whole where the dtype is.
    """
    return input + _times(other, alpha)


add.vjp(input=lambda g: g, other=lambda g, alpha: g if alpha == 1 else mul_conj(g, alpha))


#: How the error about a bool operand begins.
SUBTRACTION = "Subtraction, the `-` operator, with"


@pointwise(
    numbers=True, check=_check_alpha, dtypes=NUMBER, strict_bool=SUBTRACTION, reference=lambda *x: np.subtract(*x)
)
def sub(input, other, *, alpha=1):
    """``input - alpha * other``. For bools use ``^`` or :func:`logical_xor`."""
    return input - _times(other, alpha)


sub.vjp(input=lambda g: g, other=lambda g, alpha: neg(g) if alpha == 1 else mul_conj(g, -alpha))
alias(sub, "subtract")


@pointwise(
    check=_check_alpha,
    dtypes=NUMBER,
    strict_bool=SUBTRACTION,
    inplace=False,
    reference=lambda a, b: b - a,
    tensors=("input",),
    node="RsubBackward1",
)
def rsub(input, other, *, alpha=1):
    """``other - alpha * input``."""
    return other - _times(input, alpha)


rsub.vjp(input=lambda g, alpha: neg(g) if alpha == 1 else mul_conj(g, -alpha), other=lambda g: g)


@pointwise(numbers=True, reference=lambda *x: np.multiply(*x), float8=True)
def mul(input, other):
    """``input * other``; of bools, whether both hold."""
    return input * other


mul.vjp(input=lambda g, other: mul_conj(g, other), other=lambda g, input: mul_conj(g, input))
alias(mul, "multiply")


@pointwise(method=False, inplace=False, reference=lambda *x: np.multiply(*x))
def mul_conj(input, other):
    """``input`` times the conjugate of ``other``: how a gradient passes a product."""
    return input * s.conj(other)


mul_conj.vjp(input=lambda g, other: mul(g, other), other=lambda g, input: mul_conj(input, g))


@pointwise(numbers=True, promote="float", reference=lambda *x: np.divide(*x), domain=((-2, 2), (0.5, 2)), node="Div")
def true_divide(input, other):
    """``input / other``; whole numbers give the default floating-point dtype."""
    return input / other


true_divide.vjp(input=lambda g, other: div_conj(g, other), other=lambda g, other, out: _divisor_slope(g, other, out))


def _divisor_slope(g, other, out):
    return neg(mul_conj(g, true_divide(out, other)))


@pointwise(promote="float", method=False, inplace=False, reference=lambda *x: np.divide(*x), domain=((-2, 2), (0.5, 2)))
def div_conj(input, other):
    """``input`` over the conjugate of ``other``: how a gradient passes a quotient."""
    return input / s.conj(other)


div_conj.vjp(
    input=lambda g, other: true_divide(g, other),
    other=lambda g, input, other: neg(div_conj(mul_conj(input, g), mul(other, other))),
)


@pointwise(
    promote="float", method=False, inplace=False, reference=lambda a, b: b / a, domain=((0.5, 2), (-2, 2)), node="Mul"
)
def rdiv(input, other):
    """``other / input``."""
    return other / input


rdiv.vjp(input=lambda g, input, out: _divisor_slope(g, input, out), other=lambda g, input: div_conj(g, input))


def _whole_number_zero(input, other):
    """Division of whole numbers by zero is an error: the kernels give 0 there."""
    if isinstance(other, Tensor):
        if other.is_floating_point() or other.is_complex():
            return
        if isinstance(input, (float, complex)) or (isinstance(input, Tensor) and input.is_floating_point()):
            return
        zero = other.numel() > 0 and bool((other == 0).any())
    else:
        zero = not isinstance(other, (float, complex)) and other == 0 and not input.is_floating_point()
    if zero:
        raise RuntimeError("ZeroDivisionError: integer division or remainder by zero; mask the zeros or divide floats")


@pointwise(
    numbers=True,
    check=_whole_number_zero,
    dtypes=REAL,
    reference=lambda *x: np.floor_divide(*x),
    domain=((-2, 2), (0.5, 2)),
)
def floor_divide(input, other):
    """``floor(input / other)``, Python's ``//``.

    Raises:
        RuntimeError: whole numbers divided by zero.
    """
    return s.floor_divide(input, other)


@pointwise(
    check=_whole_number_zero,
    native=True,
    dtypes=REAL,
    reference=lambda a, b: np.trunc(a / b),
    domain=((-2, 2), (0.5, 2)),
)
def trunc_divide(input, other):
    """``trunc(input / other)``: rounded toward zero, C's ``/`` of whole numbers."""
    return s.trunc_divide(input, other)


floor_divide.vjp(input=no_slope, other=no_slope)
trunc_divide.vjp(input=no_slope, other=no_slope)

_DIVISIONS = {None: true_divide, "floor": floor_divide, "trunc": trunc_divide}


def _division(rounding_mode):
    try:
        return _DIVISIONS[rounding_mode]
    except KeyError:
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {rounding_mode!r}"
        ) from None


@composite(names=("divide",))
def div(input: Any, other, *, rounding_mode=None, out=None):
    """``input / other``.

    Args:
        rounding_mode: None divides truly (whole numbers give floats), ``"floor"`` rounds down as Python's ``//``,
            ``"trunc"`` toward zero as C's ``/``; both keep the dtype.
    """
    op = _division(rounding_mode)
    return op(input, other) if out is None else op(input, other, out=out)


@composite(names=("divide_",))
def div_(input, other, *, rounding_mode=None):
    """In-place form of :func:`div`."""
    return _division(rounding_mode).traits["inplace"](input, other)


_core.bind_operator("div", true_divide)
_core.bind_operator("div_", true_divide.traits["inplace"])


@composite(method=False)
def rfloor_divide(input: Any, other):
    """``other // input``."""
    return floor_divide(_as_tensor(other, input), input)


@pointwise(check=_whole_number_zero, dtypes=REAL, reference=lambda *x: np.remainder(*x), domain=((-2, 2), (0.5, 2)))
def remainder(input, other):
    """``input - other * floor(input / other)``, with the sign of ``other``: Python's ``%``.

    Raises:
        RuntimeError: whole numbers divided by zero.
    """
    return s.remainder(input, other)


remainder.vjp(input=lambda g: g, other=lambda g, input, other: neg(mul(g, floor_divide(input, other))))


@composite(method=False)
def rremainder(input: Any, other):
    """``other % input``."""
    return remainder(_as_tensor(other, input), input)


@pointwise(
    check=_whole_number_zero,
    dtypes=REAL,
    reference=lambda *x: np.fmod(*x),
    domain=((-2, 2), (0.5, 2)),
    tensors=("input",),
)
def fmod(input, other):
    """``input - other * trunc(input / other)``, with the sign of ``input``: C's ``fmod``.

    Raises:
        RuntimeError: whole numbers divided by zero.
    """
    return s.fmod(input, other)


fmod.vjp(input=lambda g: g, other=lambda g, input, other: neg(mul(g, trunc_divide(input, other))))


def _as_tensor(x, like):
    """A number as a tensor of no dimensions that takes part in promotion as the number would."""
    if isinstance(x, Tensor):
        return x
    return zeros((), _core.result_type(like, x)).fill_(x)


@pointwise(dtypes=NUMBER, strict_bool="Negation, the `-` operator, on", reference=lambda *x: np.negative(*x))
def neg(input):
    """``-input``. For bools use ``~``."""
    return -input


neg.vjp(input=lambda g: neg(g))
alias(neg, "negative")


@composite()
def positive(input):
    """``+input``: the tensor itself.

    Raises:
        RuntimeError: of bools.
    """
    if input.dtype is _core.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def _refuse_complex(input):
    """The absolute value of a complex number is real, which its tensor does not hold."""
    if input.is_complex():
        raise RuntimeError("In-place abs is not supported for complex tensors: use abs(), which gives a real tensor")


@pointwise(out="real", dtypes=NUMBER, reference=lambda *x: np.abs(*x), float8=True)
def abs(input):
    """The absolute value; of a complex number, a real one."""
    return s.abs(input)


abs.vjp(input=lambda g, input: mul(g, sgn(input)))
abs.traits["inplace"].body_check = _refuse_complex
alias(abs, "absolute")


@pointwise(reference=lambda *x: np.sign(*x), dtypes=("bool", "int", "float"))
def sign(input):
    """-1, 0 or 1. For complex numbers see :func:`sgn`."""
    return s.sign(input)


sign.vjp(input=no_slope)


@pointwise(reference=lambda *x: np.sign(*x))
def sgn(input):
    """``input / |input|``, 0 at 0."""
    return s.sgn(input)


def _sgn_slope(g, input, out):
    if not input.is_complex():
        return no_slope(g)
    size = abs(input)
    along = mul(mul_conj(g, out).real, out)
    return mul(sub(g, along), where_nonzero(size, true_divide(1.0, size)))


sgn.vjp(input=_sgn_slope)


@pointwise(method=False, inplace=False, reference=lambda x, y: np.where(x == 0, 0, y))
def where_nonzero(input, other):
    """``other`` where ``input`` is not 0, else 0: drops what is infinite or NaN there."""
    return s.select(input == 0, s.constant(other, 0), other)


where_nonzero.vjp(other=lambda g, input: where_nonzero(input, g))


@pointwise(method=False, reference=lambda *x: np.conj(*x))
def conjugated(input):
    """The complex conjugate in memory of its own."""
    return s.conj(input)


conjugated.vjp(input=lambda g: conjugated(g))


@composite()
def conj_physical(input, *, out=None):
    """The complex conjugate, computed; a real tensor is given back as it is."""
    if out is not None:
        return conjugated(input, out=out)
    return conjugated(input) if input.is_complex() else input


@composite()
def conj_physical_(input):
    """In-place form of :func:`conj_physical`."""
    return conjugated.traits["inplace"](input) if input.is_complex() else input


# ---- powers ---------------------------------------------------------------------------------------------------------


@pointwise(method=False, dtypes=NUMBER, reference=lambda *x: np.square(*x), node="Pow")
def times_itself(input):
    """``input * input``."""
    return input * input


times_itself.vjp(input=lambda g, input: mul_conj(g, mul(input, 2)))


@composite(inplace=True)
def square(input, *, out=None):
    """``input * input``; of bools, as whole numbers."""
    if input.dtype is _core.bool_:
        input = to_dtype(input, _core.int64)
    return times_itself(input) if out is None else times_itself(input, out=out)


@pointwise(method=False, dtypes=NUMBER, reference=lambda x: x * x * x)
def cube(input):
    """``input * input * input``."""
    return input * input * input


cube.vjp(input=lambda g, input: mul_conj(g, mul(times_itself(input), 3)))


@pointwise(promote="float", reference=lambda *x: np.sqrt(*x), domain=(0.1, 4))
def sqrt(input):
    """The square root; NaN of negative numbers."""
    return s.sqrt(input)


sqrt.vjp(input=lambda g, out: div_conj(g, mul(out, 2)))


@pointwise(promote="float", reference=lambda x: 1 / np.sqrt(x), domain=(0.1, 4))
def rsqrt(input):
    """``1 / sqrt(input)``."""
    return s.rsqrt(input)


rsqrt.vjp(input=lambda g, out: mul_conj(g, mul(cube(out), -0.5)))


@pointwise(promote="float", reference=lambda *x: np.reciprocal(*x), domain=(0.5, 2))
def reciprocal(input):
    """``1 / input``."""
    return s.reciprocal(input)


reciprocal.vjp(input=lambda g, out: neg(mul_conj(g, times_itself(out))))


@pointwise(method=False, reference=lambda *x: np.power(*x), domain=((0.2, 2), (-2, 2)), node="Pow")
def power(input, exponent):
    """``input ** exponent`` by the general formula; see :func:`pow`."""
    return s.pow(input, exponent)


def _base_slope(g, input, exponent):
    if not isinstance(exponent, Tensor):
        return no_slope(g) if exponent == 0 else mul_conj(g, mul(pow(input, exponent - 1), exponent))
    return mul_conj(g, where_nonzero(exponent, mul(exponent, power(input, sub(exponent, 1)))))


def _exponent_slope(g, input, exponent, out):
    return mul_conj(g, power_log(_as_tensor(input, exponent), exponent, out))


@pointwise(method=False, inplace=False, dtypes=FLOATS, operands=3, domain=(0.5, 2))
def power_log(input, exponent, other):
    """``other * log(input)``, 0 where ``input`` is 0 and ``exponent`` is not negative."""
    return s.select((input == 0) & (s.real(exponent) >= 0), s.constant(other, 0), other * s.log(input))


power_log.vjp(
    input=lambda g, input, other: mul_conj(g, where_nonzero(input, true_divide(other, input))),
    other=lambda g, input, exponent: mul_conj(g, power_log(input, exponent, 1.0)),
)
power.vjp(input=_base_slope, exponent=_exponent_slope)

_POWERS = {2: times_itself, 3: cube}
_FLOAT_POWERS = {0.5: sqrt, -0.5: rsqrt, -1: reciprocal}


def _special_power(input, exponent):
    """The op for ``input ** exponent`` where there is a faster and more exact one."""
    kind = type(exponent)
    if kind is not int and kind is not float:
        return None
    floating = input.is_floating_point() or input.is_complex()
    if kind is int and not floating and exponent < 0:
        raise RuntimeError(f"Integers to negative integer powers are not allowed (got exponent {exponent}).")
    if kind is int or floating:
        op = _POWERS.get(exponent)
        if op is not None:
            return op
    return _FLOAT_POWERS.get(exponent) if floating else None


@composite()
def pow(input: Any, exponent, *, out=None):
    """``input ** exponent``; either may be a number.

    Raises:
        RuntimeError: a whole number to a negative whole number given as a number.
    """
    common = exponent.__class__ is int and exponent in _POWERS and out is None and input.__class__ is Tensor
    if common and input.dtype is not _core.bool_:
        return _POWERS[exponent](input)
    op = _special_power(input, exponent) if isinstance(input, Tensor) and not isinstance(exponent, Tensor) else None
    if op is not None and input.dtype is not _core.bool_:
        return op(input) if out is None else op(input, out=out)
    return power(input, exponent) if out is None else power(input, exponent, out=out)


@composite()
def pow_(input, exponent):
    """In-place form of :func:`pow`."""
    op = _special_power(input, exponent) if not isinstance(exponent, Tensor) else None
    if op is not None and input.dtype is not _core.bool_:
        return op.traits["inplace"](input)
    return power.traits["inplace"](input, exponent)


@composite(method=False)
def rpow(input: Any, other):
    """``other ** input``."""
    return power(other, input)


def _widest(input, exponent):
    """The dtype of :func:`float_power`, and its operands in that."""
    complex_ = any(x.is_complex() if isinstance(x, Tensor) else isinstance(x, complex) for x in (input, exponent))
    wide = _core.complex128 if complex_ else _core.float64
    return wide, *(to_dtype(x, wide) if isinstance(x, Tensor) else x for x in (input, exponent))


@composite()
def float_power(input: Any, exponent, *, out=None):
    """``input ** exponent`` in float64 or complex128."""
    _, base, power_ = _widest(input, exponent)
    return pow(base, power_, out=out)


@composite()
def float_power_(input, exponent):
    """In-place form of :func:`float_power`.

    Raises:
        RuntimeError: ``input`` is not of the dtype of the result, float64 or complex128.
    """
    wide, _, power_ = _widest(input, exponent)
    if input.dtype != wide:
        raise RuntimeError(
            f"float_power_: the base has dtype {input.dtype}, but the operation's result requires {wide}"
        )
    return pow_(input, power_)


@pointwise(dtypes=("float",), reference=lambda *x: np.hypot(*x), tensors=("input", "other"))
def hypot(input, other):
    """``sqrt(input ** 2 + other ** 2)`` without overflow on the way."""
    return s.hypot(input, other)


hypot.vjp(
    input=lambda g, input, out: mul(g, where_nonzero(out, true_divide(input, out))),
    other=lambda g, other, out: mul(g, where_nonzero(out, true_divide(other, out))),
)


# ---- products of three ----------------------------------------------------------------------------------------------


@pointwise(reference=lambda a, b, c: a + b * c, operands=3, dtypes=NUMBER)
def addcmul(input, tensor1, tensor2, *, value=1):
    """``input + value * tensor1 * tensor2``."""
    product = tensor1 * tensor2
    return input + _times(product, value)


addcmul.vjp(
    input=lambda g: g,
    tensor1=lambda g, tensor2, value: mul_conj(g, mul(tensor2, value)),
    tensor2=lambda g, tensor1, value: mul_conj(g, mul(tensor1, value)),
)


@pointwise(reference=lambda a, b, c: a + b / c, operands=3, dtypes=FLOATS, domain=((-2, 2), (-2, 2), (0.5, 2)))
def addcdiv(input, tensor1, tensor2, *, value=1):
    """``input + value * tensor1 / tensor2``, of floating-point tensors."""
    return input + _times(tensor1, value) / tensor2


addcdiv.vjp(
    input=lambda g: g,
    tensor1=lambda g, tensor2, value: div_conj(mul(g, value), tensor2),
    tensor2=lambda g, tensor1, tensor2, value: neg(
        mul_conj(g, true_divide(mul(tensor1, value), times_itself(tensor2)))
    ),
)


def _one_dtype(input, end, weight):
    """PyTorch promotes none of these."""
    for name, x in (("end", end), ("weight", weight)):
        if isinstance(x, Tensor) and x.dtype != input.dtype and not (name == "weight" and x.dim() == 0):
            raise RuntimeError(f"lerp: expected dtype {input.dtype} for `{name}` but got dtype {x.dtype}")


@pointwise(
    operands=3,
    promote_from=(0, 1),
    dtypes=FLOATS,
    check=_one_dtype,
    one_dtype=True,
    reference=lambda a, b, w: a + w * (b - a),
)
def lerp(input, end, weight):
    """``input + weight * (end - input)``, exact at both ends; ``weight`` is a number or a tensor."""
    size = s.abs(weight)
    step = end - input
    return s.select(size < 0.5, input + weight * step, end - step * (1.0 - weight))


lerp.vjp(
    input=lambda g, weight: mul_conj(g, rsub(weight, 1) if isinstance(weight, Tensor) else 1 - weight),
    end=lambda g, weight: mul_conj(g, weight),
    weight=lambda g, input, end: mul_conj(g, sub(end, input)),
)


# ---- rounding -------------------------------------------------------------------------------------------------------


@pointwise(dtypes=REAL, reference=lambda *x: np.floor(*x))
def floor(input):
    """The largest integer not above."""
    return s.floor(input)


@pointwise(dtypes=REAL, reference=lambda *x: np.ceil(*x))
def ceil(input):
    """The smallest integer not below."""
    return s.ceil(input)


@pointwise(dtypes=REAL, reference=lambda *x: np.trunc(*x))
def trunc(input):
    """Rounded toward zero."""
    return s.trunc(input)


alias(trunc, "fix")


@pointwise(dtypes=("float",), reference=lambda x: x - np.trunc(x))
def frac(input):
    """``input - trunc(input)``, with the sign of ``input``."""
    return s.frac(input)


@pointwise(method=False, dtypes=REAL, reference=lambda *x: np.rint(*x))
def round_half_even(input):
    """To the nearest integer, halves to the even one."""
    return s.round(input)


floor.vjp(input=no_slope)
ceil.vjp(input=no_slope)
trunc.vjp(input=no_slope)
round_half_even.vjp(input=no_slope)
frac.vjp(input=lambda g: g)


@pointwise(method=False, inplace=False, operands=1, dtypes=("float",))
def round_to_multiple(input, ten, fractions):
    """To the nearest multiple of ``1 / ten``, or of ``ten`` itself."""
    return s.round(input * ten) / ten if fractions else s.round(input / ten) * ten


round_to_multiple.vjp(input=no_slope)


@composite(inplace=True)
def round(input, *, decimals=0, out=None):
    """To the nearest integer, or the nearest multiple of ``10 ** -decimals``; halves to the even one."""
    more = {} if out is None else {"out": out}
    if decimals == 0:
        return round_half_even(input, **more)
    if not input.is_floating_point():
        raise NotImplementedError(f"round: decimals={decimals} needs a floating-point tensor, got {input.dtype}")
    return round_to_multiple(input, 10.0 ** (decimals if decimals > 0 else -decimals), decimals > 0, **more)


# ---- extrema --------------------------------------------------------------------------------------------------------


@pointwise(
    dtypes=("bool", "int", "float"), inplace=False, reference=lambda *x: np.maximum(*x), tensors=("input", "other")
)
def maximum(input, other):
    """The larger of the two, NaN where either is NaN."""
    return s.maximum(input, other)


@pointwise(
    dtypes=("bool", "int", "float"), inplace=False, reference=lambda *x: np.minimum(*x), tensors=("input", "other")
)
def minimum(input, other):
    """The smaller of the two, NaN where either is NaN."""
    return s.minimum(input, other)


@pointwise(method=False, inplace=False, dtypes=("float",), second=False, operands=3)
def larger_gradient(grad, input, other):
    """``grad`` where ``input`` is larger than ``other``, half of it where they are equal, else 0."""
    return s.select(input < other, s.like(grad, 0.0), s.select(input == other, grad * 0.5, grad))


larger_gradient.vjp(grad=lambda g, input, other: larger_gradient(g, input, other))
maximum.vjp(
    input=lambda g, input, other: larger_gradient(g, input, other),
    other=lambda g, input, other: larger_gradient(g, other, input),
)
minimum.vjp(
    input=lambda g, input, other: larger_gradient(g, other, input),
    other=lambda g, input, other: larger_gradient(g, input, other),
)


@pointwise(dtypes=("bool", "int", "float"), inplace=False, reference=lambda *x: np.fmax(*x), tensors=("input", "other"))
def fmax(input, other):
    """The larger of the two; a number wins over NaN."""
    return s.fmax(input, other)


@pointwise(dtypes=("bool", "int", "float"), inplace=False, reference=lambda *x: np.fmin(*x), tensors=("input", "other"))
def fmin(input, other):
    """The smaller of the two; a number wins over NaN."""
    return s.fmin(input, other)


@pointwise(method=False, inplace=False, dtypes=("float",), second=False, operands=3)
def chosen_gradient(grad, input, out):
    """``grad`` where ``input`` is what was chosen, else 0."""
    return s.select(input == out, grad, s.like(grad, 0.0))


@pointwise(method=False, inplace=False, dtypes=("float",), second=False, operands=3)
def refused_gradient(grad, input, out):
    """``grad`` where ``input`` is not what was chosen, else 0."""
    return s.select(input == out, s.like(grad, 0.0), grad)


chosen_gradient.vjp(grad=lambda g, input, out: chosen_gradient(g, input, out))
refused_gradient.vjp(grad=lambda g, input, out: refused_gradient(g, input, out))
fmax.vjp(
    input=lambda g, input, out: chosen_gradient(g, input, out),
    other=lambda g, input, out: refused_gradient(g, input, out),
)
fmin.vjp(
    input=lambda g, input, out: chosen_gradient(g, input, out),
    other=lambda g, input, out: refused_gradient(g, input, out),
)


@pointwise(method=False, operands=1, dtypes=REAL, reference=lambda x: x, node="ClampBackward1", fits=True)
def clamp_between(input, min=None, max=None):
    """``input`` held between two numbers, either of which may be None; NaN stays."""
    if min is not None:
        input = s.at_least(input, min)
    return input if max is None else s.at_most(input, max)


@pointwise(method=False, inplace=False, operands=2, dtypes=REAL, second=False)
def clamp_gradient(grad, input, min=None, max=None):
    """``grad`` where ``input`` lies within the bounds, else 0."""
    nothing = s.like(grad, 0)
    if min is not None:
        grad = s.select(input < min, nothing, grad)
    return grad if max is None else s.select(input > max, nothing, grad)


clamp_gradient.vjp(grad=lambda g, input, min, max: clamp_gradient(g, input, min, max))
clamp_between.vjp(input=lambda g, input, min, max: clamp_gradient(g, input, min, max))


@pointwise(method=False, inplace=False, dtypes=("float",), second=False, operands=3)
def gradient_from(grad, input, bound):
    """``grad`` where ``input >= bound``, else 0."""
    return s.select(input >= bound, grad, s.like(grad, 0.0))


@pointwise(method=False, inplace=False, dtypes=("float",), second=False, operands=3)
def gradient_below(grad, input, bound):
    """``grad`` where ``input < bound``, else 0."""
    return s.select(input < bound, grad, s.like(grad, 0.0))


gradient_from.vjp(grad=lambda g, input, bound: gradient_from(g, input, bound))
gradient_below.vjp(grad=lambda g, input, bound: gradient_below(g, input, bound))


@pointwise(method=False, dtypes=("bool", "int", "float"))
def at_least(input, bound):
    """``input`` where it is not below ``bound``, else ``bound``, which gets the gradient there alone."""
    return s.maximum(input, bound)


@pointwise(method=False, dtypes=("bool", "int", "float"))
def at_most(input, bound):
    """``input`` where it is not above ``bound``, else ``bound``, which gets the gradient there alone."""
    return s.minimum(input, bound)


at_least.vjp(
    input=lambda g, input, bound: gradient_from(g, input, bound),
    bound=lambda g, input, bound: gradient_below(g, input, bound),
)
at_most.vjp(
    input=lambda g, input, bound: gradient_from(g, bound, input),
    bound=lambda g, input, bound: gradient_below(g, bound, input),
)


def _clamp_to_tensors(input, min, max, out, inplace):
    bounds = [(op, _as_tensor(b, input)) for op, b in ((at_least, min), (at_most, max)) if b is not None]
    if inplace:
        for op, bound in bounds:
            op.traits["inplace"](input, bound)
        return input
    for op, bound in bounds[:-1]:
        input = op(input, bound)
    op, bound = bounds[-1]
    return op(input, bound) if out is None else op(input, bound, out=out)


#: Types of bounds that need no conversion; others may be NumPy's.
_BOUNDS = {float, int, type(None), Tensor}


def _bound(x):
    found = None if isinstance(x, Tensor) else _core.HELPERS["operand"](x)
    return x if found is None else found


def _clamp(input, min, max, out, inplace, name="clamp"):
    if not isinstance(input, Tensor):
        expect_tensors(name, input=input)
    if type(min) not in _BOUNDS or type(max) not in _BOUNDS:
        min, max = (_bound(b) for b in (min, max))
    numbers = not (isinstance(min, Tensor) or isinstance(max, Tensor))
    if numbers and (min != min or max != max):  # NaN bounds give NaN, as tensors of them do
        min, max = (_as_tensor(b, input) if b != b else b for b in (min, max))
        return _clamp_to_tensors(input, min, max, out, inplace)
    if numbers and not inplace and out is None and input.is_floating_point() and (min is not None or max is not None):
        return clamp_between(input, min, max)  # the common case, at once
    if min is None and max is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")
    if not numbers:
        return _clamp_to_tensors(input, min, max, out, inplace)
    if not inplace:
        for bound in (min, max):
            if bound is not None:
                input = convert(input, _core.result_type(input, bound))
    if inplace:
        for bound in (min, max):
            if bound is not None and not can_cast(_core.result_type(input, bound), input.dtype):
                raise RuntimeError(
                    f"{name}_: result type {_core.result_type(input, bound)} can't be cast to the desired output type "
                    f"{input.dtype}"
                )
        return clamp_between.traits["inplace"](input, min, max)
    return clamp_between(input, min, max) if out is None else clamp_between(input, min, max, out=out)


@composite(names=("clip",))
def clamp(input, min=None, max=None, *, out=None):
    """``input`` held between ``min`` and ``max``: numbers, tensors that broadcast, or None for no bound."""
    if out is None and min.__class__ is float is max.__class__ and input.__class__ is Tensor:  # what is common, at once
        if min == min and max == max and input.dtype.is_floating_point:
            return clamp_between(input, min, max)
    return _clamp(input, min, max, out, False)


@composite(names=("clip_",))
def clamp_(input, min=None, max=None):
    """In-place form of :func:`clamp`."""
    return _clamp(input, min, max, None, True)


@composite()
def clamp_min(input, min, *, out=None):
    """``input``, at least ``min``."""
    return _clamp(input, min, None, out, False, "clamp_min")


@composite()
def clamp_max(input, max, *, out=None):
    """``input``, at most ``max``."""
    return _clamp(input, None, max, out, False, "clamp_max")


@composite()
def clamp_min_(input, min):
    """In-place form of :func:`clamp_min`."""
    return _clamp(input, min, None, None, True, "clamp_min_")


@composite()
def clamp_max_(input, max):
    """In-place form of :func:`clamp_max`."""
    return _clamp(input, None, max, None, True, "clamp_max_")
