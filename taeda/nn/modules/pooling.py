"""Pooling layers: maximum, average, power average, fractional and adaptive, and the inverse of maximum pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._typed import Tensor
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
        kernel_size: size of the window, one number or one for each dimension.
        stride: step between windows; ``kernel_size`` if None.
        padding: minus infinity on both sides, at most half the window.
        dilation: step between the elements of a window.
        return_indices: return also where the maxima were, int64: places in the flattened image of a channel.
        ceil_mode: round the output size up rather than down.

    Shape:
        input: ``(N, C, *)`` or ``(C, *)``. Floating-point or integers.
        output: the same but for the last sizes: ``L`` becomes
            ``(L + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1``. With ``return_indices`` two of them.

    Raises:
        RuntimeError: in a call, the input has other dimensions, or the padding is more than half the window.
    """

    __constants__ = ("kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode")
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding: Any = padding
        self.dilation: Any = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor):
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )  # fmt: skip


class MaxPool1d(_MaxPoolNd):
    """The largest element of each window of a signal.

    Examples:
        >>> nn.MaxPool1d(2)(taeda.tensor([[[1.0, 3.0, 2.0, 8.0, 5.0]]]))
        tensor([[[3., 8.]]])
    """

    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """The largest element of each window of an image, in each channel.

    Examples:
        >>> nn.MaxPool2d(2)(taeda.arange(16.0).reshape(1, 4, 4))
        tensor([[[ 5.,  7.],
                 [13., 15.]]])
        >>> nn.MaxPool2d(3, stride=2, padding=1)(taeda.randn(8, 16, 32, 32)).shape
        taeda.Size([8, 16, 16, 16])
    """

    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """The largest element of each window of a volume, in each channel.

    Examples:
        >>> nn.MaxPool3d((1, 2, 2))(taeda.randn(2, 3, 8, 32, 32)).shape
        taeda.Size([2, 3, 8, 16, 16])
    """

    _function = staticmethod(F.max_pool3d)


class _MaxUnpoolNd(_Pool):
    """Arguments of max unpooling.

    Args:
        kernel_size: that of the pooling that it undoes.
        stride: that of the pooling; ``kernel_size`` if None.
        padding: that of the pooling.

    Shape:
        input: ``(N, C, *)`` or ``(C, *)``. Floating-point.
        indices: the same shape, int64, as the pooling gave them.
        output: the same but for the last sizes: ``(L - 1) * stride - 2 * padding + kernel_size``, or what ``forward``
            is given as ``output_size``.

    Raises:
        RuntimeError: in a call, the shapes do not fit, or an index is out of range.
        ValueError: in a call, ``output_size`` does not fit.
    """

    _shown = ("kernel_size", "stride", "padding")

    _dims = 0

    def __init__(
        self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        full = _ntuple(self._dims)
        self.kernel_size = full(kernel_size)
        self.stride = full(stride if stride is not None else kernel_size)
        self.padding = full(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size=None) -> Tensor:
        return self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd):
    """Pooled values back at the places where :class:`MaxPool1d` found them, zero elsewhere.

    Examples:
        >>> y, places = nn.MaxPool1d(2, return_indices=True)(taeda.tensor([[[1.0, 3.0, 8.0, 2.0]]]))
        >>> nn.MaxUnpool1d(2)(y, places)
        tensor([[[0., 3., 8., 0.]]])
    """

    _dims = 1
    _function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpoolNd):
    """Pooled values back at the places where :class:`MaxPool2d` found them, zero elsewhere.

    Examples:
        >>> y, places = nn.MaxPool2d(2, return_indices=True)(taeda.randn(8, 3, 6, 6))
        >>> nn.MaxUnpool2d(2)(y, places).shape
        taeda.Size([8, 3, 6, 6])
    """

    _dims = 2
    _function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpoolNd):
    """Pooled values back at the places where :class:`MaxPool3d` found them, zero elsewhere.

    Examples:
        >>> y, places = nn.MaxPool3d(2, return_indices=True)(taeda.randn(2, 3, 4, 6, 6))
        >>> nn.MaxUnpool3d(2)(y, places).shape
        taeda.Size([2, 3, 4, 6, 6])
    """

    _dims = 3
    _function = staticmethod(F.max_unpool3d)


class _AvgPoolNd(_Pool):
    """Arguments of average pooling.

    Args:
        kernel_size: size of the window, one number or one for each dimension.
        stride: step between windows; ``kernel_size`` if None.
        padding: zeros on both sides, at most half the window.
        ceil_mode: round the output size up rather than down.
        count_include_pad: whether padding counts in the mean.
        divisor_override: divide the sum by this instead (not in one dimension).

    Shape:
        input: ``(N, C, *)`` or ``(C, *)``. Floating-point.
        output: the same but for the last sizes: ``L`` becomes ``(L + 2 * padding - kernel_size) // stride + 1``.

    Raises:
        RuntimeError: in a call, the input has other dimensions, or the padding is more than half the window.
    """

    _shown = ("kernel_size", "stride", "padding")

    __constants__: tuple[str, ...] = (
        "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override",
    )  # fmt: skip

    def __init__(
        self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding: Any = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of a signal.

    Args:
        kernel_size: size of the window.
        stride: step between windows; ``kernel_size`` if None.
        padding: zeros on both sides, at most half the window.
        ceil_mode: round the output size up rather than down.
        count_include_pad: whether padding counts in the mean.

    Examples:
        >>> nn.AvgPool1d(2)(taeda.tensor([[[1.0, 3.0, 2.0, 8.0, 5.0]]]))
        tensor([[[2., 5.]]])
    """

    __constants__ = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")

    def __init__(
        self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        full = _ntuple(1)
        stride = stride if stride is not None else kernel_size
        super().__init__(full(kernel_size), full(stride), full(padding), ceil_mode, count_include_pad)

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(_AvgPoolNd):
    """The mean of each window of an image, in each channel.

    Examples:
        >>> nn.AvgPool2d(2)(taeda.arange(16.0).reshape(1, 4, 4))
        tensor([[[ 2.5000,  4.5000],
                 [10.5000, 12.5000]]])
    """

    _function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPoolNd):
    """The mean of each window of a volume, in each channel.

    Examples:
        >>> nn.AvgPool3d(2)(taeda.randn(2, 3, 8, 32, 32)).shape
        taeda.Size([2, 3, 4, 16, 16])
    """

    _function = staticmethod(F.avg_pool3d)


class _FractionalMaxPoolNd(_Pool):
    """Arguments of fractional maximum pooling (Graham 2014).

    Args:
        kernel_size: size of the window, one number or one for each dimension.
        output_size: size of the output, one number or one for each dimension; or give ``output_ratio``.
        output_ratio: its ratio to that of the input, between 0 and 1.
        return_indices: return also where the maxima were, int64.
        _random_samples: ``(N, C, dimensions)``, where windows begin, in ``[0, 1)``; None: random.

    Shape:
        input: ``(N, C, *)`` or ``(C, *)``. Floating-point.
        output: ``(N, C, *output_size)`` or ``(C, *output_size)``. With ``return_indices`` two of them.

    Raises:
        ValueError: not just one of size and ratio is given, or a ratio is out of range.
        RuntimeError: in a call, the window is too large.
    """

    __constants__ = ("kernel_size", "return_indices", "output_size", "output_ratio")
    _dims = 0

    def __init__(
        self, kernel_size: int | Sequence[int], output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ) -> None:  # fmt: skip
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
    """The largest element of windows at random, uneven steps, so that an image shrinks by any factor (Graham 2014).

    Examples:
        >>> nn.FractionalMaxPool2d(2, output_ratio=0.7)(taeda.randn(8, 3, 20, 20)).shape
        taeda.Size([8, 3, 14, 14])
    """

    _dims = 2
    _function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """The largest element of windows at random, uneven steps, so that a volume shrinks by any factor (Graham 2014).

    Examples:
        >>> nn.FractionalMaxPool3d(2, output_size=7)(taeda.randn(8, 3, 10, 10, 10)).shape
        taeda.Size([8, 3, 7, 7, 7])
    """

    _dims = 3
    _function = staticmethod(F.fractional_max_pool3d)


class _LPPoolNd(_Pool):
    """Arguments of power pooling.

    Args:
        norm_type: ``p``, above 0.
        kernel_size: size of the window, one number or one for each dimension.
        stride: step between windows; ``kernel_size`` if None.
        ceil_mode: round the output size up rather than down.

    Shape:
        input: ``(N, C, *)`` or ``(C, *)``. Floating-point.
        output: the same but for the last sizes: ``L`` becomes ``(L - kernel_size) // stride + 1``.

    Raises:
        RuntimeError: in a call, the input has other dimensions.
    """

    __constants__ = ("norm_type", "kernel_size", "stride", "ceil_mode")
    _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(
        self, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPoolNd):
    """``(sum of x ** p) ** (1 / p)`` over each window of a signal: the sum for ``p = 1``, nearly the maximum for a
    large ``p``.

    Examples:
        >>> nn.LPPool1d(2, kernel_size=2)(taeda.tensor([[[3.0, 4.0, 5.0, 12.0]]]))
        tensor([[[ 5., 13.]]])
    """

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """``(sum of x ** p) ** (1 / p)`` over each window of an image: the sum for ``p = 1``, nearly the maximum for a
    large ``p``.

    Examples:
        >>> nn.LPPool2d(2, kernel_size=2)(taeda.ones(1, 4, 4))
        tensor([[[2., 2.],
                 [2., 2.]]])
    """

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPoolNd):
    """``(sum of x ** p) ** (1 / p)`` over each window of a volume: the sum for ``p = 1``, nearly the maximum for a
    large ``p``.

    Examples:
        >>> nn.LPPool3d(2, kernel_size=2)(taeda.randn(2, 3, 8, 8, 8).abs()).shape
        taeda.Size([2, 3, 4, 4, 4])
    """

    _function = staticmethod(F.lp_pool3d)


class _AdaptiveMaxPoolNd(_Pool):
    """Arguments of adaptive maximum pooling.

    Args:
        output_size: one size for all dimensions, or one for each; None keeps that of the input.
        return_indices: return also where the maxima were, int64.

    Shape:
        input: ``(N, C, *)`` or ``(C, *)``. Floating-point or integers.
        output: ``(N, C, *output_size)`` or ``(C, *output_size)``. With ``return_indices`` two of them. Window ``o`` of
            ``n`` over ``L`` elements goes from ``floor(o * L / n)`` to ``ceil((o + 1) * L / n)``.

    Raises:
        RuntimeError: in a call, the input has other dimensions.
    """

    __constants__ = ("output_size", "return_indices")
    _shown = ("output_size",)

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor):
        return self._function(input, self.output_size, self.return_indices)


class _AdaptiveAvgPoolNd(_Pool):
    """Arguments of adaptive average pooling.

    Args:
        output_size: one size for all dimensions, or one for each; None keeps that of the input.

    Shape:
        input: ``(N, C, *)`` or ``(C, *)``. Floating-point.
        output: ``(N, C, *output_size)`` or ``(C, *output_size)``. Window ``o`` of ``n`` over ``L`` elements goes from
            ``floor(o * L / n)`` to ``ceil((o + 1) * L / n)``.

    Raises:
        RuntimeError: in a call, the input has other dimensions.
    """

    __constants__ = ("output_size",)
    _shown = ("output_size",)

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.output_size)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The largest element of windows that are chosen so that the output has ``output_size`` elements.

    Examples:
        >>> nn.AdaptiveMaxPool1d(2)(taeda.tensor([[[1.0, 3.0, 2.0, 8.0, 5.0]]]))
        tensor([[[3., 8.]]])
    """

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The largest element of windows that are chosen so that the output has ``output_size``, whatever the image's size.

    Examples:
        >>> nn.AdaptiveMaxPool2d((5, None))(taeda.randn(8, 3, 20, 31)).shape
        taeda.Size([8, 3, 5, 31])
    """

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The largest element of windows that are chosen so that the output has ``output_size``, whatever the volume's
    size.

    Examples:
        >>> nn.AdaptiveMaxPool3d(4)(taeda.randn(2, 3, 9, 10, 11)).shape
        taeda.Size([2, 3, 4, 4, 4])
    """

    _function = staticmethod(F.adaptive_max_pool3d)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The mean of windows that are chosen so that the output has ``output_size`` elements.

    Examples:
        >>> nn.AdaptiveAvgPool1d(2)(taeda.tensor([[[1.0, 3.0, 2.0, 8.0, 5.0]]]))
        tensor([[[2., 5.]]])
    """

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The mean of windows that are chosen so that the output has ``output_size``, whatever the image's size.

    With size 1 it is the mean of each channel, which many networks have before their last layer.

    Examples:
        >>> nn.AdaptiveAvgPool2d(1)(taeda.randn(8, 512, 7, 9)).shape
        taeda.Size([8, 512, 1, 1])
    """

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The mean of windows that are chosen so that the output has ``output_size``, whatever the volume's size.

    Examples:
        >>> nn.AdaptiveAvgPool3d((4, 1, 1))(taeda.randn(2, 3, 9, 10, 11)).shape
        taeda.Size([2, 3, 4, 1, 1])
    """

    _function = staticmethod(F.adaptive_avg_pool3d)
