"""MultiheadAttention."""

from __future__ import annotations

from typing import Any

from ..._typed import Tensor
from ...ops.creation import empty
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Several heads of ``softmax(q k^T / sqrt(d)) v``: each query takes a weighted mean of the values, by its likeness
    to keys.

    ``q``, ``k`` and ``v`` are learnt projections of ``query``, ``key`` and ``value``, cut into ``num_heads`` heads of
    ``d = embed_dim / num_heads``; the heads' results are joined and projected. Source: Vaswani et al. 2017, "Attention
    Is All You Need".

    Args:
        embed_dim: ``E``, the size of the query and the output.
        num_heads: number of heads, a divisor of it.
        dropout: probability of dropping an attention weight, in training.
        bias: whether the projections have one.
        add_bias_kv: append a learnt key and value.
        add_zero_attn: append a key and a value of zeros.
        kdim: size of the keys; ``E`` if None.
        vdim: size of the values; ``E`` if None.
        batch_first: tensors are ``(N, L, E)`` rather than ``(L, N, E)``.
        device: of the parameters.
        dtype: of the parameters.

    Shape:
        query: ``(L, N, E)`` or ``(L, E)``. Floating-point.
        key: ``(S, N, kdim)`` or ``(S, kdim)``.
        value: ``(S, N, vdim)`` or ``(S, vdim)``.
        key_padding_mask: ``(N, S)`` or ``(S,)``: True for keys that do not count, or numbers that are added to the
            scores.
        attn_mask: ``(L, S)`` or ``(N * num_heads, L, S)``: the same, for each query. With ``is_causal`` a hint.
        output: the shape of ``query``; and the weights ``(N, L, S)``, the heads' mean, for each head with
            ``average_attn_weights=False``, None with ``need_weights=False``, which is faster.

    Raises:
        ValueError: a size is not positive.
        AssertionError: ``num_heads`` does not divide ``embed_dim``.
        RuntimeError: in a call, the shapes do not fit.

    Examples:
        >>> attention = nn.MultiheadAttention(embed_dim=16, num_heads=4, batch_first=True)
        >>> x = taeda.randn(2, 5, 16)
        >>> y, weights = attention(x, x, x)
        >>> y.shape, weights.shape
        (taeda.Size([2, 5, 16]), taeda.Size([2, 5, 5]))
        >>> bool(taeda.allclose(weights.sum(-1), taeda.ones(2, 5)))
        True
    """

    __constants__ = ("batch_first",)

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            fits = ", ".join(str(n) for n in range(1, embed_dim + 1) if embed_dim % n == 0)
            raise AssertionError(
                f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}; num_heads may be {fits}"
            )

        def parameter(*shape: int) -> Parameter:
            return Parameter(empty(shape, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = parameter(embed_dim, embed_dim)
            self.k_proj_weight = parameter(embed_dim, self.kdim)
            self.v_proj_weight = parameter(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        if add_bias_kv:
            self.bias_k: Parameter | None = parameter(1, 1, embed_dim)
            self.bias_v: Parameter | None = parameter(1, 1, embed_dim)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            init.xavier_uniform_(self.q_proj_weight)
            init.xavier_uniform_(self.k_proj_weight)
            init.xavier_uniform_(self.v_proj_weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def __setstate__(self, state) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """The output ``(L, N, E)`` and, if ``need_weights``, the attention weights ``(N, L, S)``.

        Args:
            query: ``(L, N, E)``, ``(N, L, E)`` if ``batch_first``, or ``(L, E)``.
            key: the same with ``S`` and ``kdim``.
            value: the same with ``S`` and ``vdim``.
            key_padding_mask: ``(N, S)``, true (or a number to add) for keys to leave out.
            need_weights: also return the weights.
            attn_mask: ``(L, S)`` or ``(N * num_heads, L, S)``, true (or a number to add) where not to look.
            average_attn_weights: give the weights' mean over the heads.
            is_causal: ``attn_mask`` is the causal mask and need not be read.

        Returns:
            The output, and the weights or None.
        """
        batched = query.dim() == 3
        other = attn_mask.dtype if attn_mask is not None else None
        key_padding_mask = F._canonical_mask(key_padding_mask, "key_padding_mask", other, "attn_mask", query.dtype)
        attn_mask = F._canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        turned = self.batch_first and batched and not query.is_nested
        if turned:  # equal inputs stay the same object: one projection serves all three
            same_kv, same_qk = key is value, query is key
            query = query.transpose(1, 0)
            key = query if same_qk else key.transpose(1, 0)
            value = key if same_kv else value.transpose(1, 0)
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return (output.transpose(1, 0) if turned else output), weights
