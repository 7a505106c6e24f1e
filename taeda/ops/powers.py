"""Powers and roots, element by element."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from ..kernels import scalar as s
from ._lazy import np
from .copies import to_dtype
from .pointwise import (
    FLOATS,
    NUMBER,
    _as_tensor,
    div_conj,
    mul,
    mul_conj,
    neg,
    no_slope,
    sub,
    times_itself,
    true_divide,
    where_nonzero,
)
from .table import composite, pointwise


@composite(inplace=True, pointwise=True)
def square(input, *, out=None):
    """``input * input``; bools count as whole numbers.

    Returns:
        The sizes and the dtype of ``input``; ``int64`` for bools.
    Examples:
        >>> taeda.square(taeda.tensor([-3, 2]))
        tensor([9, 4])
    """
    if input.dtype is _core.bool_:
        input = to_dtype(input, _core.int64)
    return times_itself(input) if out is None else times_itself(input, out=out)


@pointwise(method=False, dtypes=NUMBER, reference=lambda x: x * x * x)
def cube(input):
    """``input * input * input``."""
    return input * input * input


cube.vjp(input=lambda g, input: mul_conj(g, mul(times_itself(input), 3)))


@pointwise(promote="float", reference="sqrt", domain=(0.1, 4), canonical=True)
def sqrt(input):
    """The square root; NaN of negative numbers. The gradient at 0 is infinite.

    Examples:
        >>> taeda.sqrt(taeda.tensor([4.0, 0.0, -1.0]))
        tensor([2., 0., nan])
    """
    return s.sqrt(input)


sqrt.vjp(input=lambda g, out: div_conj(g, mul(out, 2)))


@pointwise(promote="float", reference=lambda x: 1 / np.sqrt(x), domain=(0.1, 4), canonical=True)
def rsqrt(input):
    """``1 / sqrt(input)``: infinite at 0, NaN of negative numbers.

    Examples:
        >>> taeda.rsqrt(taeda.tensor([4.0, 0.25]))
        tensor([0.5000, 2.0000])
    """
    return s.rsqrt(input)


rsqrt.vjp(input=lambda g, out: mul_conj(g, mul(cube(out), -0.5)))


@pointwise(promote="float", reference="reciprocal", domain=(0.5, 2), canonical=True)
def reciprocal(input):
    """``1 / input``: infinite at 0.

    Examples:
        >>> taeda.reciprocal(taeda.tensor([4.0, -0.5]))
        tensor([ 0.2500, -2.0000])
    """
    return s.reciprocal(input)


reciprocal.vjp(input=lambda g, out: neg(mul_conj(g, times_itself(out))))


@pointwise(promote="float", method=False, reference="sqrt", domain=(0.1, 4), node="Pow")
def power_of_half(input):
    """:func:`sqrt` as a power: the derivative keeps the input, so the result may be written in place."""
    return s.sqrt(input)


power_of_half.vjp(input=lambda g, input: div_conj(g, mul(sqrt(input), 2)))


@pointwise(promote="float", method=False, reference=lambda x: 1 / np.sqrt(x), domain=(0.1, 4), node="Pow")
def power_of_minus_half(input):
    """:func:`rsqrt` as a power."""
    return s.rsqrt(input)


power_of_minus_half.vjp(input=lambda g, input: mul_conj(g, mul(cube(rsqrt(input)), -0.5)))


@pointwise(promote="float", method=False, reference="reciprocal", domain=(0.5, 2), node="Pow")
def power_of_minus_one(input):
    """:func:`reciprocal` as a power."""
    return s.reciprocal(input)


power_of_minus_one.vjp(input=lambda g, input: neg(mul_conj(g, times_itself(reciprocal(input)))))


@pointwise(method=False, reference="power", domain=((0.2, 2), (-2, 2)), node="Pow")
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
_FLOAT_POWERS = {0.5: power_of_half, -0.5: power_of_minus_half, -1: power_of_minus_one}


def _special_power(input, exponent):
    """The op for ``input ** exponent`` where there is a faster and more exact one."""
    kind = type(exponent)
    if kind is not int and kind is not float:
        return None
    floating = input.is_floating_point() or input.is_complex()
    if kind is int and not floating and exponent < 0:
        raise RuntimeError(f"Integers to negative integer powers are not allowed (got exponent {exponent}).")
    if (kind is int and not floating and input.dtype is not _core.bool_) or (floating and input.dtype.itemsize == 2):
        _core.fitting(exponent, input.dtype)
    if kind is int or floating:
        op = _POWERS.get(exponent)
        if op is not None:
            return op
    return _FLOAT_POWERS.get(exponent) if floating else None


@composite(pointwise=True, canonical=True)
def pow(input: Any, exponent, *, out=None):
    """``input ** exponent``.

    Args:
        input: a tensor or a number.
        exponent: a tensor or a number; the two broadcast.
    Returns:
        The sizes to which both broadcast. The dtype is ``taeda.result_type`` of them.
    Raises:
        RuntimeError: a tensor of whole numbers to a negative whole number given as a number.
    Examples:
        >>> taeda.pow(taeda.tensor([1.0, 2.0, 3.0]), 2)
        tensor([1., 4., 9.])
        >>> taeda.pow(2, taeda.arange(5))
        tensor([ 1,  2,  4,  8, 16])
    """
    common = exponent.__class__ is int and exponent in _POWERS and out is None and input.__class__ is Tensor
    if common and input.dtype is not _core.bool_:
        return _POWERS[exponent](input)
    op = _special_power(input, exponent) if isinstance(input, Tensor) and not isinstance(exponent, Tensor) else None
    if op is not None and input.dtype is not _core.bool_:
        return op(input) if out is None else op(input, out=out)
    return power(input, exponent) if out is None else power(input, exponent, out=out)


@composite(pointwise=True, functional=pow)
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


@composite(out="same")
def float_power(input: Any, exponent):
    """``input ** exponent``, computed in ``float64`` or ``complex128``. Arguments as of :func:`pow`.

    Returns:
        ``float64``, or ``complex128`` where either is complex, of the sizes to which both broadcast.

    Raises:
        RuntimeError: the inputs do not broadcast.

    Examples:
        >>> taeda.float_power(taeda.tensor([2, 4]), -1)
        tensor([0.5000, 0.2500], dtype=taeda.float64)
    """
    _, base, power_ = _widest(input, exponent)
    return pow(base, power_)


@composite(functional=float_power)
def float_power_(input, exponent):
    """In-place form of :func:`float_power`."""
    wide, _, power_ = _widest(input, exponent)
    if input.dtype != wide:
        raise RuntimeError(
            f"float_power_: the base has dtype {input.dtype}, but the operation's result requires {wide}"
        )
    return pow_(input, power_)


@pointwise(dtypes=("float",), reference="hypot", tensors=("input", "other"))
def hypot(input, other):
    """``sqrt(input ** 2 + other ** 2)``, the length of the hypotenuse, without overflow on the way.

    Examples:
        >>> taeda.hypot(taeda.tensor([3.0, 3e30]), taeda.tensor([4.0, 4e30]))
        tensor([5.0000e+00, 5.0000e+30])
    """
    return s.hypot(input, other)


hypot.vjp(
    input=lambda g, input, out: mul(g, where_nonzero(out, true_divide(input, out))),
    other=lambda g, other, out: mul(g, where_nonzero(out, true_divide(other, out))),
)
