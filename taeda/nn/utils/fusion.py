"""Batch normalisation folded into the convolution or linear layer before it, for evaluation."""

from __future__ import annotations

import copy

from ..._typed import Tensor
from ...autograd import no_grad
from ...ops.creation import zeros_like
from ...ops.powers import rsqrt
from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _evaluated(layer: Module, bn: Module) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """One convolution that computes ``bn(conv(x))``, for evaluation: it saves the second pass.

    Args:
        conv: a convolution, in evaluation mode.
        bn: a batch normalisation of its output, in evaluation mode.
        transpose: whether ``conv`` is a transposed one.

    Returns:
        A new convolution.

    Raises:
        AssertionError: one of them is in training mode, or ``bn`` has no running statistics.

    Examples:
        >>> conv, bn = nn.Conv2d(3, 8, 3).eval(), nn.BatchNorm2d(8).eval()
        >>> fused = nn.utils.fuse_conv_bn_eval(conv, bn)
        >>> x = taeda.randn(2, 3, 8, 8)
        >>> bool(taeda.allclose(fused(x), bn(conv(x)), atol=1e-5))
        True
    """
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
    """Weight and bias of the convolution that :func:`fuse_conv_bn_eval` makes.

    ``w * s`` and ``(b - mean) * s + beta`` with ``s = gamma / sqrt(var + eps)``.

    Args:
        conv_w: ``w``, ``(C_out, C_in, *)``; floating-point.
        conv_b: ``b``, ``(C_out,)``, or None.
        bn_rm: running mean, ``(C_out,)``.
        bn_rv: running variance, ``(C_out,)``.
        bn_eps: ``eps``.
        bn_w: ``gamma``, ``(C_out,)``, or None for 1.
        bn_b: ``beta``, ``(C_out,)``, or None for 0.
        transpose: whether the weight is ``(C_in, C_out, *)``.

    Returns:
        A pair of parameters.

    Examples:
        >>> w, one = taeda.ones(2, 1, 1), taeda.ones(2)
        >>> weight, bias = nn.utils.fuse_conv_bn_weights(w, None, one, one * 4, 0.0, one, None)
        >>> weight.flatten().detach(), bias.detach()
        (tensor([0.5000, 0.5000]), tensor([-0.5000, -0.5000]))
    """
    wants = conv_b.requires_grad if conv_b is not None else False
    with no_grad():
        dtype = conv_w.dtype if conv_b is None else conv_b.dtype
        bias = zeros_like(bn_rm) if conv_b is None else conv_b
        scale = rsqrt(bn_rv + bn_eps)
        scale = scale if bn_w is None else scale * bn_w
        shape = [1] * conv_w.dim()
        shape[1 if transpose else 0] = -1
        weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
        bias = (bias - bn_rm) * scale
        bias = bias if bn_b is None else bias + bn_b
        return Parameter(weight, conv_w.requires_grad), Parameter(bias.to(dtype), wants)


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
    """One linear layer that computes ``bn(linear(x))``, for evaluation.

    Args:
        linear: a linear layer, in evaluation mode.
        bn: a batch normalisation of its output, in evaluation mode.

    Returns:
        A new linear layer.

    Raises:
        AssertionError: one of them is in training mode, or the features differ.

    Examples:
        >>> linear, bn = nn.Linear(3, 8).eval(), nn.BatchNorm1d(8).eval()
        >>> x = taeda.randn(2, 3)
        >>> bool(taeda.allclose(nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), atol=1e-5))
        True
    """
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
    """Weight and bias of the linear layer that :func:`fuse_linear_bn_eval` makes.

    ``w * s`` and ``(b - mean) * s + beta`` with ``s = gamma / sqrt(var + eps)``.

    Args:
        linear_w: ``w``, ``(n_out, n_in)``; floating-point.
        linear_b: ``b``, ``(n_out,)``, or None.
        bn_rm: running mean, ``(n_out,)``.
        bn_rv: running variance, ``(n_out,)``.
        bn_eps: ``eps``.
        bn_w: ``gamma``, ``(n_out,)``.
        bn_b: ``beta``, ``(n_out,)``.

    Returns:
        A pair of parameters.

    Raises:
        RuntimeError: the statistics have not one number per output.

    Examples:
        >>> w, one = taeda.ones(2, 1), taeda.ones(2)
        >>> weight, bias = nn.utils.fuse_linear_bn_weights(w, one, one, one * 4, 0.0, one, one)
        >>> weight.flatten().detach(), bias.detach()
        (tensor([0.5000, 0.5000]), tensor([1., 1.]))
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
