"""Calls as programs of before PyTorch 1.5 and of NumPy write them: looked at once a call has failed, never before.

``x.add_(-lr, g)``, ``x.addcmul_(0.1, a, b)`` and ``torch.addmm(beta, c, alpha, a, b)`` give factors by position, in front of
the tensors that they scale. PyTorch still takes them, with a warning.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from .._core import Tensor

#: Factors that stood among the positional arguments: their names, in order.
_FACTORS = {
    **dict.fromkeys(("add", "sub", "subtract"), ("alpha",)),
    **dict.fromkeys(("addcmul", "addcdiv"), ("value",)),
    **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm"), ("beta", "alpha")),
}

#: NumPy's names of arguments.
_NUMPY = {
    "axis": "dim",
    "axes": "dims",
    "keepdims": "keepdim",
    "axis0": "dim0",
    "axis1": "dim1",
    "x1": "input",
    "x2": "other",
}

#: PyTorch's and NumPy's names of the first argument, which is ``A`` in the documentation of ``linalg``.
_FIRST = ("input", "x", "a")


def read_again(function: Any, args: list, kwargs: dict) -> tuple[list, dict] | None:
    """The arguments of a call of ``function`` that failed with TypeError, in today's order and by today's names.

    Returns:
        ``(args, kwargs)``, or None where the call was in them already.
    """
    name = getattr(function, "name", None) or getattr(function, "__name__", "")
    factors = _FACTORS.get(name.removesuffix("_"))
    if factors is not None:
        return _factors_last(name, factors, args, kwargs)
    return _named_as_here(function, args, kwargs)


def _factors_last(name: str, factors: tuple, args: list, kwargs: dict) -> tuple[list, dict] | None:
    """``(input, factor, other)`` as ``(input, other, factor by name)``."""
    count = 2 if factors == ("alpha",) else 3
    if len(factors) == 1 and len(args) > count and isinstance(args[1], Tensor) and args[1].dim() == 0:
        args = [args[0], args[1].item(), *args[2:]]
    tensors = [x for x in args if isinstance(x, Tensor)]
    numbers = [x for x in args if not isinstance(x, Tensor)]
    by_name = [k for k, x in kwargs.items() if isinstance(x, Tensor) and k != "out"]
    named = dict(zip(factors, numbers, strict=False))
    if (
        len(tensors) + len(by_name) != count
        or (len(factors) == 1 and not isinstance(args[0], Tensor))
        or not (by_name or isinstance(args[-1], Tensor))  # a factor behind the tensors: that order there never was
        or not 0 < len(numbers) <= len(factors)
        or not all(isinstance(x, (int, float, complex)) for x in numbers)
        or named.keys() & kwargs.keys()
    ):
        return None
    warnings.warn(
        f"{name}(): factors by position are of before PyTorch 1.5; give them by name: {', '.join(named)}", stacklevel=2
    )
    return tensors, {**kwargs, **named}


def _named_as_here(function: Any, args: list, kwargs: dict) -> tuple[list, dict] | None:
    """NumPy's keywords, and other names of the first argument, as those of ``function``."""
    if (
        kwargs.keys().isdisjoint({*_NUMPY, *_FIRST}) or kwargs.get("axis", 0) is None
    ):  # None is NumPy's own; PyTorch refuses it
        return None
    try:
        known = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    names = _NUMPY if args or not known else {**_NUMPY, **dict.fromkeys(_FIRST, next(iter(known)))}
    renamed = {k if k in known else names.get(k, k): x for k, x in kwargs.items()}
    return None if renamed.keys() == kwargs.keys() or not renamed.keys() <= known.keys() else (args, renamed)
