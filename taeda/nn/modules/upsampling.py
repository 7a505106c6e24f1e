"""Upsampling by interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._typed import Tensor
from .. import functional as F
from .module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Resizes signals, images or volumes, to a size or by a factor.

    Args:
        size: size of the output, one number or one for each dimension; or give ``scale_factor``.
        scale_factor: output size over input size.
        mode: ``"nearest"``, ``"linear"`` (signals), ``"bilinear"``, ``"bicubic"`` (images) or ``"trilinear"``
            (volumes).
        align_corners: whether the centres of the corner pixels of input and output coincide, rather than their outer
            edges. Not for ``"nearest"``.
        recompute_scale_factor: use the factor that the rounded output size gives.

    Shape:
        input: ``(N, C, L)``, ``(N, C, H, W)`` or ``(N, C, D, H, W)``. Floating-point.
        output: ``(N, C, *size)``; a size ``L`` becomes ``floor(L * scale_factor)``.

    Raises:
        ValueError: in a call, both or none of size and factor are given, or they have another number of dimensions.
        NotImplementedError: in a call, the mode is not for that many dimensions.

    Examples:
        >>> x = taeda.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> nn.Upsample(scale_factor=2)(x)
        tensor([[[[1., 1., 2., 2.],
                  [1., 1., 2., 2.],
                  [3., 3., 4., 4.],
                  [3., 3., 4., 4.]]]])
        >>> nn.Upsample(size=(2, 3), mode="bilinear", align_corners=True)(x)
        tensor([[[[1.0000, 1.5000, 2.0000],
                  [3.0000, 3.5000, 4.0000]]]])
    """

    __constants__ = ("size", "scale_factor", "mode", "align_corners", "name", "recompute_scale_factor")

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )  # fmt: skip

    def __setstate__(self, state) -> None:
        state.setdefault("recompute_scale_factor", True)
        super().__setstate__(state)

    def extra_repr(self) -> str:
        size = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Nearest-neighbour upsampling of images: :class:`Upsample` with ``mode="nearest"``.

    Args:
        size: ``(H, W)`` of the output, or one number for both; or give ``scale_factor``.
        scale_factor: output size over input size.

    Examples:
        >>> nn.UpsamplingNearest2d(scale_factor=2)(taeda.tensor([[[[1.0, 2.0]]]]))
        tensor([[[[1., 1., 2., 2.],
                  [1., 1., 2., 2.]]]])
    """

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | tuple[float, ...] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Bilinear upsampling of images with aligned corners: :class:`Upsample` with ``mode="bilinear",
    align_corners=True``.

    Args:
        size: ``(H, W)`` of the output, or one number for both; or give ``scale_factor``.
        scale_factor: output size over input size.

    Examples:
        >>> nn.UpsamplingBilinear2d(size=(1, 3))(taeda.tensor([[[[1.0, 2.0]]]]))
        tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | tuple[float, ...] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
