"""Normalisation layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...types import finfo
from ..writer import Unsupported, Value, Writer, is_static
from .creation import filled
from .elementwise import rsqrt
from .reduction import moments
from .shape import channels_first
from .table import translates


def _scaled(g: Writer, x: Value, weight: Value | None, bias: Value | None, rank: int) -> Value:
    x = x if weight is None else g.Mul(x, channels_first(g, weight, rank))
    return x if bias is None else g.Add(x, channels_first(g, bias, rank))


def _channels(g: Writer, x: Value) -> list:
    if not is_static(x.shape[1:2]):
        raise Unsupported("normalisation of channels whose number is not fixed; leave it out of dynamic_shapes")
    return [x.shape[1]]


def _vector(g: Writer, sizes: Sequence, value: float, dtype: Any) -> Value:
    """A constant where its length is known, so that the layer before may be folded with it."""
    return g.constant([float(value)] * int(sizes[0]), dtype) if is_static(sizes) else filled(g, sizes, value, dtype)


@translates("nn.functional.batch_norm")
def batch_norm(
    g: Writer, input: Value, running_mean: Value | None, running_var: Value | None, weight: Value | None = None,
    bias: Value | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Value:  # fmt: skip
    if training or running_mean is None or running_var is None:
        axes = [d for d in range(input.rank) if d != 1]
        variance, center = moments(g, input, axes, 0, True)
        made = g.Mul(g.Sub(input, center), rsqrt(g, g.Add(variance, eps)))
        return _scaled(g, made, weight, bias, input.rank)
    if input.rank < 2:
        made = g.Mul(g.Sub(input, running_mean), rsqrt(g, g.Add(running_var, eps)))
        return _scaled(g, made, weight, bias, 1)
    count = running_mean.shape
    weight = _vector(g, count, 1, input.dtype) if weight is None else weight
    bias = _vector(g, count, 0, input.dtype) if bias is None else bias
    return g.BatchNormalization(input, weight, bias, running_mean, running_var, epsilon=float(eps))


@translates("step.batch_norm_functional")
def batch_norm_functional(
    g: Writer, input: Value, weight: Value | None, bias: Value | None, running_mean: Value, running_var: Value,
    training: bool, momentum: float, eps: float,
) -> tuple:  # fmt: skip
    axes = [d for d in range(input.rank) if d != 1]
    if not training:
        variance, center = running_var, running_mean
        made = batch_norm(g, input, running_mean, running_var, weight, bias, False, momentum, eps)
        return made, center, variance, running_mean, running_var
    variance, center = moments(g, input, axes, 0, True)
    inverse = rsqrt(g, g.Add(variance, eps))
    made = _scaled(g, g.Mul(g.Sub(input, center), inverse), weight, bias, input.rank)
    unbiased, mean = moments(g, input, axes, 1, False)
    new_mean = g.Add(g.Mul(running_mean, 1.0 - momentum), g.Mul(mean, float(momentum)))
    new_var = g.Add(g.Mul(running_var, 1.0 - momentum), g.Mul(unbiased, float(momentum)))
    return made, g.Squeeze(center, axes), g.Squeeze(inverse, axes), new_mean, new_var


@translates("native_batch_norm _native_batch_norm_legit")
def native_batch_norm(
    g: Writer, input: Value, weight: Value | None, bias: Value | None, running_mean: Any, running_var: Any,
    training: bool, momentum: float, eps: float,
) -> tuple:  # fmt: skip
    if not training:
        made = batch_norm(g, input, running_mean, running_var, weight, bias, False, momentum, eps)
        empty = filled(g, [0], 0, input.dtype)
        return made, empty, empty
    return batch_norm_functional(g, input, weight, bias, running_mean, running_var, True, momentum, eps)[:3]


@translates("nn.functional.instance_norm")
def instance_norm(
    g: Writer, input: Value, running_mean: Value | None = None, running_var: Value | None = None,
    weight: Value | None = None, bias: Value | None = None, use_input_stats: bool = True, momentum: float = 0.1,
    eps: float = 1e-5,
) -> Value:  # fmt: skip
    if not use_input_stats:
        return batch_norm(g, input, running_mean, running_var, weight, bias, False, momentum, eps)
    weight = filled(g, _channels(g, input), 1, input.dtype) if weight is None else weight
    bias = filled(g, _channels(g, input), 0, input.dtype) if bias is None else bias
    return g.InstanceNormalization(input, weight, bias, epsilon=float(eps))


@translates("layer_norm")
def layer_norm(
    g: Writer, input: Value, normalized_shape: Sequence, weight: Value | None = None, bias: Value | None = None,
    eps: float = 1e-5, cudnn_enable: bool = True,
) -> Value:  # fmt: skip
    shape = normalized_shape if isinstance(normalized_shape, (tuple, list)) else [normalized_shape]
    weight = filled(g, shape, 1, input.dtype) if weight is None else weight
    return g.LayerNormalization(input, weight, bias, axis=-len(shape), epsilon=float(eps))


@translates("nn.functional.group_norm")
def group_norm(
    g: Writer, input: Value, num_groups: int, weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Value:  # fmt: skip
    """As an instance norm of groups, which every opset has."""
    (channels,) = _channels(g, input)
    rows = g.Reshape(input, [0, num_groups, -1])
    one, zero = filled(g, [num_groups], 1, input.dtype), filled(g, [num_groups], 0, input.dtype)
    made = g.InstanceNormalization(rows, one, zero, epsilon=float(eps))
    shape = input.shape
    if is_static(shape) and math.prod(map(int, shape)) == 0:
        return input
    made = g.Reshape(made, g.Shape(input) if not is_static(shape[1:]) else [0, int(channels), *map(int, shape[2:])])
    return _scaled(g, made, weight, bias, input.rank)


@translates("nn.functional.rms_norm")
def rms_norm(
    g: Writer, input: Value, normalized_shape: Sequence, weight: Value | None = None, eps: float | None = None
) -> Value:
    eps = finfo(input.dtype).eps if eps is None else eps
    shape = normalized_shape if isinstance(normalized_shape, (tuple, list)) else [normalized_shape]
    if g.opset >= 23 and weight is not None:
        return g.RMSNormalization(input, weight, axis=-len(shape), epsilon=float(eps))
    square = g.reduce("ReduceMean", g.Mul(input, input), list(range(-len(shape), 0)), True)
    made = g.Div(input, g.Sqrt(g.Add(square, float(eps))))
    return made if weight is None else g.Mul(made, weight)


@translates("nn.functional.local_response_norm")
def local_response_norm(
    g: Writer, input: Value, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Value:  # fmt: skip
    """The mean over neighbouring channels takes ``size // 2`` before and the rest after."""
    rows = g.Unsqueeze(g.Reshape(g.Mul(input, input), [0, 0, -1]), [1])
    pads = [0, 0, size // 2, 0, 0, 0, (size - 1) // 2, 0]
    mean = g.AveragePool(g.Pad(rows, pads), kernel_shape=[size, 1], strides=[1, 1])
    mean = g.Reshape(g.Squeeze(mean, [1]), g.sizes_of(input))
    return g.Div(input, g.Pow(g.Add(g.Mul(mean, float(alpha)), float(k)), g.constant(float(beta), input.dtype)))
