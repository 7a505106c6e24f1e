"""Connectionist temporal classification: a Scan over the steps of the forward variables (Graves et al. 2006)."""

from __future__ import annotations

import math
from typing import Any

from ..._core import int64
from ..writer import Value, Writer
from .table import translates


@translates("ctc_loss nn.functional.ctc_loss")
def ctc_loss(
    g: Writer, log_probs: Value, targets: Value, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Value:  # fmt: skip
    single = log_probs.rank == 2
    x = g.unsqueeze(log_probs, [1]) if single else log_probs
    steps, lengths = (
        g.Reshape(g.cast(n, int64) if isinstance(n, Value) else g.ints(n), [-1])
        for n in (input_lengths, target_lengths)
    )
    labels = _labels(g, g.cast(targets, int64), lengths, single, blank)
    alpha = _forward(g, x, labels, steps)
    last = g.Unsqueeze(g.Mul(lengths, 2), [1])
    ends = g.Concat(last, g.Max(g.Sub(last, 1), 0), axis=1)
    found = g.GatherElements(alpha, ends, axis=1, dtype=x.dtype)
    none = g.Concat(g.Less(last, 0), g.Equal(last, 0), axis=1)
    loss = g.Neg(_sum(g, g.Where(none, g.constant(-math.inf, x.dtype), found, dtype=x.dtype), 1))
    if zero_infinity:
        loss = g.Where(g.IsInf(loss), g.constant(0, x.dtype), loss, dtype=x.dtype)
    if reduction == "mean":
        return g.reduce("ReduceMean", g.Div(loss, g.cast(g.Max(lengths, 1), x.dtype)))
    if reduction == "sum":
        return g.reduce("ReduceSum", loss)
    return g.Squeeze(loss, [0]) if single else loss


def _labels(g: Writer, targets: Value, lengths: Value, single: bool, blank: int) -> Value:
    """Labels with blanks between and around them, ``(batch, 2 most + 1)``; blanks behind the last one."""
    if targets.rank == 1 and not single:  # all samples one after another
        most = g.reduce("ReduceMax", lengths)
        starts = g.Unsqueeze(g.Sub(g.CumSum(lengths, g.constant(0)), lengths), [1])
        places = g.Add(starts, g.Unsqueeze(g.Range(0, most, 1, dtype=int64), [0]))
        padded = g.Gather(g.Concat(targets, [blank], axis=0), g.Min(places, g.Shape(targets)), axis=0)
    else:
        padded = g.Unsqueeze(targets, [0]) if targets.rank == 1 else targets
    width = g.Squeeze(g.Shape(padded, start=1, end=2), [0])
    inside = g.Less(g.Unsqueeze(g.Range(0, width, 1, dtype=int64), [0]), g.Unsqueeze(lengths, [1]))
    padded = g.Unsqueeze(g.Where(inside, padded, g.constant(blank), dtype=int64), [2])
    pairs = g.Concat(padded, g.Expand(blank, g.Shape(padded)), axis=2)
    flat = g.Reshape(
        pairs, g.Concat(g.Shape(padded, start=0, end=1), g.Mul(g.Shape(padded, start=1, end=2), 2), axis=0)
    )
    first = g.Expand(blank, g.Concat(g.Shape(padded, start=0, end=1), [1], axis=0))
    return g.Concat(first, flat, axis=1)


def _forward(g: Writer, x: Value, labels: Value, steps: Value) -> Value:
    """The logarithms of the forward variables of the labels after each sample's last step, ``(batch, states)``."""
    sizes = g.Shape(labels)
    width = g.Squeeze(g.Shape(labels, start=1, end=2), [0])
    places = g.Unsqueeze(g.Range(0, width, 1, dtype=int64), [0])
    skips = g.Not(g.Equal(labels, _behind(g, labels, sizes, 2, g.constant(-1))))  # not from a label to the same one
    skips = g.And(skips, g.GreaterOrEqual(places, 2))
    lowest = g.constant(-math.inf, x.dtype)
    start = g.Expand(g.Where(g.Equal(places, 0), g.constant(0, x.dtype), lowest, dtype=x.dtype), sizes)
    inner = Writer(g.opset, g)
    state = Value(inner.name("alpha"), x.dtype, (None, None))
    row, t = Value(inner.name("row"), x.dtype, x.shape[1:]), Value(inner.name("t"), int64, ())
    one, two = (_behind(inner, state, sizes, n, lowest) for n in (1, 2))
    two = inner.Where(skips, two, lowest, dtype=x.dtype)
    ways = inner.Concat(*(inner.Unsqueeze(a, [0]) for a in (state, one, two)), axis=0)
    made = inner.Add(_sum(inner, ways, 0), inner.GatherElements(row, labels, axis=1, dtype=x.dtype))
    made = inner.Where(inner.Less(t, inner.Unsqueeze(steps, [1])), made, state, dtype=x.dtype)
    made.shape = (None, None)
    body = inner.graph(inner.name("step"), [state, row, t], [made])
    count = g.Range(0, g.Squeeze(g.Shape(x, start=0, end=1), [0]), 1, dtype=int64)
    return g.op("Scan", start, x, count, body=body, num_scan_inputs=2)


def _behind(g: Writer, x: Value, sizes: Value, n: int, fill: Value) -> Value:
    """``x`` moved by ``n`` states to the right."""
    column = g.Expand(fill, g.Concat(g.Slice(sizes, [0], [1], [0]), [n], axis=0))
    return g.Slice(g.Concat(column, x, axis=1), [0], g.Slice(sizes, [1], [2], [0]), [1], dtype=x.dtype)


def _sum(g: Writer, x: Value, axis: int) -> Value:
    """The logarithm of the sum of exponentials, minus infinity where all are."""
    top = g.reduce("ReduceMax", x, [axis], True)
    top = g.Where(g.IsInf(top), g.constant(0, x.dtype), top, dtype=x.dtype)
    total = g.Log(g.reduce("ReduceSum", g.Exp(g.Sub(x, top)), [axis]))
    return g.Add(total, g.Squeeze(top, [axis]))
