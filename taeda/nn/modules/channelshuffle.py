"""ChannelShuffle."""

from __future__ import annotations

from ..._typed import Tensor
from .. import functional as F
from .module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Interleaves ``groups`` groups of channels, so that the next grouped convolution sees all of them.

    Source: Zhang et al. 2018, "ShuffleNet: An Extremely Efficient Convolutional Neural Network for Mobile Devices".

    Args:
        groups: number of groups, a divisor of ``C``.

    Shape:
        input: ``(N, C, *)``, any dtype.
        output: the same shape.

    Raises:
        RuntimeError: in a call, ``groups`` does not divide the channels.

    Examples:
        >>> nn.ChannelShuffle(2)(taeda.arange(6).reshape(1, 6, 1)).flatten()
        tensor([0, 3, 1, 4, 2, 5])
    """

    __constants__ = ("groups",)
    _shown = ("groups",)

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)
