"""Convolutions in one, two and three dimensions, their transposes and lazy forms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._typed import Tensor
from .. import functional as F
from .. import init
from ..parameter import UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _make_parameters, _pair, _reverse_repeat_tuple, _single, _triple, _unless

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """The base of all convolutions: arguments, parameters and their initialisation.

    ``weight`` is ``(out_channels, in_channels / groups, *kernel_size)``, transposed
    ``(in_channels, out_channels / groups, *kernel_size)``; both parameters start uniform in ``+- 1/sqrt(fan_in)``.
    """

    __constants__ = (
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels", "out_channels",
        "kernel_size",
    )  # fmt: skip

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: tuple[int, ...], stride: tuple[int, ...],
        padding: str | tuple[int, ...], dilation: tuple[int, ...], transposed: bool, output_padding: tuple[int, ...],
        groups: int, bias: bool, padding_mode: str, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of 'same', 'valid'")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._pads()
        channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        bias_shape = (out_channels,) if bias else None
        _make_parameters(self, device, dtype, weight=(*channels, *kernel_size), bias=bias_shape)
        self.reset_parameters()

    def _pads(self) -> list[int]:
        """The padding as ``functional.pad`` takes it: last dimension first, both sides."""
        if self.padding == "valid":
            return [0, 0] * len(self.kernel_size)
        if self.padding == "same":
            pads: list[int] = []
            for d, k in zip(reversed(self.dilation), reversed(self.kernel_size), strict=True):
                left = d * (k - 1) // 2
                pads += (left, d * (k - 1) - left)
            return pads
        return list(_reverse_repeat_tuple(self.padding, 2))

    def reset_parameters(self) -> None:
        """Initialise the parameters again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _padded(self, input: Tensor) -> tuple[Tensor, object]:
        """The input and the padding left to do, for modes other than zeros."""
        if self.padding_mode == "zeros":
            return input, self.padding
        return F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), 0

    def extra_repr(self) -> str:
        zeros, ones = (0,) * len(self.padding), (1,) * len(self.dilation)
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        text += _unless(self, padding=zeros, dilation=ones, output_padding=(0,) * len(self.output_padding), groups=1)
        return text + (", bias=False" if self.bias is None else "") + _unless(self, padding_mode="zeros")

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    """Convolution over as many dimensions as ``_tuple`` makes of a number, by ``_function``.

    Args:
        in_channels: ``C_in``.
        out_channels: ``C_out``.
        kernel_size: size of the window, one number or one for each dimension.
        stride: step between windows.
        padding: how far the input is padded on both sides; or ``"same"`` (the output has the size of the input, for
            stride 1) or ``"valid"`` (none).
        dilation: step between the elements of the kernel.
        groups: the channels fall into that many groups that do not see each other; ``in_channels`` for a depthwise one.
        bias: whether to add ``b``.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        device: of the parameters.
        dtype: of the parameters.

    Shape:
        input: ``(N, C_in, *)`` or ``(C_in, *)``. Floating-point or complex, of the parameters' dtype.
        output: ``(N, C_out, *)`` or ``(C_out, *)``; a size ``L`` becomes
            ``(L + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1``.
        weight: ``(C_out, C_in / groups, *kernel_size)``; it and ``bias`` ``(C_out,)`` start uniform in
            ``+- 1 / sqrt(fan_in)``.

    Raises:
        ValueError: ``groups`` does not divide the channels, or a padding is unknown.
        RuntimeError: in a call, the input has other channels or another dtype, or is smaller than the kernel.
    """

    _tuple: Any
    _function: Any

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1,
        bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        several = self._tuple
        super().__init__(
            in_channels, out_channels, several(kernel_size), several(stride),
            padding if isinstance(padding, str) else several(padding), several(dilation), False, several(0), groups,
            bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        input, padding = self._padded(input)
        return self._function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Convolution over one dimension: each output is ``b`` plus a weighted sum of a window of the input.

    As everywhere in deep learning it is the cross-correlation: the kernel is not turned round.

    Examples:
        >>> layer = nn.Conv1d(1, 1, kernel_size=2, bias=False)
        >>> layer.weight.data = taeda.tensor([[[-1.0, 1.0]]])  # the difference of neighbours
        >>> layer(taeda.tensor([[[1.0, 2.0, 4.0, 7.0]]])).detach()
        tensor([[[1., 2., 3.]]])
    """

    _tuple, _function = staticmethod(_single), staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Convolution over height and width: each output is ``b`` plus a weighted sum of a window of the image.

    Examples:
        >>> images = taeda.randn(8, 3, 32, 32)
        >>> nn.Conv2d(3, 16, kernel_size=3, padding=1)(images).shape
        taeda.Size([8, 16, 32, 32])
        >>> nn.Conv2d(3, 16, kernel_size=4, stride=4)(images).shape
        taeda.Size([8, 16, 8, 8])
    """

    _tuple, _function = staticmethod(_pair), staticmethod(F.conv2d)


class Conv3d(_Conv):
    """Convolution over depth, height and width, as for video and volumes.

    Examples:
        >>> nn.Conv3d(1, 4, kernel_size=(3, 5, 5))(taeda.randn(2, 1, 10, 32, 32)).shape
        taeda.Size([2, 4, 8, 28, 28])
    """

    _tuple, _function = staticmethod(_triple), staticmethod(F.conv3d)


class _ConvTransposeNd(_ConvNd):
    """The base of transposed convolutions: the ``output_size`` argument of ``forward``."""

    def __init__(
        self, in_channels, out_channels, kernel_size: tuple[int, ...], stride: tuple[int, ...],
        padding: tuple[int, ...], dilation: tuple[int, ...], transposed, output_padding: tuple[int, ...], groups, bias,
        padding_mode, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, output_padding, groups,
            bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(
        self, input, output_size, stride, padding, kernel_size, num_spatial_dims: int, dilation=None
    ) -> tuple[int, ...]:
        """The ``output_padding`` that makes the output ``output_size``."""
        if output_size is None:
            return _single(self.output_padding)
        n = num_spatial_dims
        leading = input.dim() - n
        if len(output_size) == leading + n:
            output_size = output_size[leading:]
        if len(output_size) != n:
            raise ValueError(
                f"{type(self).__name__}: for {input.dim()}D input, output_size must have {n} or {leading + n} elements "
                f"(got {len(output_size)})"
            )
        low = [
            (input.size(d + leading) - 1) * stride[d] - 2 * padding[d]
            + (dilation[d] if dilation is not None else 1) * (kernel_size[d] - 1) + 1
            for d in range(n)
        ]  # fmt: skip
        high = [low[d] + stride[d] - 1 for d in range(n)]
        for size, lo, hi in zip(output_size, low, high, strict=True):
            if not lo <= size <= hi:
                raise ValueError(
                    f"requested an output size of {output_size}, but valid sizes range from {low} to {high} (for an "
                    f"input of {input.size()[2:]})"
                )
        return tuple(output_size[d] - low[d] for d in range(n))

    def _extra(self, input: Tensor, output_size) -> tuple[int, ...]:
        n = len(self.kernel_size)
        return self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size, n, self.dilation)


class _ConvTranspose(_ConvTransposeNd):
    """Transposed convolution over as many dimensions as ``_tuple`` makes of a number, by ``_function``.

    Args:
        in_channels: ``C_in``.
        out_channels: ``C_out``.
        kernel_size: size of the window, one number or one for each dimension.
        stride: step between windows, in the output.
        padding: how much is cut off on both sides of the output.
        output_padding: widens the output on one side, below ``stride`` or ``dilation``.
        groups: the channels fall into that many groups that do not see each other.
        bias: whether to add ``b``.
        dilation: step between the elements of the kernel.
        padding_mode: ``"zeros"``.
        device: of the parameters.
        dtype: of the parameters.

    Shape:
        input: ``(N, C_in, *)`` or ``(C_in, *)``. Floating-point or complex, of the parameters' dtype.
        output: ``(N, C_out, *)`` or ``(C_out, *)``; a size ``L`` becomes
            ``(L - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1``. ``forward`` takes an
            ``output_size`` in place of ``output_padding``.
        weight: ``(C_in, C_out / groups, *kernel_size)``; ``bias`` is ``(C_out,)``.

    Raises:
        ValueError: ``groups`` does not divide the channels, ``padding_mode`` is another, or an output size is not
            possible.
        RuntimeError: in a call, the input has other channels or another dtype.
    """

    _tuple: Any
    _function: Any

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, bias: bool = True,
        dilation: int | Sequence[int] = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        several = self._tuple
        super().__init__(
            in_channels, out_channels, several(kernel_size), several(stride), several(padding), several(dilation), True,
            several(output_padding), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size=None) -> Tensor:
        extra = self._extra(input, output_size)
        return self._function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution over one dimension: each input adds the kernel, times itself, to a window of the output.

    It is the gradient of :class:`Conv1d` for its input, as a layer, and makes a signal longer.

    Examples:
        >>> layer = nn.ConvTranspose1d(1, 1, kernel_size=3, stride=2, bias=False)
        >>> layer.weight.data = taeda.tensor([[[1.0, 10.0, 100.0]]])
        >>> layer(taeda.tensor([[[1.0, 2.0]]])).detach()
        tensor([[[  1.,  10., 102.,  20., 200.]]])
    """

    _tuple, _function = staticmethod(_single), staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution over height and width, which makes an image larger: the gradient of :class:`Conv2d`, as a
    layer.

    Examples:
        >>> small = taeda.randn(8, 16, 7, 7)
        >>> layer = nn.ConvTranspose2d(16, 3, kernel_size=4, stride=2, padding=1)
        >>> layer(small).shape
        taeda.Size([8, 3, 14, 14])
        >>> nn.ConvTranspose2d(16, 3, 3, stride=2)(small, output_size=(16, 16)).shape
        taeda.Size([8, 3, 16, 16])
    """

    _tuple, _function = staticmethod(_pair), staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution over depth, height and width: the gradient of :class:`Conv3d`, as a layer.

    Examples:
        >>> nn.ConvTranspose3d(4, 1, kernel_size=2, stride=2)(taeda.randn(2, 4, 5, 8, 8)).shape
        taeda.Size([2, 1, 10, 16, 16])
    """

    _tuple, _function = staticmethod(_triple), staticmethod(F.conv_transpose3d)


class _LazyConvXdMixin(LazyModuleMixin):
    """Takes ``in_channels`` from the first input."""

    _dims = 0
    weight: Any
    bias: Any

    def _lazy(self, out_channels: int, bias: bool, device, dtype) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args, **kwargs) -> None:
        if not self.has_uninitialized_params():
            return
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise RuntimeError(
                f"Expected {self._dims + 1}D (unbatched) or {self._dims + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[-self._dims - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if self.transposed:
            channels = (self.in_channels, self.out_channels // self.groups)
        else:
            channels = (self.out_channels, self.in_channels // self.groups)
        self.weight.materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyConv(_LazyConvXdMixin, _Conv):
    def __init__(
        self, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A :class:`Conv1d` that takes ``in_channels`` from its first input.

    Examples:
        >>> layer = nn.LazyConv1d(4, kernel_size=3)
        >>> layer(taeda.randn(2, 6, 10)).shape
        taeda.Size([2, 4, 8])
        >>> layer
        Conv1d(6, 4, kernel_size=(3,), stride=(1,))
    """

    cls_to_become = Conv1d
    _dims = 1


class LazyConv2d(_LazyConv, Conv2d):
    """A :class:`Conv2d` that takes ``in_channels`` from its first input, so that one need not work it out.

    Examples:
        >>> model = nn.Sequential(nn.LazyConv2d(8, 3), nn.ReLU(), nn.LazyConv2d(16, 3))
        >>> model(taeda.randn(2, 3, 32, 32)).shape
        taeda.Size([2, 16, 28, 28])
        >>> model[2].weight.shape
        taeda.Size([16, 8, 3, 3])
    """

    cls_to_become = Conv2d
    _dims = 2


class LazyConv3d(_LazyConv, Conv3d):
    """A :class:`Conv3d` that takes ``in_channels`` from its first input.

    Examples:
        >>> nn.LazyConv3d(4, kernel_size=3)(taeda.randn(2, 1, 8, 8, 8)).shape
        taeda.Size([2, 4, 6, 6, 6])
    """

    cls_to_become = Conv3d
    _dims = 3


class _LazyConvTranspose(_LazyConvXdMixin, _ConvTranspose):
    def __init__(
        self, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, bias: bool = True,
        dilation: int | Sequence[int] = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self._lazy(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A :class:`ConvTranspose1d` that takes ``in_channels`` from its first input.

    Examples:
        >>> nn.LazyConvTranspose1d(4, kernel_size=2, stride=2)(taeda.randn(2, 6, 10)).shape
        taeda.Size([2, 4, 20])
    """

    cls_to_become = ConvTranspose1d
    _dims = 1


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A :class:`ConvTranspose2d` that takes ``in_channels`` from its first input.

    Examples:
        >>> nn.LazyConvTranspose2d(4, kernel_size=2, stride=2)(taeda.randn(2, 6, 10, 10)).shape
        taeda.Size([2, 4, 20, 20])
    """

    cls_to_become = ConvTranspose2d
    _dims = 2


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A :class:`ConvTranspose3d` that takes ``in_channels`` from its first input.

    Examples:
        >>> nn.LazyConvTranspose3d(4, kernel_size=2, stride=2)(taeda.randn(2, 6, 5, 5, 5)).shape
        taeda.Size([2, 4, 10, 10, 10])
    """

    cls_to_become = ConvTranspose3d
    _dims = 3
