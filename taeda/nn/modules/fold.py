"""Fold and Unfold: sliding blocks as columns and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._typed import Tensor
from .. import functional as F
from .module import Module

__all__ = ["Fold", "Unfold"]


class Fold(Module):
    """Adds up blocks into an image, each at its place: the adjoint of :class:`Unfold`.

    Args:
        output_size: ``(H, W)`` of the image.
        kernel_size: size of the blocks.
        dilation: step between the elements of a block.
        padding: how far blocks reach beyond the image.
        stride: step between blocks.

    Shape:
        input: ``(N, C * kh * kw, L)`` or ``(C * kh * kw, L)``, ``L`` blocks. Floating-point.
        output: ``(N, C, H, W)`` or ``(C, H, W)``.

    Raises:
        RuntimeError: in a call, ``L`` is not the number of blocks.

    Examples:
        >>> blocks = nn.Unfold(2)(taeda.ones(1, 1, 3, 3))
        >>> nn.Fold((3, 3), 2)(blocks)  # by how many blocks each pixel is covered
        tensor([[[[1., 2., 1.],
                  [2., 4., 2.],
                  [1., 2., 1.]]]])
    """

    __constants__ = ("output_size", "kernel_size", "dilation", "padding", "stride")
    _shown = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, output_size: Any, kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation: Any = dilation
        self.padding: Any = padding
        self.stride: Any = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class Unfold(Module):
    """The sliding blocks of an image, each as a column: what a convolution multiplies by its kernel.

    Args:
        kernel_size: size of the blocks.
        dilation: step between the elements of a block.
        padding: zeros on both sides.
        stride: step between blocks.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``. Floating-point.
        output: ``(N, C * kh * kw, L)`` or ``(C * kh * kw, L)``, with as many columns ``L`` as a convolution has
            outputs.

    Raises:
        RuntimeError: in a call, the block is larger than the image.

    Examples:
        >>> nn.Unfold(kernel_size=2)(taeda.arange(9.0).reshape(1, 1, 3, 3))
        tensor([[[0., 1., 3., 4.],
                 [1., 2., 4., 5.],
                 [3., 4., 6., 7.],
                 [4., 5., 7., 8.]]])
    """

    __constants__ = ("kernel_size", "dilation", "padding", "stride")
    _shown = ("kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation: Any = dilation
        self.padding: Any = padding
        self.stride: Any = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
