"""Types of taeda.nn.functional. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from .. import Number, Size, Tensor, _device, _dtype, return_types
from .._core.tensor import Composite as Composite
from ..nn._linear_cross_entropy import LinearCrossEntropyOptions as LinearCrossEntropyOptions
_canonical_mask: Any
_drop_channels: Any
_embedding: Any
_embedding_bags: Any
_embedding_renorm_: Any
_function: Any
_is_channels_last: Any
_is_pointwise: Any
_kept_format: Any
_named: Any
_p: Any
_power: Any
_sizes: Any
_softmax_dim: Any
_traits: Any
_unbatched: Any
_with_indices: Any
_with_inplace: Any

def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    r"""Average over windows chosen so that the output has ``output_size``."""
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    r"""Average over windows chosen so that the output has ``output_size``."""
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    r"""Average over windows chosen so that the output has ``output_size``."""
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: builtins.bool = False) -> Tensor:
    r"""Maximum over windows chosen so that the output has ``output_size``."""
def adaptive_max_pool1d_with_indices(
    *args: Any, return_indices: builtins.bool = False, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    r""":func:`adaptive_max_pool1d`, and where each maximum was found."""
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: builtins.bool = False) -> Tensor:
    r"""Maximum over windows chosen so that the output has ``output_size``."""
def adaptive_max_pool2d_with_indices(
    *args: Any, return_indices: builtins.bool = False, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    r""":func:`adaptive_max_pool2d`, and where each maximum was found."""
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: builtins.bool = False) -> Tensor:
    r"""Maximum over windows chosen so that the output has ``output_size``."""
def adaptive_max_pool3d_with_indices(
    *args: Any, return_indices: builtins.bool = False, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    r""":func:`adaptive_max_pool3d`, and where each maximum was found."""
def affine_grid(theta: Any, size: Sequence[builtins.int] | builtins.int, align_corners: Any = None) -> Tensor:
    r"""The grid for :func:`grid_sample` that an affine map makes."""
def alpha_dropout(
    input: Tensor, p: Any = 0.5, training: builtins.bool = False, inplace: builtins.bool = False
) -> Tensor:
    r"""Dropout to SELU's negative saturation value, keeping mean and variance."""
def avg_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Number = 0, ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True
) -> Tensor:
    r"""Average of each window."""
def avg_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Number = 0, ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True, divisor_override: Any = None, *, out: Any = None
) -> Tensor:
    r"""Average of each window."""
def avg_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Number = 0, ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True, divisor_override: Any = None, *, out: Any = None
) -> Tensor:
    r"""Average of each window."""
def batch_norm(
    input: Tensor, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: builtins.bool =
    False, momentum: Number = 0.1, eps: Number = 1e-05
) -> Tensor:
    r"""Normalise each channel over batch and positions (Ioffe and Szegedy 2015)."""
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    r"""``y[..., o] = input1[..., i] weight[o, i, j] input2[..., j] + bias[o]``."""
def binary_cross_entropy(
    input: Tensor, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction:
    builtins.str = 'mean'
) -> Tensor:
    r"""``-(t log p + (1 - t) log(1 - p))``, each logarithm at least -100."""
def binary_cross_entropy_with_logits(
    input: Tensor, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction:
    builtins.str = 'mean', pos_weight: Any = None
) -> Tensor:
    r""":func:`binary_cross_entropy` of ``sigmoid(input)``, without overflow."""
def celu(input: Tensor, alpha: Number = 1.0, inplace: builtins.bool = False) -> Tensor:
    r"""``max(0, x) + min(0, alpha (exp(x / alpha) - 1))``."""
def celu_(input: Tensor, alpha: Number = 1.0) -> Tensor:
    r"""In-place form of :func:`celu`."""
def channel_shuffle(input: Tensor, groups: Any) -> Tensor:
    r"""Interleaves ``groups`` groups of channels."""
def conv1d(
    input: Tensor, weight: Any, bias: Any = None, stride: Number = 1, padding: Number = 0, dilation: Number = 1, groups:
    Number = 1, *, out: Any = None
) -> Tensor:
    r"""Cross-correlation: every output is a weighted sum of a window of the input."""
def conv2d(
    input: Tensor, weight: Any, bias: Any = None, stride: Number = 1, padding: Number = 0, dilation: Number = 1, groups:
    Number = 1, *, out: Any = None
) -> Tensor:
    r"""Cross-correlation: every output is a weighted sum of a window of the input."""
def conv3d(
    input: Tensor, weight: Any, bias: Any = None, stride: Number = 1, padding: Number = 0, dilation: Number = 1, groups:
    Number = 1, *, out: Any = None
) -> Tensor:
    r"""Cross-correlation: every output is a weighted sum of a window of the input."""
def conv_tbc(input: Tensor, weight: Any, bias: Any, pad: Number = 0) -> Tensor:
    r"""One-dimensional convolution of ``[time, batch, channels]`` with ``weight [taps, in, out]``."""
def conv_transpose1d(
    input: Tensor, weight: Any, bias: Any = None, stride: Number = 1, padding: Number = 0, output_padding: Number = 0,
    groups: Number = 1, dilation: Number = 1, *, out: Any = None
) -> Tensor:
    r"""Transposed convolution: the gradient of a convolution with respect to its input, as a layer that enlarges."""
def conv_transpose2d(
    input: Tensor, weight: Any, bias: Any = None, stride: Number = 1, padding: Number = 0, output_padding: Number = 0,
    groups: Number = 1, dilation: Number = 1, *, out: Any = None
) -> Tensor:
    r"""Transposed convolution: the gradient of a convolution with respect to its input, as a layer that enlarges."""
def conv_transpose3d(
    input: Tensor, weight: Any, bias: Any = None, stride: Number = 1, padding: Number = 0, output_padding: Number = 0,
    groups: Number = 1, dilation: Number = 1, *, out: Any = None
) -> Tensor:
    r"""Transposed convolution: the gradient of a convolution with respect to its input, as a layer that enlarges."""
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: Number = 0, size_average: Any = None, reduce: Any = None, reduction:
    builtins.str = 'mean'
) -> Tensor:
    r"""``1 - cos`` of the angle between the inputs where the target is 1, ``max(0, cos - margin)`` where it is -1."""
def cosine_similarity(x1: Any, x2: Any, dim: builtins.int = 1, eps: Number = 1e-08) -> Tensor:
    r"""``x1 . x2 / (max(|x1|, eps) max(|x2|, eps))`` along ``dim``."""
def cross_entropy(
    input: Tensor, target: Any, weight: Any = None, size_average: Any = None, ignore_index: Number = -100, reduce: Any =
    None, reduction: builtins.str = 'mean', label_smoothing: Number = 0.0
) -> Tensor:
    r"""``nll_loss(log_softmax(input), target)``, in one pass and without overflow."""
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: Number = 0, reduction: builtins.str =
    'mean', zero_infinity: builtins.bool = False
) -> Tensor:
    r"""Negative log-likelihood of a label sequence, summed over all its alignments with the input (Graves et al.
    2006)."""
def dropout(input: Tensor, p: Any = 0.5, training: builtins.bool = True, inplace: builtins.bool = False) -> Tensor:
    r"""In training, zeroes each element with probability ``p`` and scales the rest by ``1/(1-p)``."""
def dropout1d(input: Tensor, p: Any = 0.5, training: builtins.bool = True, inplace: builtins.bool = False) -> Tensor:
    r"""Dropout of whole channels of ``(N, C, L)`` or ``(C, L)``."""
def dropout2d(input: Tensor, p: Any = 0.5, training: builtins.bool = True, inplace: builtins.bool = False) -> Tensor:
    r"""Dropout of whole channels of ``(N, C, H, W)``; a 3-d input is read as ``(N, C, L)``."""
def dropout3d(input: Tensor, p: Any = 0.5, training: builtins.bool = True, inplace: builtins.bool = False) -> Tensor:
    r"""Dropout of whole channels of ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""
def elu(input: Tensor, alpha: Number = 1.0, inplace: builtins.bool = False) -> Tensor:
    r"""``x`` where positive, else ``alpha (exp(x) - 1)``."""
def elu_(input: Tensor, alpha: Number = 1.0, scale: Number = 1.0, input_scale: Number = 1.0) -> Tensor:
    r"""In-place form of :func:`elu`; of ``scale * elu(input)``, with ``input_scale`` within the exponential."""
def embedding(
    input: Tensor, weight: Any, padding_idx: Any = None, max_norm: Any = None, norm_type: Number = 2.0,
    scale_grad_by_freq: builtins.bool = False, sparse: builtins.bool = False
) -> Tensor:
    r"""Rows of ``weight`` by index; see :class:`taeda.nn.Embedding`."""
def embedding_bag(
    input: Tensor, weight: Any, offsets: Any = None, max_norm: Any = None, norm_type: Number = 2, scale_grad_by_freq:
    builtins.bool = False, mode: builtins.str = 'mean', sparse: builtins.bool = False, per_sample_weights: Any = None,
    include_last_offset: builtins.bool = False, padding_idx: Any = None
) -> Any:
    r"""Sums, means or maxima of bags of rows of ``weight``; see :class:`taeda.nn.EmbeddingBag`."""
def feature_alpha_dropout(
    input: Tensor, p: Any = 0.5, training: builtins.bool = False, inplace: builtins.bool = False
) -> Tensor:
    r"""Alpha dropout of whole channels."""
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Number = 1, padding: Number = 0, stride: Number = 1
) -> Tensor:
    r"""Columns summed back into an image (``torch.nn.functional.fold``); the adjoint of :func:`unfold`."""
def fractional_max_pool2d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: builtins.bool =
    False, _random_samples: Any = None
) -> Tensor:
    r"""Maximum over windows at pseudo-random places, for a chosen size or ratio of the output (Graham 2014)."""
def fractional_max_pool2d_with_indices(
    *args: Any, return_indices: builtins.bool = False, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    r""":func:`fractional_max_pool2d`, and where each maximum was found."""
def fractional_max_pool3d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: builtins.bool =
    False, _random_samples: Any = None
) -> Tensor:
    r"""Maximum over windows at pseudo-random places, for a chosen size or ratio of the output (Graham 2014)."""
def fractional_max_pool3d_with_indices(
    *args: Any, return_indices: builtins.bool = False, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    r""":func:`fractional_max_pool3d`, and where each maximum was found."""
def gaussian_nll_loss(
    input: Tensor, target: Any, var: Any, full: builtins.bool = False, eps: Number = 1e-06, reduction: builtins.str =
    'mean'
) -> Tensor:
    r"""Negative log-likelihood of ``target`` under normal distributions of mean ``input`` and variance ``var``."""
def gelu(input: Tensor, *, approximate: builtins.str = 'none', out: Any = None) -> Tensor:
    r"""Gaussian error linear unit, ``input * P(X <= input)`` for standard normal ``X`` (Hendrycks & Gimpel 2016)."""
def glu(input: Tensor, dim: builtins.int = -1) -> Tensor:
    r"""The first half of ``input`` along ``dim`` times the sigmoid of the second (Dauphin et al. 2016)."""
def grid_sample(
    input: Tensor, grid: Any, mode: builtins.str = 'bilinear', padding_mode: builtins.str = 'zeros', align_corners: Any
    = None
) -> Tensor:
    r"""Sample ``input`` at the points of ``grid``."""
def group_norm(
    input: Tensor, num_groups: Any, weight: Any = None, bias: Any = None, eps: Number = 1e-05, cudnn_enabled:
    builtins.bool = True
) -> Tensor:
    r"""Normalise over each group of channels and all positions (Wu and He 2018)."""
def gumbel_softmax(
    logits: Any, tau: Number = 1, hard: builtins.bool = False, eps: Number = 1e-10, dim: builtins.int = -1
) -> Tensor:
    r"""A draw from the Gumbel-softmax distribution (Jang et al. 2016), one-hot with the soft gradient if ``hard``."""
def hardshrink(input: Tensor, lambd: Number = 0.5, *, out: Any = None) -> Tensor:
    r"""``input`` where its size exceeds ``lambd``, else 0."""
def hardsigmoid(input: Tensor, inplace: builtins.bool = False) -> Tensor:
    r"""``min(max(input + 3, 0), 6) / 6``."""
def hardswish(input: Tensor, inplace: builtins.bool = False) -> Tensor:
    r"""``input * hardsigmoid(input)`` (Howard et al. 2019)."""
def hardtanh(input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0, inplace: builtins.bool = False) -> Tensor:
    r"""``x`` clamped to ``[min_val, max_val]``."""
def hardtanh_(input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0) -> Tensor:
    r"""In-place form of :func:`hardtanh`."""
def hinge_embedding_loss(
    input: Tensor, target: Any, margin: Number = 1.0, size_average: Any = None, reduce: Any = None, reduction:
    builtins.str = 'mean'
) -> Tensor:
    r"""``input`` where the target is 1, ``max(0, margin - input)`` where it is -1; all in the dtype of ``input``."""
def huber_loss(
    input: Tensor, target: Any, reduction: builtins.str = 'mean', delta: Number = 1.0, weight: Any = None
) -> Tensor:
    r"""Squared below ``delta`` and linear above: ``d ** 2 / 2`` or ``delta (d - delta / 2)`` (Huber 1964), in the
    dtype"""
def instance_norm(
    input: Tensor, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: builtins.bool = True, momentum: Number = 0.1, eps: Number = 1e-05
) -> Tensor:
    r"""Normalise each channel of each sample over its positions (Ulyanov, Vedaldi and Lempitsky 2016)."""
def interpolate(
    input: Tensor, size: Sequence[builtins.int] | builtins.int | None = None, scale_factor: Any = None, mode:
    builtins.str = 'nearest', align_corners: Any = None, recompute_scale_factor: Any = None, antialias: builtins.bool =
    False
) -> Tensor:
    r"""Resize the spatial dimensions of ``(N, C, d1, ...)``."""
def kl_div(
    input: Tensor, target: Any, size_average: Any = None, reduce: Any = None, reduction: builtins.str = 'mean',
    log_target: builtins.bool = False
) -> Tensor:
    r"""Kullback-Leibler divergence ``t (log t - input)`` of ``target`` from ``exp(input)``."""
def l1_loss(
    input: Tensor, target: Any, size_average: Any = None, reduce: Any = None, reduction: builtins.str = 'mean', weight:
    Any = None
) -> Tensor:
    r"""Absolute difference."""
def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: Number = 1e-05, cudnn_enable:
    builtins.bool = True
) -> Tensor:
    r"""``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions (Ba, Kiros and Hinton 2016)."""
def leaky_relu(input: Tensor, negative_slope: Number = 0.01, inplace: builtins.bool = False) -> Tensor:
    r"""``x`` where positive, else ``negative_slope x``."""
def leaky_relu_(input: Tensor, negative_slope: Number = 0.01) -> Tensor:
    r"""In-place form of :func:`leaky_relu`."""
def linear(input: Tensor, weight: Any, bias: Any = None, *, out: Any = None) -> Tensor:
    r"""``input @ weight.T + bias``: a layer of ``out_features`` weighted sums."""
def linear_cross_entropy(
    input: Tensor, linear_weight: Any, target: Any, *, linear_bias: Any = None, weight: Any = None, reduction:
    builtins.str = 'mean', ignore_index: Any = None, label_smoothing: Number = 0.0, options: Any = None
) -> Tensor:
    r"""``cross_entropy(linear(input, linear_weight, linear_bias), target)``."""
def local_response_norm(
    input: Tensor, size: Sequence[builtins.int] | builtins.int, alpha: Number = 0.0001, beta: Number = 0.75, k: Number =
    1.0
) -> Tensor:
    r"""``x / (k + alpha * mean of x^2 over size neighbouring channels)^beta``."""
def log_softmax(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, _stacklevel: Number = 3, dtype: _dtype |
    None = None
) -> Tensor:
    r"""``log(softmax(x))`` along ``dim``."""
def logsigmoid(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``log(sigmoid(input))`` with no overflow."""
def lp_pool1d(
    input: Tensor, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: builtins.bool = False
) -> Tensor:
    r"""Power mean without the mean: ``(sum x ** p) ** (1 / p)`` of each window."""
def lp_pool2d(
    input: Tensor, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: builtins.bool = False
) -> Tensor:
    r"""Power mean without the mean: ``(sum x ** p) ** (1 / p)`` of each window."""
def lp_pool3d(
    input: Tensor, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: builtins.bool = False
) -> Tensor:
    r"""Power mean without the mean: ``(sum x ** p) ** (1 / p)`` of each window."""
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: Number = 0, size_average: Any = None, reduce: Any = None, reduction:
    builtins.str = 'mean'
) -> Tensor:
    r"""``max(0, -target * (input1 - input2) + margin)``."""
def max_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Number = 0, dilation: Number = 1, ceil_mode:
    builtins.bool = False, return_indices: builtins.bool = False
) -> Tensor:
    r"""Maximum of each window."""
def max_pool1d_with_indices(*args: Any, return_indices: builtins.bool = False, **kwargs: Any) -> tuple[Tensor, Tensor]:
    r""":func:`max_pool1d`, and where each maximum was found."""
def max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Number = 0, dilation: Number = 1, ceil_mode:
    builtins.bool = False, return_indices: builtins.bool = False
) -> Tensor:
    r"""Maximum of each window."""
def max_pool2d_with_indices(*args: Any, return_indices: builtins.bool = False, **kwargs: Any) -> tuple[Tensor, Tensor]:
    r""":func:`max_pool2d`, and where each maximum was found."""
def max_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Number = 0, dilation: Number = 1, ceil_mode:
    builtins.bool = False, return_indices: builtins.bool = False
) -> Tensor:
    r"""Maximum of each window."""
def max_pool3d_with_indices(*args: Any, return_indices: builtins.bool = False, **kwargs: Any) -> tuple[Tensor, Tensor]:
    r""":func:`max_pool3d`, and where each maximum was found."""
def max_unpool1d(
    input: Tensor, indices: Any, kernel_size: Any, stride: Any = None, padding: Number = 0, output_size: Any = None
) -> Tensor:
    r"""Pooled values back where ``max_pool1d`` found them, zero elsewhere."""
def max_unpool2d(
    input: Tensor, indices: Any, kernel_size: Any, stride: Any = None, padding: Number = 0, output_size: Any = None
) -> Tensor:
    r"""Pooled values back where ``max_pool2d`` found them, zero elsewhere."""
def max_unpool3d(
    input: Tensor, indices: Any, kernel_size: Any, stride: Any = None, padding: Number = 0, output_size: Any = None
) -> Tensor:
    r"""Pooled values back where ``max_pool3d`` found them, zero elsewhere."""
def mish(input: Tensor, inplace: builtins.bool = False) -> Tensor:
    r"""``input * tanh(softplus(input))`` (Misra 2019)."""
def mse_loss(
    input: Tensor, target: Any, size_average: Any = None, reduce: Any = None, reduction: builtins.str = 'mean', weight:
    Any = None
) -> Tensor:
    r"""Squared difference. ``weight`` multiplies each element; the mean is then over the weights."""
def multi_head_attention_forward(
    query: Any, key: Any, value: Tensor | Number, embed_dim_to_check: Any, num_heads: Any, in_proj_weight: Any,
    in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: Any, dropout_p: Any, out_proj_weight: Any,
    out_proj_bias: Any, training: builtins.bool = True, key_padding_mask: Any = None, need_weights: builtins.bool =
    True, attn_mask: Any = None, use_separate_proj_weight: builtins.bool = False, q_proj_weight: Any = None,
    k_proj_weight: Any = None, v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None,
    average_attn_weights: builtins.bool = True, is_causal: builtins.bool = False
) -> tuple[Tensor, Tensor | None]:
    r"""What :class:`taeda.nn.MultiheadAttention` computes; sequence first, ``(L, N, E)``."""
def multi_margin_loss(
    input: Tensor, target: Any, p: Any = 1, margin: Number = 1.0, weight: Any = None, size_average: Any = None, reduce:
    Any = None, reduction: builtins.str = 'mean'
) -> Tensor:
    r"""``sum over other classes i of max(0, margin - x[target] + x[i]) ** p / classes``."""
def multilabel_margin_loss(
    input: Tensor, target: Any, size_average: Any = None, reduce: Any = None, reduction: builtins.str = 'mean'
) -> Tensor:
    r"""``sum over labels j and other classes i of max(0, 1 - (x[j] - x[i])) / classes``."""
def multilabel_soft_margin_loss(
    input: Tensor, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction:
    builtins.str = 'mean'
) -> Tensor:
    r""":func:`binary_cross_entropy_with_logits`, averaged over the last dimension, of several labels per sample."""
def native_channel_shuffle(input: Tensor, groups: Any) -> Tensor:
    r"""Interleaves ``groups`` groups of channels."""
def nll_loss(
    input: Tensor, target: Any, weight: Any = None, size_average: Any = None, ignore_index: Number = -100, reduce: Any =
    None, reduction: builtins.str = 'mean'
) -> Tensor:
    r"""Negative log-likelihood: ``-weight[target] * input[target]`` of log-probabilities."""
def normalize(input: Tensor, p: Any = 2.0, dim: builtins.int = 1, eps: Number = 1e-12, out: Any = None) -> Tensor:
    r"""``x / max(|x|_p, eps)`` along ``dim``."""
def one_hot(tensor: Tensor, num_classes: Number = -1) -> Tensor:
    r"""Integers as rows of zeros with a single one."""
def pad(input: Tensor, pad: Any, mode: builtins.str = 'constant', value: Tensor | Number | None = None) -> Tensor:
    r"""Padding, for ``nn.functional``."""
def pairwise_distance(x1: Any, x2: Any, p: Any = 2.0, eps: Number = 1e-06, keepdim: builtins.bool = False) -> Tensor:
    r"""The p-norm of ``x1 - x2 + eps`` over the last dimension."""
def pdist(input: Tensor, p: Any = 2.0) -> Tensor:
    r"""Distances between every pair of rows, as a vector."""
def pixel_shuffle(input: Tensor, upscale_factor: Any) -> Tensor:
    r"""``(*, C r^2, H, W)`` to ``(*, C, H r, W r)``."""
def pixel_unshuffle(input: Tensor, downscale_factor: Any) -> Tensor:
    r"""``(*, C, H r, W r)`` to ``(*, C r^2, H, W)``."""
def poisson_nll_loss(
    input: Tensor, target: Any, log_input: builtins.bool = True, full: builtins.bool = False, size_average: Any = None,
    eps: Number = 1e-08, reduce: Any = None, reduction: builtins.str = 'mean'
) -> Tensor:
    r"""Negative log-likelihood of counts ``target`` under a Poisson distribution of mean ``exp(input)``."""
def prelu(input: Tensor, weight: Any) -> Tensor:
    r"""``input`` where positive, else ``weight * input``; ``weight`` is one number, or one per channel (dim 1)."""
def relu(input: Tensor, inplace: builtins.bool = False) -> Tensor:
    r"""``max(0, x)``."""
def relu6(input: Tensor, inplace: builtins.bool = False) -> Tensor:
    r"""``min(max(0, x), 6)``."""
def relu_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`relu`."""
def rms_norm(input: Tensor, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Tensor:
    r"""``x / sqrt(mean(x ** 2) + eps) * weight`` over the last dimensions (Zhang and Sennrich 2019)."""
def rrelu(
    input: Tensor, lower: Number = 0.125, upper: Number = 0.3333333333333333, training: builtins.bool = False, inplace:
    builtins.bool = False
) -> Tensor:
    r"""``x``, times a slope where negative: drawn uniformly in training, the mean of the bounds otherwise."""
def rrelu_(
    input: Tensor, lower: Number = 0.125, upper: Number = 0.3333333333333333, training: builtins.bool = False,
    generator: Any | None = None
) -> Tensor:
    r"""In-place form of :func:`rrelu`."""
def scaled_dot_product_attention(
    query: Any, key: Any, value: Tensor | Number, attn_mask: Any = None, dropout_p: Number = 0.0, is_causal:
    builtins.bool = False, scale: Any = None, enable_gqa: builtins.bool = False
) -> Tensor:
    r"""``softmax(query @ key.T * scale + mask) @ value`` (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762)."""
def selu(input: Tensor, inplace: builtins.bool = False) -> Tensor:
    r"""``scale (max(0, x) + min(0, alpha (exp(x) - 1)))``."""
def selu_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`selu`."""
def sigmoid(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``1 / (1 + exp(-input))``."""
def silu(input: Tensor, inplace: builtins.bool = False) -> Tensor:
    r"""``input * sigmoid(input)``, also called swish."""
def smooth_l1_loss(
    input: Tensor, target: Any, size_average: Any = None, reduce: Any = None, reduction: builtins.str = 'mean', beta:
    Number = 1.0
) -> Tensor:
    r"""Squared below ``beta`` and absolute above: ``d ** 2 / (2 beta)`` or ``d - beta / 2``; :func:`l1_loss` for 0."""
def soft_margin_loss(
    input: Tensor, target: Any, size_average: Any = None, reduce: Any = None, reduction: builtins.str = 'mean'
) -> Tensor:
    r"""``log(1 + exp(-target * input))`` for targets of 1 and -1, in the dtype of ``input``."""
def softmax(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, _stacklevel: Number = 3, dtype: _dtype |
    None = None
) -> Tensor:
    r"""``exp(x) / sum(exp(x))`` along ``dim``."""
def softmin(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, _stacklevel: Number = 3, dtype: _dtype |
    None = None
) -> Tensor:
    r"""``softmax(-x)`` along ``dim``."""
def softplus(input: Tensor, beta: Number = 1.0, threshold: Number = 20.0, *, out: Any = None) -> Tensor:
    r"""``log(1 + exp(beta * input)) / beta``; ``input`` itself where ``beta * input`` is above ``threshold``."""
def softshrink(input: Tensor, lambd: Number = 0.5, *, out: Any = None) -> Tensor:
    r"""``input`` moved toward 0 by ``lambd``, and 0 within it."""
def softsign(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``input / (1 + |input|)``."""
def tanh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The hyperbolic tangent."""
def tanhshrink(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``input - tanh(input)``."""
def threshold(input: Tensor, threshold: Any, value: Tensor | Number, inplace: builtins.bool = False) -> Tensor:
    r"""``x`` where it is above ``threshold``, else ``value``."""
def threshold_(input: Tensor, threshold: Any, value: Tensor | Number) -> Tensor:
    r"""In-place form of :func:`threshold`."""
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: Number = 1.0, p: Any = 2, eps: Number = 1e-06, swap:
    builtins.bool = False, size_average: Any = None, reduce: Any = None, reduction: builtins.str = 'mean'
) -> Tensor:
    r"""``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, ``d`` the ``p``-norm over the last dimension."""
def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *, distance_function: Any = None, margin: Number = 1.0, swap:
    builtins.bool = False, reduction: builtins.str = 'mean'
) -> Tensor:
    r""":func:`triplet_margin_loss` with any distance between two tensors; the 2-norm by default."""
def unfold(input: Tensor, kernel_size: Any, dilation: Number = 1, padding: Number = 0, stride: Number = 1) -> Tensor:
    r"""The windows of an image as columns (``torch.nn.functional.unfold``)."""
def upsample(
    input: Tensor, size: Sequence[builtins.int] | builtins.int | None = None, scale_factor: Any = None, mode:
    builtins.str = 'nearest', align_corners: Any = None
) -> Tensor:
    r"""The older name of :func:`interpolate`."""
def upsample_bilinear(
    input: Tensor, size: Sequence[builtins.int] | builtins.int | None = None, scale_factor: Any = None
) -> Tensor:
    r"""Bilinear interpolation with aligned corners under its older name."""
def upsample_nearest(
    input: Tensor, size: Sequence[builtins.int] | builtins.int | None = None, scale_factor: Any = None
) -> Tensor:
    r"""Nearest-neighbour interpolation under its older name."""
