"""PixelShuffle and its inverse."""

from __future__ import annotations

from ..._typed import Tensor
from .. import functional as F
from .module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Channels to pixels: ``r * r`` channels become one that is ``r`` times as high and wide, for networks that enlarge
    images.

    Source: Shi et al. 2016, "Real-Time Single Image and Video Super-Resolution Using an Efficient Sub-Pixel
    Convolutional Neural Network".

    Args:
        upscale_factor: ``r``.

    Shape:
        input: ``(*, C * r * r, H, W)``, any dtype.
        output: ``(*, C, H * r, W * r)``.

    Raises:
        RuntimeError: in a call, ``r * r`` does not divide the channels.

    Examples:
        >>> nn.PixelShuffle(2)(taeda.arange(4).reshape(4, 1, 1))
        tensor([[[0, 1],
                 [2, 3]]])
        >>> nn.PixelShuffle(3)(taeda.randn(8, 9, 4, 4)).shape
        taeda.Size([8, 1, 12, 12])
    """

    __constants__ = ("upscale_factor",)
    _shown = ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    """Pixels to channels: the opposite of :class:`PixelShuffle`.

    Args:
        downscale_factor: ``r``.

    Shape:
        input: ``(*, C, H * r, W * r)``, any dtype.
        output: ``(*, C * r * r, H, W)``.

    Raises:
        RuntimeError: in a call, ``r`` does not divide height and width.

    Examples:
        >>> nn.PixelUnshuffle(2)(taeda.randn(8, 1, 12, 12)).shape
        taeda.Size([8, 4, 6, 6])
    """

    __constants__ = ("downscale_factor",)
    _shown = ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)
