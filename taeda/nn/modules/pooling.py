"""Pooling layers: maximum, average, power average, fractional and adaptive, and the inverse of maximum pooling."""

from __future__ import annotations

from typing import Any

from taeda import Tensor

from .. import functional as F
from .module import Module
from .utils import _ntuple

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip


class _Pool(Module):
    """A layer that is one function of ``taeda.nn.functional``."""

    _function: Any


class _MaxPoolNd(_Pool):
    """Arguments of maximum pooling.

    Args:
        kernel_size: size of the window.
        stride: step between windows; ``kernel_size`` if None.
        padding: minus infinity on both sides, at most half the window.
        dilation: step between the window's elements.
        return_indices: also return where the maxima were.
        ceil_mode: round the output size up rather than down.
    """

    __constants__ = ("kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode")
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self, kernel_size, stride=None, padding=0, dilation=1, return_indices: bool = False, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor):
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )  # fmt: skip


class MaxPool1d(_MaxPoolNd):
    """Maximum over windows of ``(N, C, L)`` or ``(C, L)``."""

    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """Maximum over windows of ``(N, C, H, W)`` or ``(C, H, W)``."""

    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """Maximum over windows of ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""

    _function = staticmethod(F.max_pool3d)


class _MaxUnpoolNd(_Pool):
    """Arguments of max unpooling.

    Args:
        kernel_size, stride, padding: those of the pooling that it undoes.
    """

    _shown = ("kernel_size", "stride", "padding")

    _dims = 0

    def __init__(self, kernel_size, stride=None, padding=0) -> None:
        super().__init__()
        full = _ntuple(self._dims)
        self.kernel_size = full(kernel_size)
        self.stride = full(stride if stride is not None else kernel_size)
        self.padding = full(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size=None) -> Tensor:
        return self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts pooled values back where :class:`MaxPool1d` found them (its indices), zero elsewhere."""

    _dims = 1
    _function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts pooled values back where :class:`MaxPool2d` found them (its indices), zero elsewhere."""

    _dims = 2
    _function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts pooled values back where :class:`MaxPool3d` found them (its indices), zero elsewhere."""

    _dims = 3
    _function = staticmethod(F.max_unpool3d)


class _AvgPoolNd(_Pool):
    """Arguments of average pooling.

    Args:
        kernel_size: size of the window.
        stride: step between windows; ``kernel_size`` if None.
        padding: zeros on both sides.
        ceil_mode: round the output size up rather than down.
        count_include_pad: whether padding counts in the mean.
        divisor_override: divide by this instead (not in one dimension).
    """

    _shown = ("kernel_size", "stride", "padding")

    __constants__: tuple[str, ...] = (
        "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override",
    )  # fmt: skip

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip


class AvgPool1d(_AvgPoolNd):
    """Mean over windows of ``(N, C, L)`` or ``(C, L)``."""

    __constants__ = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True
    ) -> None:
        full = _ntuple(1)
        stride = stride if stride is not None else kernel_size
        super().__init__(full(kernel_size), full(stride), full(padding), ceil_mode, count_include_pad)

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(_AvgPoolNd):
    """Mean over windows of ``(N, C, H, W)`` or ``(C, H, W)``."""

    _function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPoolNd):
    """Mean over windows of ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""

    _function = staticmethod(F.avg_pool3d)


class _FractionalMaxPoolNd(_Pool):
    """Arguments of fractional maximum pooling (Graham 2014).

    Args:
        kernel_size: size of the window.
        output_size: output size; or
        output_ratio: its ratio to the input's, between 0 and 1.
        return_indices: also return where the maxima were.
    """

    __constants__ = ("kernel_size", "return_indices", "output_size", "output_ratio")
    _dims = 0

    def __init__(
        self, kernel_size, output_size=None, output_ratio=None, return_indices: bool = False, _random_samples=None
    ) -> None:
        super().__init__()
        full = _ntuple(self._dims)
        self.kernel_size = full(kernel_size)
        if any(k <= 0 for k in self.kernel_size):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = full(output_size) if output_size is not None else None
        self.output_ratio = full(output_ratio) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor):
        return self._function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maximum over windows at random, uneven steps."""

    _dims = 2
    _function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maximum over windows at random, uneven steps."""

    _dims = 3
    _function = staticmethod(F.fractional_max_pool3d)


class _LPPoolNd(_Pool):
    """Arguments of power pooling.

    Args:
        norm_type: the power.
        kernel_size: size of the window.
        stride: step between windows; ``kernel_size`` if None.
        ceil_mode: round the output size up rather than down.
    """

    __constants__ = ("norm_type", "kernel_size", "stride", "ceil_mode")
    _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(self, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPoolNd):
    """``(sum of x^p)^(1/p)`` over windows of ``(N, C, L)``, ``p`` being ``norm_type``."""

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """``(sum of x^p)^(1/p)`` over windows of ``(N, C, H, W)``, ``p`` being ``norm_type``."""

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPoolNd):
    """``(sum of x^p)^(1/p)`` over windows of ``(N, C, D, H, W)``, ``p`` being ``norm_type``."""

    _function = staticmethod(F.lp_pool3d)


class _AdaptiveMaxPoolNd(_Pool):
    """Arguments of adaptive maximum pooling.

    Args:
        output_size: one size for all dimensions, or one each; None keeps that of the input.
        return_indices: also return where the maxima were.
    """

    __constants__ = ("output_size", "return_indices")
    _shown = ("output_size",)

    def __init__(self, output_size, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor):
        return self._function(input, self.output_size, self.return_indices)


class _AdaptiveAvgPoolNd(_Pool):
    """Arguments of adaptive average pooling.

    Args:
        output_size: one size for all dimensions, or one each; None keeps that of the input.
    """

    __constants__ = ("output_size",)
    _shown = ("output_size",)

    def __init__(self, output_size) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.output_size)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maximum over as many windows as the output has elements; None in ``output_size`` keeps a dimension."""

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maximum over as many windows as the output has elements; None in ``output_size`` keeps a dimension."""

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maximum over as many windows as the output has elements; None in ``output_size`` keeps a dimension."""

    _function = staticmethod(F.adaptive_max_pool3d)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Mean over as many windows as the output has elements; None in ``output_size`` keeps a dimension."""

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Mean over as many windows as the output has elements; None in ``output_size`` keeps a dimension."""

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Mean over as many windows as the output has elements; None in ``output_size`` keeps a dimension."""

    _function = staticmethod(F.adaptive_avg_pool3d)
