"""Multi-head attention as a function: projections, masks, scaled dot-product attention."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .._core import bool_
from .._typed import Tensor
from ..ops.attention import scaled_dot_product_attention
from ..ops.creation import zeros_like
from ..ops.dropout import dropout  # type: ignore[attr-defined]  # made from a table
from ..ops.joining import cat
from ..ops.matmul import baddbmm, linear
from ..ops.softmax import softmax
from ..ops.table import traits


def canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: Any, other_name: str, target_type: Any, check_other: bool = True
) -> Tensor | None:
    """A mask as numbers to add: a bool mask becomes minus infinity where true."""
    if mask is None:
        return None
    if mask.dtype != bool_ and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=3,
        )
    if mask.is_floating_point():
        return mask
    return zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def check_shapes(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    """Whether the input is batched."""
    n = query.dim()
    if n not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {n}-D query tensor")
    what = f"For {'batched (3-D)' if n == 3 else 'unbatched (2-D)'} `query`, expected"
    if key.dim() != n or value.dim() != n:
        raise AssertionError(
            f"{what} `key` and `value` to be {n}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != n - 1:
        raise AssertionError(
            f"{what} `key_padding_mask` to be `None` or {n - 1}-D but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"{what} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead"
            )
        shape = (num_heads, query.shape[0], key.shape[0])
        if n == 2 and attn_mask.dim() == 3 and attn_mask.shape != shape:
            raise AssertionError(f"Expected `attn_mask` shape to be {shape} but got {tuple(attn_mask.shape)}")
    return n == 3


def _project(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor | None, separate: tuple, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values; one product serves as many of them as share their input."""
    if weight is None:
        if any(w is None for w in separate):
            raise AssertionError(
                "use_separate_proj_weight is True but q_proj_weight, k_proj_weight or v_proj_weight is None"
            )
        biases = (None, None, None) if bias is None else bias.chunk(3)
        return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), separate, biases, strict=True))
    e = query.size(-1)
    if key is value:
        if query is key:
            return linear(query, weight, bias).chunk(3, -1)
        wq, wkv = weight.split([e, 2 * e])
        bq, bkv = (None, None) if bias is None else bias.split([e, 2 * e])
        return (linear(query, wq, bq), *linear(key, wkv, bkv).chunk(2, -1))
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), weight.chunk(3), biases, strict=True))


def _extend(x: Tensor, extra: Tensor, dim: int) -> Tensor:
    return cat([x, extra], dim)


def _one_more(mask: Tensor | None) -> Tensor | None:
    """A mask with one more, visible, key."""
    return None if mask is None else _extend(mask, mask.new_zeros((*mask.shape[:-1], 1)), -1)


@traits(random="noise")
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True,
    key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """The computation of :class:`taeda.nn.MultiheadAttention`, as a function of its weights.

    Args:
        query: ``(L, N, E)`` or ``(L, E)``; floating-point.
        key: ``(S, N, kdim)`` or ``(S, kdim)``.
        value: ``(S, N, vdim)`` or ``(S, vdim)``.
        embed_dim_to_check: ``E``.
        num_heads: number of heads.
        in_proj_weight: ``(3 * E, E)``, or None with separate ones.
        in_proj_bias: ``(3 * E,)``, or None.
        bias_k: a key to append, ``(1, 1, E)``, or None.
        bias_v: its value, ``(1, 1, E)``, or None.
        add_zero_attn: append a key and a value of zeros.
        dropout_p: probability of dropping a weight.
        out_proj_weight: ``(E, E)``.
        out_proj_bias: ``(E,)``, or None.
        training: whether weights are dropped.
        key_padding_mask: ``(N, S)``: True for keys that do not count, or numbers that are added.
        need_weights: give also the weights.
        attn_mask: ``(L, S)`` or ``(N * num_heads, L, S)``: the same, for each query.
        use_separate_proj_weight: take the next three rather than ``in_proj_weight``.
        q_proj_weight: ``(E, E)``.
        k_proj_weight: ``(E, kdim)``.
        v_proj_weight: ``(E, vdim)``.
        static_k: keys to use instead, ``(N * num_heads, S, E / num_heads)``.
        static_v: values to use instead.
        average_attn_weights: give the weights' mean over the heads.
        is_causal: ``attn_mask`` is the causal one and need not be read.

    Returns:
        The output ``(L, N, E)``, and the weights ``(N, L, S)`` or None.

    Raises:
        AssertionError: the shapes do not go together.

    Examples:
        >>> m, x = nn.MultiheadAttention(8, 2), taeda.randn(5, 1, 8)
        >>> y, weights = F.multi_head_attention_forward(
        ...     x, x, x, 8, 2, m.in_proj_weight, m.in_proj_bias, None, None, False, 0.0, m.out_proj.weight,
        ...     m.out_proj.bias,
        ... )
        >>> y.shape, weights.shape
        (taeda.Size([5, 1, 8]), taeda.Size([1, 5, 5]))
    """
    batched = check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_kv, same_qk = key is value, query is key
        query = query.unsqueeze(1)
        key = query if same_qk else key.unsqueeze(1)
        value = key if same_kv else value.unsqueeze(1)
        key_padding_mask = key_padding_mask.unsqueeze(0) if key_padding_mask is not None else None
    tgt, batch, embed = query.shape
    src = key.shape[0]
    other = attn_mask.dtype if attn_mask is not None else None
    key_padding_mask = canonical_mask(key_padding_mask, "key_padding_mask", other, "attn_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        is_causal = is_causal and key_padding_mask is None
    if embed != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed}")
    if num_heads <= 0:
        raise ValueError(f"num_heads must be greater than 0, got {num_heads}")
    head = embed // num_heads
    if head * num_heads != embed:
        raise AssertionError(f"embed_dim {embed} not divisible by num_heads {num_heads}")
    agree = key.shape[:2] == value.shape[:2] if use_separate_proj_weight else key.shape == value.shape
    if not agree:
        raise AssertionError(f"key shape {tuple(key.shape)} does not match value shape {tuple(value.shape)}")
    if key.shape[1] != batch and static_k is None:
        raise RuntimeError(
            f"multi_head_attention_forward: query and key have other batch sizes, {batch} and {key.shape[1]}"
        )
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    q, k, v = _project(query, key, value, None if use_separate_proj_weight else in_proj_weight, separate, in_proj_bias)
    if attn_mask is not None:
        expected = (tgt, src) if attn_mask.dim() == 2 else (batch * num_heads, tgt, src)
        if tuple(attn_mask.shape) != expected:
            raise RuntimeError(
                f"The shape of the {attn_mask.dim()}D attn_mask is {tuple(attn_mask.shape)}, but should be {expected}."
            )
        attn_mask = attn_mask.unsqueeze(0) if attn_mask.dim() == 2 else attn_mask
    if (bias_k is None) != (bias_v is None):
        raise AssertionError("bias_k and bias_v must both be given, or neither")
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k, v = _extend(k, bias_k.repeat(1, batch, 1), 0), _extend(v, bias_v.repeat(1, batch, 1), 0)
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    # one batch of heads: (N * num_heads, length, head)
    q = q.reshape(tgt, batch * num_heads, head).transpose(0, 1)
    k = k.reshape(k.shape[0], batch * num_heads, head).transpose(0, 1) if static_k is None else static_k
    v = v.reshape(v.shape[0], batch * num_heads, head).transpose(0, 1) if static_v is None else static_v
    if add_zero_attn:
        zero = k.new_zeros((batch * num_heads, 1, head))
        k, v = _extend(k, zero, 1), _extend(v, zero, 1)
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    src = k.size(1)
    if key_padding_mask is not None:
        if tuple(key_padding_mask.shape) != (batch, src):
            raise AssertionError(
                f"expecting key_padding_mask shape of {(batch, src)}, but got {tuple(key_padding_mask.shape)}"
            )
        per_head = (
            key_padding_mask.view(batch, 1, 1, src).expand(-1, num_heads, -1, -1).reshape(batch * num_heads, 1, src)
        )
        attn_mask = per_head if attn_mask is None else attn_mask + per_head
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        q, k = q * math.sqrt(1.0 / head), k.transpose(-2, -1)
        weights = softmax(q @ k if attn_mask is None else baddbmm(attn_mask, q, k), -1)
        if dropout_p > 0.0:
            weights = dropout(weights, dropout_p, True)
        context = weights @ v
    else:
        if attn_mask is not None:
            if attn_mask.size(0) == 1:
                attn_mask = attn_mask.unsqueeze(0)
            else:
                attn_mask = attn_mask.view(batch, num_heads, -1, src)
        heads = [t.reshape(batch, num_heads, t.shape[1], head) for t in (q, k, v)]
        context = scaled_dot_product_attention(*heads, attn_mask, dropout_p, is_causal)
        context = context.reshape(batch * num_heads, tgt, head)
    output = linear(context.transpose(0, 1).reshape(tgt * batch, embed), out_proj_weight, out_proj_bias)
    output = output.view(tgt, batch, output.size(1))
    if not batched:
        output = output.squeeze(1)
    if not need_weights:
        return output, None
    weights = weights.view(batch, num_heads, tgt, src)
    weights = weights.mean(dim=1) if average_attn_weights else weights
    return output, (weights if batched else weights.squeeze(0))
