"""Padding layers: circular, constant, reflection, replication and zero, in one to three dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from ..._typed import Tensor
from .. import functional as F
from .module import Module
from .utils import _ntuple

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _PadNd(Module):
    """Pads the last ``_dims`` dimensions of a batched or unbatched input.

    Args:
        padding: one width for every side, or ``(left, right, top, bottom, front, back)`` as far as there are
            dimensions; a negative width crops.

    Shape:
        input: ``(N, C, *)`` or ``(C, *)``, any dtype.
        output: the same but for the last sizes, which grow by the widths of their two sides.

    Raises:
        RuntimeError: in a call, the input has other dimensions, or the padding is too wide for its mode.
    """

    __constants__: tuple[str, ...] = ("padding",)
    _dims = 0
    _mode = "constant"

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    """Pads with the opposite ends.

    Raises:
        ValueError: in a call, the input has other dimensions.
        RuntimeError: in a call, the padding is wider than the input.
    """

    _mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        low, high = self._dims + 1, self._dims + 2
        if input.dim() not in (low, high):
            raise ValueError(f"expected {low}D or {high}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class _ConstantPadNd(_PadNd):
    """Pads with a value.

    Args:
        padding: one width for every side, or ``(left, right, top, bottom, front, back)`` as far as there are
            dimensions; a negative width crops.
        value: what the padding is filled with.
    """

    __constants__ = ("padding", "value")

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension with the opposite end, as if the signal were periodic.

    Examples:
        >>> nn.CircularPad1d(2)(taeda.arange(4).reshape(1, 4))
        tensor([[2, 3, 0, 1, 2, 3, 0, 1]])
    """

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Pads height and width with the opposite ends, as if the image were on a torus.

    Examples:
        >>> nn.CircularPad2d((1, 1, 1, 0))(taeda.arange(4).reshape(1, 2, 2))
        tensor([[[3, 2, 3, 2],
                 [1, 0, 1, 0],
                 [3, 2, 3, 2]]])
    """

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions with the opposite ends.

    Examples:
        >>> nn.CircularPad3d(1)(taeda.zeros(1, 3, 4, 5)).shape
        taeda.Size([1, 5, 6, 7])
    """

    _dims = 3


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with ``value``.

    Examples:
        >>> nn.ConstantPad1d((1, 2), 7)(taeda.arange(3).reshape(1, 3))
        tensor([[7, 0, 1, 2, 7, 7]])
    """

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads height and width with ``value``.

    Examples:
        >>> nn.ConstantPad2d(1, 7)(taeda.arange(2).reshape(1, 1, 2))
        tensor([[[7, 7, 7, 7],
                 [7, 0, 1, 7],
                 [7, 7, 7, 7]]])
    """

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with ``value``.

    Examples:
        >>> nn.ConstantPad3d(1, 7.0)(taeda.zeros(1, 3, 4, 5)).shape
        taeda.Size([1, 5, 6, 7])
    """

    _dims = 3


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dimension with its reflection, without the edge.

    Examples:
        >>> nn.ReflectionPad1d(2)(taeda.arange(4).reshape(1, 4))
        tensor([[2, 1, 0, 1, 2, 3, 2, 1]])
    """

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads height and width with their reflection, without the edge.

    Examples:
        >>> nn.ReflectionPad2d((1, 1, 1, 0))(taeda.arange(4).reshape(1, 2, 2))
        tensor([[[3, 2, 3, 2],
                 [1, 0, 1, 0],
                 [3, 2, 3, 2]]])
    """

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last three dimensions with their reflection, without the edge.

    Examples:
        >>> nn.ReflectionPad3d(1)(taeda.zeros(1, 3, 4, 5)).shape
        taeda.Size([1, 5, 6, 7])
    """

    _dims = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dimension with copies of the edge.

    Examples:
        >>> nn.ReplicationPad1d(2)(taeda.arange(4).reshape(1, 4))
        tensor([[0, 0, 0, 1, 2, 3, 3, 3]])
    """

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads height and width with copies of the edge.

    Examples:
        >>> nn.ReplicationPad2d((1, 1, 1, 0))(taeda.arange(4).reshape(1, 2, 2))
        tensor([[[0, 0, 1, 1],
                 [0, 0, 1, 1],
                 [2, 2, 3, 3]]])
    """

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last three dimensions with copies of the edge.

    Examples:
        >>> nn.ReplicationPad3d(1)(taeda.zeros(1, 3, 4, 5)).shape
        taeda.Size([1, 5, 6, 7])
    """

    _dims = 3


class ZeroPad1d(_ZeroPadNd, ConstantPad1d):
    """Pads the last dimension with zero.

    Examples:
        >>> nn.ZeroPad1d((1, 2))(taeda.ones(1, 3))
        tensor([[0., 1., 1., 1., 0., 0.]])
    """


class ZeroPad2d(_ZeroPadNd, ConstantPad2d):
    """Pads height and width with zero.

    Examples:
        >>> nn.ZeroPad2d(1)(taeda.ones(1, 1, 2))
        tensor([[[0., 0., 0., 0.],
                 [0., 1., 1., 0.],
                 [0., 0., 0., 0.]]])
    """


class ZeroPad3d(_ZeroPadNd, ConstantPad3d):
    """Pads the last three dimensions with zero.

    Examples:
        >>> nn.ZeroPad3d(1)(taeda.ones(1, 3, 4, 5)).shape
        taeda.Size([1, 5, 6, 7])
    """
