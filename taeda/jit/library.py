"""Functions of ``nn.functional`` and methods of layers in the language of scripts: what a script means that calls them.

They are compiled from this source, never run by Python. ``aten`` stands for PyTorch's native ops, whose arguments they
are called with, so that what is compiled can be written into an archive.
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple, Union

from .._core import Tensor
from ..nn.utils.rnn import PackedSequence

aten: Any = None  # the front end knows the name
Pair = Tuple[Tensor, Tensor]


# ---- activations -----------------------------------------------------------------------------------------------------
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    return aten.relu_(input) if inplace else aten.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    return aten.relu6_(input) if inplace else aten.relu6(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return aten.elu_(input, alpha) if inplace else aten.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    return aten.selu_(input) if inplace else aten.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return aten.celu_(input, alpha) if inplace else aten.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    return aten.leaky_relu_(input, negative_slope) if inplace else aten.leaky_relu(input, negative_slope)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    return aten.rrelu_(input, lower, upper, training) if inplace else aten.rrelu(input, lower, upper, training)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    return aten.silu_(input) if inplace else aten.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    return aten.mish_(input) if inplace else aten.mish(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    return aten.hardswish_(input) if inplace else aten.hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    return aten.hardsigmoid_(input) if inplace else aten.hardsigmoid(input)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    return aten.hardtanh_(input, min_val, max_val) if inplace else aten.hardtanh(input, min_val, max_val)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    return aten.threshold_(input, threshold, value) if inplace else aten.threshold(input, threshold, value)


def logsigmoid(input: Tensor) -> Tensor:
    return aten.log_sigmoid(input)


def tanhshrink(input: Tensor) -> Tensor:
    return input - aten.tanh(input)


def softsign(input: Tensor) -> Tensor:
    return input / (aten.abs(input) + 1)


def softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = 0 if input.dim() in (0, 1, 3) else 1
    return aten.softmax(input, dim, dtype)


def softmin(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = 0 if input.dim() in (0, 1, 3) else 1
    return aten.softmax(-input, dim, dtype)


def log_softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = 0 if input.dim() in (0, 1, 3) else 1
    return aten.log_softmax(input, dim, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    gumbels = -aten.log(aten.exponential_(aten.empty_like(logits)))
    soft = aten.softmax((logits + gumbels) / tau, dim)
    if hard:
        index = aten.argmax(soft, dim, True)
        return aten.scatter(aten.zeros_like(logits), dim, index, 1.0) - soft.detach() + soft
    return soft


# ---- dropout ---------------------------------------------------------------------------------------------------------
def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_probability(p)
    return aten.dropout_(input, p, training) if inplace else aten.dropout(input, p, training)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    _check_probability(p)
    return aten.alpha_dropout_(input, p, training) if inplace else aten.alpha_dropout(input, p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    _check_probability(p)
    if inplace:
        return aten.feature_alpha_dropout_(input, p, training)
    return aten.feature_alpha_dropout(input, p, training)


def _channels(input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    _check_probability(p)
    if not batched:
        input = aten.unsqueeze_(input, 0) if inplace else aten.unsqueeze(input, 0)
    out = aten.feature_dropout_(input, p, training) if inplace else aten.feature_dropout(input, p, training)
    if not batched:
        out = aten.squeeze_(out, 0) if inplace else aten.squeeze(out, 0)
    return out


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return _channels(input, p, training, inplace, input.dim() == 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return _channels(input, p, training, inplace, True)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return _channels(input, p, training, inplace, input.dim() == 5)


# ---- normalisation ---------------------------------------------------------------------------------------------------
def batch_norm(
    input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    if training:
        size = input.size()
        count = size[0]
        for i in range(len(size) - 2):
            count *= size[i + 2]
        if count == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")
    return aten.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def instance_norm(
    input: Tensor, running_mean: Optional[Tensor] = None, running_var: Optional[Tensor] = None,
    weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, use_input_stats: bool = True, momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    return aten.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


def layer_norm(
    input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    return aten.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-5
) -> Tensor:
    return aten.group_norm(input, num_groups, weight, bias, eps)


def rms_norm(
    input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, eps: Optional[float] = None
) -> Tensor:
    return aten.rms_norm(input, normalized_shape, weight, eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    square = aten.unsqueeze(input * input, 1)
    if input.dim() == 3:
        square = aten.pad(square, [0, 0, size // 2, (size - 1) // 2])
        mean = aten.squeeze(aten.avg_pool2d(square, [size, 1], [1]), 1)
    else:
        shape = input.size()
        square = aten.view(square, [shape[0], 1, shape[1], shape[2], -1])
        square = aten.pad(square, [0, 0, 0, 0, size // 2, (size - 1) // 2])
        mean = aten.view(aten.squeeze(aten.avg_pool3d(square, [size, 1, 1], [1]), 1), shape)
    return input / aten.pow(mean * alpha + k, beta)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Optional[Tensor] = None) -> Tensor:
    norm = aten.expand_as(aten.clamp_min(aten.norm(input, p, [dim], True), eps), input)
    return input / norm


# ---- pooling ---------------------------------------------------------------------------------------------------------
def max_pool1d(
    input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = 0,
    dilation: List[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor:  # fmt: skip
    steps = kernel_size if stride is None else stride
    if return_indices:
        raise RuntimeError("max_pool1d: scripts call max_pool1d_with_indices for the indices")
    return aten.max_pool1d(input, kernel_size, steps, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = 0,
    dilation: List[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor:  # fmt: skip
    steps = kernel_size if stride is None else stride
    if return_indices:
        raise RuntimeError("max_pool2d: scripts call max_pool2d_with_indices for the indices")
    return aten.max_pool2d(input, kernel_size, steps, padding, dilation, ceil_mode)


def max_pool3d(
    input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = 0,
    dilation: List[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor:  # fmt: skip
    steps = kernel_size if stride is None else stride
    if return_indices:
        raise RuntimeError("max_pool3d: scripts call max_pool3d_with_indices for the indices")
    return aten.max_pool3d(input, kernel_size, steps, padding, dilation, ceil_mode)


def avg_pool1d(
    input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = 0,
    ceil_mode: bool = False, count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    steps = kernel_size if stride is None else stride
    return aten.avg_pool1d(input, kernel_size, steps, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: Optional[int] = None,
) -> Tensor:  # fmt: skip
    steps = kernel_size if stride is None else stride
    return aten.avg_pool2d(input, kernel_size, steps, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: Optional[int] = None,
) -> Tensor:  # fmt: skip
    steps = kernel_size if stride is None else stride
    return aten.avg_pool3d(input, kernel_size, steps, padding, ceil_mode, count_include_pad, divisor_override)


def _whole(size: List[Optional[int]], input: Tensor) -> List[int]:
    out: List[int] = []
    shape = input.size()
    for i, one in enumerate(size):
        out.append(shape[len(shape) - len(size) + i] if one is None else one)
    return out


def adaptive_avg_pool1d(input: Tensor, output_size: List[int]) -> Tensor:
    return aten.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: List[Optional[int]]) -> Tensor:
    return aten.adaptive_avg_pool2d(input, _whole(output_size, input))


def adaptive_avg_pool3d(input: Tensor, output_size: List[Optional[int]]) -> Tensor:
    return aten.adaptive_avg_pool3d(input, _whole(output_size, input))


def adaptive_max_pool1d(input: Tensor, output_size: List[int], return_indices: bool = False) -> Tensor:
    return aten.adaptive_max_pool1d(input, output_size)[0]


def adaptive_max_pool2d(input: Tensor, output_size: List[Optional[int]], return_indices: bool = False) -> Tensor:
    return aten.adaptive_max_pool2d(input, _whole(output_size, input))[0]


def adaptive_max_pool3d(input: Tensor, output_size: List[Optional[int]], return_indices: bool = False) -> Tensor:
    return aten.adaptive_max_pool3d(input, _whole(output_size, input))[0]


# ---- embeddings, shapes ----------------------------------------------------------------------------------------------
def embedding(
    input: Tensor, weight: Tensor, padding_idx: Optional[int] = None, max_norm: Optional[float] = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    index = -1
    if padding_idx is not None:
        index = padding_idx if padding_idx >= 0 else weight.size(0) + padding_idx
    if max_norm is not None:
        raise RuntimeError("embedding: max_norm is not available in scripts")
    return aten.embedding(weight, input, index, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, max_norm: Optional[float] = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Optional[Tensor] = None, include_last_offset: bool = False, padding_idx: Optional[int] = None,
) -> Tensor:  # fmt: skip
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated as a mini-batch")
        starts = aten.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        input = aten.reshape(input, [-1])
        if per_sample_weights is not None:
            per_sample_weights = aten.reshape(per_sample_weights, [-1])
    else:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        starts = offsets
    number = 0 if mode == "sum" else 1 if mode == "mean" else 2
    return aten.embedding_bag(
        weight, input, starts, scale_grad_by_freq, number, sparse, per_sample_weights, include_last_offset, padding_idx
    )[0]


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    return aten.one_hot(tensor, num_classes)


def pad(input: Tensor, pad: List[int], mode: str = "constant", value: Optional[float] = None) -> Tensor:
    return aten.pad(input, pad, mode, value)


def unfold(
    input: Tensor, kernel_size: List[int], dilation: List[int] = 1, padding: List[int] = 0, stride: List[int] = 1
) -> Tensor:
    return aten.im2col(input, _two(kernel_size), _two(dilation), _two(padding), _two(stride))


def fold(
    input: Tensor, output_size: List[int], kernel_size: List[int], dilation: List[int] = 1, padding: List[int] = 0,
    stride: List[int] = 1,
) -> Tensor:  # fmt: skip
    return aten.col2im(input, _two(output_size), _two(kernel_size), _two(dilation), _two(padding), _two(stride))


def _two(x: List[int]) -> List[int]:
    return [x[0], x[0]] if len(x) == 1 else x


def interpolate(
    input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[List[float]] = None, mode: str = "nearest",
    align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    dims = input.dim() - 2
    if size is not None and len(size) == 1:
        size = [size[0] for _ in range(dims)]
    factors = scale_factor
    if factors is not None and len(factors) == 1:
        factors = [factors[0] for _ in range(dims)]
    if factors is not None and recompute_scale_factor is not None and recompute_scale_factor:
        made: List[int] = []
        for i in range(dims):
            made.append(int(float(input.size(i + 2)) * factors[i]))
        size = made
        factors = None
    corners = False if align_corners is None else align_corners
    if antialias:
        if mode == "bilinear":
            return aten._upsample_bilinear2d_aa(input, size, corners, factors)
        return aten._upsample_bicubic2d_aa(input, size, corners, factors)
    if mode == "nearest":
        if dims == 1:
            return aten.upsample_nearest1d(input, size, factors)
        if dims == 2:
            return aten.upsample_nearest2d(input, size, factors)
        return aten.upsample_nearest3d(input, size, factors)
    if mode == "nearest-exact":
        if dims == 1:
            return aten._upsample_nearest_exact1d(input, size, factors)
        if dims == 2:
            return aten._upsample_nearest_exact2d(input, size, factors)
        return aten._upsample_nearest_exact3d(input, size, factors)
    if mode == "linear":
        return aten.upsample_linear1d(input, size, corners, factors)
    if mode == "bilinear":
        return aten.upsample_bilinear2d(input, size, corners, factors)
    if mode == "bicubic":
        return aten.upsample_bicubic2d(input, size, corners, factors)
    if mode == "trilinear":
        return aten.upsample_trilinear3d(input, size, corners, factors)
    if mode == "area":
        whole: List[int] = []
        for i in range(dims):
            if size is not None:
                whole.append(size[i])
            elif factors is not None:
                whole.append(int(float(input.size(i + 2)) * factors[i]))
        if dims == 1:
            return aten.adaptive_avg_pool1d(input, whole)
        if dims == 2:
            return aten.adaptive_avg_pool2d(input, whole)
        return aten.adaptive_avg_pool3d(input, whole)
    raise NotImplementedError(f"interpolate: unknown mode {mode}")


upsample = interpolate


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: Optional[bool] = None,
) -> Tensor:  # fmt: skip
    how = 0 if mode == "bilinear" else 1 if mode == "nearest" else 2
    edge = 0 if padding_mode == "zeros" else 1 if padding_mode == "border" else 2
    return aten.grid_sampler(input, grid, how, edge, False if align_corners is None else align_corners)


def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    return aten.affine_grid_generator(theta, size, False if align_corners is None else align_corners)


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Optional[float] = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    return aten.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


# ---- losses ----------------------------------------------------------------------------------------------------------
def _number(reduction: str) -> int:
    if reduction == "none":
        return 0
    if reduction == "mean":
        return 1
    if reduction == "sum":
        return 2
    raise ValueError(f"{reduction} is not a valid value for reduction")


def cross_entropy(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
    ignore_index: int = -100, reduce: Optional[bool] = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    return aten.cross_entropy_loss(input, target, weight, _number(reduction), ignore_index, label_smoothing)


def nll_loss(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
    ignore_index: int = -100, reduce: Optional[bool] = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    return aten.nll_loss_nd(input, target, weight, _number(reduction), ignore_index)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
    reduce: Optional[bool] = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    return aten.binary_cross_entropy(input, target, weight, _number(reduction))


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
    reduce: Optional[bool] = None, reduction: str = "mean", pos_weight: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    return aten.binary_cross_entropy_with_logits(input, target, weight, pos_weight, _number(reduction))


def kl_div(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean", log_target: bool = False,
) -> Tensor:  # fmt: skip
    if reduction == "batchmean":
        total = aten.kl_div(input, target, 2, log_target=log_target)
        return total / input.size(0) if input.dim() > 0 else total
    return aten.kl_div(input, target, _number(reduction), log_target=log_target)


def mse_loss(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    return aten.mse_loss(input, target, _number(reduction))


def l1_loss(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    return aten.l1_loss(input, target, _number(reduction))


def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Tensor:  # fmt: skip
    return aten.smooth_l1_loss(input, target, _number(reduction), beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    return aten.huber_loss(input, target, _number(reduction), delta)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Optional[bool] = None,
    reduce: Optional[bool] = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    return aten.cosine_embedding_loss(input1, input2, target, margin, _number(reduction))


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Optional[bool] = None,
    reduce: Optional[bool] = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    return aten.margin_ranking_loss(input1, input2, target, margin, _number(reduction))


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: Optional[bool] = None,
    reduce: Optional[bool] = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    return aten.hinge_embedding_loss(input, target, margin, _number(reduction))


# ---- layers ----------------------------------------------------------------------------------------------------------
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


class LSTM:
    """``forward__0`` is of a tensor, ``forward__1`` of a packed sequence; ``_script_weights`` are the parameters in
    order."""

    def forward__0(self, input: Tensor, hx: Optional[Pair] = None) -> Tuple[Tensor, Pair]:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"LSTM: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        x = input if batched else aten.unsqueeze(input, 0 if self.batch_first else 1)
        directions = 2 if self.bidirectional else 1
        if hx is None:
            n = x.size(0) if self.batch_first else x.size(1)
            width = self.proj_size if self.proj_size > 0 else self.hidden_size
            h = aten.zeros([self.num_layers * directions, n, width], dtype=x.dtype, device=x.device)
            c = aten.zeros([self.num_layers * directions, n, self.hidden_size], dtype=x.dtype, device=x.device)
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
        directions = 2 if self.bidirectional else 1
        if hx is None:
            n = int(sizes[0])
            width = self.proj_size if self.proj_size > 0 else self.hidden_size
            h = aten.zeros([self.num_layers * directions, n, width], dtype=x.dtype, device=x.device)
            c = aten.zeros([self.num_layers * directions, n, self.hidden_size], dtype=x.dtype, device=x.device)
        else:
            h, c = _order(hx[0], order), _order(hx[1], order)
        out, h, c = aten.lstm(
            x, sizes, [h, c], self._script_weights, self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional,
        )  # fmt: skip
        return PackedSequence(out, sizes, order, back), (_order(h, back), _order(c, back))


class RNNBase:
    """GRU and RNN: as LSTM, with one state."""

    def _network(self, x: Tensor, h: Tensor) -> Pair:
        if self.mode == "GRU":
            return aten.gru(
                x, h, self._script_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
                self.batch_first,
            )  # fmt: skip
        if self.mode == "RNN_TANH":
            return aten.rnn_tanh(
                x, h, self._script_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
                self.batch_first,
            )  # fmt: skip
        return aten.rnn_relu(
            x, h, self._script_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
            self.batch_first,
        )  # fmt: skip

    def forward__0(self, input: Tensor, hx: Optional[Tensor] = None) -> Pair:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"RNN: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        x = input if batched else aten.unsqueeze(input, 0 if self.batch_first else 1)
        directions = 2 if self.bidirectional else 1
        if hx is None:
            n = x.size(0) if self.batch_first else x.size(1)
            h = aten.zeros([self.num_layers * directions, n, self.hidden_size], dtype=x.dtype, device=x.device)
        else:
            h = hx if batched else aten.unsqueeze(hx, 1)
        out, h = self._network(x, h)
        if not batched:
            return aten.squeeze(out, 0 if self.batch_first else 1), aten.squeeze(h, 1)
        return out, h

    def forward__1(self, input: PackedSequence, hx: Optional[Tensor] = None) -> Tuple[PackedSequence, Tensor]:
        x, sizes, order, back = input
        directions = 2 if self.bidirectional else 1
        if hx is None:
            h = aten.zeros(
                [self.num_layers * directions, int(sizes[0]), self.hidden_size], dtype=x.dtype, device=x.device
            )
        else:
            h = _order(hx, order)
        if self.mode == "GRU":
            out, h = aten.gru(
                x, sizes, h, self._script_weights, self.bias, self.num_layers, self.dropout, self.training,
                self.bidirectional,
            )  # fmt: skip
        elif self.mode == "RNN_TANH":
            out, h = aten.rnn_tanh(
                x, sizes, h, self._script_weights, self.bias, self.num_layers, self.dropout, self.training,
                self.bidirectional,
            )  # fmt: skip
        else:
            out, h = aten.rnn_relu(
                x, sizes, h, self._script_weights, self.bias, self.num_layers, self.dropout, self.training,
                self.bidirectional,
            )  # fmt: skip
        return PackedSequence(out, sizes, order, back), _order(h, back)


class RNNCell:
    """One step of an Elman network."""

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        batched = input.dim() == 2
        x = input if batched else aten.unsqueeze(input, 0)
        if hx is None:
            h = aten.zeros([x.size(0), self.hidden_size], dtype=x.dtype, device=x.device)
        else:
            h = hx if batched else aten.unsqueeze(hx, 0)
        if self.nonlinearity == "tanh":
            out = aten.rnn_tanh_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        else:
            out = aten.rnn_relu_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return out if batched else aten.squeeze(out, 0)


class GRUCell:
    """One step of a GRU."""

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        batched = input.dim() == 2
        x = input if batched else aten.unsqueeze(input, 0)
        if hx is None:
            h = aten.zeros([x.size(0), self.hidden_size], dtype=x.dtype, device=x.device)
        else:
            h = hx if batched else aten.unsqueeze(hx, 0)
        out = aten.gru_cell(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return out if batched else aten.squeeze(out, 0)


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


class Conv1d(_ConvNd):
    """A convolution over one dimension."""

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        if self.padding_mode != "zeros":
            return aten.conv1d(self._padded_input(input), weight, bias, self.stride, 0, self.dilation, self.groups)
        return aten.conv1d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(_ConvNd):
    """A convolution over two dimensions."""

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        if self.padding_mode != "zeros":
            return aten.conv2d(self._padded_input(input), weight, bias, self.stride, 0, self.dilation, self.groups)
        return aten.conv2d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


class Conv3d(_ConvNd):
    """A convolution over three dimensions."""

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        if self.padding_mode != "zeros":
            return aten.conv3d(self._padded_input(input), weight, bias, self.stride, 0, self.dilation, self.groups)
        return aten.conv3d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


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


class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution over one dimension."""

    def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        extra = self._extra_size(input, output_size)
        return aten.conv_transpose1d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution over two dimensions."""

    def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        extra = self._extra_size(input, output_size)
        return aten.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution over three dimensions."""

    def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        extra = self._extra_size(input, output_size)
        return aten.conv_transpose3d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


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


class Sequential:
    """One module after the other."""

    def forward(self, input: Tensor) -> Tensor:
        for module in self:
            input = module(input)
        return input


class no_grad:
    """Gradients off, in a ``with``."""

    def __init__(self) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = aten.is_grad_enabled()
        aten.set_grad_enabled(False)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        aten.set_grad_enabled(self.prev)
