"""Batch normalisation folded into the convolution or linear layer before it, for evaluation."""

from __future__ import annotations

import copy

import taeda
from taeda import Tensor

from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _evaluated(layer: Module, bn: Module) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """A convolution that computes ``bn(conv(x))``; ``transpose`` for transposed ones."""
    _evaluated(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None, transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight and bias of that convolution."""
    wants = conv_b.requires_grad if conv_b is not None else False
    with taeda.no_grad():
        dtype = conv_w.dtype if conv_b is None else conv_b.dtype
        bias = taeda.zeros_like(bn_rm) if conv_b is None else conv_b
        scale = taeda.rsqrt(bn_rv + bn_eps)
        scale = scale if bn_w is None else scale * bn_w
        shape = [1] * conv_w.dim()
        shape[1 if transpose else 0] = -1
        weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
        bias = (bias - bn_rm) * scale
        bias = bias if bn_b is None else bias + bn_b
        return Parameter(weight, conv_w.requires_grad), Parameter(bias.to(dtype), wants)


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
    """A linear layer that computes ``bn(linear(x))``."""
    _evaluated(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got linear.out_features="
            f"{linear.out_features} and bn.num_features={bn.num_features}"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight and bias of that layer."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
