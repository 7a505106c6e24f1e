"""Losses of classes; the others follow from what they are made of."""

from __future__ import annotations

from typing import Any

from ..writer import Unsupported, Value, Writer
from .table import translates


def _reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    if reduce is None and size_average is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def picked(g: Writer, x: Value, target: Value, weight: Value | None, ignore_index: int, reduction: str) -> Value:
    """The negative of ``x``, log-probabilities of classes, at the targets."""
    single = x.rank == 1
    if single:
        x, target = g.unsqueeze(x, [0]), g.unsqueeze(target, [0])
    made = g.NegativeLogLikelihoodLoss(x, target, weight, ignore_index=ignore_index, reduction=reduction)
    return g.Squeeze(made, [0]) if single and reduction == "none" else made


@translates("nn.functional.nll_loss")
def nll_loss(
    g: Writer, input: Value, target: Value, weight: Value | None = None, size_average: Any = None,
    ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
) -> Value:  # fmt: skip
    return picked(g, input, target, weight, ignore_index, _reduction(size_average, reduce, reduction))


@translates("nn.functional.cross_entropy")
def cross_entropy(
    g: Writer, input: Value, target: Value, weight: Value | None = None, size_average: Any = None,
    ignore_index: int = -100, reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Value:  # fmt: skip
    reduction = _reduction(size_average, reduce, reduction)
    place = 0 if input.rank == 1 else 1
    logs = g.LogSoftmax(input, axis=place, shape=input.shape)
    if target.dtype.is_floating_point:
        return _of_probabilities(g, logs, target, weight, reduction, label_smoothing, place)
    if label_smoothing:
        raise Unsupported("cross_entropy of class numbers with label_smoothing; pass the smoothed probabilities")
    return picked(g, logs, target, weight, ignore_index, reduction)


def _of_probabilities(
    g: Writer, logs: Value, target: Value, weight: Value | None, reduction: str, smoothing: float, place: int
) -> Value:
    if smoothing:
        classes = int(logs.shape[place])
        target = g.Add(g.Mul(target, 1.0 - smoothing), float(smoothing) / classes)
    if weight is not None:
        target = g.Mul(target, weight if place == 0 else g.reshape(weight, [-1] + [1] * (logs.rank - 2)))
    made = g.Neg(g.reduce("ReduceSum", g.Mul(logs, target), [place]))
    if reduction == "none":
        return made
    total = g.reduce("ReduceSum", made)
    if reduction == "sum":
        return total
    rows = g.Size(made)
    return g.Div(total, g.cast(rows, total.dtype))
