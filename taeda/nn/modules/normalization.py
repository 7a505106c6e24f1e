"""Normalisation that needs no running statistics: layer, group, RMS and local response."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from ..._typed import Tensor
from ...ops.exchange import tensor
from .. import functional as F
from .. import init
from .module import Module
from .utils import _make_parameters

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """``x / (k + alpha * mean) ** beta``, where ``mean`` is the mean of ``x ** 2`` over ``size`` neighbouring channels.

    Source: Krizhevsky, Sutskever & Hinton 2012, "ImageNet Classification with Deep Convolutional Neural Networks".

    Args:
        size: number of neighbouring channels.
        alpha: factor of the mean.
        beta: exponent.
        k: additive constant.

    Shape:
        input: ``(N, C, *)``. Floating-point.
        output: the shape and dtype of the input.

    Raises:
        ValueError: in a call, the input has fewer than three dimensions.

    Examples:
        >>> nn.LocalResponseNorm(1, alpha=1.0, beta=0.5)(taeda.tensor([[[1.0]], [[3.0]]]))  # x / sqrt(1 + x ** 2)
        tensor([[[0.7071]],
        <BLANKLINE>
                [[0.9487]]])
    """

    __constants__ = ("size", "alpha", "beta", "k")

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """Older name of :class:`LocalResponseNorm`, for images ``(N, C, H, W)``."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        n = input.size(1)
        reach = (self.size - 1) // 2
        # Row c has a one for each channel in its window. Channel 0 never leaves a window it was in: PyTorch's running
        # sum drops channels from 1 on only, and results are to agree.
        rows = [[float(j <= c + reach and (j == 0 or j >= c - reach)) for j in range(n)] for c in range(n)]
        window = tensor(rows, dtype=input.dtype, device=input.device)
        sums = (window @ (input * input).flatten(2)).view(input.shape)
        return input * (self.k + self.alpha / self.size * sums) ** -self.beta


def _shape(normalized_shape: Any) -> tuple[int, ...]:
    return (int(normalized_shape),) if isinstance(normalized_shape, numbers.Integral) else tuple(normalized_shape)


class _Affine(Module):
    """The base of layers that may have a scale, and a shift."""

    def reset_parameters(self) -> None:
        """Scale one, shift zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if getattr(self, "bias", None) is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """The last dimensions of each sample to mean 0 and variance 1: ``(x - mean) / sqrt(var + eps) * weight + bias``.

    Each sample by itself, so that training and evaluation are the same. Source: Ba, Kiros & Hinton 2016, "Layer
    Normalization".

    Args:
        normalized_shape: sizes of the last dimensions, or of the last one alone.
        eps: added to the variance.
        elementwise_affine: learn ``weight`` and ``bias``, of the shape ``normalized_shape``.
        bias: whether that includes ``bias``.
        device: of the parameters.
        dtype: of the parameters.

    Shape:
        input: ``(*, *normalized_shape)``. Floating-point.
        output: the shape and dtype of the input.

    Raises:
        RuntimeError: in a call, the last sizes differ.

    Examples:
        >>> nn.LayerNorm(4)(taeda.tensor([[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]])).detach()
        tensor([[-1.3416, -0.4472,  0.4472,  1.3416],
                [-1.3416, -0.4472,  0.4472,  1.3416]])
    """

    __constants__ = ("normalized_shape", "eps", "elementwise_affine")

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape if elementwise_affine else None
        _make_parameters(self, device, dtype, weight=shape, bias=shape if bias else None)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(_Affine):
    """Groups of channels of each sample to mean 0 and variance 1: ``(x - mean) / sqrt(var + eps) * weight + bias``.

    With one group it is near to :class:`LayerNorm`, with a group for each channel it is instance normalisation. Good
    where batches are small. Source: Wu & He 2018, "Group Normalization".

    Args:
        num_groups: number of groups.
        num_channels: ``C``, a multiple of it.
        eps: added to the variance.
        affine: learn ``weight`` and ``bias``, ``(C,)``.
        device: of the parameters.
        dtype: of the parameters.
        bias: whether ``affine`` includes ``bias``.

    Shape:
        input: ``(N, C, *)``. Floating-point.
        output: the shape and dtype of the input.

    Raises:
        ValueError: the groups do not divide the channels.

    Examples:
        >>> nn.GroupNorm(num_groups=4, num_channels=16)(taeda.randn(2, 16, 8, 8)).shape
        taeda.Size([2, 16, 8, 8])
    """

    __constants__ = ("num_groups", "num_channels", "eps", "affine")

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        shape = (num_channels,) if affine else None
        _make_parameters(self, device, dtype, weight=shape, bias=shape if bias else None)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        bias = self.bias is not None
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={bias}"


class RMSNorm(_Affine):
    """The last dimensions of each sample over their root mean square: ``x / sqrt(mean(x ** 2) + eps) * weight``.

    Cheaper than :class:`LayerNorm`; most large language models have it. Source: Zhang & Sennrich 2019, "Root Mean
    Square Layer Normalization".

    Args:
        normalized_shape: sizes of the last dimensions, or of the last one alone.
        eps: added to the mean square; the machine epsilon of the dtype if None.
        elementwise_affine: learn ``weight``, of the shape ``normalized_shape``.
        device: of the parameter.
        dtype: of the parameter.

    Shape:
        input: ``(*, *normalized_shape)``. Floating-point.
        output: the shape and dtype of the input.

    Raises:
        RuntimeError: in a call, the last sizes differ.

    Examples:
        >>> nn.RMSNorm(2)(taeda.tensor([[3.0, 4.0], [30.0, 40.0]])).detach()
        tensor([[0.8485, 1.1314],
                [0.8485, 1.1314]])
    """

    __constants__ = ("normalized_shape", "eps", "elementwise_affine")

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        _make_parameters(self, device, dtype, weight=self.normalized_shape if elementwise_affine else None)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
