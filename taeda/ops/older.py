"""Older call forms with more positional arguments than the op has: factors before tensors, sizes as single ints.

``x.add_(-lr, g)``, ``x.addcmul_(0.1, a, b)`` and ``torch.addmm(beta, c, alpha, a, b)`` are of before PyTorch 1.5, which
still takes them, with a warning. An op says in its trait ``factors`` which of its parameters stood there.
``x.squeeze(0, 1)`` means ``x.squeeze((0, 1))``: an op says in its trait ``spreads`` which parameter that is.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from .._core import Op, Tensor


def as_today(function: Any, args: list, kwargs: dict) -> tuple[list, dict] | None:
    """The arguments of a call of ``function``, an op or a composite, in today's form; None if the call is in no older
    form.
    """
    traits = function.traits if isinstance(function, Op) else vars(function)
    if "factors" in traits:
        return factors_last(function.name, traits["factors"], args, kwargs)
    if "spreads" in traits:
        at = list(inspect.signature(function).parameters).index(traits["spreads"])
        if all(isinstance(x, int) for x in args[at:]):
            return [*args[:at], args[at:]], kwargs
    return None


def factors_last(name: str, factors: tuple[str, ...], args: list, kwargs: dict) -> tuple[list, dict] | None:
    """``(input, factor, other)`` as ``(input, other, factor by name)``; None if the call is not of that form."""
    count = 2 if factors == ("alpha",) else 3
    if len(factors) == 1 and len(args) > count and isinstance(args[1], Tensor) and args[1].dim() == 0:
        args = [args[0], args[1].item(), *args[2:]]
    if len(args) == 3 and factors == ("alpha",) and not any(isinstance(x, Tensor) for x in args[1:]):
        return args[:2], {**kwargs, "alpha": args[2]}  # PyTorch takes the factor by position where `other` is a number
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
