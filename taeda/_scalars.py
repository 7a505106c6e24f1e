"""Functions of sizes and flags. They are numbers, or symbols while a program is recorded."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable
from typing import Any

__all__ = [
    "_check", "_check_index", "_check_is_size", "_check_not_implemented", "_check_type", "_check_value",
    "_constrain_as_size", "sym_constrain_range", "sym_constrain_range_for_size", "sym_float", "sym_int", "sym_ite",
    "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum",
]  # fmt: skip


def sym_float(a: Any) -> Any:
    """``a`` as a float, also where it is a size that an exported program leaves open.

    Args:
        a: a number.
    Returns:
        A float.
    Examples:
        >>> taeda.sym_float(3)
        3.0
    """
    return a.__sym_float__() if hasattr(a, "__sym_float__") else builtins.float(a)


def sym_int(a: Any) -> Any:
    """``a`` as an int, rounded toward zero.

    Args:
        a: a number.
    Returns:
        An int.
    Examples:
        >>> taeda.sym_int(-2.5)
        -2
    """
    return a.__sym_int__() if hasattr(a, "__sym_int__") else builtins.int(a)


def sym_not(a: Any) -> Any:
    """The negation of ``a``.

    Args:
        a: a bool.
    Returns:
        A bool.
    Examples:
        >>> taeda.sym_not(True)
        False
    """
    return a.__sym_not__() if hasattr(a, "__sym_not__") else not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers; a float where one is a float, whichever is larger.

    Args:
        a: a number.
        b: a number.
    Returns:
        An int or a float.
    Examples:
        >>> taeda.sym_max(3, 2.0)
        3.0
    """
    return _common(_chosen("max", a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers; a float where one is a float, whichever is smaller.

    Args:
        a: a number.
        b: a number.
    Returns:
        An int or a float.
    Examples:
        >>> taeda.sym_min(3, 2.0)
        2.0
    """
    return _common(_chosen("min", a, b), a, b)


def _chosen(name: str, a: Any, b: Any) -> Any:
    """``max`` or ``min``: symbolic where a program is recorded and only its run tells."""
    if not hasattr(a > b, "owner"):
        return max(a, b) if name == "max" else min(a, b)
    from .fx.experimental.symbolic_shapes import combine

    return combine(name, a, b)


def _common(x: Any, a: Any, b: Any) -> Any:
    if hasattr(x, "__sym_float__"):
        return x.__sym_float__() if isinstance(a, builtins.float) or isinstance(b, builtins.float) else x
    return builtins.float(x) if isinstance(a, builtins.float) or isinstance(b, builtins.float) else x


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """``t`` if ``b``, else ``f``.

    Args:
        b: a bool.
        t: a value.
        f: another of the same type.
    Returns:
        One of the two.
    Examples:
        >>> taeda.sym_ite(True, 1, 2)
        1
    """
    if hasattr(b, "__sym_ite__"):
        return b.__sym_ite__(t, f)
    if not isinstance(b, builtins.bool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"sym_ite: expected two values of one type, got {type(t)} and {type(f)}")
    return t if b else f


def sym_sqrt(a: Any) -> builtins.float:
    """The square root of a number.

    Args:
        a: a number, not negative.
    Returns:
        A float.
    Examples:
        >>> taeda.sym_sqrt(9)
        3.0
    """
    return math.sqrt(a)


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum of numbers.

    Args:
        args: a list or tuple of numbers.
    Returns:
        Their sum.
    Examples:
        >>> taeda.sym_sum([1, 2, 3])
        6
    """
    return builtins.sum(args)


# ---- conditions ------------------------------------------------------------------------------------------------------


def _checker(name: str, error: type[Exception]) -> Any:
    def check(cond: Any, message: Any = None) -> None:
        if getattr(cond, "owner", None) is not None:
            cond.owner.require(cond, None if message is None else str(message()))
            return
        if not isinstance(cond, builtins.bool) and not hasattr(cond, "__sym_ite__"):
            raise TypeError(f"cond must be a bool, but got {type(cond)}")
        if not cond:
            raise error("Expected cond to be True, but got False." if message is None else str(message()))

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"""Raise a {error.__name__}, with what ``message()`` gives, where ``cond`` is False. While a
    program is recorded, a condition that only a run can tell is checked by the program."""
    return check


_check = _checker("_check", RuntimeError)
_check_index = _checker("_check_index", IndexError)
_check_value = _checker("_check_value", ValueError)
_check_type = _checker("_check_type", TypeError)
_check_not_implemented = _checker("_check_not_implemented", NotImplementedError)


def _check_is_size(i: builtins.int, message: Any = None, *, max: builtins.int | None = None) -> None:
    """Raise a RuntimeError where ``i`` is no size: below 0, or above ``max``."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def sym_constrain_range(size: Any, *, min: builtins.int | None = None, max: builtins.int | None = None) -> None:
    """Requires a number to lie between bounds.

    Args:
        size: a number.
        min: the smallest that is allowed. Default: any.
        max: the largest. Default: any.
    Raises:
        RuntimeError: it is outside.
    Examples:
        >>> taeda.sym_constrain_range(5, min=1, max=10)
    """
    low, high = -(1 << 63) if min is None else min, (1 << 63) - 1 if max is None else max
    if high < low:
        raise RuntimeError(f"Max must be greater than or equal to min, got min={low} max={high}")
    for bound, holds in ((min, lambda: size >= low), (max, lambda: size <= high)):
        if bound is not None:
            _check(holds(), lambda: f"Invalid value range for {size} between [{low}, {high}].")


def sym_constrain_range_for_size(
    size: Any, *, min: builtins.int | None = None, max: builtins.int | None = None
) -> None:
    """Requires a size, which is at least 0, to lie between bounds.

    Args:
        size: an int.
        min: the smallest that is allowed. Default: 0.
        max: the largest. Default: any.
    Raises:
        RuntimeError: it is outside.
    Examples:
        >>> taeda.sym_constrain_range_for_size(5, max=10)
    """
    sym_constrain_range(size, min=0 if min is None else min, max=max)


def _constrain_as_size(symbol: Any, min: builtins.int | None = None, max: builtins.int | None = None) -> None:
    """:func:`sym_constrain_range_for_size`."""
    sym_constrain_range_for_size(symbol, min=min, max=max)
