"""Scaled dot-product attention."""

from __future__ import annotations

import math

from .. import _core
from .._core import Tensor, bool_
from .._core import attention as core
from .._core.devices import REGISTERED, current_place
from . import _attention as launching
from . import flops
from .creation import ones
from .dropout import dropout
from .table import composite, primitive
from .views import broadcast_shapes

_FUSED = ("float32", "float64", "float16", "bfloat16")


def _check(query: Tensor, key: Tensor, value: Tensor, attn_mask, is_causal: bool) -> None:
    name = "scaled_dot_product_attention"
    for label, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() < 2:
            raise RuntimeError(
                f"{name}: Expected query, key, and value to all be at least 2 dimensional, but got {label} with "
                f"{x.dim()}"
            )
        if not (x.dtype.is_floating_point or x.dtype.is_complex):
            raise RuntimeError(f"{name}: expected floating point tensors, got {label} of {x.dtype}")
        if x.dtype is not query.dtype:
            raise RuntimeError(
                f"{name}: Expected query, key, and value to have the same dtype, but got query.dtype: "
                f"{query.dtype.name} key.dtype: {key.dtype.name} and value.dtype: {value.dtype.name} instead."
            )
    if query.shape[-1] != key.shape[-1]:
        raise RuntimeError(
            f"{name}: query and key must have the same last dimension, got {tuple(query.shape)} and {tuple(key.shape)}"
        )
    if key.shape[-2] != value.shape[-2]:
        raise RuntimeError(f"{name}: key and value differ in length: {tuple(key.shape)} and {tuple(value.shape)}")
    if attn_mask is not None and is_causal:
        raise RuntimeError(f"{name}: Explicit attn_mask should not be set when is_causal=True")
    if attn_mask is not None and attn_mask.dtype not in (bool_, _core.float32, query.dtype):
        raise RuntimeError(
            f"{name}: Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{attn_mask.dtype.name} and query.dtype: {query.dtype.name} instead."
        )


def _check_sizes(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, gqa: bool) -> None:
    """Refuse sizes that do not broadcast, for the definition, whose products would name themselves."""
    name = "scaled_dot_product_attention"
    kept = -3 if gqa else -2
    try:
        lead = broadcast_shapes(query.shape[:kept], key.shape[:kept])
        broadcast_shapes(lead, value.shape[:kept])
    except RuntimeError:
        shapes = ", ".join(str(tuple(x.shape)) for x in (query, key, value))
        mend = "" if gqa else " (enable_gqa=True lets several heads of query share one of key and value)"
        raise RuntimeError(
            f"{name}: the batch sizes and heads of query, key and value do not broadcast: {shapes}{mend}"
        ) from None
    if mask is not None:
        scores = (*lead, *query.shape[kept:-1], key.shape[-2])
        fits = all(n in (1, m) for n, m in zip(mask.shape[::-1], scores[::-1], strict=False))
        if mask.dim() > len(scores) or not fits:
            raise RuntimeError(
                f"{name}: attn_mask of shape {tuple(mask.shape)} does not broadcast to the scores' shape {scores}"
            )


# ---- the fused op: queries, keys and values of shape [batch, heads, positions, numbers] ------------------------------


@primitive(
    launching.attention, method=False, out=False, planned=True, outputs=("out", "sums"), differentiable=[0],
    node="ScaledDotProductFlashAttentionForCpu", flops=flops.attention, copied=("query", "key", "out"),
)  # fmt: skip
def _attention(query, key, value, mask, causal, scale):
    """Attention, and each row's maximum with 1 over its sum of exponentials."""


@primitive(
    launching.attention_dropout, method=False, out=False, planned=True, outputs=("out", "sums", "states"),
    differentiable=[0], node="ScaledDotProductFlashAttentionForCpu", flops=flops.attention, random="noise",
    copied=("query", "key", "out"),
)  # fmt: skip
def _attention_dropout(query, key, value, mask, causal, scale, dropout):
    """:func:`_attention` with weights dropped, and the generator's states from which they can be drawn again."""


@primitive(core.kept, method=False, out=False)
def _attention_kept(states, query, key, dropout):
    """The factors by which dropout multiplied the weights, drawn again from the generator's ``states``."""


def _attention_gradients(grad, query, key, value, mask, causal, scale, dropout, states):
    shared = query.shape[1] // key.shape[1]
    k, v = key, value
    if shared > 1:
        k, v = k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1)
    weights = dropped = _weights(query, k, mask, causal, scale)
    dw = grad @ v.transpose(-2, -1)
    if states is not None:
        kept = _attention_kept(states, query, key, dropout)
        dropped, dw = weights * kept, dw * kept
    ds = weights * (dw - (dw * weights).sum(-1, keepdim=True)) * scale
    dk, dv = ds.transpose(-2, -1) @ query, dropped.transpose(-2, -1) @ grad
    if shared > 1:
        dk, dv = (x.unflatten(1, (-1, shared)).sum(2) for x in (dk, dv))
    return ds @ k, dk, dv


def with_sums(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool, scale: float | None
) -> tuple[Tensor, Tensor]:
    """:func:`scaled_dot_product_attention` of four dimensions, and the logarithm of each row's sum of exponentials.

    The latter is in float32, outside the graph, and 0 for a row that sees nothing.
    """
    factor = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale
    if not dropout and core.fits(query, key, value, mask, 0.0, causal, False):
        out, sums = _attention(query, key, value, mask, causal, factor)
        logs = sums[..., 0] - sums[..., 1].log()
    else:
        out = scaled_dot_product_attention(query, key, value, mask, dropout, causal, scale)
        logs = _scores(query.detach(), key.detach(), mask, causal, factor).logsumexp(-1).to(_core.float32)
    logs = logs.detach().masked_fill(logs.isinf(), 0.0)
    return out, logs.transpose(1, 2).contiguous().transpose(1, 2)


def _scores(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
    """The scores, in public ops; minus infinity where a query does not see a key."""
    scores = (query * scale) @ key.transpose(-2, -1)
    hidden = None
    if causal:
        hidden = ones((query.shape[-2], key.shape[-2]), dtype=bool_).triu(1)
    elif mask is not None and mask.dtype is bool_:
        hidden = ~mask
    elif mask is not None:
        scores = scores + mask
    return scores if hidden is None else scores.masked_fill(hidden, float("-inf"))


def _weights(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
    """The weights in public ops."""
    scores = _scores(query, key, mask, causal, scale)
    if mask is None:
        return scores.softmax(-1)
    nothing = (scores == float("-inf")).all(-1, keepdim=True)  # a row that sees nothing is 0, not NaN
    return scores.masked_fill(nothing, 0.0).softmax(-1).masked_fill(nothing, 0.0)


@primitive(
    launching.attention_backward, method=False, out=False, planned=True,
    outputs=("query_grad", "key_grad", "value_grad"), decomposition=_attention_gradients,
    flops=flops.attention_backward,
)  # fmt: skip
def _attention_backward(grad, query, key, value, mask, out, sums, causal, scale, dropout=0.0, states=None):
    """Gradients of :func:`_attention`."""


_attention.vjp_all("query", "key", "value")(
    lambda g, query, key, value, mask, causal, scale, out, sums: _attention_backward(
        g, query, key, value, mask, out, sums, causal, scale
    )
)
_attention_dropout.vjp_all("query", "key", "value")(
    lambda g, query, key, value, mask, causal, scale, dropout, out, sums, states: _attention_backward(
        g, query, key, value, mask, out, sums, causal, scale, dropout, states
    )
)


def _fused(query, key, value, mask, dropout, causal, scale):
    if dropout > 0:
        return _attention_dropout(query, key, value, mask, causal, scale, dropout)[0]
    return _attention(query, key, value, mask, causal, scale)[0]


def _leading(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, gqa: bool):
    """The sizes before ``[heads, positions, numbers]`` (heads not with ``gqa``) to which the fused op may expand its
    operands.

    Returns None where it does not cover the call. The definition then runs, which also reports wrong arguments.
    """
    if not 0 <= dropout < 1 or query.dtype.name not in _FUSED or (mask is not None and mask.requires_grad):
        return None
    if not query.numel() or not key.numel() or not value.numel():
        return None
    kept = -3 if gqa else -2
    try:
        scores = broadcast_shapes(query.shape[:kept], key.shape[:kept])
        lead = broadcast_shapes(scores, value.shape[:kept])
    except RuntimeError:
        return None
    if (gqa and key.shape[-3] != value.shape[-3]) or (
        dropout > 0 and scores != lead
    ):  # a weight is dropped for all values
        return None
    if mask is not None:
        whole = (*lead, *query.shape[kept:-1], key.shape[-2])
        if mask.dim() > min(len(whole), 4 if len(whole) == 4 else 3):
            return None
        if any(m not in (1, n) for m, n in zip(mask.shape[::-1], whole[::-1], strict=False)):
            return None
    return lead


def _by_definition(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    """Attention in public ops."""
    scale = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale  # without features all scores are 0
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    dtype = query.dtype
    if dtype.itemsize == 2:
        query, key, value = (x.to(_core.float32) for x in (query, key, value))
        if attn_mask is not None and attn_mask.is_floating_point():
            attn_mask = attn_mask.to(_core.float32)
    weights = _weights(query, key, attn_mask, is_causal, scale)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p, True)
    return (weights @ value).to(dtype)


def _with_causal(mask: Tensor, rows: int, columns: int) -> Tensor:
    """A mask that lets through what ``mask`` does and is not after the row's position."""
    causal = ones((rows, columns), dtype=bool_).tril()
    return mask & causal if mask.dtype is bool_ else mask.masked_fill(causal.logical_not(), -math.inf)


#: The kernels that may be used, by PyTorch's names for them. ``math`` is the definition; on the CPU the fused op is
#: ``flash``, and on a device any of the others.
ALLOWED = {"cudnn": True, "flash": True, "mem_efficient": True, "math": True, "overrideable": True}


def _kernels(query: Tensor, value: Tensor) -> tuple[bool, bool]:
    """Return whether the fused op and the definition may be used on this thread's device. Where the fused op has no
    room for a row, the definition stands for all kernels.
    """
    contract = REGISTERED[current_place()]
    if contract is None:
        return ALLOWED["flash"], ALLOWED["math"]
    if contract.attention is not None and not contract.attention.covers(query, value):
        return False, True
    return ALLOWED["flash"] or ALLOWED["mem_efficient"] or ALLOWED["cudnn"], ALLOWED["math"]


@composite(method=False, autocast="lower", lowering=_by_definition, random="noise")
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale: float | None = None, enable_gqa=False
):
    """``softmax(query @ key^T * scale + mask) @ value``: for each query a mean of the values, weighted by its likeness
    to the keys.

    Computed piece by piece: the scores are never in memory as a whole. Source: Vaswani et al. 2017, "Attention Is All
    You Need".

    Args:
        query: ``(*, H, L, E)``, with ``H`` heads; floating-point.
        key: ``(*, H, S, E)``.
        value: ``(*, H, S, Ev)``.
        attn_mask: broadcasts to ``(*, H, L, S)``: bools, of which True takes part, or numbers that are added.
        dropout_p: probability with which a weight becomes 0; the others grow in proportion.
        is_causal: position ``i`` sees positions up to ``i`` only.
        scale: factor of the scores; ``1 / sqrt(E)`` if None.
        enable_gqa: ``key`` and ``value`` may have fewer heads, each of which serves several of ``query``.

    Returns:
        ``(*, H, L, Ev)``. A row whose every weight is masked is 0.

    Raises:
        RuntimeError: shapes or dtypes do not match, or both a mask and ``is_causal`` are given and the arguments are
            not such that PyTorch's fused kernel applies both (four dimensions, no dropout, a mask without gradient).

    Examples:
        >>> query, key, value = taeda.randn(3, 2, 8, 5, 16)  # two sequences of five, eight heads of 16
        >>> F.scaled_dot_product_attention(query, key, value, is_causal=True).shape
        taeda.Size([2, 8, 5, 16])
    """
    by_tiles, by_definition = _kernels(query, value)
    if by_tiles and core.fits(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa):
        scale = 1 / math.sqrt(query.size(3)) if scale is None else scale
        return _fused(query, key, value, attn_mask, dropout_p, is_causal, scale)
    if is_causal and attn_mask is not None and query.dim() == 4 and not (dropout_p or attn_mask.requires_grad):
        both = _with_causal(attn_mask, query.shape[-2], key.shape[-2])
        return scaled_dot_product_attention(query, key, value, both, 0.0, False, scale, enable_gqa)
    _check(query, key, value, attn_mask, is_causal)
    if attn_mask is not None and attn_mask.dtype is _core.float32 is not query.dtype:
        dtype = _core.promote_types(query.dtype, _core.float32)  # the mask may hold numbers that query's dtype cannot
        query_key_value = (x.to(dtype) for x in (query, key, value))
        out = scaled_dot_product_attention(
            *query_key_value, attn_mask.to(dtype), dropout_p, is_causal, scale, enable_gqa
        )
        return out.to(query.dtype)
    if enable_gqa:
        heads = query.shape[-3]
        if heads % key.shape[-3] or heads % value.shape[-3]:
            raise RuntimeError(
                "scaled_dot_product_attention: Number of heads in key and value must divide the number of heads in "
                f"query, got {key.shape[-3]}, {value.shape[-3]} and {heads}"
            )
    scale = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale  # without features all scores are 0
    lead = _leading(query, key, value, attn_mask, dropout_p, enable_gqa)
    if lead is not None and by_tiles:
        kept = -3 if enable_gqa else -2
        query, key, value = (x.expand(*lead, *x.shape[kept:]) for x in (query, key, value))
        shape = query.shape[:-2]
        if query.dim() > 4:
            query, key, value = (x.flatten(0, -4) for x in (query, key, value))
        first = (None,) * (4 - query.dim())
        out = _fused(query[first], key[first], value[first], attn_mask, dropout_p, is_causal, scale)
        out = out.view(*shape, *out.shape[-2:])
        return out if len(shape) == 2 else out.contiguous()  # as by the definition
    _check_sizes(query, key, value, attn_mask, enable_gqa)
    if not by_definition:
        kernels = ", ".join(kernel for kernel, allowed in ALLOWED.items() if allowed)
        raise RuntimeError(
            f"scaled_dot_product_attention: of the kernels that are allowed ({kernels or 'none'}) there is none for "
            "this call; allow SDPBackend.MATH as well"
        )
    return _by_definition(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
