"""The arithmetic of a call, from its sizes. The formulas are in the stanzas of the ops (trait ``flops``)."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._core import REQUIRED, Op


def bound_arguments(op: Op, args: tuple | list, kwargs: dict) -> list:
    """One value per parameter of ``op``, in order; defaults where nothing was given."""
    values = list(op.defaults)
    values[: len(args)] = args[: len(values)]
    for i, name in enumerate(op.params):
        if name in kwargs:
            values[i] = kwargs[name]
    return [None if value is REQUIRED else value for value in values]


def flops_of_call(function: Any, args: tuple | list, kwargs: dict, result: Any) -> int:
    """Floating point operations of a call: by the op's formula, one per element of a pointwise op's result, else 0.

    Args:
        function: an op; a composite counts nothing itself.
        args: with sizes in the place of tensors.
        kwargs: likewise.
        result: likewise.
    """
    if type(function) is not Op:
        return 0
    formula = function.traits.get("flops")
    if formula is not None:
        return formula(result, *bound_arguments(function, args, kwargs))
    if function.kind == "pointwise":
        first = result[0] if isinstance(result, list) and result else result
        return math.prod(first) if isinstance(first, _core.Size) else 0
    return 0
