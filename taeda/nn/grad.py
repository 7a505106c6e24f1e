"""The gradients of convolutions by their inputs and by their weights, as functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda

from .._typed import Tensor
from ..ops.conv import conv1d, conv2d, conv3d


def _gradient(convolve: Callable, made: Tensor, which: int, other: Tensor, grad_output: Tensor, rest: tuple) -> Tensor:
    """The derivative is linear, so it does not depend on what ``made`` holds."""
    with taeda.enable_grad():
        made = made.requires_grad_()
        out = convolve(*((made, other) if which == 0 else (other, made)), None, *rest)
    (gradient,) = taeda.autograd.grad(out, made, grad_output)
    assert gradient is not None
    return gradient


def _by_input(convolve: Callable) -> Callable:
    def gradient(
        input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        made = weight.new_empty(1).expand(tuple(input_size)).detach()
        return _gradient(convolve, made, 0, weight.detach(), grad_output, (stride, padding, dilation, groups))

    gradient.__name__ = gradient.__qualname__ = f"{convolve.__name__}_input"
    gradient.__doc__ = f"The gradient of :func:`{convolve.__name__}` by an input of ``input_size``."
    return gradient


def _by_weight(convolve: Callable) -> Callable:
    def gradient(
        input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        made = input.new_empty(1).expand(tuple(weight_size)).detach()
        return _gradient(convolve, made, 1, input.detach(), grad_output, (stride, padding, dilation, groups))

    gradient.__name__ = gradient.__qualname__ = f"{convolve.__name__}_weight"
    gradient.__doc__ = f"The gradient of :func:`{convolve.__name__}` by a weight of ``weight_size``."
    return gradient


conv1d_input, conv2d_input, conv3d_input = map(_by_input, (conv1d, conv2d, conv3d))
conv1d_weight, conv2d_weight, conv3d_weight = map(_by_weight, (conv1d, conv2d, conv3d))
