"""Arithmetic of scripts: integers have 64 bits and wrap around, floats divide and round as C does.

Divisions by zero of floats give infinities and NaN. Integer divisions by zero are errors.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor

_HALF, _WHOLE = 2**63, 2**64


def wrap(n: int) -> int:
    """``n`` in two's complement of 64 bits."""
    return n if -_HALF <= n < _HALF else (n + _HALF) % _WHOLE - _HALF


def wrapping(function: Callable) -> Callable:
    """``function``, whose result wraps around if it is an integer."""

    def compute(*args: Any) -> Any:
        n = function(*args)
        return n if type(n) is not int or -_HALF <= n < _HALF else wrap(n)

    return compute


def _left(a: int, b: int) -> int:
    return wrap(a << (b & 63))  # a processor reads six bits of the distance


def _right(a: int, b: int) -> int:
    return a >> (b & 63)


def _power(a: int, b: int) -> int:
    if b >= 0:
        return wrap(pow(a, b, _WHOLE))
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


def _factorial(n: int) -> int:
    n = (n + 2**31) % 2**32 - 2**31  # PyTorch's function takes 32 bits
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    return wrap(math.factorial(min(n, 66)))  # 66! is a multiple of 2**64


def from_float(x: float) -> int:
    """``int(x)``; what 64 bits cannot hold is the lowest integer, as processors have it."""
    return int(x) if -_HALF <= x < _HALF else -_HALF


def from_text(text: str) -> int:
    """``int(text)``."""
    n = int(text)
    if n != wrap(n):
        raise RuntimeError(f"int(): {text} is out of range: integers have 64 bits")
    return n


def from_tensor(x: Tensor) -> int:
    """The element of a tensor that is given where an integer is wanted."""
    if x.is_floating_point() or x.is_complex() or x.dtype is _core.bool_:
        raise RuntimeError(f"Cannot input a tensor of type {x.dtype} as an integral argument")
    return int(x.item())


def _whole(name: str) -> Callable:
    function = getattr(math, name)

    def compute(x: float) -> int:
        n = function(x) if math.isfinite(x) else _HALF
        if n != wrap(n):
            raise RuntimeError(f"Cannot convert float {x} to integer")
        return n

    return compute


# ---- division --------------------------------------------------------------------------------------------------------
def divide(a: Any, b: Any) -> Any:
    if isinstance(a, complex) or isinstance(b, complex):
        return a / b
    a, b = float(a), float(b)
    if b:
        return a / b
    return math.nan if not a or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def _floor_divide(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return wrap(a // b)
    q = divide(a, b)
    return math.copysign(math.floor(q), q) if math.isfinite(q) else q


def _c_remainder(a: int, b: int) -> int:
    return a - b * round_to_zero(a, b)


def round_to_zero(a: int, b: int) -> int:
    """The quotient, rounded towards zero."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def fmod(a: float, b: float) -> float:
    """The remainder with the sign of ``a``; NaN where there is none."""
    return math.fmod(a, b) if b and math.isfinite(a) and b == b else math.nan


def _remainder(a: Any, b: Any) -> Any:
    """PyTorch's formula, which wraps, or loses digits, where ``b`` is much larger than ``a``."""
    if isinstance(a, int) and isinstance(b, int):
        return _c_remainder(wrap(b + _c_remainder(a, b)), b)
    return fmod(b + fmod(a, b), b)


def _divmod(a: Any, b: Any) -> tuple:
    if isinstance(a, int) and isinstance(b, int):
        q, r = divmod(a, b)
        return wrap(q), r
    if not b:
        raise ZeroDivisionError("float divmod()")
    rest = fmod(a, b)
    if rest and (rest < 0) != (b < 0):
        rest += b
    return divide(a - rest, b), rest


def power(a: Any, b: Any) -> Any:
    """``a**b`` of numbers, a float unless one is complex."""
    if isinstance(a, complex) or isinstance(b, complex):
        return a**b
    if not a and b < 0:
        raise RuntimeError("0.0 cannot be raised to a negative power")
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and float(b) % 2 == 1 else math.inf
    except ValueError:
        return math.nan


def _ldexp(x: float, n: int) -> float:
    n = (n + 2**31) % 2**32 - 2**31  # C's function takes 32 bits
    try:
        return math.ldexp(x, n)
    except OverflowError:
        return math.copysign(math.inf, x)


def round_even(x: float) -> float:
    """The nearest whole number, the even one of two; it keeps the sign of zero."""
    return math.copysign(round(x), x) if math.isfinite(x) else x


def smaller(a: Any, b: Any) -> Any:
    """The second unless the first is smaller, so that a NaN is given only by the second."""
    return a if a < b else b


def larger(a: Any, b: Any) -> Any:
    """The second unless the first is larger."""
    return a if a > b else b


#: Ops of numbers by name, or by overload.
_WRAPPING: dict[str, Callable] = {
    "add.int add.": operator.add, "sub.int sub.": operator.sub, "mul.int mul.": operator.mul,
    "neg.int neg.Scalar": operator.neg, "sum.int": sum, "gcd.int": math.gcd,
    "__derive_index.": lambda i, start, step: start + i * step,
}  # fmt: skip
ARITHMETIC = {name: wrapping(function) for names, function in _WRAPPING.items() for name in names.split()}
ARITHMETIC |= {
    "div": divide, "floordiv": _floor_divide, "floor_divide": _floor_divide, "remainder": _remainder, "fmod": fmod,
    "divmod": _divmod, "__round_to_zero_floordiv": round_to_zero, "pow": power, "pow.int_to_int": _power,
    "__lshift__.int": _left, "__rshift__.int": _right, "factorial": _factorial, "ldexp.": _ldexp, "round": round_even,
    "Int.float": from_float, "Int.str": from_text, "floor.float": _whole("floor"), "ceil.float": _whole("ceil"),
    "floor.int": lambda n: from_float(float(n)),
    "hash.generic": lambda x: wrap(hash(x)) if type(x) is not int else x,
}  # fmt: skip
