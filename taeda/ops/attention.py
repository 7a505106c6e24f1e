"""Scaled dot-product attention."""

from __future__ import annotations

import math

from .. import _core
from .._core import Tensor, bool_
from .._core import attention as core
from ..kernels import attention as kernels
from . import flops
from .table import composite, primitive

_FUSED = ("float32", "float64", "float16", "bfloat16")


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


# ---- the fused op: queries, keys and values of shape [batch, heads, positions, numbers] ---------------------------------


@primitive(
    core.attention,
    method=False,
    out=False,
    outputs=("out", "log"),
    differentiable=[0],
    node="ScaledDotProductFlashAttentionForCpu",
    flops=flops.attention,
)
def _attention(query, key, value, mask, causal, scale):
    """Attention, and the logarithm of each row's sum of exponentials."""


@primitive(
    core.attention_backward,
    method=False,
    out=False,
    outputs=("query_grad", "key_grad", "value_grad"),
    flops=flops.attention_backward,
)
def _attention_backward(grad, query, key, value, mask, out, log, causal, scale):
    """Gradients of :func:`_attention` by its kernel. Not differentiable: see ``_attention_gradients``."""


@_attention.vjp_all("query", "key", "value")
def _attention_gradients(g, query, key, value, mask, causal, scale, out, log):
    if not _core.is_grad_enabled():
        return _attention_backward(g, query, key, value, mask, out, log, causal, scale)
    # A derivative of the derivative is wanted: the same in public ops.
    shared = query.shape[1] // key.shape[1]
    k, v = key, value
    if shared > 1:
        k, v = k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1)
    weights = _weights(query, k, mask, causal, scale)
    dw = g @ v.transpose(-2, -1)
    ds = weights * (dw - (dw * weights).sum(-1, keepdim=True)) * scale
    dk, dv = ds.transpose(-2, -1) @ query, weights.transpose(-2, -1) @ g
    if shared > 1:
        dk, dv = (x.unflatten(1, (-1, shared)).sum(2) for x in (dk, dv))
    return ds @ k, dk, dv


def _weights(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
    """The weights in public ops."""
    scores = (query * scale) @ key.transpose(-2, -1)
    hidden = None
    if causal:
        from .creation import ones

        hidden = ones((query.shape[-2], key.shape[-2]), dtype=bool_).triu(1)
    elif mask is not None and mask.dtype is bool_:
        hidden = ~mask
    elif mask is not None:
        scores = scores + mask
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    weights = scores.softmax(-1)
    if mask is not None:  # a row that sees nothing is 0, not NaN
        nothing = (scores == float("-inf")).all(-1, keepdim=True)
        weights = weights.masked_fill(nothing, 0.0)
    return weights


def _fits(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float) -> bool:
    """Whether the fused op covers the call."""
    if dropout_p > 0.0 or query.dtype.name not in _FUSED or not 2 <= query.dim() <= 4:
        return False
    if key.dim() != query.dim() or value.dim() != query.dim() or (mask is not None and mask.requires_grad):
        return False
    if key.shape[:-1] != value.shape[:-1] or query.shape[:-3] != key.shape[:-3]:
        return False
    heads = (query.shape[-3], key.shape[-3]) if query.dim() > 2 else (1, 1)
    if not query.numel() or not key.numel() or not value.numel() or heads[0] % heads[1]:
        return False
    return max(query.shape[-1], value.shape[-1]) <= kernels.MAX_HEAD


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
    if core.fits(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa):
        scale = 1 / math.sqrt(query.size(3)) if scale is None else scale
        return _attention(query, key, value, attn_mask, is_causal, scale)[0]
    _check(query, key, value, attn_mask, is_causal)
    if enable_gqa:
        heads = query.shape[-3]
        if heads % key.shape[-3] or heads % value.shape[-3]:
            raise RuntimeError(
                f"scaled_dot_product_attention: Number of heads in key and value must divide the number of heads in query, "
                f"got {key.shape[-3]}, {value.shape[-3]} and {heads}"
            )
    scale = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale  # without features all scores are 0
    if _fits(query, key, value, attn_mask, dropout_p) and (enable_gqa or query.shape[:-2] == key.shape[:-2]):
        if query.dim() == 4:
            return _attention(query, key, value, attn_mask, is_causal, scale)[0]
        lead = (None,) * (4 - query.dim())
        out = _attention(query[lead], key[lead], value[lead], attn_mask, is_causal, scale)[0]
        return out[(0,) * len(lead)]
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    dtype = query.dtype
    if dtype.itemsize == 2:
        query, key, value = (x.to(_core.float32) for x in (query, key, value))
    weights = _weights(query, key, attn_mask, is_causal, scale)
    if dropout_p > 0.0:
        from .random import dropout

        weights = dropout(weights, dropout_p, True)
    return (weights @ value).to(dtype)
