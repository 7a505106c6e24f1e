"""ONNX ops that normalise, softmax among them, and dropout."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import taeda.nn.functional as F

from ... import linalg
from ..._core import bool_
from ..._typed import Tensor
from ...ops import reduction
from ...ops.creation import arange, ones_like
from ...ops.indexing import where
from ...ops.powers import rsqrt, sqrt
from ...ops.random import rand
from ..table import op
from ..values import DTYPES
from .random import generator_of


# ---- softmax ---------------------------------------------------------------------------------------------------------
def _hardmax(x: Tensor, dim: int) -> Tensor:
    hot = arange(x.shape[dim]).reshape(-1, *[1] * (x.ndim - 1 - dim % x.ndim))
    return (hot == reduction.argmax(x, dim, keepdim=True)).to(x.dtype)


def _of_rows(function: Callable) -> Callable:
    """Until opset 12, all dimensions from ``axis`` on are one."""

    def run(x: Tensor, *, axis: int = 1) -> Tensor:
        axis %= x.ndim
        return function(x.reshape(math.prod(x.shape[:axis]), -1), 1).reshape(x.shape)

    return run


def _of_dimension(function: Callable) -> Callable:
    def run(x: Tensor, *, axis: int = -1) -> Tensor:
        return function(x, axis)

    return run


for _name, _function in {"Softmax": F.softmax, "LogSoftmax": F.log_softmax, "Hardmax": _hardmax}.items():
    op(_name, 1)(_of_rows(_function))
    op(_name, 13)(_of_dimension(_function))


# ---- statistics of a batch -------------------------------------------------------------------------------------------
@op("BatchNormalization", 1, outputs=True)
def batch_normalization_1(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, *, outputs: int, epsilon: float = 1e-5,
    momentum: float = 0.9, is_test: int | None = None, spatial: int = 1,
) -> Any:  # fmt: skip
    """Until opset 13 five outputs mean training; with ``spatial=0`` each element has its own statistics."""
    if not spatial:
        return (x - mean) * rsqrt(var + epsilon) * scale + bias
    training = outputs > 1 and not is_test
    results = batch_normalization(x, scale, bias, mean, var, epsilon=epsilon, momentum=momentum, training_mode=training)
    return (*results, mean, var) if training else results


@op("BatchNormalization", 14)
def batch_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, *, epsilon: float = 1e-5, momentum: float = 0.9,
    training_mode: int = 0,
) -> Any:  # fmt: skip
    """In training mode also the running statistics, which mix in the variance of the population."""
    if not training_mode:
        if mean.requires_grad or var.requires_grad:
            mean, var, scale, bias = (v.reshape([-1] + [1] * (x.ndim - 2)) for v in (mean, var, scale, bias))
            return (x - mean) * rsqrt(var + epsilon) * scale + bias
        return F.batch_norm(x, mean, var, scale, bias, False, 0.0, epsilon)
    dims = [dim for dim in range(x.ndim) if dim != 1]
    now_var, now_mean = reduction.var_mean(x, dims, correction=0)
    y = F.batch_norm(x, None, None, scale, bias, True, 0.0, epsilon)
    return y, mean * momentum + now_mean * (1 - momentum), var * momentum + now_var * (1 - momentum)


@op("InstanceNormalization")
def instance_normalization(x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    return F.instance_norm(x, weight=scale, bias=bias, eps=epsilon)


# ---- statistics of an example ----------------------------------------------------------------------------------------
@op("LayerNormalization", outputs=True)
def layer_normalization(
    x: Tensor, scale: Tensor, bias: Tensor | None = None, *, outputs: int, axis: int = -1, epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Any:  # fmt: skip
    sizes = x.shape[axis % x.ndim :]
    if outputs == 1 and scale.shape == sizes and (bias is None or bias.shape == sizes):
        return F.layer_norm(x, sizes, scale, bias, epsilon)
    wide = x.to(DTYPES[stash_type])
    var, mean = reduction.var_mean(wide, list(range(axis % x.ndim, x.ndim)), correction=0, keepdim=True)
    inverse = rsqrt(var + epsilon)
    y = ((wide - mean) * inverse).to(x.dtype) * scale
    return (y if bias is None else y + bias), mean, inverse


@op("RMSNormalization")
def rms_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    wide = x.to(DTYPES[stash_type])
    square = reduction.mean(wide * wide, list(range(axis % x.ndim, x.ndim)), keepdim=True)
    return (wide * rsqrt(square + epsilon)).to(x.dtype) * scale


@op("GroupNormalization", 18)
def group_normalization_18(x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5) -> Tensor:
    """Scale and bias of each group."""
    each = x.shape[1] // num_groups
    return F.group_norm(x, num_groups, scale.repeat_interleave(each), bias.repeat_interleave(each), epsilon)


@op("GroupNormalization", 21)
def group_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    return F.group_norm(x, num_groups, scale, bias, epsilon)


@op("MeanVarianceNormalization")
def mean_variance_normalization(x: Tensor, *, axes: list[int] | None = None) -> Tensor:
    var, mean = reduction.var_mean(x, axes or [0, 2, 3], correction=0, keepdim=True)
    return (x - mean) / (sqrt(var) + 1e-9)


@op("LpNormalization")
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    """Rows of norm 0 stay 0."""
    norm = linalg.vector_norm(x, p, axis, keepdim=True)
    return x / where(norm == 0, 1, norm)


@op("LRN")
def lrn(x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
    """Each element over a power of the sum of squares of ``size`` channels around it (Krizhevsky et al. 2012)."""
    before = (size - 1) // 2
    squares = F.pad((x * x).movedim(1, -1), [before, size - 1 - before])
    sums = squares.unfold(-1, size, 1).sum(-1).movedim(-1, 1)
    return x / (bias + alpha / size * sums) ** beta


# ---- dropout ---------------------------------------------------------------------------------------------------------
@op("Dropout", 1, outputs=True)
def dropout_1(x: Tensor, *, outputs: int, ratio: float = 0.5, is_test: int = 1) -> Any:
    return (x, ones_like(x, dtype=bool_)) if outputs > 1 else x


@op("Dropout", 12)
def dropout(
    x: Tensor, ratio: Tensor | None = None, training: Tensor | None = None, *, seed: int | None = None
) -> tuple[Tensor, Tensor]:
    rate = 0.5 if ratio is None else float(ratio)
    if training is None or not training or rate == 0:
        return x, ones_like(x, dtype=bool_)
    kept = rand(x.shape, generator=generator_of(seed)) >= rate
    return where(kept, x / (1 - rate), 0), kept
