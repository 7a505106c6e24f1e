"""Attention."""

from __future__ import annotations

import math

import numpy as np

from ..._core import bool_, float32
from ..writer import Unsupported, Value, Writer, is_static
from .shape import static_size
from .table import translates


@translates("nn.functional.scaled_dot_product_attention")
def scaled_dot_product_attention(
    g: Writer, query: Value, key: Value, value: Value, attn_mask: Value | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Value:  # fmt: skip
    """The node Attention, from opset 23 on, where it fits; else products and a softmax."""
    factor = 1 / math.sqrt(static_size(query, -1, "attention")) if scale is None else float(scale)
    if g.opset >= 23 and not dropout_p and _fits(query, key, value, attn_mask, is_causal):
        return g.Attention(query, key, value, attn_mask, is_causal=int(is_causal), scale=factor)
    if enable_gqa:
        groups = static_size(query, -3, "grouped attention"), static_size(key, -3, "grouped attention")
        key, value = (_repeated(g, x, groups[0] // groups[1]) for x in (key, value))
    swapped = [*range(key.rank - 2), key.rank - 1, key.rank - 2]
    scores = g.MatMul(g.Mul(query, factor), g.transpose(key, swapped))
    if is_causal:
        scores = g.Where(_causal(g, query, key), scores, g.constant(-math.inf, query.dtype), dtype=query.dtype)
    if attn_mask is not None and attn_mask.dtype is bool_:
        scores = g.Where(attn_mask, scores, g.constant(-math.inf, query.dtype), dtype=query.dtype)
    elif attn_mask is not None:
        scores = g.Add(scores, g.cast(attn_mask, query.dtype))
    weights = g.Softmax(scores, axis=-1)
    if attn_mask is not None or is_causal:  # rows without any element to attend to are 0
        weights = g.Where(g.IsNaN(weights), g.constant(0.0, query.dtype), weights, dtype=query.dtype)
    if dropout_p:
        weights = g.Dropout(weights, g.constant(float(dropout_p), float32), g.constant(True), outputs=2)[0]
    return g.MatMul(weights, value)


def _fits(query: Value, key: Value, value: Value, mask: Value | None, is_causal: bool) -> bool:
    """Whether the node Attention takes these: its mask is not broadcast along queries and keys."""
    sizes = str(query.shape[-2]), str(key.shape[-2])
    if {x.rank for x in (query, key, value)} != {4} or (is_causal and sizes[0] != sizes[1]):
        return False
    return mask is None or tuple(map(str, mask.shape[-2:])) == sizes


def _causal(g: Writer, query: Value, key: Value) -> Value:
    """Whether each place of the keys comes no later than the query's."""
    sizes = query.shape[-2], key.shape[-2]
    if is_static(sizes):
        return g.constant(np.tri(int(sizes[0]), int(sizes[1]), dtype=bool))
    rows, columns = (
        g.Range(g.constant(0), g.scalar(n) if isinstance(n, Value) else g.constant(n), g.constant(1))
        for n in (g.size(query, -2), g.size(key, -2))
    )  # fmt: skip
    return g.GreaterOrEqual(g.Unsqueeze(rows, [-1]), columns)


def _repeated(g: Writer, x: Value, times: int) -> Value:
    """Every head ``times`` times in a row."""
    if times == 1:
        return x
    if x.rank != 4:
        raise Unsupported("enable_gqa of other than four dimensions")
    wide = g.Expand(g.unsqueeze(x, [2]), g.ints([1, 1, times, 1, 1]))
    heads, width = static_size(x, 1, "grouped attention"), static_size(x, 3, "grouped attention")
    made = g.Reshape(wide, [0, heads * times, -1, width])
    made.shape = (x.shape[0], heads * times, x.shape[2], width)
    return made
