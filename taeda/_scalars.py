"""Functions of sizes and flags. PyTorch gives them symbols while it traces a program; here sizes are always numbers."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable
from typing import Any

__all__ = ["sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum"]


def sym_float(a: Any) -> Any:
    """``a`` as a float."""
    return a.__sym_float__() if hasattr(a, "__sym_float__") else builtins.float(a)


def sym_int(a: Any) -> Any:
    """``a`` as an int, rounded towards zero."""
    return a.__sym_int__() if hasattr(a, "__sym_int__") else builtins.int(a)


def sym_not(a: Any) -> Any:
    """Not ``a``."""
    return a.__sym_not__() if hasattr(a, "__sym_not__") else not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger one; a float where one is a float, whichever is larger."""
    return _common(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller one; a float where one is a float, whichever is smaller."""
    return _common(min(a, b), a, b)


def _common(x: Any, a: Any, b: Any) -> Any:
    return builtins.float(x) if isinstance(a, builtins.float) or isinstance(b, builtins.float) else x


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """``t`` if ``b``, else ``f``, which are of one type."""
    if not isinstance(b, builtins.bool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"sym_ite: expected two values of one type, got {type(t)} and {type(f)}")
    return t if b else f


def sym_sqrt(a: Any) -> builtins.float:
    """The square root."""
    return math.sqrt(a)


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum of numbers."""
    return builtins.sum(args)
