"""Normalisation that needs no running statistics: layer, group, RMS and local response."""

from __future__ import annotations

import numbers
from typing import Any

import taeda
from taeda import Tensor

from .. import functional as F
from .. import init
from .module import Module
from .utils import _make_parameters

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """``x / (k + alpha / n * sum of x^2 over n neighbouring channels)^beta`` (Krizhevsky et al. 2012).

    Args:
        size: number ``n`` of neighbouring channels.
        alpha: multiplier.
        beta: exponent.
        k: additive constant.
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
    """Local response normalisation of ``(N, C, H, W)`` under its older name."""

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
        window = taeda.tensor(rows, dtype=input.dtype, device=input.device)
        sums = (window @ (input * input).flatten(2)).view(input.shape)
        return input * (self.k + self.alpha / self.size * sums) ** -self.beta


def _shape(normalized_shape: Any) -> tuple[int, ...]:
    return (int(normalized_shape),) if isinstance(normalized_shape, numbers.Integral) else tuple(normalized_shape)


class _Affine(Module):
    """What may have a scale, and a shift."""

    def reset_parameters(self) -> None:
        """Scale one, shift zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if getattr(self, "bias", None) is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """Normalises the last dimensions of each sample to mean 0 and variance 1 (Ba, Kiros & Hinton 2016).

    Args:
        normalized_shape: the last dimensions, or the last one alone.
        eps: added to the variance.
        elementwise_affine: learn a scale and a shift of that shape.
        bias: whether that includes the shift.
        device, dtype: of the parameters.
    """

    __constants__ = ("normalized_shape", "eps", "elementwise_affine")

    def __init__(
        self, normalized_shape, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, device=None,
        dtype=None,
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
    """Normalises groups of channels of each sample (Wu & He 2018).

    Args:
        num_groups: number of groups.
        num_channels: number of channels, a multiple of it.
        eps: added to the variance.
        affine: learn a scale and a shift per channel.
        device, dtype: of the parameters.
        bias: whether ``affine`` includes the shift.

    Shape:
        ``(N, num_channels, *)``.
    """

    __constants__ = ("num_groups", "num_channels", "eps", "affine")

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device=None, dtype=None, *,
        bias: bool = True,
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
    """Divides the last dimensions of each sample by their root mean square (Zhang & Sennrich 2019).

    Args:
        normalized_shape: the last dimensions, or the last one alone.
        eps: added to the mean square; the dtype's machine epsilon if None.
        elementwise_affine: learn a scale of that shape.
        device, dtype: of the parameters.
    """

    __constants__ = ("normalized_shape", "eps", "elementwise_affine")

    def __init__(
        self, normalized_shape, eps: float | None = None, elementwise_affine: bool = True, device=None, dtype=None
    ) -> None:
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
