"""Losses of classes. Other losses follow from their parts."""

from __future__ import annotations

from typing import Any

from ..writer import Value, Writer
from .shape import static_size
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
    if not label_smoothing:
        return picked(g, logs, target, weight, ignore_index, reduction)
    return _smoothed(g, logs, target, weight, ignore_index, reduction, label_smoothing, place)


def _smoothed(
    g: Writer, logs: Value, target: Value, weight: Value | None, ignore_index: int, reduction: str, smoothing: float,
    place: int,
) -> Value:  # fmt: skip
    """A part of the target is spread over all classes."""
    shaped = None if weight is None else g.reshape(weight, [-1] + [1] * (logs.rank - 1 - place))
    spread = g.Neg(g.reduce("ReduceSum", logs if shaped is None else g.Mul(logs, shaped), [place]))
    counted = g.cast(g.Not(g.Equal(target, ignore_index)), logs.dtype)
    spread = g.Mul(spread, counted)
    part = float(smoothing) / static_size(logs, place, "label_smoothing")
    nll = picked(g, logs, target, weight, ignore_index, reduction)
    if reduction != "none":
        spread = g.reduce("ReduceSum", spread)
    if reduction == "mean":
        if weight is not None:
            safe = g.Where(g.Equal(target, ignore_index), g.constant(0), target, dtype=target.dtype)
            counted = g.Mul(counted, g.Gather(weight, safe, axis=0))
        spread = g.Div(spread, g.reduce("ReduceSum", counted))
    return g.Add(g.Mul(nll, 1.0 - smoothing), g.Mul(spread, part))


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


@translates("nn.functional.multilabel_soft_margin_loss")
def multilabel_soft_margin_loss(
    g: Writer, input: Value, target: Value, weight: Value | None = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Value:  # fmt: skip
    made = binary_cross_entropy_with_logits(g, input, target, weight, reduction="none")
    made = g.reduce("ReduceMean", made, [-1])
    return _reduced(g, made, _reduction(size_average, reduce, reduction))
