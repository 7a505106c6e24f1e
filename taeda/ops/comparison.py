"""Comparisons, logic, bits, and questions about numbers: what answers with bools or works on them."""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from .._core import tensor as core
from .._core.mends import not_tensor
from ..kernels import scalar as s
from .copies import to_dtype
from .table import alias, composite, expect_tensors, pointwise

ORDERED = ("bool", "int", "float")
WHOLE = ("bool", "int")

# ---- comparisons ----------------------------------------------------------------------------------------------------


@pointwise("compare", reference="equal", tensors=("input",), float8=True, canonical=True)
def eq(input, other):
    """Whether the elements are equal; NaN equals nothing, not even NaN.

    Examples:
        >>> taeda.eq(taeda.tensor([1, 2, 3]), taeda.tensor([1, 5, 3]))
        tensor([ True, False,  True])
        >>> predicted, labels = taeda.tensor([2, 0, 1, 1]), taeda.tensor([2, 0, 0, 1])
        >>> taeda.eq(predicted, labels).float().mean()  # accuracy
        tensor(0.7500)
    """
    return input == other


@pointwise("compare", reference="not_equal", tensors=("input",), float8=True, canonical=True)
def ne(input, other):
    """Whether the elements differ; NaN differs from everything.

    Examples:
        >>> taeda.ne(taeda.tensor([1, 2, 3]), 2)
        tensor([ True, False,  True])
    """
    return input != other


@pointwise("compare", dtypes=ORDERED, reference="less", tensors=("input",), canonical=True)
def lt(input, other):
    """Whether ``input < other``.

    Examples:
        >>> taeda.lt(taeda.tensor([1, 2, 3]), 2)
        tensor([ True, False, False])
    """
    return input < other


@pointwise("compare", dtypes=ORDERED, reference="less_equal", tensors=("input",), canonical=True)
def le(input, other):
    """Whether ``input <= other``.

    Examples:
        >>> taeda.le(taeda.tensor([1, 2, 3]), 2)
        tensor([ True,  True, False])
    """
    return input <= other


@pointwise("compare", dtypes=ORDERED, reference="greater", tensors=("input",), canonical=True)
def gt(input, other):
    """Whether ``input > other``.

    Examples:
        >>> taeda.gt(taeda.tensor([1, 2, 3]), 2)
        tensor([False, False,  True])
    """
    return input > other


@pointwise("compare", dtypes=ORDERED, reference="greater_equal", tensors=("input",), canonical=True)
def ge(input, other):
    """Whether ``input >= other``.

    Examples:
        >>> taeda.ge(taeda.tensor([1, 2, 3]), 2)
        tensor([False,  True,  True])
    """
    return input >= other


not_equal = alias(ne, "not_equal")
less = alias(lt, "less")
less_equal = alias(le, "less_equal")
greater = alias(gt, "greater")
greater_equal = alias(ge, "greater_equal")


@pointwise("compare", method=False, inplace=False, operands=2, dtypes=("float", "complex"))
def close_to(input, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether ``|input - other| <= atol + rtol * |other|``, of floating-point tensors; equal infinities are close."""
    near = s.abs(input - other) <= s.abs(other) * _real(rtol) + _real(atol)
    close = (input == other) | (near & s.isfinite(input) & s.isfinite(other))
    return close | (s.isnan(input) & s.isnan(other)) if equal_nan else close


def _real(x):
    return x.re if isinstance(x, s.Complex) else x


@composite()
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether ``|input - other| <= atol + rtol * |other|``, element by element.

    Args:
        other: a tensor of the same dtype; the two broadcast.
        rtol: the relative tolerance, not negative.
        atol: the absolute tolerance, not negative.
        equal_nan: whether NaN is close to NaN.
    Returns:
        ``bool``, of the sizes to which both broadcast.
    Raises:
        RuntimeError: the dtypes differ, or a tolerance is negative.
    Examples:
        >>> x = taeda.tensor([1.0, 2.0, math.inf])
        >>> taeda.isclose(x, taeda.tensor([1.000001, 2.1, math.inf]))
        tensor([ True, False,  True])
    """
    expect_tensors("isclose", input=input, other=other)
    if input.dtype != other.dtype:
        raise RuntimeError(f"isclose: expected tensors of one dtype, got {input.dtype} and {other.dtype}")
    if not (rtol >= 0 and atol >= 0):
        raise RuntimeError(f"isclose: rtol and atol must not be negative, got rtol={rtol}, atol={atol}")
    if not (input.is_floating_point() or input.is_complex()):
        if rtol == 0 and atol == 0:
            return eq(input, other)
        input, other = to_dtype(input, _core.float64), to_dtype(other, _core.float64)
    return close_to(input, other, float(rtol), float(atol), bool(equal_nan))


@composite(meta="values")
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are close: ``|input - other| <= atol + rtol * |other|``. The rest as of :func:`isclose`.

    Returns:
        A Python bool.

    Raises:
        RuntimeError: the dtypes differ, the inputs do not broadcast, or a tolerance is negative.

    Examples:
        >>> x = taeda.tensor([0.1], dtype=taeda.float64) + 0.2
        >>> y = taeda.tensor([0.3], dtype=taeda.float64)
        >>> taeda.equal(x, y), taeda.allclose(x, y)
        (False, True)
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@composite(meta="values")
def equal(input, other):
    """Whether the two have the same sizes and the same elements.

    Args:
        input: a tensor of any sizes and dtype.
        other: another.
    Returns:
        A Python bool; NaN equals nothing.
    Raises:
        MetaMemoryError: a tensor is on device meta: it has no values.
    Examples:
        >>> taeda.equal(taeda.tensor([1, 2]), taeda.tensor([1, 2]))
        True
    """
    if not isinstance(other, Tensor):
        raise not_tensor("equal(): argument 'other' (position 2)", other)
    return core.same_shape(input, other) and core.all_true(eq(input, other))


# ---- logic ----------------------------------------------------------------------------------------------------------


@pointwise("compare", reference="logical_and", tensors=("input", "other"), canonical=True)
def logical_and(input, other):
    """Whether both are true; any number but 0 is.

    Examples:
        >>> taeda.logical_and(taeda.tensor([0, 1, 2]), taeda.tensor([1, 0, 3]))
        tensor([False, False,  True])
    """
    return s.truth(input) & s.truth(other)


@pointwise("compare", reference="logical_or", tensors=("input", "other"), canonical=True)
def logical_or(input, other):
    """Whether either is true; any number but 0 is.

    Examples:
        >>> taeda.logical_or(taeda.tensor([0, 1, 0]), taeda.tensor([1, 0, 0]))
        tensor([ True,  True, False])
    """
    return s.truth(input) | s.truth(other)


@pointwise("compare", reference="logical_xor", tensors=("input", "other"), canonical=True)
def logical_xor(input, other):
    """Whether exactly one is true; any number but 0 is.

    Examples:
        >>> taeda.logical_xor(taeda.tensor([0, 1, 2]), taeda.tensor([1, 0, 3]))
        tensor([ True,  True, False])
    """
    return s.truth(input) ^ s.truth(other)


@pointwise("compare", reference="logical_not", canonical=True)
def logical_not(input):
    """Whether the element is false, which only 0 is.

    Examples:
        >>> taeda.logical_not(taeda.tensor([0, 1, 2]))
        tensor([ True, False, False])
    """
    return ~s.truth(input)


# ---- bits -----------------------------------------------------------------------------------------------------------


@pointwise(dtypes=WHOLE, canonical=True)
def bitwise_and(input, other):
    """``input & other``: the bits that both have.

    Examples:
        >>> taeda.bitwise_and(taeda.tensor([6, 5]), 3)
        tensor([2, 1])
    """
    return input & other


@pointwise(dtypes=WHOLE, canonical=True)
def bitwise_or(input, other):
    """``input | other``: the bits that either has.

    Examples:
        >>> taeda.bitwise_or(taeda.tensor([6, 5]), 3)
        tensor([7, 7])
    """
    return input | other


@pointwise(dtypes=WHOLE, canonical=True)
def bitwise_xor(input, other):
    """``input ^ other``: the bits that exactly one has.

    Examples:
        >>> taeda.bitwise_xor(taeda.tensor([6, 5]), 3)
        tensor([5, 6])
    """
    return input ^ other


@pointwise(dtypes=WHOLE, out_dtype="same", canonical=True)
def bitwise_not(input):
    """``~input``: every bit turned over, which is ``-input - 1`` for signed numbers; of bools the opposite.

    Examples:
        >>> taeda.bitwise_not(taeda.tensor([0, 1, -3]))
        tensor([-1, -2,  2])
        >>> ~taeda.tensor([True, False])
        tensor([False,  True])
    """
    return ~input


@pointwise(dtypes=("int",))
def bitwise_left_shift(input, other):
    """``input << other``, which is ``input * 2 ** other``; 0 where ``other`` is negative or not below the width.

    Examples:
        >>> taeda.bitwise_left_shift(taeda.tensor([1, 3]), 2)
        tensor([ 4, 12])
    """
    return s.shift_left(input, other)


@pointwise(dtypes=("int",))
def bitwise_right_shift(input, other):
    """``input >> other``, which is ``floor(input / 2 ** other)``; a shift beyond the width leaves only the sign.

    Examples:
        >>> taeda.bitwise_right_shift(taeda.tensor([12, -5]), 1)
        tensor([ 6, -3])
    """
    return s.shift_right(input, other)


@pointwise(dtypes=("int",), method=False, inplace=False)
def rlshift(input, other):
    """``other << input``."""
    return s.shift_left(other, input)


@pointwise(dtypes=("int",), method=False, inplace=False)
def rrshift(input, other):
    """``other >> input``."""
    return s.shift_right(other, input)


@pointwise(dtypes=("int",), tensors=("input", "other"))
def gcd(input, other):
    """The greatest common divisor, not negative.

    Examples:
        >>> taeda.gcd(taeda.tensor([12, 18]), taeda.tensor([8, 27]))
        tensor([4, 9])
    """
    return s.gcd(input, other)


@pointwise(dtypes=("int",), tensors=("input", "other"))
def lcm(input, other):
    """The least common multiple, not negative.

    Examples:
        >>> taeda.lcm(taeda.tensor([4, 6]), taeda.tensor([6, 10]))
        tensor([12, 30])
    """
    return s.lcm(input, other)


# ---- questions ------------------------------------------------------------------------------------------------------


@pointwise("compare", inplace=False, reference="isnan", float8=True, canonical=True)
def isnan(input):
    """Whether an element is NaN (either part of a complex one).

    Examples:
        >>> taeda.isnan(taeda.tensor([1.0, math.nan, math.inf]))
        tensor([False,  True, False])
    """
    return s.isnan(input)


@pointwise("compare", inplace=False, reference="isinf", float8=True, canonical=True)
def isinf(input):
    """Whether an element is infinite (either part of a complex one).

    Examples:
        >>> taeda.isinf(taeda.tensor([1.0, math.nan, -math.inf]))
        tensor([False, False,  True])
    """
    return s.isinf(input)


@pointwise("compare", inplace=False, reference="isfinite", float8=True)
def isfinite(input):
    """Whether an element is neither infinite nor NaN.

    Examples:
        >>> taeda.isfinite(taeda.tensor([1.0, math.nan, math.inf]))
        tensor([ True, False, False])
    """
    return s.isfinite(input)


@pointwise("compare", inplace=False, dtypes=ORDERED, reference="isposinf", out_dtype="same")
def isposinf(input):
    """Whether an element is positive infinity.

    Examples:
        >>> taeda.isposinf(taeda.tensor([math.inf, -math.inf, 0.0]))
        tensor([ True, False, False])
    """
    return s.isposinf(input)


@pointwise("compare", inplace=False, dtypes=ORDERED, reference="isneginf", out_dtype="same")
def isneginf(input):
    """Whether an element is negative infinity.

    Examples:
        >>> taeda.isneginf(taeda.tensor([math.inf, -math.inf, 0.0]))
        tensor([False,  True, False])
    """
    return s.isneginf(input)


@pointwise("compare", inplace=False, dtypes=ORDERED, reference="signbit", out_dtype="same")
def signbit(input):
    """Whether the sign bit is set: of negative numbers and of -0.0.

    Examples:
        >>> taeda.signbit(taeda.tensor([1.0, -1.0, -0.0]))
        tensor([False,  True,  True])
    """
    return s.signbit(input)


@pointwise("compare", inplace=False, reference="isreal", float8=True)
def isreal(input):
    """Whether an element has no imaginary part.

    Examples:
        >>> taeda.isreal(taeda.tensor([1 + 0j, 1j]))
        tensor([ True, False])
    """
    return input.im == 0 if isinstance(input, s.Complex) else s.like(input, 0) == 0
