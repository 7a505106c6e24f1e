"""Losses of classes. Other losses follow from their parts."""

from __future__ import annotations

from typing import Any

from ..writer import Value, Writer
from .table import translates


def _reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    if reduce is None and size_average is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _reduced(g: Writer, x: Value, reduction: str) -> Value:
    return x if reduction == "none" else g.reduce("ReduceSum" if reduction == "sum" else "ReduceMean", x)


@translates("nn.functional.binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    g: Writer, input: Value, target: Value, weight: Value | None = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean", pos_weight: Value | None = None,
) -> Value:  # fmt: skip
    target = g.cast(target, input.dtype)
    rest = g.Sub(g.constant(1.0, input.dtype), target)
    opposite = g.Softplus(g.Neg(input))  # the negative of the logarithm of the sigmoid
    factor = rest if pos_weight is None else g.Add(rest, g.Mul(target, pos_weight))
    if pos_weight is None:
        made = g.Add(g.Mul(rest, input), opposite)
    else:
        made = g.Add(g.Mul(rest, input), g.Mul(factor, opposite))
    made = made if weight is None else g.Mul(made, weight)
    return _reduced(g, made, _reduction(size_average, reduce, reduction))
