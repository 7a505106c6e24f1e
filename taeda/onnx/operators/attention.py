"""ONNX's scaled dot-product attention."""

from __future__ import annotations

import math
from math import inf
from typing import Any

import taeda.nn.functional as F

from ..._core import bool_
from ..._typed import Tensor
from ...ops.comparison import isnan
from ...ops.creation import arange, zeros_like
from ...ops.elementary import tanh
from ...ops.exchange import tensor
from ...ops.indexing import where
from ...ops.joining import cat
from ..table import op
from ..values import DTYPES


def _heads(x: Tensor, count: int | None) -> Tensor:
    """(batch, steps, heads * size) as (batch, heads, steps, size)."""
    if x.ndim == 4:
        return x
    if not count:
        raise ValueError("expected q_num_heads and kv_num_heads for inputs of 3 dimensions")
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def _allowed(
    rows: int, columns: int, past: int, lengths: Tensor | None, causal: int, left: int, right: int
) -> Tensor | None:
    """The keys that a query may see, by the positions of both; None if all."""
    keys, allowed = arange(columns), []
    offset = tensor(past) if lengths is None or past else (lengths - rows).reshape(-1, 1, 1, 1)
    here = arange(rows).unsqueeze(1) + offset
    if causal:
        allowed.append(keys <= here)
    if left >= 0:
        allowed.append(keys >= here - left)
    if right >= 0:
        allowed.append(keys <= here + right)
    if lengths is not None:
        allowed.append(keys < lengths.reshape(-1, 1, 1, 1))
    result = None
    for mask in allowed:
        result = mask if result is None else result & mask
    return result


def _bias(mask: Tensor | None, allowed: Tensor | None, columns: int, dtype: Any) -> Tensor | None:
    """The addend of the products: -inf where a key is not seen."""
    bias = None
    if mask is not None:
        bias = where(mask, 0.0, -inf).to(dtype) if mask.dtype == bool_ else mask
        if mask.shape[-1] < columns:  # a mask may leave out the padding of a cache
            bias = F.pad(bias, [0, columns - mask.shape[-1]], value=-inf)
    if allowed is not None:
        hidden = where(allowed, 0.0, -inf).to(dtype)
        bias = hidden if bias is None else bias + hidden
    return bias


@op("Attention", outputs=True)
def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, past_key: Tensor | None = None,
    past_value: Tensor | None = None, lengths: Tensor | None = None, *, outputs: int, is_causal: int = 0,
    kv_num_heads: int | None = None, left_window_size: int = -1, q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0, right_window_size: int = -1, scale: float | None = None, softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The result, keys and values joined to the past ones, and the matrix of one of four steps."""
    flat = query.ndim == 3
    q, k, v = _heads(query, q_num_heads), _heads(key, kv_num_heads), _heads(value, kv_num_heads)
    past = 0 if past_key is None else past_key.shape[-2]
    if past_key is not None and past_value is not None:
        k, v = cat([past_key, k], -2), cat([past_value, v], -2)
    present = (k, v)
    if q.shape[1] != k.shape[1]:
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    rows, columns = q.shape[-2], k.shape[-2]
    allowed = _allowed(rows, columns, past, lengths, is_causal, left_window_size, right_window_size)
    bias = _bias(mask, allowed, columns, q.dtype)
    if outputs < 4 and not softcap and softmax_precision is None and q.shape[-1] == v.shape[-1]:
        y, steps = _guarded(F.scaled_dot_product_attention(q, k, v, bias, scale=scale), bias), []
    else:
        y, steps = _by_steps(q, k, v, bias, scale, softcap, softmax_precision)
    if flat:
        y = y.transpose(1, 2).flatten(2)
    return (y, *present, steps[qk_matmul_output_mode]) if steps else (y, *present)


def _guarded(y: Tensor, bias: Tensor | None) -> Tensor:
    """Rows without any key are 0."""
    if bias is None:
        return y
    return where((bias == -inf).all(-1, keepdim=True), zeros_like(y), y)


def _by_steps(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float | None, softcap: float, precision: int | None
) -> tuple[Tensor, list[Tensor]]:
    root = math.sqrt(scale if scale is not None else 1 / math.sqrt(q.shape[-1]))
    products = (q * root) @ (k * root).transpose(-1, -2)
    capped = softcap * tanh(products / softcap) if softcap else products
    biased = capped if bias is None else capped + bias
    weights = F.softmax(biased.to(DTYPES[precision]) if precision else biased, -1).to(q.dtype)
    weights = where(isnan(weights), 0, weights) if bias is not None else weights
    return weights @ v, [products, capped, biased, weights]
