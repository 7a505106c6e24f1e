"""Types of taeda.nn.functional. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from .. import Number, Size, Tensor, _device, _dtype, return_types
from .._core.tensor import Composite as Composite
from ..nn._linear_cross_entropy import LinearCrossEntropyOptions as LinearCrossEntropyOptions
from ..nn._grouped_mm import ScalingType as ScalingType
from ..nn._grouped_mm import SwizzleType as SwizzleType
_bounds: Any
_canonical_mask: Any
_drop_channels: Any
_embedding: Any
_embedding_bags: Any
_embedding_renorm_: Any
_function: Any
_is_channels_last: Any
_is_pointwise: Any
_moved_pixels: Any
_named: Any
_once_per_form: Any
_p: Any
_pixel_factor: Any
_power: Any
_shuffled: Any
_sizes: Any
_softmax_dim: Any
_trait: Any
_traits: Any
_unbatched: Any
_unshuffled: Any
_with_indices: Any
_with_inplace: Any

def adaptive_avg_pool1d(input: Tensor, output_size: Sequence[builtins.int | None] | builtins.int) -> Tensor:
    r"""Average over windows that are chosen so that the result has the sizes ``output_size``."""
def adaptive_avg_pool2d(input: Tensor, output_size: Sequence[builtins.int | None] | builtins.int) -> Tensor:
    r"""Average over windows that are chosen so that the result has the sizes ``output_size``."""
def adaptive_avg_pool3d(input: Tensor, output_size: Sequence[builtins.int | None] | builtins.int) -> Tensor:
    r"""Average over windows that are chosen so that the result has the sizes ``output_size``."""
def adaptive_max_pool1d(
    input: Tensor, output_size: Sequence[builtins.int | None] | builtins.int, return_indices: builtins.bool = False
) -> Tensor:
    r"""Maximum over windows that are chosen so that the result has the sizes ``output_size``."""
def adaptive_max_pool1d_with_indices(
    *args: Any, return_indices: builtins.bool = False, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    r""":func:`adaptive_max_pool1d`, and where each maximum was found."""
def adaptive_max_pool2d(
    input: Tensor, output_size: Sequence[builtins.int | None] | builtins.int, return_indices: builtins.bool = False
) -> Tensor:
    r"""Maximum over windows that are chosen so that the result has the sizes ``output_size``."""
def adaptive_max_pool2d_with_indices(
    *args: Any, return_indices: builtins.bool = False, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    r""":func:`adaptive_max_pool2d`, and where each maximum was found."""
def adaptive_max_pool3d(
    input: Tensor, output_size: Sequence[builtins.int | None] | builtins.int, return_indices: builtins.bool = False
) -> Tensor:
    r"""Maximum over windows that are chosen so that the result has the sizes ``output_size``."""
def adaptive_max_pool3d_with_indices(
    *args: Any, return_indices: builtins.bool = False, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    r""":func:`adaptive_max_pool3d`, and where each maximum was found."""
def affine_grid(
    theta: Any, size: Sequence[builtins.int] | builtins.int, align_corners: builtins.bool | None = None
) -> Tensor:
    r"""The points that :func:`grid_sample` reads to apply an affine map: ``theta @ (x, y, 1)`` for each ..."""
def alpha_dropout(
    input: Tensor, p: Any = 0.5, training: builtins.bool = False, inplace: builtins.bool = False
) -> Tensor:
    r"""Dropout for SELU: elements become its limit, -1.7581, and the result is scaled so that mean and ..."""
def avg_pool1d(
    input: Tensor, kernel_size: Sequence[builtins.int] | builtins.int, stride: Sequence[builtins.int] | builtins.int |
    None = None, padding: Sequence[builtins.int] | builtins.int = 0, ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True
) -> Tensor:
    r"""The mean of the elements of each window."""
def avg_pool2d(
    input: Tensor, kernel_size: Sequence[builtins.int] | builtins.int, stride: Sequence[builtins.int] | builtins.int |
    None = None, padding: Sequence[builtins.int] | builtins.int = 0, ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True, divisor_override: Any = None, *, out: Any = None
) -> Tensor:
    r"""The mean of the elements of each window."""
def avg_pool3d(
    input: Tensor, kernel_size: Sequence[builtins.int] | builtins.int, stride: Sequence[builtins.int] | builtins.int |
    None = None, padding: Sequence[builtins.int] | builtins.int = 0, ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True, divisor_override: Any = None, *, out: Any = None
) -> Tensor:
    r"""The mean of the elements of each window."""
def batch_norm(
    input: Tensor, running_mean: Any, running_var: Any, weight: Any = None, bias: Tensor | None = None, training:
    builtins.bool = False, momentum: Number = 0.1, eps: Number = 1e-05
) -> Tensor:
    r"""Each channel to mean 0 and variance 1 over the batch: ``(x - mean) / sqrt(var + eps) * weight + ..."""
def bilinear(input1: Any, input2: Any, weight: Any, bias: Tensor | None = None) -> Tensor:
    r"""A number for each pair of vectors: ``y[..., o] = input1[..., i] * weight[o, i, j] * input2[..., ..."""
def binary_cross_entropy(
    input: Tensor, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction:
    builtins.str = 'mean'
) -> Tensor:
    r"""Binary cross entropy of probabilities: ``-(y * log(x) + (1 - y) * log(1 - x))``, each logarithm ..."""
def binary_cross_entropy_with_logits(
    input: Tensor, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction:
    builtins.str = 'mean', pos_weight: Any = None
) -> Tensor:
    r"""Binary cross entropy of ``sigmoid(input)``, without overflow: ``max(x, 0) - x * y + log(1 + ..."""
def celu(input: Tensor, alpha: builtins.float = 1.0, inplace: builtins.bool = False) -> Tensor:
    r"""``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`` (Barron 2017)."""
def celu_(input: Tensor, alpha: Number = 1.0) -> Tensor:
    r"""In-place form of :func:`celu`: ``input`` is overwritten with the result and given back."""
def channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    r"""Interleaves ``groups`` groups of channels, so that the next grouped convolution sees all of them ..."""
def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sequence[builtins.int] | builtins.int = 1,
    padding: Any = 0, dilation: Sequence[builtins.int] | builtins.int = 1, groups: builtins.int = 1, *, out: Any = None
) -> Tensor:
    r"""Every output is a weighted sum of a window of the input: the cross-correlation with ``weight``."""
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sequence[builtins.int] | builtins.int = 1,
    padding: Any = 0, dilation: Sequence[builtins.int] | builtins.int = 1, groups: builtins.int = 1, *, out: Any = None
) -> Tensor:
    r"""Every output is a weighted sum of a window of the input: the cross-correlation with ``weight``."""
def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sequence[builtins.int] | builtins.int = 1,
    padding: Any = 0, dilation: Sequence[builtins.int] | builtins.int = 1, groups: builtins.int = 1, *, out: Any = None
) -> Tensor:
    r"""Every output is a weighted sum of a window of the input: the cross-correlation with ``weight``."""
def conv_tbc(input: Tensor, weight: Any, bias: Tensor, pad: Sequence[builtins.int] | builtins.int = 0) -> Tensor:
    r"""A convolution in one dimension of a sequence whose time comes first: ``out[t, n, o]`` is the sum ..."""
def conv_transpose1d(
    input: Tensor, weight: Any, bias: Tensor | None = None, stride: Sequence[builtins.int] | builtins.int = 1, padding:
    Sequence[builtins.int] | builtins.int = 0, output_padding: Sequence[builtins.int] | builtins.int = 0, groups:
    builtins.int = 1, dilation: Sequence[builtins.int] | builtins.int = 1, *, out: Any = None
) -> Tensor:
    r"""Transposed convolution: every input spreads a weighted window over the output, a layer that ..."""
def conv_transpose2d(
    input: Tensor, weight: Any, bias: Tensor | None = None, stride: Sequence[builtins.int] | builtins.int = 1, padding:
    Sequence[builtins.int] | builtins.int = 0, output_padding: Sequence[builtins.int] | builtins.int = 0, groups:
    builtins.int = 1, dilation: Sequence[builtins.int] | builtins.int = 1, *, out: Any = None
) -> Tensor:
    r"""Transposed convolution: every input spreads a weighted window over the output, a layer that ..."""
def conv_transpose3d(
    input: Tensor, weight: Any, bias: Tensor | None = None, stride: Sequence[builtins.int] | builtins.int = 1, padding:
    Sequence[builtins.int] | builtins.int = 0, output_padding: Sequence[builtins.int] | builtins.int = 0, groups:
    builtins.int = 1, dilation: Sequence[builtins.int] | builtins.int = 1, *, out: Any = None
) -> Tensor:
    r"""Transposed convolution: every input spreads a weighted window over the output, a layer that ..."""
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: builtins.float = 0, size_average: Any = None, reduce: Any = None,
    reduction: builtins.str = 'mean'
) -> Tensor:
    r"""``1 - c`` where the target is 1, ``max(0, c - margin)`` where it is -1, with ``c`` the cosine of ..."""
def cosine_similarity(x1: Tensor, x2: Tensor, dim: builtins.int = 1, eps: builtins.float = 1e-08) -> Tensor:
    r"""The cosine of the angle of two vectors: ``x1"""
def cross_entropy(
    input: Tensor, target: Any, weight: Any = None, size_average: Any = None, ignore_index: builtins.int = -100, reduce:
    Any = None, reduction: builtins.str = 'mean', label_smoothing: Number = 0.0
) -> Tensor:
    r"""``-log(softmax(input)[target])``: how surprised the scores of the classes are by the right class."""
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: builtins.int = 0, reduction:
    builtins.str = 'mean', zero_infinity: builtins.bool = False
) -> Tensor:
    r"""``-log`` of the probability of a label sequence, summed over all its alignments with the input."""
def dropout(input: Tensor, p: Any = 0.5, training: builtins.bool = True, inplace: builtins.bool = False) -> Tensor:
    r"""In training each element becomes 0 with probability ``p``, and the others are divided by ``1 - ..."""
def dropout1d(input: Tensor, p: Any = 0.5, training: builtins.bool = True, inplace: builtins.bool = False) -> Tensor:
    r""":func:`dropout` of whole channels of signals."""
def dropout2d(input: Tensor, p: Any = 0.5, training: builtins.bool = True, inplace: builtins.bool = False) -> Tensor:
    r""":func:`dropout` of whole channels of images."""
def dropout3d(input: Tensor, p: Any = 0.5, training: builtins.bool = True, inplace: builtins.bool = False) -> Tensor:
    r""":func:`dropout` of whole channels of volumes."""
def elu(input: Tensor, alpha: builtins.float = 1.0, inplace: builtins.bool = False) -> Tensor:
    r"""``x`` where positive, else ``alpha * (exp(x) - 1)`` (Clevert et al. 2015)."""
def elu_(input: Tensor, alpha: Number = 1.0, scale: Number = 1.0, input_scale: Number = 1.0) -> Tensor:
    r"""In-place form of :func:`elu`; of ``scale * elu(input)``, with ``input_scale`` within the ..."""
def embedding(
    input: Tensor, weight: Tensor, padding_idx: builtins.int | None = None, max_norm: builtins.float | None = None,
    norm_type: builtins.float = 2.0, scale_grad_by_freq: builtins.bool = False, sparse: builtins.bool = False
) -> Tensor:
    r"""Rows of a table by their numbers: ``output[i] = weight[input[i]]``."""
def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: builtins.float | None = None, norm_type:
    builtins.float = 2, scale_grad_by_freq: builtins.bool = False, mode: builtins.str = 'mean', sparse: builtins.bool =
    False, per_sample_weights: Tensor | None = None, include_last_offset: builtins.bool = False, padding_idx:
    builtins.int | None = None
) -> Any:
    r"""Sums, means or maxima of bags of rows of a table, without the rows themselves in memory."""
def feature_alpha_dropout(
    input: Tensor, p: Any = 0.5, training: builtins.bool = False, inplace: builtins.bool = False
) -> Tensor:
    r""":func:`alpha_dropout` of whole channels."""
def fold(
    input: Tensor, output_size: Sequence[builtins.int | None] | builtins.int, kernel_size: Sequence[builtins.int] |
    builtins.int, dilation: Sequence[builtins.int] | builtins.int = 1, padding: Sequence[builtins.int] | builtins.int =
    0, stride: Sequence[builtins.int] | builtins.int = 1
) -> Tensor:
    r"""Adds up blocks into an image, each at its place: the adjoint of :func:`unfold`."""
def fractional_max_pool2d(
    input: Tensor, kernel_size: Sequence[builtins.int] | builtins.int, output_size: Sequence[builtins.int | None] |
    builtins.int | None = None, output_ratio: Any = None, return_indices: builtins.bool = False, _random_samples: Any =
    None
) -> Tensor:
    r"""The largest element of windows at pseudo-random, uneven steps, so that an image shrinks by any ..."""
def fractional_max_pool2d_with_indices(
    *args: Any, return_indices: builtins.bool = False, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    r""":func:`fractional_max_pool2d`, and where each maximum was found."""
def fractional_max_pool3d(
    input: Tensor, kernel_size: Sequence[builtins.int] | builtins.int, output_size: Sequence[builtins.int | None] |
    builtins.int | None = None, output_ratio: Any = None, return_indices: builtins.bool = False, _random_samples: Any =
    None
) -> Tensor:
    r"""The largest element of windows at pseudo-random, uneven steps, so that a volume shrinks by any ..."""
def fractional_max_pool3d_with_indices(
    *args: Any, return_indices: builtins.bool = False, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    r""":func:`fractional_max_pool3d`, and where each maximum was found."""
def gaussian_nll_loss(
    input: Tensor, target: Any, var: Any, full: builtins.bool = False, eps: Any = 1e-06, reduction: builtins.str =
    'mean'
) -> Tensor:
    r"""Negative log-likelihood under a normal distribution: ``(log(var) + (input - target) ** 2 / var) ..."""
def gelu(input: Tensor, *, approximate: builtins.str = 'none', out: Any = None) -> Tensor:
    r"""``x * P(X <= x)`` for standard normal ``X``, ``x * (1 + erf(x / sqrt(2))) / 2``: the Gaussian ..."""
def glu(input: Tensor, dim: builtins.int = -1) -> Tensor:
    r"""``a * sigmoid(b)`` of the halves ``a`` and ``b`` of ``input`` along ``dim`` (Dauphin et al. 2016)."""
def grid_sample(
    input: Tensor, grid: Any, mode: builtins.str = 'bilinear', padding_mode: builtins.str = 'zeros', align_corners:
    builtins.bool | None = None
) -> Tensor:
    r"""An image read at given points, between pixels by interpolation: ``output[n, :, i, j] = ..."""
def group_norm(
    input: Tensor, num_groups: builtins.int, weight: Any = None, bias: Tensor | None = None, eps: Number = 1e-05,
    cudnn_enabled: builtins.bool = True
) -> Tensor:
    r"""``(input - mean) / sqrt(var + eps) * weight + bias`` with the mean and the variance of each ..."""
def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    r"""A matrix product for each of several groups, as of the experts in a mixture of experts."""
def gumbel_softmax(
    logits: Tensor, tau: builtins.float = 1, hard: builtins.bool = False, eps: builtins.float = 1e-10, dim: builtins.int
    = -1
) -> Tensor:
    r"""A draw of a class that has a gradient: ``softmax((logits + g) / tau)`` with noise ``g = ..."""
def hardshrink(input: Tensor, lambd: Number = 0.5, *, out: Any = None) -> Tensor:
    r"""``input`` where ``|input| > lambd``, 0 elsewhere."""
def hardsigmoid(input: Tensor, inplace: builtins.bool = False) -> Tensor:
    r"""``min(max(input + 3, 0), 6) / 6``: the sigmoid from three straight lines."""
def hardswish(input: Tensor, inplace: builtins.bool = False) -> Tensor:
    r"""``input * min(max(input + 3, 0), 6) / 6`` (Howard et al. 2019)."""
def hardtanh(
    input: Tensor, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0, inplace: builtins.bool = False
) -> Tensor:
    r"""``min(max(min_val, x), max_val)``."""
def hardtanh_(input: Tensor, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> Tensor:
    r"""In-place form of :func:`hardtanh`: ``input`` is overwritten with the result and given back."""
def hinge_embedding_loss(
    input: Tensor, target: Any, margin: Number = 1.0, size_average: Any = None, reduce: Any = None, reduction:
    builtins.str = 'mean'
) -> Tensor:
    r"""``input`` where the target is 1, ``max(0, margin - input)`` where it is -1."""
def huber_loss(
    input: Tensor, target: Any, reduction: builtins.str = 'mean', delta: Number = 1.0, weight: Any = None
) -> Tensor:
    r"""``d ** 2 / 2`` where ``d <= delta``, else ``delta * (d - delta / 2)``, with ``d = abs(input - ..."""
def instance_norm(
    input: Tensor, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Tensor | None = None,
    use_input_stats: builtins.bool = True, momentum: Number = 0.1, eps: Number = 1e-05
) -> Tensor:
    r"""Each channel of each sample to mean 0 and variance 1: ``(x - mean) / sqrt(var + eps) * weight + ..."""
def interpolate(
    input: Tensor, size: Sequence[builtins.int] | builtins.int | None = None, scale_factor: Any = None, mode:
    builtins.str = 'nearest', align_corners: builtins.bool | None = None, recompute_scale_factor: Any = None, antialias:
    builtins.bool = False
) -> Tensor:
    r"""Resizes signals, images or volumes, to a size or by a factor."""
def kl_div(
    input: Tensor, target: Any, size_average: Any = None, reduce: Any = None, reduction: builtins.str = 'mean',
    log_target: builtins.bool = False
) -> Tensor:
    r"""Kullback-Leibler divergence ``y * (log(y) - x)`` of ``target`` from log-probabilities ``input``, ..."""
def l1_loss(
    input: Tensor, target: Any, size_average: Any = None, reduce: Any = None, reduction: builtins.str = 'mean', weight:
    Any = None
) -> Tensor:
    r"""Absolute error: ``abs(input - target)`` per element, then the mean."""
def layer_norm(
    input: Tensor, normalized_shape: Sequence[builtins.int] | builtins.int, weight: Any = None, bias: Tensor | None =
    None, eps: Number = 1e-05, cudnn_enable: builtins.bool = True
) -> Tensor:
    r"""``(input - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions (Ba, Kiros and ..."""
def leaky_relu(input: Tensor, negative_slope: builtins.float = 0.01, inplace: builtins.bool = False) -> Tensor:
    r"""``x`` where positive, else ``negative_slope * x``."""
def leaky_relu_(input: Tensor, negative_slope: Number = 0.01) -> Tensor:
    r"""In-place form of :func:`leaky_relu`: ``input`` is overwritten with the result and given back."""
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Any = None) -> Tensor:
    r"""``input @ weight.T + bias``: every output is a weighted sum of all inputs."""
def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None, weight: Tensor | None =
    None, reduction: builtins.str = 'mean', ignore_index: builtins.int | None = None, label_smoothing: builtins.float =
    0.0, options: Any = None
) -> Tensor:
    r"""``cross_entropy(linear(input, linear_weight, linear_bias), target)``, whose scores need not be ..."""
def local_response_norm(
    input: Tensor, size: Sequence[builtins.int] | builtins.int, alpha: builtins.float = 0.0001, beta: builtins.float =
    0.75, k: builtins.float = 1.0
) -> Tensor:
    r"""``x / (k + alpha * mean) ** beta``, where ``mean`` is the mean of ``x ** 2`` over ``size`` ..."""
def log_softmax(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, _stacklevel: builtins.int = 3, dtype:
    _dtype | None = None
) -> Tensor:
    r"""``log(exp(x) / sum(exp(x)))`` along ``dim``, exact where a probability is too small for its dtype."""
def logsigmoid(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``log(1 / (1 + exp(-input)))``, exact where the sigmoid is too small for its dtype."""
def lp_pool1d(
    input: Tensor, norm_type: builtins.float, kernel_size: Any, stride: Any = None, ceil_mode: builtins.bool = False
) -> Tensor:
    r"""``(sum of x ** p) ** (1 / p)`` over each window of a signal: the sum for ``p = 1``, nearly the ..."""
def lp_pool2d(
    input: Tensor, norm_type: builtins.float, kernel_size: Any, stride: Any = None, ceil_mode: builtins.bool = False
) -> Tensor:
    r"""``(sum of x ** p) ** (1 / p)`` over each window of an image: the sum for ``p = 1``, nearly the ..."""
def lp_pool3d(
    input: Tensor, norm_type: builtins.float, kernel_size: Any, stride: Any = None, ceil_mode: builtins.bool = False
) -> Tensor:
    r"""``(sum of x ** p) ** (1 / p)`` over each window of a volume: the sum for ``p = 1``, nearly the ..."""
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: builtins.float = 0, size_average: Any = None, reduce: Any = None,
    reduction: builtins.str = 'mean'
) -> Tensor:
    r"""``max(0, -target * (input1 - input2) + margin)``: where the target is 1 the first should be ..."""
def max_pool1d(
    input: Tensor, kernel_size: Sequence[builtins.int] | builtins.int, stride: Sequence[builtins.int] | builtins.int |
    None = None, padding: Sequence[builtins.int] | builtins.int = 0, dilation: Sequence[builtins.int] | builtins.int =
    1, ceil_mode: builtins.bool = False, return_indices: builtins.bool = False
) -> Tensor:
    r"""The largest element of each window."""
def max_pool1d_with_indices(*args: Any, return_indices: builtins.bool = False, **kwargs: Any) -> tuple[Tensor, Tensor]:
    r""":func:`max_pool1d`, and where each maximum was found."""
def max_pool2d(
    input: Tensor, kernel_size: Sequence[builtins.int] | builtins.int, stride: Sequence[builtins.int] | builtins.int |
    None = None, padding: Sequence[builtins.int] | builtins.int = 0, dilation: Sequence[builtins.int] | builtins.int =
    1, ceil_mode: builtins.bool = False, return_indices: builtins.bool = False
) -> Tensor:
    r"""The largest element of each window."""
def max_pool2d_with_indices(*args: Any, return_indices: builtins.bool = False, **kwargs: Any) -> tuple[Tensor, Tensor]:
    r""":func:`max_pool2d`, and where each maximum was found."""
def max_pool3d(
    input: Tensor, kernel_size: Sequence[builtins.int] | builtins.int, stride: Sequence[builtins.int] | builtins.int |
    None = None, padding: Sequence[builtins.int] | builtins.int = 0, dilation: Sequence[builtins.int] | builtins.int =
    1, ceil_mode: builtins.bool = False, return_indices: builtins.bool = False
) -> Tensor:
    r"""The largest element of each window."""
def max_pool3d_with_indices(*args: Any, return_indices: builtins.bool = False, **kwargs: Any) -> tuple[Tensor, Tensor]:
    r""":func:`max_pool3d`, and where each maximum was found."""
def max_unpool1d(
    input: Tensor, indices: Any, kernel_size: Sequence[builtins.int] | builtins.int, stride: Sequence[builtins.int] |
    builtins.int | None = None, padding: Sequence[builtins.int] | builtins.int = 0, output_size: Sequence[builtins.int |
    None] | builtins.int | None = None
) -> Tensor:
    r"""Pooled values back at the places where :func:`max_pool1d` found them, zero elsewhere."""
def max_unpool2d(
    input: Tensor, indices: Any, kernel_size: Sequence[builtins.int] | builtins.int, stride: Sequence[builtins.int] |
    builtins.int | None = None, padding: Sequence[builtins.int] | builtins.int = 0, output_size: Sequence[builtins.int |
    None] | builtins.int | None = None
) -> Tensor:
    r"""Pooled values back at the places where :func:`max_pool2d` found them, zero elsewhere."""
def max_unpool3d(
    input: Tensor, indices: Any, kernel_size: Sequence[builtins.int] | builtins.int, stride: Sequence[builtins.int] |
    builtins.int | None = None, padding: Sequence[builtins.int] | builtins.int = 0, output_size: Sequence[builtins.int |
    None] | builtins.int | None = None
) -> Tensor:
    r"""Pooled values back at the places where :func:`max_pool3d` found them, zero elsewhere."""
def mish(input: Tensor, inplace: builtins.bool = False) -> Tensor:
    r"""``input * tanh(log(1 + exp(input)))`` (Misra 2019)."""
def mse_loss(
    input: Tensor, target: Any, size_average: Any = None, reduce: Any = None, reduction: builtins.str = 'mean', weight:
    Any = None
) -> Tensor:
    r"""Squared error: ``(input - target) ** 2`` per element, then the mean."""
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor | Number, embed_dim_to_check: builtins.int, num_heads: builtins.int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None,
    add_zero_attn: builtins.bool, dropout_p: builtins.float, out_proj_weight: Tensor, out_proj_bias: Tensor | None,
    training: builtins.bool = True, key_padding_mask: Tensor | None = None, need_weights: builtins.bool = True,
    attn_mask: Tensor | None = None, use_separate_proj_weight: builtins.bool = False, q_proj_weight: Tensor | None =
    None, k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None, static_k: Tensor | None = None,
    static_v: Tensor | None = None, average_attn_weights: builtins.bool = True, is_causal: builtins.bool = False
) -> tuple[Tensor, Tensor | None]:
    r"""The computation of :class:`taeda.nn.MultiheadAttention`, as a function of its weights."""
def multi_margin_loss(
    input: Tensor, target: Any, p: Any = 1, margin: Number = 1.0, weight: Any = None, size_average: Any = None, reduce:
    Any = None, reduction: builtins.str = 'mean'
) -> Tensor:
    r"""The hinge loss of several classes: ``sum over i != y of max(0, margin - x[y] + x[i]) ** p / C``."""
def multilabel_margin_loss(
    input: Tensor, target: Any, size_average: Any = None, reduce: Any = None, reduction: builtins.str = 'mean'
) -> Tensor:
    r"""The hinge loss of several right classes: ``sum over labels j, others i of max(0, 1 - (x[j] - ..."""
def multilabel_soft_margin_loss(
    input: Tensor, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction:
    builtins.str = 'mean'
) -> Tensor:
    r""":func:`binary_cross_entropy_with_logits`, averaged over classes: each sample may have several ..."""
def native_channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    r"""Interleaves ``groups`` groups of channels, so that the next grouped convolution sees all of them ..."""
def nll_loss(
    input: Tensor, target: Any, weight: Any = None, size_average: Any = None, ignore_index: builtins.int = -100, reduce:
    Any = None, reduction: builtins.str = 'mean'
) -> Tensor:
    r"""``-weight[target] * input[target]`` of log-probabilities, as :func:`log_softmax` gives them."""
def normalize(
    input: Tensor, p: Any = 2.0, dim: builtins.int = 1, eps: builtins.float = 1e-12, out: Tensor | None = None
) -> Tensor:
    r"""Vectors of length 1: ``x / max(norm(x), eps)`` along ``dim``."""
def one_hot(tensor: Tensor, num_classes: builtins.int = -1) -> Tensor:
    r"""Class numbers as vectors of zeros with a single one."""
def pad(
    input: Tensor, pad: Sequence[builtins.int] | builtins.int, mode: builtins.str = 'constant', value: Tensor | Number |
    None = None
) -> Tensor:
    r"""Pads the last dimensions, or cuts them where an amount is negative."""
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: Any = 2.0, eps: builtins.float = 1e-06, keepdim: builtins.bool = False
) -> Tensor:
    r"""The ``p``-norm of ``x1 - x2 + eps`` over the last dimension."""
def pdist(input: Tensor, p: Any = 2.0) -> Tensor:
    r"""The distances between every pair of rows: the part of :func:`cdist` above the diagonal."""
def pixel_shuffle(input: Tensor, upscale_factor: builtins.int) -> Tensor:
    r"""Channels to pixels: ``r * r`` channels become one that is ``r`` times as high and wide (Shi et al"""
def pixel_unshuffle(input: Tensor, downscale_factor: builtins.int) -> Tensor:
    r"""Pixels to channels: the opposite of :func:`pixel_shuffle`."""
def poisson_nll_loss(
    input: Tensor, target: Any, log_input: builtins.bool = True, full: builtins.bool = False, size_average: Any = None,
    eps: Number = 1e-08, reduce: Any = None, reduction: builtins.str = 'mean'
) -> Tensor:
    r"""Negative log-likelihood of counts under a Poisson distribution: ``exp(input) - target * input``."""
def prelu(input: Tensor, weight: Any) -> Tensor:
    r"""``input`` where it is positive, ``weight * input`` elsewhere (He et al"""
def relu(input: Tensor, inplace: builtins.bool = False) -> Tensor:
    r"""``max(0, x)``: the rectified linear unit."""
def relu6(input: Tensor, inplace: builtins.bool = False) -> Tensor:
    r"""``min(max(0, x), 6)``."""
def relu_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`relu`: ``input`` is overwritten with the result and given back."""
def rms_norm(
    input: Tensor, normalized_shape: Sequence[builtins.int] | builtins.int, weight: Any = None, eps: Any = None
) -> Tensor:
    r"""``input / sqrt(mean(input ** 2) + eps) * weight`` over the last dimensions (Zhang and Sennrich ..."""
def rrelu(
    input: Tensor, lower: builtins.float = 0.125, upper: builtins.float = 0.3333333333333333, training: builtins.bool =
    False, inplace: builtins.bool = False
) -> Tensor:
    r"""``x`` where positive, else ``a * x`` with a random slope (Xu et al. 2015)."""
def rrelu_(
    input: Tensor, lower: Number = 0.125, upper: Number = 0.3333333333333333, training: builtins.bool = False,
    generator: Any | None = None
) -> Tensor:
    r"""In-place form of :func:`rrelu`: ``input`` is overwritten with the result and given back."""
def scaled_dot_product_attention(
    query: Any, key: Any, value: Tensor | Number, attn_mask: Any = None, dropout_p: Number = 0.0, is_causal:
    builtins.bool = False, scale: builtins.float | None = None, enable_gqa: builtins.bool = False
) -> Tensor:
    r"""``softmax(query @ key^T * scale + mask) @ value``: for each query a mean of the values, weighted ..."""
def scaled_mm(
    mat_a: Tensor, mat_b: Tensor, scale_a: Any, scale_recipe_a: Any, scale_b: Any, scale_recipe_b: Any, swizzle_a: Any =
    None, swizzle_b: Any = None, bias: Tensor | None = None, output_dtype: Any = ..., contraction_dim: Any = ...,
    use_fast_accum: builtins.bool = False
) -> Tensor:
    r"""The product of two float8 matrices times scales, plus ``bias``, computed in float32."""
def selu(input: Tensor, inplace: builtins.bool = False) -> Tensor:
    r"""``scale * (max(0, x) + min(0, alpha * (exp(x) - 1)))``, ``scale = 1.0507``, ``alpha = 1.6733`` ..."""
def selu_(input: Tensor) -> Tensor:
    r"""In-place form of :func:`selu`: ``input`` is overwritten with the result and given back."""
def sigmoid(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``1 / (1 + exp(-input))``: any number to a probability."""
def silu(input: Tensor, inplace: builtins.bool = False) -> Tensor:
    r"""``input * sigmoid(input)``, also called swish: a smooth ReLU."""
def smooth_l1_loss(
    input: Tensor, target: Any, size_average: Any = None, reduce: Any = None, reduction: builtins.str = 'mean', beta:
    Number = 1.0
) -> Tensor:
    r"""``d ** 2 / (2 * beta)`` where ``d < beta``, else ``d - beta / 2``, with ``d = abs(input - ..."""
def soft_margin_loss(
    input: Tensor, target: Any, size_average: Any = None, reduce: Any = None, reduction: builtins.str = 'mean'
) -> Tensor:
    r"""``log(1 + exp(-target * input))`` for targets of 1 and -1."""
def softmax(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, _stacklevel: builtins.int = 3, dtype:
    _dtype | None = None
) -> Tensor:
    r"""``exp(x) / sum(exp(x))`` along ``dim``: any numbers to probabilities, which add up to 1."""
def softmin(
    input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, _stacklevel: builtins.int = 3, dtype:
    _dtype | None = None
) -> Tensor:
    r"""``exp(-x) / sum(exp(-x))`` along ``dim``: the smallest element gets the largest share."""
def softplus(input: Tensor, beta: Number = 1.0, threshold: Number = 20.0, *, out: Any = None) -> Tensor:
    r"""``log(1 + exp(beta * input)) / beta``; ``input`` itself where ``beta * input`` is above ..."""
def softshrink(input: Tensor, lambd: Number = 0.5, *, out: Any = None) -> Tensor:
    r"""``input`` moved towards 0 by ``lambd``, and 0 where its size is at most ``lambd``."""
def softsign(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``input / (1 + abs(input))``: between -1 and 1."""
def tanh(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The hyperbolic tangent, ``(exp(input) - exp(-input)) / (exp(input) + exp(-input))``, in [-1, 1]."""
def tanhshrink(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``input - tanh(input)``."""
def threshold(
    input: Tensor, threshold: builtins.float, value: Tensor | Number, inplace: builtins.bool = False
) -> Tensor:
    r"""``x`` where it is above ``threshold``, else ``value``."""
def threshold_(input: Tensor, threshold: Number, value: Tensor | Number) -> Tensor:
    r"""In-place form of :func:`threshold`: ``input`` is overwritten with the result and given back."""
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: Number = 1.0, p: Any = 2, eps: Number = 1e-06, swap:
    builtins.bool = False, size_average: Any = None, reduce: Any = None, reduction: builtins.str = 'mean'
) -> Tensor:
    r"""``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, ``d`` the ``p``-norm over the ..."""
def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *, distance_function: Any = None, margin: Any = 1.0, swap: builtins.bool
    = False, reduction: builtins.str = 'mean'
) -> Tensor:
    r""":func:`triplet_margin_loss` with a distance function of one's own."""
def unfold(
    input: Tensor, kernel_size: Sequence[builtins.int] | builtins.int, dilation: Sequence[builtins.int] | builtins.int =
    1, padding: Sequence[builtins.int] | builtins.int = 0, stride: Sequence[builtins.int] | builtins.int = 1
) -> Tensor:
    r"""The sliding blocks of an image, each as a column: what a convolution multiplies by its kernel."""
def upsample(
    input: Tensor, size: Sequence[builtins.int] | builtins.int | None = None, scale_factor: Any = None, mode:
    builtins.str = 'nearest', align_corners: builtins.bool | None = None
) -> Tensor:
    r"""Older name of :func:`interpolate`, with a warning."""
def upsample_bilinear(
    input: Tensor, size: Sequence[builtins.int] | builtins.int | None = None, scale_factor: Any = None
) -> Tensor:
    r"""Older name of :func:`interpolate` with ``mode="bilinear", align_corners=True``, with a warning."""
def upsample_nearest(
    input: Tensor, size: Sequence[builtins.int] | builtins.int | None = None, scale_factor: Any = None
) -> Tensor:
    r"""Older name of :func:`interpolate` with ``mode="nearest"``, with a warning."""
