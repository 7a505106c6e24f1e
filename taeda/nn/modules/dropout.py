"""Dropout of elements, of whole channels, and the forms that keep mean and variance of SELU activations."""

from __future__ import annotations

from ..._typed import Tensor
from .. import functional as F
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    """A layer that drops something in training.

    Args:
        p: the probability with which it does, in ``[0, 1]``.
        inplace: overwrite the input.

    Shape:
        input: ``(*)``, any shape. Floating-point.
        output: the shape and dtype of the input.

    Raises:
        ValueError: ``p`` is not in ``[0, 1]``.
    """

    __constants__ = ("p", "inplace")
    _shown = ("p", "inplace")

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace


class Dropout(_DropoutNd):
    """In training each element becomes 0 with probability ``p``, and the others are divided by ``1 - p``; else nothing
    changes.

    It keeps units from relying on each other. Call ``model.eval()`` before evaluation. Source: Hinton et al. 2012,
    "Improving neural networks by preventing co-adaptation of feature detectors".

    Examples:
        >>> layer = nn.Dropout(0.5)
        >>> layer(taeda.ones(1000)).unique()
        tensor([0., 2.])
        >>> layer.eval()(taeda.ones(3))
        tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """:class:`Dropout` of whole channels of signals: neighbours are alike, so single elements would hide little.

    Shape:
        input: ``(N, C, L)`` or ``(C, L)``. Floating-point.
        output: the shape and dtype of the input.

    Examples:
        >>> y = nn.Dropout1d(0.5)(taeda.ones(2, 4, 10))
        >>> bool((y == y[:, :, :1]).all())  # a channel is kept or dropped as a whole
        True
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """:class:`Dropout` of whole channels of images (Tompson et al. 2014).

    Shape:
        input: ``(N, C, H, W)``; ``(N, C, L)`` with a warning. Floating-point.
        output: the shape and dtype of the input.

    Examples:
        >>> y = nn.Dropout2d(0.5)(taeda.ones(2, 4, 8, 8))
        >>> bool((y == y[:, :, :1, :1]).all())  # a channel is kept or dropped as a whole
        True
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """:class:`Dropout` of whole channels of volumes.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``. Floating-point.
        output: the shape and dtype of the input.

    Examples:
        >>> nn.Dropout3d(0.5)(taeda.ones(2, 4, 8, 8, 8)).shape
        taeda.Size([2, 4, 8, 8, 8])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout for networks with :class:`SELU`: elements become ``-1.7581``, its limit, and mean and variance stay.

    Kept elements and the limit are scaled and shifted so that an input of mean 0 and variance 1 keeps them. Source:
    Klambauer et al. 2017, "Self-Normalizing Neural Networks".

    Examples:
        >>> y = nn.AlphaDropout(0.2)(taeda.randn(100_000))
        >>> bool(y.mean().abs() < 0.02 and (y.std() - 1).abs() < 0.02)
        True
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """:class:`AlphaDropout` of whole channels.

    Shape:
        input: ``(N, C, *)``. Floating-point.
        output: the shape and dtype of the input.

    Examples:
        >>> nn.FeatureAlphaDropout(0.2)(taeda.randn(2, 4, 8, 8)).shape
        taeda.Size([2, 4, 8, 8])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
