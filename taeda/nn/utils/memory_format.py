"""Weights of convolutions in another memory format."""

from __future__ import annotations

from typing import Any

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Module, kinds: tuple, memory_format: Any) -> Module:
    for sub in module.modules():
        if isinstance(sub, kinds):
            sub.weight.data = sub.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Lay out the weights of every 2-d convolution in a module anew, as channels last, in place.

    Args:
        module: a convolution, or a module with some.
        memory_format: such as ``taeda.channels_last``.

    Returns:
        ``module``.

    Examples:
        >>> layer = nn.utils.convert_conv2d_weight_memory_format(nn.Conv2d(4, 8, 3), taeda.channels_last)
        >>> layer.weight.is_contiguous(memory_format=taeda.channels_last)
        True
    """
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Lay out the weights of every 3-d convolution in a module anew, as channels last, in place.

    Args:
        module: a convolution, or a module with some.
        memory_format: such as ``taeda.channels_last_3d``.

    Returns:
        ``module``.

    Examples:
        >>> layer = nn.utils.convert_conv3d_weight_memory_format(nn.Conv3d(4, 8, 3), taeda.channels_last_3d)
        >>> layer.weight.is_contiguous(memory_format=taeda.channels_last_3d)
        True
    """
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
