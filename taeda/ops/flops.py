"""Floating-point operations of a call: the trait ``flops`` of an op is a formula of sizes.

A formula gets the sizes of the result (a list of them where there are several) and then the op's arguments in order,
sizes in the place of tensors. A multiplication and an addition count two, as in PyTorch's counter; a bias, a mask or a
scale counts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from .. import _core
from .._core import REQUIRED, Op

Sizes = Sequence[int]


def product(out: Sizes, a: Sizes, b: Sizes, *rest: Any) -> int:
    """``a @ b`` for any ranks, and a linear layer: every element of the result is a sum over the last dimension of
    ``a``."""
    return 2 * prod(out) * a[-1]


def added_product(out: Sizes, c: Sizes, a: Sizes, b: Sizes, *rest: Any) -> int:
    """``c + a @ b``."""
    return 2 * prod(out) * a[-1]


def convolution(out: Sizes, input: Sizes, weight: Sizes, *rest: Any) -> int:
    """Every element of the result is a sum over the weights of one channel."""
    return 2 * prod(out) * prod(weight[1:])


def transposed_convolution(out: Sizes, input: Sizes, weight: Sizes, *rest: Any) -> int:
    """Every element of the input is spread by the weights of one channel; a convolution's gradient for its input
    too."""
    return 2 * prod(input) * prod(weight[1:])


def convolution_weight(out: Sizes, input: Sizes, grad: Sizes, *rest: Any) -> int:
    """The gradient for the weights costs as much as the convolution."""
    return 2 * prod(grad) * prod(out[1:])


def attention(out: Any, query: Sizes, key: Sizes, value: Sizes, *rest: Any) -> int:
    """Scores, and the weighted sum of values; masked ones are counted."""
    return 2 * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def attention_backward(out: Any, grad: Sizes, query: Sizes, key: Sizes, value: Sizes, *rest: Any) -> int:
    """The scores again, the gradients of values and weights, and those of queries and keys."""
    return 2 * prod(query[:-1]) * key[-2] * (3 * query[-1] + 2 * value[-1])


def recurrent(out: Any, mode: str, gates: Sizes, h0: Sizes, c0: Any, w_hh: Sizes, *rest: Any) -> int:
    """The hidden states' products; those of the inputs are a linear layer's."""
    return 2 * prod(gates) * w_hh[-1]


def recurrent_backward(
    out: Any, mode: str, g_out: Sizes, g_h: Sizes, g_c: Any, gates: Sizes, h0: Sizes, c0: Any, w_hh: Sizes, *rest: Any
) -> int:
    """Operations of the backward pass: the gradients of inputs and states, and of the weights if they need one."""
    return 2 * prod(w_hh) * g_out[0] * (1 + bool(rest[-1][3]))


# ---- calls -----------------------------------------------------------------------------------------------------------


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
        return prod(first) if isinstance(first, _core.Size) else 0
    return 0
