"""Scaled dot-product attention."""

from __future__ import annotations

import math

from .._core import Tensor, bool_
from .table import composite


def _check(query: Tensor, key: Tensor, value: Tensor, attn_mask, is_causal: bool) -> None:
    name = "scaled_dot_product_attention"
    for label, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() < 2:
            raise RuntimeError(
                f"{name}: Expected query, key, and value to all be at least 2 dimensional, but got {label} with {x.dim()}"
            )
        if x.dtype is not query.dtype:
            raise RuntimeError(
                f"{name}: Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype.name} "
                f"key.dtype: {key.dtype.name} and value.dtype: {value.dtype.name} instead."
            )
    if query.shape[-1] != key.shape[-1]:
        raise RuntimeError(
            f"{name}: query and key must have the same last dimension, got {tuple(query.shape)} and {tuple(key.shape)}"
        )
    if key.shape[-2] != value.shape[-2]:
        raise RuntimeError(f"{name}: key and value differ in length: {tuple(key.shape)} and {tuple(value.shape)}")
    if attn_mask is not None and is_causal:
        raise RuntimeError(f"{name}: Explicit attn_mask should not be set when is_causal=True")
    if attn_mask is not None and attn_mask.dtype is not bool_ and attn_mask.dtype is not query.dtype:
        raise RuntimeError(
            f"{name}: Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{attn_mask.dtype.name} and query.dtype: {query.dtype.name} instead."
        )


@composite(method=False)
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """``softmax(query @ key.T * scale + mask) @ value`` (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762).

    Args:
        query: ``[..., heads, l, e]``.
        key: ``[..., heads, s, e]``.
        value: ``[..., heads, s, ev]``.
        attn_mask: broadcasts to ``[..., heads, l, s]``: bool (true takes part), or numbers that are added.
        dropout_p: probability with which a weight is set to 0; the others grow in proportion.
        is_causal: position ``i`` sees positions up to ``i`` only.
        scale: of the scores, ``1 / sqrt(e)`` where not given.
        enable_gqa: ``key`` and ``value`` may have fewer heads, which then serve several heads of ``query`` each.
    Returns:
        ``[..., heads, l, ev]``. A row whose every weight is masked is 0.
    Raises:
        RuntimeError: shapes or dtypes do not match, or both a mask and ``is_causal`` are given.
    """
    _check(query, key, value, attn_mask, is_causal)
    if enable_gqa:
        heads = query.shape[-3]
        if heads % key.shape[-3] or heads % value.shape[-3]:
            raise RuntimeError(
                f"scaled_dot_product_attention: Number of heads in key and value must divide the number of heads in query, "
                f"got {key.shape[-3]}, {value.shape[-3]} and {heads}"
            )
        key = key.repeat_interleave(heads // key.shape[-3], -3)
        value = value.repeat_interleave(heads // value.shape[-3], -3)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * scale) @ key.transpose(-2, -1)
    hidden = None
    if is_causal:
        from .creation import ones

        hidden = ones((query.shape[-2], key.shape[-2]), dtype=bool_).triu(1)
    elif attn_mask is not None and attn_mask.dtype is bool_:
        hidden = ~attn_mask
    elif attn_mask is not None:
        scores = scores + attn_mask
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    weights = scores.softmax(-1)
    if attn_mask is not None:  # a row that sees nothing is 0, not NaN
        nothing = (scores == float("-inf")).all(-1, keepdim=True)
        weights = weights.masked_fill(nothing, 0.0)
    if dropout_p > 0.0:
        from .random import dropout

        weights = dropout(weights, dropout_p, True)
    return weights @ value
