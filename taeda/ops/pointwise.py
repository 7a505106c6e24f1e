"""Arithmetic, element by element: sums, products, quotients, rounding. Powers and extrema have files of their own.

The derivative of a function of complex numbers is PyTorch's: the gradient is multiplied by the conjugate of the
derivative.
"""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._core import Tensor, renamed
from .._core import tensor as core
from ..kernels import scalar as s
from ._lazy import np
from .table import alias, composite, no_derivative, pointwise
from .views import zeros

NUMBER = ("int", "float", "complex")
REAL = ("int", "float")
FLOATS = ("float", "complex")


def no_slope(g):
    """The gradient through a function that is constant almost everywhere."""
    return zeros(g.shape, g.dtype)


def check_factor(name, x, dtype):
    """A factor is of no wider kind than the dtype: no fraction for whole numbers; a bool is for bools alone."""
    if isinstance(x, bool) and dtype is not _core.bool_:
        raise RuntimeError(f"Boolean {name} only supported for Boolean results, got {name}={x} for {dtype}")
    if isinstance(x, complex) and not dtype.is_complex:
        raise RuntimeError(f"For non-complex input tensors, argument {name} must not be a complex number (got {x})")
    if isinstance(x, float) and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            f"For integral input tensors, argument {name} must not be a floating point number (got {name}={x})"
        )


def _times(x, factor):
    """``x * factor``, and ``x`` itself for the default factor, 1."""
    return x if isinstance(factor, int) and factor == 1 else x * factor


# ---- sums and products ----------------------------------------------------------------------------------------------


@pointwise(numbers=True, factors=("alpha",), fits=("alpha",), exact=True, reference="add", canonical=True)
def add(input, other, *, alpha=1):
    """``input + alpha * other``; of bools, whether either is true.

    Args:
        input: a tensor or a number.
        other: a tensor or a number; the two broadcast.
        alpha: a number, whole where the result's dtype is.
    Examples:
        >>> taeda.add(taeda.tensor([1.0, 2.0]), 10)
        tensor([11., 12.])
        >>> taeda.add(taeda.tensor([[1], [2]]), taeda.tensor([10, 20]), alpha=3)
        tensor([[31, 61],
                [32, 62]])
    """
    return input + _times(other, alpha)


add.vjp(input=lambda g: g, other=lambda g, alpha: g if alpha == 1 else mul_conj(g, alpha))


#: How the error about a bool operand begins.
SUBTRACTION = "Subtraction, the `-` operator, with"


@pointwise(
    numbers=True, factors=("alpha",), fits=("alpha",), exact=True, dtypes=NUMBER, strict_bool=SUBTRACTION,
    reference="subtract", canonical=True,
)  # fmt: skip
def sub(input, other, *, alpha=1):
    """``input - alpha * other``. For bools use ``^`` or :func:`logical_xor`. Arguments as of :func:`add`.

    Raises:
        RuntimeError: bools; or the inputs do not broadcast.

    Examples:
        >>> taeda.sub(taeda.tensor([5, 7]), taeda.tensor([1, 2]))
        tensor([4, 5])
    """
    return input - _times(other, alpha)


sub.vjp(input=lambda g: g, other=lambda g, alpha: neg(g) if alpha == 1 else mul_conj(g, -alpha))
subtract = alias(sub, "subtract")


@pointwise(
    factors=("alpha",), fits=("alpha",), exact=True, dtypes=NUMBER, strict_bool=SUBTRACTION, inplace=False,
    reference=lambda a, b: b - a, tensors=("input",), node="RsubBackward1",
)  # fmt: skip
def rsub(input, other, *, alpha=1):
    """``other - alpha * input``: :func:`sub` with the operands in the other order. Arguments as of :func:`add`.

    Raises:
        RuntimeError: bools; or the inputs do not broadcast.

    Examples:
        >>> taeda.rsub(taeda.tensor([0.25, 0.75]), 1)
        tensor([0.7500, 0.2500])
    """
    return other - _times(input, alpha)


rsub.traits["lowering"] = lambda input, other, alpha: add(neg(mul(input, alpha)), other)


rsub.vjp(input=lambda g, alpha: neg(g) if alpha == 1 else mul_conj(g, -alpha), other=lambda g: g)


@pointwise(numbers=True, reference="multiply", float8=True, canonical=True)
def mul(input, other):
    """``input * other``; of bools, whether both are true.

    Examples:
        >>> taeda.mul(taeda.tensor([1.0, 2.0]), 10)
        tensor([10., 20.])
        >>> taeda.mul(taeda.tensor([[1], [2]]), taeda.tensor([1, 2, 3]))  # every pair
        tensor([[1, 2, 3],
                [2, 4, 6]])
    """
    return input * other


mul.vjp(input=lambda g, other: mul_conj(g, other), other=lambda g, input: mul_conj(g, input))
multiply = alias(mul, "multiply")


def _conjugate(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.conj() if x.is_complex() else x
    return x.conjugate()


@pointwise(method=False, inplace=False, reference="multiply", node="Mul")
def mul_conj(input, other):
    """``input`` times the conjugate of ``other``: how a gradient passes a product."""
    return input * s.conj(other)


mul_conj.traits["native_call"] = lambda input, other: ("mul.Tensor", (input, _conjugate(other)))
mul_conj.vjp(input=lambda g, other: mul(g, other), other=lambda g, input: mul_conj(input, g))


@pointwise(method=False, dtypes=NUMBER, reference="square", node="Pow")
def times_itself(input):
    """``input * input``."""
    return input * input


times_itself.traits["native_call"] = lambda input: ("pow.Tensor_Scalar", (input, 2))
times_itself.vjp(input=lambda g, input: mul_conj(g, mul(input, 2)))


@pointwise(numbers=True, promote="float", reference="divide", domain=((-2, 2), (0.5, 2)), node="Div", canonical=True)
def true_divide(input, other):
    """``input / other``; whole numbers give the default floating-point dtype.

    Examples:
        >>> taeda.true_divide(taeda.tensor([1, 2, 3]), 4)
        tensor([0.2500, 0.5000, 0.7500])
    """
    return input / other


def _divisor_slope(g, input, other):
    """The gradient of a divisor, of the operands alone: the quotient may be written in place."""
    return neg(mul_conj(g, true_divide(true_divide(input, other), other)))


true_divide.vjp(input=lambda g, other: div_conj(g, other), other=_divisor_slope)


@pointwise(promote="float", method=False, inplace=False, reference="divide", domain=((-2, 2), (0.5, 2)))
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


rdiv.traits["lowering"] = lambda input, other: true_divide(other, input)
rdiv.vjp(input=lambda g, input, other: _divisor_slope(g, other, input), other=lambda g, input: div_conj(g, input))


@pointwise(numbers=True, check=core.check_divisor, dtypes=REAL, reference="floor_divide", domain=((-2, 2), (0.5, 2)))
def floor_divide(input, other):
    """``floor(input / other)``, rounded down as Python's ``//`` does.

    Raises:
        RuntimeError: whole numbers divided by zero.
    Examples:
        >>> taeda.floor_divide(taeda.tensor([7, -7]), 2)
        tensor([ 3, -4])
    """
    return s.floor_divide(input, other)


floor_divide.traits["native_call"] = lambda x, y: ("floor_divide.default", (x, y))


@pointwise(
    numbers=True, check=core.check_divisor, dtypes=REAL, reference="floor_divide", domain=((-2, 2), (0.5, 2)),
    method=False,
)  # fmt: skip
def floor_quotient(input, other):
    """``floor(input / other)`` with a derivative of zero; :func:`floor_divide` has none."""
    return s.floor_divide(input, other)


@pointwise(
    numbers=True, check=core.check_divisor, native=True, dtypes=REAL, reference=lambda a, b: np.trunc(a / b),
    domain=((-2, 2), (0.5, 2)),
)  # fmt: skip
def trunc_divide(input, other):
    """``trunc(input / other)``: rounded toward zero, as C's ``/`` of whole numbers.

    Raises:
        RuntimeError: whole numbers divided by zero.
    Examples:
        >>> taeda.tensor([7, -7]).trunc_divide(2)
        tensor([ 3, -3])
    """
    return s.trunc_divide(input, other)


for _op in (floor_divide, floor_quotient):
    _op.traits["lowering"] = lambda input, other: div(input, other, rounding_mode="floor")
trunc_divide.traits["lowering"] = lambda input, other: div(input, other, rounding_mode="trunc")
_NO_STEPS = "use a / b, or detach what needs no gradient"
floor_divide.vjp(
    input=no_derivative("floor_divide", "input", _NO_STEPS), other=no_derivative("floor_divide", "other", _NO_STEPS)
)
floor_quotient.vjp(input=no_slope, other=no_slope)
trunc_divide.vjp(input=no_slope, other=no_slope)

_DIVISIONS = {None: true_divide, "floor": floor_quotient, "trunc": trunc_divide}


def _division(rounding_mode):
    try:
        return _DIVISIONS[rounding_mode]
    except KeyError:
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {rounding_mode!r}"
        ) from None


@composite(names=("divide",), pointwise=True, canonical=True)
def div(input: Any, other, *, rounding_mode=None, out=None):
    """``input / other``, also rounded. Arguments as of :func:`add`.

    Args:
        rounding_mode: None divides truly. ``"floor"`` rounds down as Python's ``//``, ``"trunc"`` toward zero as C's
            ``/``.
    Returns:
        The sizes to which the inputs broadcast. The dtype is ``taeda.result_type`` of the inputs, but whole numbers
        divided truly give the default floating-point dtype.
    Raises:
        RuntimeError: whole numbers divided by zero with a rounding mode, or ``rounding_mode`` is another.
    Examples:
        >>> x = taeda.tensor([7, -7])
        >>> taeda.div(x, 2)
        tensor([ 3.5000, -3.5000])
        >>> taeda.div(x, 2, rounding_mode="floor"), taeda.div(x, 2, rounding_mode="trunc")
        (tensor([ 3, -4]), tensor([ 3, -3]))
    """
    op = _division(rounding_mode)
    return op(input, other) if out is None else op(input, other, out=out)


divide = renamed(div, "divide")


@composite(names=("divide_",), pointwise=True, functional=div)
def div_(input, other, *, rounding_mode=None):
    """In-place form of :func:`div`."""
    return _division(rounding_mode).traits["inplace"](input, other)


_core.bind_operator("div", true_divide)
_core.bind_operator("div_", true_divide.traits["inplace"])


@composite(method=False)
def rfloor_divide(input: Any, other):
    """``other // input``."""
    return floor_divide(_as_tensor(other, input), input)


@pointwise(check=core.check_divisor, dtypes=REAL, reference="remainder", domain=((-2, 2), (0.5, 2)), canonical=True)
def remainder(input, other):
    """``input - other * floor(input / other)``: the remainder with the sign of ``other``, as Python's ``%`` gives it.

    Raises:
        RuntimeError: whole numbers divided by zero.
    Examples:
        >>> taeda.remainder(taeda.tensor([7, -7]), 3)
        tensor([1, 2])
    """
    return s.remainder(input, other)


remainder.vjp(input=lambda g: g, other=lambda g, input, other: neg(mul(g, floor_quotient(input, other))))


@composite(method=False)
def rremainder(input: Any, other):
    """``other % input``."""
    return remainder(_as_tensor(other, input), input)


@pointwise(
    check=core.check_divisor, dtypes=REAL, reference="fmod", domain=((-2, 2), (0.5, 2)), tensors=("input",),
    canonical=True,
)  # fmt: skip
def fmod(input, other):
    """``input - other * trunc(input / other)``: the remainder with the sign of ``input``, as C's ``fmod`` gives it.

    Raises:
        RuntimeError: whole numbers divided by zero.
    Examples:
        >>> taeda.fmod(taeda.tensor([7, -7]), 3)
        tensor([ 1, -1])
    """
    return s.fmod(input, other)


fmod.vjp(input=lambda g: g, other=lambda g, input, other: neg(mul(g, trunc_divide(input, other))))


def _as_tensor(x, like):
    """A number as a tensor of no dimensions that takes part in promotion as the number would."""
    if isinstance(x, Tensor):
        return x
    dtype = _core.result_type(like, x)
    if dtype.is_floating_point and isinstance(x, float):  # numbers beyond the dtype's range become infinite
        return zeros((), _core.float64).fill_(x).to(dtype)
    return zeros((), dtype).fill_(x)


@pointwise(
    dtypes=NUMBER, strict_bool="Negation, the `-` operator, on", reference="negative", out_dtype="same",
    additive=True,
    canonical=True,
)  # fmt: skip
def neg(input):
    """``-input``. For bools use ``~``.

    Raises:
        RuntimeError: bools.

    Examples:
        >>> taeda.neg(taeda.tensor([1.0, -2.0]))
        tensor([-1.,  2.])
    """
    return -input


neg.vjp(input=lambda g: neg(g))
negative = alias(neg, "negative")


@composite()
def positive(input):
    """``+input``: the tensor itself.

    Returns:
        ``input``.
    Raises:
        RuntimeError: ``input`` has bools.
    Examples:
        >>> taeda.positive(taeda.tensor([1, -2]))
        tensor([ 1, -2])
    """
    if input.dtype is _core.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def _refuse_complex(input):
    """The absolute value of a complex number is real, which its tensor does not hold."""
    if input.is_complex():
        raise RuntimeError("In-place abs is not supported for complex tensors: use abs(), which gives a real tensor")


@pointwise(out="real", dtypes=NUMBER, reference="abs", float8=True, canonical=True)
def abs(input):
    """The absolute value, ``|input|``; of a complex number ``a + bi`` the real number ``sqrt(a ** 2 + b ** 2)``.

    Examples:
        >>> taeda.abs(taeda.tensor([-3, 2]))
        tensor([3, 2])
        >>> taeda.abs(taeda.tensor([3 + 4j]))
        tensor([5.])
    """
    return s.abs(input)


abs.vjp(input=lambda g, input: mul(g, sgn(input)))
abs.traits["inplace"].body_check = _refuse_complex
absolute = alias(abs, "absolute")


@pointwise(reference="sign", dtypes=("bool", "int", "float"), out_dtype="same", canonical=True)
def sign(input):
    """-1, 0 or 1, as the number is negative, zero or positive. For complex numbers see :func:`sgn`.

    Examples:
        >>> taeda.sign(taeda.tensor([-2.5, 0.0, 7.0]))
        tensor([-1.,  0.,  1.])
    """
    return s.sign(input)


sign.vjp(input=no_slope)


@pointwise(reference="sign", out_dtype="same")
def sgn(input):
    """``input / |input|``, 0 at 0: the sign, of a complex number the point of the unit circle in its direction.

    Examples:
        >>> taeda.sgn(taeda.tensor([4j, -2, 0]))
        tensor([ 0.+1.j, -1.+0.j,  0.+0.j])
    """
    return s.sgn(input)


def _sgn_slope(g, input, out):
    if not input.is_complex():
        return no_slope(g)
    size = abs(input)
    along = mul(mul_conj(g, out).real, out)
    return mul(sub(g, along), where_nonzero(size, true_divide(1.0, size)))


sgn.traits["lowering"] = lambda input: over_nonzero(input, abs(input)) if input.is_complex() else sign(input)
sgn.vjp(input=_sgn_slope)


@pointwise(method=False, inplace=False, reference=lambda x, y: np.where(x == 0, 0, y))
def where_nonzero(input, other):
    """``other`` where ``input`` is not 0, else 0; infinite and NaN values there are dropped."""
    return s.select(input == 0, s.constant(other, 0), other)


where_nonzero.vjp(other=lambda g, input: where_nonzero(input, g))


@pointwise(promote="float", method=False, inplace=False, domain=((-2, 2), (0.1, 2)))
def over_nonzero(input, other):
    """``input / other``, 0 where ``other`` is 0; its derivatives divide by no zero either."""
    return s.select(other == 0, s.constant(input, 0), input / other)


over_nonzero.vjp(
    input=lambda g, other: over_nonzero(g, other.conj_physical()),
    other=lambda g, other, out: neg(mul_conj(g, over_nonzero(out, other))),
)


@pointwise(method=False, reference="conj", out_dtype="same")
def conjugated(input):
    """The complex conjugate in memory of its own."""
    return s.conj(input)


conjugated.traits["native_call"] = lambda x: ("_conj.default", (x,))


conjugated.vjp(input=lambda g: conjugated(g))


@composite()
def conj_physical(input, *, out=None):
    """The complex conjugate, computed: ``a - bi`` for ``a + bi``. A real tensor is given back as it is. See
    :func:`conj` for a view.

    Returns:
        The sizes and the dtype of ``input``.
    Examples:
        >>> taeda.conj_physical(taeda.tensor([1 + 2j, 3 - 4j]))
        tensor([1.-2.j, 3.+4.j])
    """
    if out is not None:
        return conjugated(input, out=out)
    return conjugated(input) if input.is_complex() else input


@composite(functional=conj_physical)
def conj_physical_(input):
    """In-place form of :func:`conj_physical`."""
    return conjugated.traits["inplace"](input) if input.is_complex() else input


# ---- products of three ----------------------------------------------------------------------------------------------

_THREE = ("input", "tensor1", "tensor2")


@pointwise(
    reference=lambda a, b, c: a + b * c, operands=3, dtypes=NUMBER, factors=("value",), fits_work=("value",),
    tensors=_THREE,
)  # fmt: skip
def addcmul(input, tensor1, tensor2, *, value=1):
    """``input + value * tensor1 * tensor2``.

    Args:
        tensor1: a tensor.
        tensor2: a tensor; the three broadcast.
        value: a number, whole where the result's dtype is.
    Examples:
        >>> square = taeda.tensor([4.0, 9.0])
        >>> taeda.addcmul(taeda.zeros(2), square, square, value=0.5)
        tensor([ 8.0000, 40.5000])
    """
    product = tensor1 * tensor2
    return input + _times(product, value)


addcmul.vjp(
    input=lambda g: g,
    tensor1=lambda g, tensor2, value: mul_conj(g, mul(tensor2, value)),
    tensor2=lambda g, tensor1, value: mul_conj(g, mul(tensor1, value)),
)


@pointwise(
    reference=lambda a, b, c: a + b / c, operands=3, factors=("value",), fits_work=("value",), tensors=_THREE,
    dtypes=FLOATS,
    domain=((-2, 2), (-2, 2), (0.5, 2)),
)  # fmt: skip
def addcdiv(input, tensor1, tensor2, *, value=1):
    """``input + value * tensor1 / tensor2``: the step of an optimizer that divides by a scale.

    Args:
        input: a tensor, floating point or complex.
        tensor1: a tensor.
        tensor2: a tensor; the three broadcast.
        value: a number.
    Examples:
        >>> weight, mean, scale = taeda.ones(2), taeda.tensor([2.0, 4.0]), taeda.tensor([4.0, 4.0])
        >>> taeda.addcdiv(weight, mean, scale, value=-0.5)
        tensor([0.7500, 0.5000])
    """
    return input + _times(tensor1, value) / tensor2


addcdiv.vjp(
    input=lambda g: g,
    tensor1=lambda g, tensor2, value: div_conj(mul(g, value), tensor2),
    tensor2=lambda g, tensor1, tensor2, value: neg(
        mul_conj(g, true_divide(mul(tensor1, value), times_itself(tensor2)))
    ),
)


def _one_dtype(input, end, weight):
    """PyTorch does not promote these arguments."""
    for name, x in (("end", end), ("weight", weight)):
        if isinstance(x, Tensor) and x.dtype != input.dtype and not (name == "weight" and x.dim() == 0):
            raise RuntimeError(f"lerp: expected dtype {input.dtype} for `{name}` but got dtype {x.dtype}")


@pointwise(
    operands=3, promote_from=(0, 1), dtypes=FLOATS, check=_one_dtype, one_dtype=True, tensors=("input", "end"),
    fits_work=("weight",), reference=lambda a, b, w: a + w * (b - a),
)  # fmt: skip
def lerp(input, end, weight):
    """``input + weight * (end - input)``: between ``input`` (weight 0) and ``end`` (weight 1), exact at both ends.

    Args:
        input: a tensor, floating point or complex.
        end: a tensor of the same dtype.
        weight: a number or a tensor; all broadcast.
    Examples:
        >>> average, new = taeda.tensor([0.0, 10.0]), taeda.tensor([4.0, 10.0])
        >>> taeda.lerp(average, new, 0.25)  # a moving average
        tensor([ 1., 10.])
    """
    size = s.abs(weight)
    step = end - input
    return s.select(size < 0.5, input + weight * step, end - step * (1.0 - weight))


lerp.vjp(
    input=lambda g, weight: mul_conj(g, rsub(weight, 1) if isinstance(weight, Tensor) else 1 - weight),
    end=lambda g, weight: mul_conj(g, weight),
    weight=lambda g, input, end: mul_conj(g, sub(end, input)),
)


# ---- rounding -------------------------------------------------------------------------------------------------------


@pointwise(dtypes=REAL, reference="floor", out_dtype="same", canonical=True)
def floor(input):
    """The largest whole number that is not above ``input``.

    Examples:
        >>> taeda.floor(taeda.tensor([1.5, -1.5]))
        tensor([ 1., -2.])
    """
    return s.floor(input)


@pointwise(dtypes=REAL, reference="ceil", out_dtype="same", canonical=True)
def ceil(input):
    """The smallest whole number that is not below ``input``.

    Examples:
        >>> taeda.ceil(taeda.tensor([1.5, -1.5]))
        tensor([ 2., -1.])
    """
    return s.ceil(input)


@pointwise(dtypes=REAL, reference="trunc", out_dtype="same", canonical=True)
def trunc(input):
    """The whole part: ``input`` rounded toward zero.

    Examples:
        >>> taeda.trunc(taeda.tensor([1.5, -1.5]))
        tensor([ 1., -1.])
    """
    return s.trunc(input)


fix = alias(trunc, "fix")


@pointwise(dtypes=("float",), reference=lambda x: x - np.trunc(x), out_dtype="same")
def frac(input):
    """``input - trunc(input)``: what follows the point, with the sign of ``input``.

    Examples:
        >>> taeda.frac(taeda.tensor([1.5, -2.25]))
        tensor([ 0.5000, -0.2500])
    """
    return s.frac(input)


@pointwise(method=False, dtypes=REAL, reference="rint", out_dtype="same")
def round_half_even(input):
    """To the nearest integer, halves to the even one."""
    return s.round(input)


floor.vjp(input=no_slope)
ceil.vjp(input=no_slope)
trunc.vjp(input=no_slope)
round_half_even.vjp(input=no_slope)
frac.vjp(input=lambda g: g)


@pointwise(method=False, inplace=False, operands=1, dtypes=("float",), out_dtype="same")
def round_to_multiple(input, ten, fractions):
    """To the nearest multiple of ``1 / ten``, or of ``ten`` itself."""
    return s.round(input * ten) / ten if fractions else s.round(input / ten) * ten


round_to_multiple.vjp(input=no_slope)


@composite(inplace=True, pointwise=True, canonical=True)
def round(input, *, decimals=0, out=None):
    """The nearest whole number, or the nearest multiple of ``10 ** -decimals``; a half goes to the even neighbour.

    Args:
        input: a tensor of any sizes, not complex.
        decimals: digits after the point; negative ones round to tens, hundreds, ...
    Returns:
        The sizes and the dtype of ``input``.
    Examples:
        >>> taeda.round(taeda.tensor([0.5, 1.5, 2.5, -1.2]))
        tensor([ 0.,  2.,  2., -1.])
        >>> taeda.round(taeda.tensor([3.14159, 1234.0]), decimals=-1)
        tensor([   0., 1230.])
    """
    more = {} if out is None else {"out": out}
    if decimals == 0:
        return round_half_even(input, **more)
    if not input.is_floating_point():
        raise NotImplementedError(f"round: decimals={decimals} needs a floating-point tensor, got {input.dtype}")
    digits = decimals if decimals > 0 else -decimals
    return round_to_multiple(input, 10.0**digits if digits < 309 else math.inf, decimals > 0, **more)
