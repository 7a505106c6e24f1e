"""The functions behind the layers: ops under their names here, and thin wrappers where PyTorch's signature differs."""

# ruff: noqa: I001 - lists of names are paragraphs

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any

import taeda
from .._typed import Tensor

from .. import _core
from .._core import Composite
from .._core import dtype as _dtype
from .._core.formats import is_channels_last as _is_channels_last
from .._core.plan import once_per_form as _once_per_form
from ..ops import activation as _activation
from ..ops import dropout as _dropout
from ..ops.table import OPS as _OPS
from ..ops.table import is_pointwise as _is_pointwise
from ..ops.table import trait as _trait
from ..ops.table import traits as _traits
from ..ops import softmax as _softmax
from ..ops.activation import (
    celu_, elu_, gelu, glu, hardshrink, logsigmoid, prelu, rrelu_, selu_, softplus, softshrink, softsign,
    tanhshrink,
)  # fmt: skip
from ..ops.attention import scaled_dot_product_attention
from ..ops.conv import (
    conv1d, conv2d, conv3d, conv_tbc, conv_transpose1d, conv_transpose2d, conv_transpose3d, fold, unfold,
)  # fmt: skip
from ..ops.ctc import ctc_loss
from ..ops.elementary import sigmoid, tanh
from ..ops.embedding import bags as _embedding_bags
from ..ops.embedding import embedding as _embedding
from ..ops.embedding import embedding_renorm_ as _embedding_renorm_
from ..ops.embedding import one_hot
from ..ops.cross_entropy import cross_entropy, nll_loss
from ..ops.loss import (
    binary_cross_entropy, binary_cross_entropy_with_logits, cosine_embedding_loss, gaussian_nll_loss,
    hinge_embedding_loss, huber_loss, kl_div, l1_loss, margin_ranking_loss, mse_loss, multi_margin_loss,
    multilabel_margin_loss, multilabel_soft_margin_loss, poisson_nll_loss, smooth_l1_loss, soft_margin_loss,
    triplet_margin_loss, triplet_margin_with_distance_loss,
)  # fmt: skip
from ..ops.matmul import bilinear, linear
from ..ops.batch_norm import batch_norm, instance_norm
from ..ops.normalization import group_norm, layer_norm, rms_norm
from ..ops.pooling import (
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d, adaptive_max_pool2d,
    adaptive_max_pool3d, avg_pool1d, avg_pool2d, avg_pool3d, fractional_max_pool2d, fractional_max_pool3d,
    max_pool1d, max_pool2d, max_pool3d, max_unpool1d, max_unpool2d, max_unpool3d,
)  # fmt: skip
from ..ops.interpolation import affine_grid, grid_sample, interpolate
from ..ops.pooling import _tuple as _sizes
from ..ops.shape import pad
from ..ops.statistics import pdist
from . import grad
from ._attention import canonical_mask as _canonical_mask
from ._attention import multi_head_attention_forward
from ._grouped_mm import ScalingType, SwizzleType, grouped_mm, scaled_mm
from ._linear_cross_entropy import LinearCrossEntropyOptions, linear_cross_entropy


def _p(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


# ---- activations ----------------------------------------------------------------------------------------------------
relu_, leaky_relu_, threshold_ = (_OPS[name] for name in ("relu_", "leaky_relu_", "threshold_"))


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(0, x)``: the rectified linear unit.

    Args:
        input: any shape; integers or floating-point.

    Returns:
        The sizes and the dtype of ``input``.

    Raises:
        NotImplementedError: ``input`` is of bools or complex.

    Examples:
        >>> F.relu(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """
    return input.relu_() if inplace else _activation.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(0, x), 6)``.

    Args:
        input: any shape; integers or floating-point.

    Returns:
        The sizes and the dtype of ``input``.

    Raises:
        NotImplementedError: ``input`` is of bools or complex.

    Examples:
        >>> F.relu6(taeda.tensor([-1.0, 2.0, 8.0]))
        tensor([0., 2., 6.])
    """
    return input.relu6_() if inplace else _activation.relu6(input)


def _bounds(input: Tensor, *bounds: float) -> Any:
    """Bounds of ``hardtanh`` in the dtype of ``input``."""
    if not isinstance(input, Tensor) or input.is_floating_point() or input.is_complex():
        return bounds
    whole = [_core.fitting(x, _core.int64) for x in bounds]
    if min(whole) < 0 and not input.dtype.is_signed:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return whole


@_traits(canonical=True)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """``min(max(min_val, x), max_val)``.

    Args:
        input: any shape; integers or floating-point.
        min_val: lower bound.
        max_val: upper bound.

    Returns:
        The sizes and the dtype of ``input``.

    Raises:
        ValueError: ``min_val`` is above ``max_val``.
        RuntimeError: a bound is negative and ``input`` has unsigned integers.

    Examples:
        >>> F.hardtanh(taeda.tensor([-2.0, 0.5, 2.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val, got {min_val} and {max_val}")
    min_val, max_val = _bounds(input, min_val, max_val)
    return input.hardtanh_(min_val, max_val) if inplace else _activation.hardtanh(input, min_val, max_val)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """In-place form of :func:`hardtanh`."""
    return input.hardtanh_(*_bounds(input, min_val, max_val))


@_traits(canonical=True)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``negative_slope * x``. The rest as of :func:`nn.functional.relu6`.

    Args:
        input: any shape; floating-point.
        negative_slope: the slope below 0.

    Raises:
        NotImplementedError: ``input`` is not of a floating-point dtype.

    Examples:
        >>> F.leaky_relu(taeda.tensor([-1.0, 0.0, 2.0]), 0.1)
        tensor([-0.1000,  0.0000,  2.0000])
    """
    return input.leaky_relu_(negative_slope) if inplace else _activation.leaky_relu(input, negative_slope)


@_traits(canonical=True)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where positive, else ``alpha * (exp(x) - 1)`` (Clevert et al. 2015).

    Args:
        input: any shape; floating-point.
        alpha: minus the limit for small ``x``.

    Returns:
        The sizes and the dtype of ``input``.

    Raises:
        NotImplementedError: ``input`` is not of a floating-point dtype.

    Examples:
        >>> F.elu(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.6321,  0.0000,  2.0000])
    """
    return elu_(input, alpha) if inplace else _activation.elu(input, alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`` (Barron 2017).

    Args:
        input: any shape; floating-point.
        alpha: minus the limit for small ``x``, not 0.

    Returns:
        The sizes and the dtype of ``input``.

    Raises:
        RuntimeError: ``alpha`` is 0.

    Examples:
        >>> F.celu(taeda.tensor([-1.0, 0.0, 2.0]), alpha=2.0)
        tensor([-0.7869,  0.0000,  2.0000])
    """
    return celu_(input, alpha) if inplace else _activation.celu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """``scale * (max(0, x) + min(0, alpha * (exp(x) - 1)))``, ``scale = 1.0507``, ``alpha = 1.6733`` (Klambauer et al.
    2017). The rest as of :func:`nn.functional.leaky_relu`.

    Raises:
        NotImplementedError: ``input`` is not of a floating-point dtype.

    Examples:
        >>> F.selu(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.1113,  0.0000,  2.1014])
    """
    return selu_(input) if inplace else _activation.selu(input)


def _with_inplace(op: Callable) -> Callable:
    """``op`` with PyTorch's ``inplace`` argument."""
    name, form = op.name, op.traits["inplace"]

    def function(input: Tensor, inplace: bool = False) -> Tensor:
        return form(input) if inplace else op(input)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = op.__doc__
    return function


silu = _with_inplace(_activation.silu)
mish = _with_inplace(_activation.mish)
hardsigmoid = _with_inplace(_activation.hardsigmoid)
hardswish = _with_inplace(_activation.hardswish)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``x`` where it is above ``threshold``, else ``value``.

    Args:
        input: any shape; integers or floating-point.
        threshold: the bound.
        value: what replaces elements that are not above it.

    Returns:
        The sizes and the dtype of ``input``.

    Raises:
        NotImplementedError: ``input`` is complex.

    Examples:
        >>> F.threshold(taeda.tensor([-1.0, 0.0, 2.0]), 0.1, 20.0)
        tensor([20., 20.,  2.])
    """
    return threshold_(input, threshold, value) if inplace else _activation.threshold(input, threshold, value)


@_traits(random="noise")
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """``x`` where positive, else ``a * x`` with a random slope (Xu et al. 2015).

    Args:
        input: any shape; floating-point.
        lower: least slope.
        upper: largest slope.
        training: draw ``a`` for each element; else it is the mean of the bounds.

    Returns:
        The sizes and the dtype of ``input``.

    Raises:
        RuntimeError: ``lower`` is above ``upper``.

    Examples:
        >>> F.rrelu(taeda.tensor([-1.0, 0.0, 2.0]), 0.1, 0.3)
        tensor([-0.2000,  0.0000,  2.0000])
    """
    if lower > upper:
        raise RuntimeError(
            f"rrelu: Lower bound should be less than or equal to the upper bound, got {lower} and {upper}"
        )
    if inplace:
        return taeda.rrelu_(input, lower, upper, training)
    return taeda.rrelu(input, lower, upper, training)


def _softmax_dim(name: str, dim: int | None, ndim: int, stacklevel: int) -> int:
    """The dimension that PyTorch falls back on, with its warning."""
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _dtype | None = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` along ``dim``: any numbers to probabilities, which add up to 1.

    Do not use it before :func:`cross_entropy`, which takes the numbers as they are.

    Args:
        input: any shape; floating-point.
        dim: the dimension whose elements add up to 1. Without it 0 or 1 is chosen, with a warning.
        dtype: converted to before the computation, and that of the result. Default: that of ``input``.

    Returns:
        The sizes of ``input``.

    Raises:
        NotImplementedError: the dtype is no floating-point one.
        IndexError: there is no such dimension.

    Examples:
        >>> F.softmax(taeda.tensor([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]]), dim=1)
        tensor([[0.0900, 0.2447, 0.6652],
                [0.3333, 0.3333, 0.3333]])
    """
    return _softmax.softmax(input, _softmax_dim("softmax", dim, input.dim(), _stacklevel), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _dtype | None = None) -> Tensor:
    """``exp(-x) / sum(exp(-x))`` along ``dim``: the smallest element gets the largest share.
    Arguments as of :func:`nn.functional.softmax`.

    Returns:
        The sizes of ``input``.

    Raises:
        NotImplementedError: ``input`` is of integers or complex.
        IndexError: there is no such dimension.

    Examples:
        >>> F.softmin(taeda.tensor([[1.0, 2.0, 3.0]]), dim=1)
        tensor([[0.6652, 0.2447, 0.0900]])
    """
    return _softmax.softmax(-input, _softmax_dim("softmin", dim, input.dim(), _stacklevel), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _dtype | None = None) -> Tensor:
    """``log(exp(x) / sum(exp(x)))`` along ``dim``, exact where a probability is too small for its dtype.
    The rest as of :func:`nn.functional.softmax`.

    Args:
        dim: the dimension whose probabilities add up to 1. Without it 0 or 1 is chosen, with a warning.

    Raises:
        NotImplementedError: the dtype is no floating-point one.
        IndexError: there is no such dimension.

    Examples:
        >>> F.log_softmax(taeda.tensor([[0.0, 0.0, 200.0]]), dim=1)
        tensor([[-200., -200.,    0.]])
    """
    return _softmax.log_softmax(input, _softmax_dim("log_softmax", dim, input.dim(), _stacklevel), dtype)


@_traits(random="noise")
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A draw of a class that has a gradient: ``softmax((logits + g) / tau)`` with noise ``g = -log(-log(u))``, ``u``
    uniform.

    The largest element is at a class with the probability that ``softmax(logits)`` gives it. Sources: Jang et al. 2016,
    "Categorical Reparameterization with Gumbel-Softmax"; Maddison et al. 2016.

    Args:
        logits: logarithms of probabilities, up to a constant. Any shape; floating-point.
        tau: temperature: the smaller, the nearer to 0 and 1.
        hard: give a one-hot tensor, with the gradient of the soft one.
        eps: of no effect.
        dim: the dimension of the classes.

    Returns:
        The sizes and the dtype of ``logits``.

    Raises:
        RuntimeError: the dtype is no floating-point one.
        IndexError: there is no such dimension.

    Examples:
        >>> p = taeda.tensor([0.1, 0.2, 0.7])
        >>> draws = F.gumbel_softmax(p.log().expand(1000, 3), hard=True)
        >>> bool((draws.mean(0) - p).abs().max() < 0.05)
        True
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    with taeda.no_grad():
        noise = -taeda.empty_like(logits, memory_format=taeda.contiguous_format).exponential_().log()
    soft = _softmax.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    return taeda.zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft


# ---- dropout --------------------------------------------------------------------------------------------------------
@_traits(random="noise")
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training each element becomes 0 with probability ``p``, and the others are divided by ``1 - p`` (Hinton et al.
    2012).

    Args:
        input: any shape; floating-point.
        p: the probability, in ``[0, 1]``.
        training: without it nothing changes.

    Returns:
        The sizes and the dtype of ``input``.

    Raises:
        ValueError: ``p`` is not in ``[0, 1]``.

    Examples:
        >>> F.dropout(taeda.ones(1000), 0.5).unique()
        tensor([0., 2.])
        >>> F.dropout(taeda.ones(3), 0.5, training=False)
        tensor([1., 1., 1.])
    """
    _p(p)
    return _dropout.dropout_(input, p, training) if inplace else _dropout.dropout(input, p, training)


@_traits(random="noise")
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout for SELU: elements become its limit, -1.7581, and the result is scaled so that mean and variance stay.

    Source: Klambauer et al. 2017, "Self-Normalizing Neural Networks". The rest as of :func:`nn.functional.dropout`.

    Returns:
        The sizes and the dtype of ``input``.

    Raises:
        ValueError: ``p`` is not between 0 and 1.

    Examples:
        >>> y = F.alpha_dropout(taeda.randn(100_000), 0.2, training=True)
        >>> bool(y.mean().abs() < 0.02 and (y.std() - 1).abs() < 0.02)
        True
    """
    _p(p)
    return _dropout.alpha_dropout_(input, p, training) if inplace else _dropout.alpha_dropout(input, p, training)


@_traits(random="noise")
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """:func:`alpha_dropout` of whole channels. The rest as of :func:`nn.functional.dropout`.

    Args:
        input: ``(N, C, *)``; floating-point.

    Raises:
        ValueError: ``p`` is not between 0 and 1.

    Examples:
        >>> F.feature_alpha_dropout(taeda.randn(2, 4, 8, 8), 0.2, training=True).shape
        taeda.Size([2, 4, 8, 8])
    """
    _p(p)
    if inplace:
        return _dropout.feature_alpha_dropout_(input, p, training)
    return _dropout.feature_alpha_dropout(input, p, training)


def _drop_channels(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    return _dropout.feature_dropout_(input, p, training) if inplace else _dropout.feature_dropout(input, p, training)


@_traits(random="noise")
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """:func:`dropout` of whole channels of signals. The rest as of :func:`nn.functional.dropout`.

    Args:
        input: ``(N, C, L)`` or ``(C, L)``; floating-point.

    Raises:
        ValueError: ``p`` is not in ``[0, 1]``.
        RuntimeError: ``input`` has other dimensions.

    Examples:
        >>> y = F.dropout1d(taeda.ones(2, 4, 10), 0.5)
        >>> bool((y == y[:, :, :1]).all())  # a channel is kept or dropped as a whole
        True
    """
    _p(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    return _unbatched(input, 3, p, training, inplace)


@_traits(random="noise")
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """:func:`dropout` of whole channels of images. The rest as of :func:`nn.functional.dropout`.

    Args:
        input: ``(N, C, H, W)``; three dimensions are read as ``(N, C, L)``, with a warning. Floating-point.

    Raises:
        ValueError: ``p`` is not between 0 and 1.

    Examples:
        >>> y = F.dropout2d(taeda.ones(2, 4, 8, 8), 0.5)
        >>> bool((y == y[:, :, :1, :1]).all())  # a channel is kept or dropped as a whole
        True
    """
    _p(p)
    if input.dim() not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated; use dropout instead. "
            "dropout2d is for inputs with 2 spatial dimensions, a channel dimension, and an optional batch dimension.",
            stacklevel=2,
        )
    elif input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L). Use dropout1d to say so.",
            stacklevel=2,
        )
    return _drop_channels(input, p, training, inplace)


@_traits(random="noise")
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """:func:`dropout` of whole channels of volumes. The rest as of :func:`nn.functional.dropout`.

    Args:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``; floating-point.

    Raises:
        ValueError: ``p`` is not between 0 and 1.

    Examples:
        >>> F.dropout3d(taeda.ones(2, 4, 8, 8, 8), 0.5).shape
        taeda.Size([2, 4, 8, 8, 8])
    """
    _p(p)
    if input.dim() not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated; use dropout instead. "
            "dropout3d is for inputs with 3 spatial dimensions, a channel dimension, and an optional batch dimension.",
            stacklevel=2,
        )
    return _unbatched(input, 5, p, training, inplace)


def _unbatched(input: Tensor, batched: int, p: float, training: bool, inplace: bool) -> Tensor:
    """Channel dropout of an input that may lack its batch dimension."""
    if input.dim() >= batched:
        return _drop_channels(input, p, training, inplace)
    result = _drop_channels(input.unsqueeze(0), p, training, inplace)  # a view: in place it writes into the input
    return input if inplace else result.squeeze(0)


# ---- embedding ------------------------------------------------------------------------------------------------------
@_traits(writes=lambda max_norm: max_norm is not None)
def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """Rows of a table by their numbers: ``output[i] = weight[input[i]]``.

    Args:
        input: row numbers, any shape, int32 or int64.
        weight: the table, ``(V, D)``.
        padding_idx: a row that gets no gradient.
        max_norm: rows of ``weight`` whose norm is larger are scaled down first, in place.
        norm_type: ``p`` of that norm.
        scale_grad_by_freq: divide a row's gradient by how often it occurs.
        sparse: the gradient is a sparse tensor of the rows that were looked up.

    Returns:
        ``(*, D)``, with ``*`` the shape of ``input``. The dtype of ``weight``.

    Raises:
        IndexError: a number is out of range.
        AssertionError: ``padding_idx`` is out of range.
        TypeError: ``padding_idx`` is no int.
        RuntimeError: ``weight`` is no matrix.

    Examples:
        >>> table = taeda.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
        >>> F.embedding(taeda.tensor([2, 1]), table)
        tensor([[3., 4.],
                [1., 2.]])
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        n = weight.size(0)
        if isinstance(padding_idx, bool):
            raise TypeError("embedding(): argument 'padding_idx' must be int, not bool")
        if not -n <= padding_idx < n:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx = padding_idx % n
    if max_norm is not None:
        if weight.dim() != 2:
            raise RuntimeError(f"embedding: expected a weight of 2 dimensions, got shape {tuple(weight.shape)}")
        with taeda.no_grad():
            _embedding_renorm_(weight, input.contiguous(), max_norm, norm_type)
    return _embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


@_traits(writes=lambda max_norm: max_norm is not None)
def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """Sums, means or maxima of bags of rows of a table, without the rows themselves in memory.
    Arguments as of :func:`nn.functional.embedding`.

    Args:
        input: row numbers, ``(B, n)``, or ``(M,)`` with ``offsets``; int32 or int64.
        offsets: where each bag begins, ``(B,)``.
        scale_grad_by_freq: divide a row's gradient by how often it occurs; not for ``"max"``.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        per_sample_weights: factors, the shape of ``input``; for ``"sum"``.
        include_last_offset: ``offsets`` has one more element, the end of the last bag.
        padding_idx: a row that bags leave out.

    Returns:
        ``(B, D)``; an empty bag is zero. The dtype of ``weight``.

    Raises:
        ValueError: the shapes or options do not go together.
        RuntimeError: a number is out of range.

    Examples:
        >>> table = taeda.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
        >>> F.embedding_bag(taeda.tensor([1, 2, 1]), table, taeda.tensor([0, 2]), mode="sum")  # rows 1 + 2, row 1
        tensor([[4., 6.],
                [1., 2.]])
    """
    if weight.dtype is taeda.int64 and input.is_floating_point():
        warnings.warn("embedding_bag: weight came before input, as before PyTorch 1.0; pass input first", stacklevel=2)
        input, weight = weight, input
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if max_norm is not None:
        with taeda.no_grad():
            _embedding_renorm_(weight, input, max_norm, norm_type)
    return _embedding_bags(
        weight, input, offsets, mode, scale_grad_by_freq, per_sample_weights, include_last_offset, padding_idx, sparse
    )


# ---- normalisation, distance ----------------------------------------------------------------------------------------
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Vectors of length 1: ``x / max(norm(x), eps)`` along ``dim``.

    Args:
        input: any shape; floating-point or complex.
        p: of the norm.
        dim: the dimension or dimensions of the vectors.
        eps: least norm that is divided by.
        out: where the result goes.

    Returns:
        The sizes and the dtype of ``input``.

    Examples:
        >>> F.normalize(taeda.tensor([[3.0, 4.0], [0.0, 2.0]]))
        tensor([[0.6000, 0.8000],
                [0.0000, 1.0000]])
    """
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps)
    return input / norm if out is None else taeda.div(input, norm.expand_as(input), out=out)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """``x / (k + alpha * mean) ** beta``, where ``mean`` is the mean of ``x ** 2`` over ``size`` neighbouring channels.

    Source: Krizhevsky, Sutskever & Hinton 2012, "ImageNet Classification with Deep Convolutional Neural Networks".

    Args:
        input: ``(N, C, *)``; floating-point.
        size: number of neighbouring channels.
        alpha: factor of the mean.
        beta: exponent.
        k: additive constant.

    Returns:
        The sizes and the dtype of ``input``.

    Raises:
        ValueError: ``input`` has fewer than three dimensions.

    Examples:
        >>> F.local_response_norm(taeda.tensor([[[1.0], [3.0]]]), 1, alpha=1.0, beta=0.5)  # x / sqrt(1 + x ** 2)
        tensor([[[0.7071],
                 [0.9487]]])
    """
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    squares = (input * input).unsqueeze(1)
    before, after = size // 2, (size - 1) // 2
    if input.dim() == 3:  # autocast tells the two pools apart
        mean = avg_pool2d(pad(squares, (0, 0, before, after)), (size, 1), stride=1)
    else:
        mean = avg_pool3d(pad(squares.flatten(4), (0, 0, 0, 0, before, after)), (size, 1, 1), stride=1)
    mean = mean.squeeze(1).view(input.shape)
    return input / (mean * alpha + k).pow(beta)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle of two vectors: ``x1 . x2 / (max(|x1|, eps) * max(|x2|, eps))`` along ``dim``.

    Args:
        x1: any shape; floating-point.
        x2: a shape that broadcasts with it.
        dim: the dimension of the vectors.
        eps: least length that is divided by.

    Returns:
        The sizes to which they broadcast, without ``dim``.

    Raises:
        RuntimeError: neither is floating-point, or the shapes do not broadcast.

    Examples:
        >>> F.cosine_similarity(taeda.tensor([[1.0, 0.0], [1.0, 2.0]]), taeda.tensor([[1.0, 1.0], [2.0, 4.0]]))
        tensor([0.7071, 1.0000])
    """
    if not eps >= 0:
        raise RuntimeError(f"cosine_similarity(): eps must be non-negative, got: {eps}")
    dim, dtype = _core.whole_numbers(dim, "cosine_similarity", "dim"), x1.dtype
    if dtype is not x2.dtype or not dtype.is_floating_point:
        dtype = taeda.promote_types(dtype, x2.dtype)
        if not dtype.is_floating_point:
            raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {dtype}")
        x1, x2 = x1.to(dtype), x2.to(dtype)
    if x1.shape != x2.shape:
        x1, x2 = taeda.broadcast_tensors(x1, x2)
    norm = taeda.linalg.vector_norm
    x1 = x1 / norm(x1, 2.0, dim, True).clamp_min(eps)
    x2 = x2 / norm(x2, 2.0, dim, True).clamp_min(eps)
    return (x1 * x2).sum(dim)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The ``p``-norm of ``x1 - x2 + eps`` over the last dimension.

    Args:
        x1: ``(*, D)``; floating-point.
        x2: a shape that broadcasts with it.
        p: of the norm.
        eps: added to each difference, so that there is a gradient where both are equal.
        keepdim: keep the last dimension with size 1.

    Returns:
        The sizes to which they broadcast, without the last.

    Raises:
        TypeError: ``p`` is no number.

    Examples:
        >>> F.pairwise_distance(taeda.tensor([[0.0, 0.0]]), taeda.tensor([[3.0, 4.0]]), eps=0.0)
        tensor([5.])
    """
    if p is None or isinstance(p, str):
        raise TypeError(f"pairwise_distance(): argument 'p' must be float, not {type(p).__name__}")
    return taeda.norm(x1 - x2 + eps, p, -1, keepdim)


# ---- rearranging ----------------------------------------------------------------------------------------------------
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels to pixels: ``r * r`` channels become one that is ``r`` times as high and wide (Shi et al. 2016).

    Args:
        input: ``(*, C * r * r, H, W)``, any dtype.
        upscale_factor: ``r``.

    Returns:
        ``(*, C, H * r, W * r)``, a new tensor.

    Raises:
        RuntimeError: ``r * r`` does not divide the channels, ``r`` is not positive, or there are fewer than three
            dimensions.

    Examples:
        >>> F.pixel_shuffle(taeda.arange(4).reshape(4, 1, 1), 2)
        tensor([[[0, 1],
                 [2, 3]]])
    """
    last = _is_channels_last(input)
    moves = _shuffled(input.shape, upscale_factor, last)
    return _moved_pixels(input, moves, last)


def _pixel_factor(function: str, parameter: str, shape: Any, factor: Any) -> int:
    r = _core.whole_numbers(factor, function, parameter)
    if len(shape) < 3:
        raise RuntimeError(
            f"{function} expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"{function} expects a positive {parameter}, but got {r}")
    return r


@_once_per_form
def _shuffled(shape: Any, upscale_factor: Any, last: bool) -> Any:
    """Sizes, order of dimensions, and sizes again that make :func:`pixel_shuffle`, of what lies in memory with channels
    ``last``; None where nothing moves."""
    r = _pixel_factor("pixel_shuffle", "upscale_factor", shape, upscale_factor)
    *batch, c, h, w = shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={c} is not divisible by {r * r}"
        )
    if r == 1:
        return None
    n = len(batch)
    if last:
        return (*batch, h, w, c // (r * r), r, r), (0, 1, 4, 2, 5, 3), (*batch, h * r, w * r, c // (r * r))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return (*batch, c // (r * r), r, r, h, w), order, (*batch, c // (r * r), h * r, w * r)


def _moved_pixels(input: Tensor, moves: Any, last: bool) -> Tensor:
    if moves is None:  # nothing moves, and yet it is no view
        return input.clone(memory_format=taeda.preserve_format if last else taeda.contiguous_format)
    sizes, order, result = moves
    if last:  # the same on what lies in memory
        return input.permute(0, 2, 3, 1).reshape(sizes).permute(order).reshape(result).permute(0, 3, 1, 2)
    return input.reshape(sizes).permute(order).reshape(result)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels to channels: the opposite of :func:`pixel_shuffle`.

    Args:
        input: ``(*, C, H * r, W * r)``, any dtype.
        downscale_factor: ``r``.

    Returns:
        ``(*, C * r * r, H, W)``, a new tensor.

    Raises:
        RuntimeError: ``r`` does not divide height and width, is not positive, or there are fewer than three dimensions.

    Examples:
        >>> F.pixel_unshuffle(taeda.arange(4).reshape(1, 2, 2), 2).flatten()
        tensor([0, 1, 2, 3])
    """
    last = _is_channels_last(input)
    moves = _unshuffled(input.shape, downscale_factor, last)
    return _moved_pixels(input, moves, last)


@_once_per_form
def _unshuffled(shape: Any, downscale_factor: Any, last: bool) -> Any:
    """As :func:`_shuffled`, of :func:`pixel_unshuffle`."""
    r = _pixel_factor("pixel_unshuffle", "downscale_factor", shape, downscale_factor)
    *batch, c, h, w = shape
    if h % r or w % r:
        raise RuntimeError(
            f"pixel_unshuffle expects height and width to be divisible by downscale_factor, but got {h}x{w} and {r}"
        )
    if r == 1:
        return None
    n = len(batch)
    if last:
        return (*batch, h // r, r, w // r, r, c), (0, 1, 3, 5, 2, 4), (*batch, h // r, w // r, c * r * r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return (*batch, c, h // r, r, w // r, r), order, (*batch, c * r * r, h // r, w // r)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleaves ``groups`` groups of channels, so that the next grouped convolution sees all of them (Zhang et al.
    2018).

    Args:
        input: ``(N, C, *)``, any dtype.
        groups: number of groups, a divisor of ``C``.

    Returns:
        The sizes of ``input``.

    Raises:
        RuntimeError: ``groups`` does not divide the channels, or there are fewer than three dimensions.

    Examples:
        >>> F.channel_shuffle(taeda.arange(6).reshape(1, 6, 1), 2).flatten()
        tensor([0, 3, 1, 4, 2, 5])
    """
    if input.dim() < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    groups = _core.whole_numbers(groups, "channel_shuffle", "groups")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    c = input.size(1)
    if c % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    if _is_channels_last(input):
        n = input.dim()
        last = input.permute(0, *range(2, n), 1).unflatten(-1, (groups, c // groups))
        return last.transpose(-1, -2).flatten(-2).permute(0, n - 1, *range(1, n - 1))
    return input.unflatten(1, (groups, c // groups)).transpose(1, 2).flatten(1, 2)


native_channel_shuffle = channel_shuffle


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Older name of :func:`interpolate`, with a warning."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Older name of :func:`interpolate` with ``mode="nearest"``, with a warning."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Older name of :func:`interpolate` with ``mode="bilinear", align_corners=True``, with a warning."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _power(n: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    if not isinstance(kernel_size, int) and n == 1:
        raise TypeError(f"lp_pool1d(): argument 'kernel_size' must be int, not {type(kernel_size).__name__}")
    if not isinstance(kernel_size, int) and len(kernel_size) != n:
        raise ValueError(f"lp_pool{n}d: expected kernel_size to have {n} numbers, got {kernel_size!r}")
    kernel = _sizes(kernel_size, n, f"lp_pool{n}d", "kernel_size")
    if norm_type in (math.inf, -math.inf):  # the largest or the smallest magnitude
        largest, size = (max_pool1d, max_pool2d, max_pool3d)[n - 1], input.abs()
        if norm_type > 0:
            return largest(size, kernel, stride, 0, 1, ceil_mode)
        return -largest(-size, kernel, stride, 0, 1, ceil_mode)
    average = (avg_pool1d, avg_pool2d, avg_pool3d)[n - 1]
    out = average(input.pow(norm_type), kernel, stride, 0, ceil_mode)
    # As PyTorch: the root is of |sum|, with the sign of the sum.
    return (out.sign() * out.abs().relu()).mul(math.prod(kernel)).pow(1.0 / norm_type if norm_type else math.inf)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """``(sum of x ** p) ** (1 / p)`` over each window of a signal: the sum for ``p = 1``, nearly the maximum for a
    large ``p``.

    Args:
        input: ``(N, C, L)`` or ``(C, L)``; floating-point.
        norm_type: ``p``, above 0.
        kernel_size: size of the window.
        stride: step between windows; ``kernel_size`` if None.
        ceil_mode: round the output size up rather than down.

    Returns:
        ``(N, C, M)`` or ``(C, M)`` with ``M = (L - kernel_size) // stride + 1``.

    Raises:
        RuntimeError: ``input`` has other dimensions, or the window does not fit.

    Examples:
        >>> F.lp_pool1d(taeda.tensor([[[3.0, 4.0, 5.0, 12.0]]]), 2, kernel_size=2)
        tensor([[[ 5., 13.]]])
    """
    return _power(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """``(sum of x ** p) ** (1 / p)`` over each window of an image: the sum for ``p = 1``, nearly the maximum for a
    large ``p``. The rest as of :func:`nn.functional.lp_pool1d`.

    Args:
        input: ``(N, C, H, W)`` or ``(C, H, W)``; floating-point.
        kernel_size: size of the window, one number or one for each dimension.

    Returns:
        The same but for the last sizes: ``L`` becomes ``(L - kernel_size) // stride + 1``.

    Raises:
        RuntimeError: ``input`` has another number of dimensions, or is smaller than a window.

    Examples:
        >>> F.lp_pool2d(taeda.ones(1, 4, 4), 2, kernel_size=2)
        tensor([[[2., 2.],
                 [2., 2.]]])
    """
    return _power(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """``(sum of x ** p) ** (1 / p)`` over each window of a volume: the sum for ``p = 1``, nearly the maximum for a
    large ``p``. The rest as of :func:`nn.functional.lp_pool2d`.

    Args:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``; floating-point.

    Raises:
        RuntimeError: ``input`` has another number of dimensions, or is smaller than a window.

    Examples:
        >>> F.lp_pool3d(taeda.ones(1, 4, 4, 4), 2, kernel_size=4)
        tensor([[[[8.]]]])
    """
    return _power(3, input, norm_type, kernel_size, stride, ceil_mode)


def _with_indices(pool: Callable, arguments: str = "2", side: int = 4) -> Callable:
    """``pool`` with ``return_indices``, under PyTorch's name for it. ``side``: the result's size for a size of 8."""

    def function(*args: Any, return_indices: bool = False, **kwargs: Any) -> tuple[Tensor, Tensor]:
        return pool(*args, return_indices=True, **kwargs)

    name = function.__name__ = function.__qualname__ = f"{pool.__name__}_with_indices"
    n = int(pool.__name__[-2])
    function.__doc__ = f""":func:`{pool.__name__}`, and where each maximum was found.

    Args:
        *args: as of :func:`{pool.__name__}`.
        return_indices: accepted: always True.
        **kwargs: as of :func:`{pool.__name__}`.

    Returns:
        Two tensors of the same sizes: the maxima, and their places in the flattened space of a channel, int64.

    Raises:
        RuntimeError: the number of dimensions or the sizes do not fit the windows.

    Examples:
        >>> maxima, places = F.{name}(taeda.randn(1, 2{", 8" * n}), {arguments})
        >>> places.shape
        taeda.Size([1, 2{f", {side}" * n}])
    """
    return _traits(canonical=_trait(pool, "canonical", False), random=_trait(pool, "random", False))(function)


max_pool1d_with_indices = _with_indices(max_pool1d)
max_pool2d_with_indices = _with_indices(max_pool2d)
max_pool3d_with_indices = _with_indices(max_pool3d)
adaptive_max_pool1d_with_indices = _with_indices(adaptive_max_pool1d, side=2)
adaptive_max_pool2d_with_indices = _with_indices(adaptive_max_pool2d, side=2)
adaptive_max_pool3d_with_indices = _with_indices(adaptive_max_pool3d, side=2)
fractional_max_pool2d_with_indices = _with_indices(fractional_max_pool2d, "2, output_size=3", 3)
fractional_max_pool3d_with_indices = _with_indices(fractional_max_pool3d, "2, output_size=3", 3)


def _named(function: Callable) -> tuple[tuple[str, ...], tuple]:
    """Names and defaults of the parameters of ``function``, which has NumPy's names for them too; none where it takes
    any."""
    found = list(inspect.signature(function).parameters.values())
    if found[0].kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        return (), ()
    return tuple(p.name for p in found), tuple(p.default for p in found)


# Functions written in ops are composites: modes (autocast, overrides) may see them before their ops.
for _name, _function in list(globals().items()):
    if not _name.startswith("_") and inspect.isfunction(_function):
        _function.pointwise = _is_pointwise(_OPS.get(_name))
        globals()[_name] = Composite(_function, _name, *_named(_function))

__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in (
    "Any", "Callable", "Composite", "LinearCrossEntropyOptions", "ScalingType", "SwizzleType", "Tensor", "annotations",
    "inspect", "math", "taeda", "warnings",
))  # fmt: skip
