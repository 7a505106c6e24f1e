"""Bags of embeddings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core import int64
from ..writer import Unsupported, Value, Writer
from .shape import static_size
from .table import translates

_FAR = 2**63 - 1


@translates("embedding_bag")
def embedding_bag(
    g: Writer, weight: Value, indices: Value, offsets: Value, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Value | None = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple:  # fmt: skip
    """Bags of a line of places, each from its offset to the next: a table says which place is in which bag."""
    starts = g.slice(offsets, [0], [-1], [0]) if include_last_offset else offsets
    line = g.Range(g.constant(0), g.Squeeze(g.Shape(indices), [0]), g.constant(1))
    ends = g.Concat(g.slice(g.cast(starts, int64), [1], [_FAR], [0]), g.Shape(indices), axis=0)
    after = g.GreaterOrEqual(line, g.Unsqueeze(g.cast(starts, int64), [-1]))
    inside = g.And(after, g.Less(line, g.Unsqueeze(ends, [-1])))  # (bags, places)
    if padding_idx is not None:
        inside = g.And(inside, g.Not(g.Equal(g.cast(indices, int64), padding_idx % int(weight.shape[0]))))
    return (bagged(g, weight, indices, inside, mode, per_sample_weights), None, None, None)


def bagged(
    g: Writer, weight: Value, indices: Value, inside: Value, mode: int, scales: Value | None
) -> Value:  # fmt: skip
    """Sums, means or maxima (0, 1, 2) of rows over bags, 0 for empty ones."""
    rows, table = g.Gather(weight, indices, axis=0), g.cast(inside, weight.dtype)
    count = g.reduce("ReduceSum", table, [-1], True)
    if mode == 2:
        low = g.constant(-math.inf, weight.dtype)
        spread = g.Where(g.Unsqueeze(inside, [-1]), g.Unsqueeze(rows, [0]), low, dtype=weight.dtype)
        made = g.reduce("ReduceMax", spread, [1])
        return g.Where(g.Equal(count, 0.0), g.constant(0.0, weight.dtype), made, dtype=weight.dtype)
    rows = rows if scales is None else g.Mul(rows, g.Unsqueeze(scales, [-1]))
    made = g.MatMul(table, rows)
    return made if mode == 0 else g.Div(made, g.Max(count, 1.0))


@translates("nn.functional.embedding_bag")
def embedding_bag_of(
    g: Writer, input: Value, weight: Value, offsets: Value | None = None, max_norm: Any = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Value | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Value:  # fmt: skip
    if max_norm is not None:
        raise Unsupported("embedding_bag with max_norm writes to its weights; normalise them before export")
    kind = ("sum", "mean", "max").index(mode)
    if input.rank == 1:
        return embedding_bag(
            g, weight, input, offsets, False, kind, False, per_sample_weights, include_last_offset, padding_idx
        )[0]  # fmt: skip
    bags, size = static_size(input, 0, "embedding_bag"), static_size(input, 1, "embedding_bag")
    offsets = g.constant(np.arange(bags) * size)
    line = g.Reshape(input, [-1])
    scales = None if per_sample_weights is None else g.Reshape(per_sample_weights, [-1])
    return embedding_bag(g, weight, line, offsets, False, kind, False, scales, False, padding_idx)[0]
