"""Element by element: the ops of the table under the standard's names, with its promotion.

The standard promotes arrays by dtype alone; PyTorch lets an array of no dimensions give way to one that has some. So
two arrays are converted to their common dtype first, and the op has nothing left to decide.
"""

from __future__ import annotations

from typing import Any

import taeda

from .._typed import Tensor
from ..ops.table import OPS
from ._dtypes import _public, isdtype, result_type


def _promoted(name: str, x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Two operands, of which one may be a Python number, as arrays of one dtype."""
    if not (isinstance(x1, Tensor) or isinstance(x2, Tensor)):
        raise TypeError(f"{name}: expected an array, got {type(x1).__name__} and {type(x2).__name__}")
    common = result_type(x1, x2)
    first, second = (
        (x if x.dtype is common else x.to(common)) if isinstance(x, Tensor) else taeda.tensor(x, dtype=common)
        for x in (x1, x2)
    )
    return first, second


def _need_axis(x: Tensor, axis: Any) -> None:
    """Refuse an axis of an array that has none: PyTorch takes 0 and -1 there."""
    if x.ndim == 0 and axis is not None and axis != ():
        raise IndexError(f"axis {axis} is out of bounds for an array of no dimensions")


def _need_indices(name: str, x: Tensor) -> Tensor:
    """Integers as int64: PyTorch would take what is left of other numbers without a fraction."""
    if not isdtype(x.dtype, "integral"):
        raise TypeError(f"{name}: expected an array of integers, got {x.dtype}")
    return x.to(taeda.int64)


def _unary(name: str, op: str) -> Any:
    run = OPS[op]

    def function(x: Tensor, /) -> Tensor:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected an array, got {type(x).__name__}")
        return run(x)

    return _named(function, name, op)


def _binary(name: str, op: str) -> Any:
    run = OPS[op]

    def function(x1: Any, x2: Any, /) -> Tensor:
        return run(*_promoted(name, x1, x2))

    return _named(function, name, op)


def _named(function: Any, name: str, op: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = OPS[op].__doc__
    return function


#: The standard's name to the op's, where they differ.
_RENAMED = {
    "bitwise_invert": "bitwise_not",
    "conj": "conj_physical",  # NumPy cannot read a conjugated view
    "divide": "true_divide",
}

_UNARY = """
    abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor isfinite isinf isnan log
    log1p log2 log10 logical_not negative positive reciprocal signbit sin sinh sqrt square tan tanh trunc
""".split()

_BINARY = """
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal greater
    greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter
    not_equal pow subtract
""".split()

_RENAMED |= {"equal": "eq", "negative": "neg", "multiply": "mul", "subtract": "sub"}

for _name in _UNARY:
    globals()[_name] = _unary(_name, _RENAMED.get(_name, _name))
for _name in _BINARY:
    globals()[_name] = _binary(_name, _RENAMED.get(_name, _name))


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """``x1 / x2`` rounded down; where the quotient of floating-point numbers is infinite or NaN, that."""
    return taeda.floor_divide(*_promoted("floor_divide", x1, x2))


def remainder(x1: Any, x2: Any, /) -> Tensor:
    """The remainder of ``x1 / x2``, with the sign of ``x2``, which a zero has too; see
    :func:`taeda.remainder`."""
    first, second = _promoted("remainder", x1, x2)
    rest = taeda.remainder(first, second)
    if rest.dtype.is_floating_point:
        with taeda.no_grad():  # a zero's sign is no part of its gradient
            rest.copy_(taeda.where(rest == 0, taeda.copysign(rest, second), rest))
    return rest


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1; of a complex number the one of absolute value 1 in its direction; NaN of NaN."""
    if x.dtype.is_complex:
        return taeda.sgn(x)
    return taeda.where(x != x, x, taeda.sign(x)) if x.dtype.is_floating_point else taeda.sign(x)


def round(x: Tensor, /) -> Tensor:
    """To the nearest whole number, of two equally near to the even one; of a complex number both parts."""
    if x.dtype.is_complex:
        return taeda.complex(taeda.round(x.real), taeda.round(x.imag))
    return taeda.round(x)


def real(x: Tensor, /) -> Tensor:
    """The real parts: of real numbers, themselves."""
    return taeda.real(x) if x.dtype.is_complex else x.clone()


def imag(x: Tensor, /) -> Tensor:
    """The imaginary parts: of real numbers, zeros."""
    return taeda.imag(x) if x.dtype.is_complex else taeda.zeros_like(x)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """``x`` within bounds, which are numbers, arrays that broadcast, or None; the dtype is that of ``x``."""
    if min is None and max is None:
        return x.clone()

    def bound(b: Any) -> Any:
        return b if b is None or isinstance(b, Tensor) else taeda.tensor(b, dtype=result_type(x, b))

    bounds = [bound(min), bound(max)]
    common = result_type(x, *(b for b in bounds if b is not None))
    bounds = [b if b is None else b.to(common) for b in bounds]
    return taeda.clamp(x.to(common), *bounds).to(x.dtype)


__all__ = _public(globals())
