"""Methods of layers in the language of scripts, for scripts that call them.

As of :mod:`.library`, which has the functions: they are compiled from this source, never run by Python.
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from .._core import Tensor
from ..nn.utils.rnn import PackedSequence
from .library import batch_norm, define

aten: Any = None  # the front end knows the name
Pair = Tuple[Tensor, Tensor]


def pack_padded_sequence(
    input: Tensor, lengths: Tensor, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    order: Optional[Tensor] = None
    back: Optional[Tensor] = None
    if not enforce_sorted:
        lengths, order = aten.sort(lengths, descending=True)
        back = aten.argsort(order)
        input = aten.index_select(input, 0 if batch_first else 1, order)
    data, sizes = aten._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, sizes, order, back)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: Optional[int] = None
) -> Pair:
    longest = sequence.batch_sizes.size(0)
    if total_length is not None:
        longest = total_length
    out, lengths = aten._pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, longest)
    back = sequence.unsorted_indices
    if back is not None:
        return aten.index_select(out, 0 if batch_first else 1, back), aten.index_select(lengths, 0, back)
    return out, lengths


def _order(x: Tensor, order: Optional[Tensor]) -> Tensor:
    return x if order is None else aten.index_select(x, 1, order)


class _Network:
    """The input and the first state of a network over steps."""

    def _steps(self, input: Tensor, name: str) -> Tensor:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        return input if input.dim() == 3 else aten.unsqueeze(input, 0 if self.batch_first else 1)

    def _zeros(self, x: Tensor, n: int, width: int) -> Tensor:
        directions = 2 if self.bidirectional else 1
        return aten.zeros([self.num_layers * directions, n, width], dtype=x.dtype, device=x.device)


class LSTM(_Network):
    """``forward__0`` is of a tensor, ``forward__1`` of a packed sequence; ``_script_weights`` are the parameters in
    order."""

    def forward__0(self, input: Tensor, hx: Optional[Pair] = None) -> Tuple[Tensor, Pair]:
        x, batched = self._steps(input, "LSTM"), input.dim() == 3
        if hx is None:
            n = x.size(0) if self.batch_first else x.size(1)
            width = self.proj_size if self.proj_size > 0 else self.hidden_size
            h, c = self._zeros(x, n, width), self._zeros(x, n, self.hidden_size)
        else:
            h, c = hx
            if not batched:
                h, c = aten.unsqueeze(h, 1), aten.unsqueeze(c, 1)
        out, h, c = aten.lstm(
            x, [h, c], self._script_weights, self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional, self.batch_first,
        )  # fmt: skip
        if not batched:
            return aten.squeeze(out, 0 if self.batch_first else 1), (aten.squeeze(h, 1), aten.squeeze(c, 1))
        return out, (h, c)

    def forward__1(self, input: PackedSequence, hx: Optional[Pair] = None) -> Tuple[PackedSequence, Pair]:
        x, sizes, order, back = input
        if hx is None:
            n = int(sizes[0])
            width = self.proj_size if self.proj_size > 0 else self.hidden_size
            h, c = self._zeros(x, n, width), self._zeros(x, n, self.hidden_size)
        else:
            h, c = _order(hx[0], order), _order(hx[1], order)
        out, h, c = aten.lstm(
            x, sizes, [h, c], self._script_weights, self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional,
        )  # fmt: skip
        return PackedSequence(out, sizes, order, back), (_order(h, back), _order(c, back))


_given = "self._script_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional"
_networks = "\n".join(f"""
    def _{_name}(self, x: Tensor, {_parameters}) -> Pair:
        if self.mode == "GRU":
            return aten.gru(x, {_more}, {_given}{_last})
        if self.mode == "RNN_TANH":
            return aten.rnn_tanh(x, {_more}, {_given}{_last})
        return aten.rnn_relu(x, {_more}, {_given}{_last})
""" for _name, _parameters, _more, _last in (
    ("network", "h: Tensor", "h", ", self.batch_first"), ("packed_network", "sizes: Tensor, h: Tensor", "sizes, h", "")
))  # fmt: skip
define("recurrent", f"class _Recurrent(_Network):{_networks}", globals())


class RNNBase(_Recurrent):  # type: ignore[name-defined]  # noqa: F821
    """GRU and RNN: as LSTM, with one state."""

    def forward__0(self, input: Tensor, hx: Optional[Tensor] = None) -> Pair:
        x, batched = self._steps(input, "RNN"), input.dim() == 3
        if hx is None:
            h = self._zeros(x, x.size(0) if self.batch_first else x.size(1), self.hidden_size)
        else:
            h = hx if batched else aten.unsqueeze(hx, 1)
        out, h = self._network(x, h)
        if not batched:
            return aten.squeeze(out, 0 if self.batch_first else 1), aten.squeeze(h, 1)
        return out, h

    def forward__1(self, input: PackedSequence, hx: Optional[Tensor] = None) -> Tuple[PackedSequence, Tensor]:
        x, sizes, order, back = input
        h = self._zeros(x, int(sizes[0]), self.hidden_size) if hx is None else _order(hx, order)
        out, h = self._packed_network(x, sizes, h)
        return PackedSequence(out, sizes, order, back), _order(h, back)


class _Cell:
    """One step of a network of one state, batched or not."""

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        batched = input.dim() == 2
        x = input if batched else aten.unsqueeze(input, 0)
        if hx is None:
            h = aten.zeros([x.size(0), self.hidden_size], dtype=x.dtype, device=x.device)
        else:
            h = hx if batched else aten.unsqueeze(hx, 0)
        out = self._step(x, h)
        return out if batched else aten.squeeze(out, 0)


class RNNCell(_Cell):
    """One step of an Elman network."""

    def _step(self, x: Tensor, h: Tensor) -> Tensor:
        if self.nonlinearity == "tanh":
            return aten.rnn_tanh_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return aten.rnn_relu_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class GRUCell(_Cell):
    """One step of a GRU."""

    def _step(self, x: Tensor, h: Tensor) -> Tensor:
        return aten.gru_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class LSTMCell:
    """One step of an LSTM."""

    def forward(self, input: Tensor, hx: Optional[Pair] = None) -> Pair:
        batched = input.dim() == 2
        x = input if batched else aten.unsqueeze(input, 0)
        if hx is None:
            h = aten.zeros([x.size(0), self.hidden_size], dtype=x.dtype, device=x.device)
            c = h
        else:
            h, c = hx
            if not batched:
                h, c = aten.unsqueeze(h, 0), aten.unsqueeze(c, 0)
        h, c = aten.lstm_cell(x, [h, c], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if not batched:
            return aten.squeeze(h, 0), aten.squeeze(c, 0)
        return h, c


class _ConvNd:
    """Convolutions: ``_script_padding`` is what their padding mode leaves to the op."""

    def _padded_input(self, input: Tensor) -> Tensor:
        if self.padding_mode == "zeros":
            return input
        return aten.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)


class _ConvTransposeNd:
    """Transposed convolutions."""

    def _extra_size(self, input: Tensor, output_size: Optional[List[int]]) -> List[int]:
        out: List[int] = []
        for i in range(len(self.stride)):
            if output_size is None:
                out.append(self._script_output_padding[i])
            else:
                n = len(self.stride)
                reach = self._script_dilation[i] * (self._script_kernel_size[i] - 1) + 1
                least = (
                    (input.size(input.dim() - n + i) - 1) * self._script_stride[i] - 2 * self._script_padding[i] + reach
                )
                out.append(output_size[len(output_size) - n + i] - least)
        return out


for _n in (1, 2, 3):
    define(f"convolution{_n}d", f"""
class Conv{_n}d(_ConvNd):
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        if self.padding_mode != "zeros":
            return aten.conv{_n}d(self._padded_input(input), weight, bias, self.stride, 0, self.dilation, self.groups)
        return aten.conv{_n}d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


class ConvTranspose{_n}d(_ConvTransposeNd):
    def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        extra = self._extra_size(input, output_size)
        return aten.conv_transpose{_n}d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )
""", globals())  # fmt: skip


def _canonical_mask(
    mask: Optional[Tensor], mask_name: str, other_type: Optional[int], other_name: str, target_type: int,
    check_other: bool = True,
) -> Optional[Tensor]:  # fmt: skip
    if mask is not None and mask.dtype == aten.bool_dtype:
        return aten.zeros(mask.size(), dtype=target_type, device=mask.device).masked_fill(mask, float("-inf"))
    return mask


def _is_causal(mask: Optional[Tensor], is_causal: Optional[bool], size: Optional[int]) -> bool:
    return is_causal is not None and is_causal


def _sequence_length(src: Tensor, batch_first: bool) -> Optional[int]:
    return None


class MultiheadAttention:
    """Attention with projections."""

    __constants__ = ("_qkv_same_embed_dim", "embed_dim", "num_heads", "head_dim", "add_zero_attn")

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor] = None,
        need_weights: bool = True, attn_mask: Optional[Tensor] = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:  # fmt: skip
        batched = query.dim() == 3
        if not batched:
            query, key, value = aten.unsqueeze(query, 1), aten.unsqueeze(key, 1), aten.unsqueeze(value, 1)
            if key_padding_mask is not None:
                key_padding_mask = aten.unsqueeze(key_padding_mask, 0)
        elif self.batch_first:
            query, key, value = aten.transpose(query, 0, 1), aten.transpose(key, 0, 1), aten.transpose(value, 0, 1)
        steps, n, width = query.size(0), query.size(1), query.size(2)
        heads, size = self.num_heads, self.head_dim
        if self._qkv_same_embed_dim:
            weights = aten.chunk(self.in_proj_weight, 3)
            q_weight, k_weight, v_weight = weights[0], weights[1], weights[2]
        else:
            q_weight, k_weight, v_weight = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        if self.in_proj_bias is None:
            q, k, v = aten.linear(query, q_weight), aten.linear(key, k_weight), aten.linear(value, v_weight)
        else:
            biases = aten.chunk(self.in_proj_bias, 3)
            q = aten.linear(query, q_weight, biases[0])
            k = aten.linear(key, k_weight, biases[1])
            v = aten.linear(value, v_weight, biases[2])
        extra = 0
        if self.bias_k is not None and self.bias_v is not None:
            k = aten.cat([k, self.bias_k.repeat(1, n, 1)])
            v = aten.cat([v, self.bias_v.repeat(1, n, 1)])
            extra += 1
        q = q.reshape(steps, n * heads, size).transpose(0, 1)
        k = k.reshape(k.size(0), n * heads, size).transpose(0, 1)
        v = v.reshape(v.size(0), n * heads, size).transpose(0, 1)
        if self.add_zero_attn:
            empty = aten.zeros([n * heads, 1, size], dtype=k.dtype, device=k.device)
            k, v = aten.cat([k, empty], 1), aten.cat([v, empty], 1)
            extra += 1
        scores = aten.bmm(q / float(size) ** 0.5, k.transpose(1, 2))
        if attn_mask is not None:
            mask = attn_mask if attn_mask.dim() == 3 else aten.unsqueeze(attn_mask, 0)
            if extra > 0:
                mask = aten.pad(mask, [0, extra])
            if mask.dtype == aten.bool_dtype:
                scores = scores.masked_fill(mask, float("-inf"))
            else:
                scores = scores + mask
        if key_padding_mask is not None:
            padding = key_padding_mask
            if extra > 0:
                padding = aten.pad(padding, [0, extra])
            by_head = scores.view(n, heads, steps, -1)
            if padding.dtype == aten.bool_dtype:
                by_head = by_head.masked_fill(padding.unsqueeze(1).unsqueeze(2), float("-inf"))
            else:
                by_head = by_head + padding.unsqueeze(1).unsqueeze(2)
            scores = by_head.view(n * heads, steps, -1)
        attention = aten.softmax(scores, -1)
        if self.training and self.dropout > 0.0:
            attention = aten.dropout(attention, self.dropout, True)
        out = aten.bmm(attention, v).transpose(0, 1).reshape(steps * n, self.embed_dim)
        out = aten.linear(out, self.out_proj.weight, self.out_proj.bias).view(steps, n, width)
        shown: Optional[Tensor] = None
        if need_weights:
            shown = attention.view(n, heads, steps, -1)
            if average_attn_weights:
                shown = shown.mean(1)
        if not batched:
            out = out.squeeze(1)
            if shown is not None:
                shown = shown.squeeze(0)
        elif self.batch_first:
            out = out.transpose(0, 1)
        return out, shown


def _expect_dims(input: Tensor, first: int, second: int = -1) -> None:
    if input.dim() != first and input.dim() != second:
        raise ValueError(f"expected {first}D input (got {input.dim()}D input)")


class _BatchNorm:
    """Batch normalisation: the number of batches is counted in place."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            if self.num_batches_tracked is not None:
                aten.add_(self.num_batches_tracked, 1)
                if self.momentum is None:
                    factor = 1.0 / float(self.num_batches_tracked)
        if self.training:
            from_batch = True
        else:
            from_batch = self.running_mean is None and self.running_var is None
        if not self.training or self.track_running_stats:
            return batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, from_batch, factor, self.eps
            )
        return batch_norm(input, None, None, self.weight, self.bias, from_batch, factor, self.eps)


class no_grad:
    """Gradients off, in a ``with``."""

    def __init__(self) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = aten.is_grad_enabled()
        aten.set_grad_enabled(False)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        aten.set_grad_enabled(self.prev)
