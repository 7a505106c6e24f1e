"""The transformer of Vaswani et al. 2017: encoder, decoder, their layers and the whole."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ... import _core, backends
from ..._core.scripting import is_scripting
from ..._typed import Tensor
from ...ops.creation import full
from ...ops.matrices import triu
from .. import functional as F
from .. import init
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]  # fmt: skip


def _causal_mask(size: int, device=None, dtype=None) -> Tensor:
    """Minus infinity above the diagonal, zero elsewhere."""
    return triu(full((size, size), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _get_activation_fn(activation: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


def _sequence_length(x: Tensor, batch_first: bool) -> int | None:
    if x.is_nested:  # each has its own
        return None
    return x.size(0) if x.dim() == 2 else x.size(1 if batch_first else 0)


def _is_causal(mask: Tensor | None, is_causal: bool | None, size: int | None) -> bool:
    """Whether the mask is the causal one; looked up in its values, if it has any, where the caller does not say."""
    if is_causal is not None or mask is None or size is None or hasattr(_core.current_mode(), "control_flow"):
        return is_causal is True
    causal = _causal_mask(size, device=mask.device, dtype=mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _clones(module: Module, n: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


class _Layer(Module):
    """The base of layers that begin with self-attention.

    Args:
        d_model: ``E``, the size of the features.
        nhead: number of heads, a divisor of it.
        dim_feedforward: width between the two linear layers.
        dropout: probability of dropout.
        activation: ``"relu"``, ``"gelu"`` or a function.
        layer_norm_eps: added to the variance in layer norm.
        batch_first: tensors are ``(N, L, E)`` rather than ``(L, N, E)``.
        norm_first: normalise before attention and network rather than after.
        bias: whether linear layers and norms have one.
        device: of the parameters.
        dtype: of the parameters.

    Raises:
        RuntimeError: the activation's name is unknown; in a call, the shapes do not fit.
        AssertionError: ``nhead`` does not divide ``d_model``.
    """

    __constants__ = ("norm_first",)
    _crosses = False  # whether it attends to another sequence as well

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        where = {"device": device, "dtype": dtype}
        heads = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **where}
        self.self_attn = MultiheadAttention(d_model, nhead, **heads)
        if self._crosses:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **heads)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **where)
        self.norm_first = norm_first
        parts = (1, 2, 3) if self._crosses else (1, 2)
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    def __setstate__(self, state) -> None:
        # As in PyTorch, copies of a decoder layer (which a decoder makes) have ReLU in place of an activation that is a
        # module: models that were trained so have the same outputs here.
        if "activation" not in state and (self._crosses or "activation" not in state.get("_modules", ())):
            state["activation"] = F.relu
        super().__setstate__(state)

    def _sa_block(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool = False) -> Tensor:
        x, _ = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal
        )
        return self.dropout1(x)


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then a network of two linear layers, each with dropout, residual and layer
    norm.

    ``x = norm1(x + attention(x))``, ``x = norm2(x + linear2(act(linear1(x))))``; with ``norm_first`` ``x +
    attention(norm1(x))`` and so on, which trains more easily. Source: Vaswani et al. 2017, "Attention Is All You Need".

    Shape:
        src: ``(L, N, E)`` or ``(L, E)``. Floating-point.
        src_mask: ``(L, L)`` or ``(N * nhead, L, L)``: True where a position does not see another, or numbers that are
            added.
        src_key_padding_mask: ``(N, L)`` or ``(L,)``: True for padding.
        output: the shape of ``src``.

    Examples:
        >>> layer = nn.TransformerEncoderLayer(d_model=16, nhead=4, batch_first=True)
        >>> layer(taeda.randn(2, 5, 16)).shape
        taeda.Size([2, 5, 16])
    """

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        other = src_mask.dtype if src_mask is not None else None
        padding = F._canonical_mask(src_key_padding_mask, "src_key_padding_mask", other, "src_mask", src.dtype)
        mask = F._canonical_mask(src_mask, "src_mask", None, "", src.dtype, check_other=False)
        if self.norm_first:
            x = src + self._sa_block(self.norm1(src), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(src + self._sa_block(src, mask, padding, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself, attention to the encoder's output, then a network of two linear layers.

    Each with dropout, residual and layer norm, as in :class:`TransformerEncoderLayer`.

    Shape:
        tgt: ``(T, N, E)`` or ``(T, E)``. Floating-point.
        memory: ``(S, N, E)`` or ``(S, E)``, the encoder's output.
        tgt_mask: ``(T, T)``; ``memory_mask`` ``(T, S)``: True where a position does not see another, or numbers that
            are added.
        tgt_key_padding_mask: ``(N, T)``; ``memory_key_padding_mask`` ``(N, S)``: True for padding.
        output: the shape of ``tgt``.

    Examples:
        >>> layer = nn.TransformerDecoderLayer(d_model=16, nhead=4, batch_first=True)
        >>> layer(taeda.randn(2, 5, 16), memory=taeda.randn(2, 7, 16)).shape
        taeda.Size([2, 5, 16])
    """

    _crosses = True

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        cross = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = tgt + self._sa_block(self.norm1(tgt), *own)
            x = x + self._mha_block(self.norm2(x), memory, *cross)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(tgt + self._sa_block(tgt, *own))
        x = self.norm2(x + self._mha_block(x, memory, *cross))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self, x: Tensor, memory: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        x = self.multihead_attn(
            x, memory, memory, attn_mask=mask, key_padding_mask=padding, is_causal=is_causal, need_weights=False
        )[0]
        return self.dropout2(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """A stack of encoder layers, each on the result of the one before.

    Args:
        encoder_layer: the layer, of which ``num_layers`` copies are made. All begin with the same weights.
        num_layers: number of layers.
        norm: applied at the end, or None.
        enable_nested_tensor: whether padding at the end is 0 in the result (before ``norm``) in evaluation without
            gradients, as where PyTorch leaves it out of the computation.
        mask_check: whether this needs a mask that hides ends only, and no more than ends.

    Shape:
        src: ``(L, N, E)`` or ``(L, E)``. Floating-point.
        mask: ``(L, L)`` or ``(N * nhead, L, L)``: True where a position does not see another, or numbers that are
            added.
        src_key_padding_mask: ``(N, L)`` or ``(L,)``: True for padding.
        output: the shape of ``src``.

    Raises:
        TypeError: the layer is no module.

    Examples:
        >>> layer = nn.TransformerEncoderLayer(d_model=16, nhead=4, batch_first=True)
        >>> encoder = nn.TransformerEncoder(layer, num_layers=2)
        >>> causal = nn.Transformer.generate_square_subsequent_mask(5)  # each position sees those before it
        >>> encoder(taeda.randn(2, 5, 16), mask=causal).shape
        taeda.Size([2, 5, 16])
    """

    __constants__ = ("norm",)

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor and _can_nest(encoder_layer)
        self.mask_check = mask_check

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:  # fmt: skip
        other = mask.dtype if mask is not None else None
        padding = F._canonical_mask(src_key_padding_mask, "src_key_padding_mask", other, "mask", src.dtype)
        mask = F._canonical_mask(mask, "mask", None, "", src.dtype, check_other=False)
        is_causal = _is_causal(mask, is_causal, _sequence_length(src, self.layers[0].self_attn.batch_first))
        cleared = self._cleared(src, padding) if mask is None and padding is not None else None
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding)
        if cleared is not None:
            src = src.masked_fill(cleared[..., None], 0.0)
        return src if self.norm is None else self.norm(src)

    def _cleared(self, src: Tensor, padding: Tensor) -> Tensor | None:
        """The padding that PyTorch leaves out of the computation; None if it leaves nothing out, and in scripts."""
        if is_scripting():
            return None
        first = self.layers[0]
        if not getattr(self, "use_nested_tensor", False) or first.training or src.dim() != 3:
            return None
        mode = _core.current_mode()
        maps = getattr(mode, "maps", False)
        watched = mode is None or maps or getattr(mode, "watches", False)
        if not watched or not backends.mha.get_fastpath_enabled():
            return None  # autocast, or one that records or transforms
        if _core.is_recorded() and any(x.requires_grad for x in (src, *first.parameters())):
            return None
        hidden = padding.bool()
        if not self.mask_check:
            return hidden
        gaps = (hidden[:, :-1] & ~hidden[:, 1:]).any()
        if maps:  # the answer of each example
            return hidden & ~gaps
        return None if gaps else hidden


def _can_nest(layer: Module) -> bool:
    """Whether PyTorch has a kernel for an encoder of such layers that leaves out padding."""
    if not isinstance(layer, TransformerEncoderLayer):
        return False
    attention = layer.self_attn
    return bool(
        not layer.norm_first
        and attention.batch_first
        and attention._qkv_same_embed_dim
        and attention.in_proj_bias is not None
        and (layer.activation in (F.relu, F.gelu) or isinstance(layer.activation, (ReLU, GELU)))
        and layer.norm1.eps == layer.norm2.eps
        and attention.num_heads % 2 == 0
    )


class TransformerDecoder(Module):
    """A stack of decoder layers, each on the result of the one before.

    Args:
        decoder_layer: the layer, of which ``num_layers`` copies are made. All begin with the same weights.
        num_layers: number of layers.
        norm: applied at the end, or None.

    Shape:
        tgt: ``(T, N, E)`` or ``(T, E)``. Floating-point.
        memory: ``(S, N, E)`` or ``(S, E)``, the encoder's output.
        output: the shape of ``tgt``. The masks are those of :class:`TransformerDecoderLayer`.

    Raises:
        TypeError: the layer is no module, or ``num_layers`` is no whole number.

    Examples:
        >>> layer = nn.TransformerDecoderLayer(d_model=16, nhead=4, batch_first=True)
        >>> nn.TransformerDecoder(layer, num_layers=2)(taeda.randn(2, 5, 16), taeda.randn(2, 7, 16)).shape
        taeda.Size([2, 5, 16])
    """

    __constants__ = ("norm",)

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        tgt_is_causal = _is_causal(tgt_mask, tgt_is_causal, _sequence_length(tgt, self.layers[0].self_attn.batch_first))
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder reads one sequence; a decoder, which sees its output, makes another: the architecture for translation.

    Embeddings, positions and the last linear layer are the caller's. For a language model take
    :class:`TransformerEncoder` with a causal mask. Source: Vaswani et al. 2017, "Attention Is All You Need".

    Args:
        d_model: ``E``, the size of the features.
        nhead: number of heads, a divisor of it.
        num_encoder_layers: number of encoder layers.
        num_decoder_layers: number of decoder layers.
        dim_feedforward: width between the two linear layers of each.
        dropout: probability of dropout.
        activation: ``"relu"``, ``"gelu"`` or a function.
        custom_encoder: a module used in place of the encoder.
        custom_decoder: a module used in place of the decoder.
        layer_norm_eps: added to the variance in layer norm.
        batch_first: tensors are ``(N, L, E)`` rather than ``(L, N, E)``.
        norm_first: normalise before attention and network rather than after.
        bias: whether linear layers and norms have one.
        device: of the parameters.
        dtype: of the parameters.

    Shape:
        src: ``(S, N, E)`` or ``(S, E)``. Floating-point.
        tgt: ``(T, N, E)`` or ``(T, E)``.
        src_mask: ``(S, S)``; ``tgt_mask`` ``(T, T)``; ``memory_mask`` ``(T, S)``: True where a position does not see
            another, or numbers that are added.
        src_key_padding_mask: ``(N, S)``; ``tgt_key_padding_mask`` ``(N, T)``; ``memory_key_padding_mask`` ``(N, S)``:
            True for padding.
        output: the shape of ``tgt``.

    Raises:
        RuntimeError: in a call, the batches or features differ.

    Examples:
        >>> model = nn.Transformer(d_model=16, nhead=4, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=32)
        >>> source, target = taeda.randn(7, 2, 16), taeda.randn(5, 2, 16)
        >>> model(source, target, tgt_mask=model.generate_square_subsequent_mask(5)).shape
        taeda.Size([5, 2, 16])
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any = None, custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        where = {"device": device, "dtype": dtype}
        layer = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias
        )  # fmt: skip
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            encoder_layer = TransformerEncoderLayer(*layer, **where)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
            self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            decoder_layer = TransformerDecoderLayer(*layer, **where)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The decoder's output ``(T, N, d_model)`` for source ``(S, N, d_model)`` and target ``(T, N, d_model)``."""
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError(
                "the batch number of src and tgt must be equal, "
                f"got shapes {list(src.shape)} and {list(tgt.shape)} with batch_first={self.batch_first}"
            )
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError(
                f"the feature number of src and tgt must be equal to d_model ({self.d_model}), got shapes "
                f"{list(src.shape)} and {list(tgt.shape)}"
            )
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """A mask ``(sz, sz)`` that lets position i see positions up to i: 0 there, minus infinity elsewhere.

        Args:
            sz: length of the sequence.
            device: where the mask is.
            dtype: of the mask.

        Returns:
            ``(sz, sz)``.

        Examples:
            >>> nn.Transformer.generate_square_subsequent_mask(3)
            tensor([[0., -inf, -inf],
                    [0., 0., -inf],
                    [0., 0., 0.]])
        """
        return _causal_mask(sz, device, dtype)
