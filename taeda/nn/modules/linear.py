"""Linear, Bilinear, Identity and LazyLinear."""

from __future__ import annotations

import math
from typing import Any

from ..._typed import Tensor
from ...autograd import no_grad
from .. import functional as F
from .. import init
from ..parameter import UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _make_parameters

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """The input as it is: for a layer that is to do nothing. It takes any arguments and ignores them.

    Args:
        *args: accepted.
        **kwargs: accepted.

    Shape:
        input: ``(*)``, any shape and dtype.
        output: the input.

    Examples:
        >>> model = nn.Sequential(nn.Linear(3, 3), nn.Dropout())
        >>> model[1] = nn.Identity()
        >>> model(taeda.ones(2, 3)).shape
        taeda.Size([2, 3])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """``y = x A^T + b``: every output is a weighted sum of all inputs.

    Args:
        in_features: size of the last dimension of the input.
        out_features: size of the last dimension of the output.
        bias: whether to add ``b``.
        device: of the parameters.
        dtype: of the parameters.

    Shape:
        input: ``(*, in_features)``. Floating-point or complex, of the parameters' dtype.
        output: ``(*, out_features)``.
        weight: ``A``, ``(out_features, in_features)``; it and ``bias`` ``(out_features,)`` start uniform in
            ``+- 1 / sqrt(in_features)``.

    Raises:
        RuntimeError: in a call, the last size or the dtype differs.

    Examples:
        >>> layer = nn.Linear(3, 5)
        >>> layer(taeda.randn(8, 3)).shape
        taeda.Size([8, 5])
        >>> {name: tuple(p.shape) for name, p in layer.named_parameters()}
        {'weight': (5, 3), 'bias': (5,)}
    """

    __constants__ = ("in_features", "out_features")
    in_features: int
    out_features: int
    weight: Tensor

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        bias_shape = (out_features,) if bias else None
        _make_parameters(self, device, dtype, weight=(out_features, in_features), bias=bias_shape)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the parameters again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # uniform in +- 1/sqrt(in_features)
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear under the name that attention's output projection has in PyTorch."""


class Bilinear(Module):
    """``y[k] = x1^T A[k] x2 + b[k]``: weighted sums of the products of two inputs' elements.

    Args:
        in1_features: size of the last dimension of the first input.
        in2_features: size of the last dimension of the second input.
        out_features: size of the last dimension of the output.
        bias: whether to add ``b``.
        device: of the parameters.
        dtype: of the parameters.

    Shape:
        input1: ``(*, in1_features)``. Floating-point.
        input2: ``(*, in2_features)``.
        output: ``(*, out_features)``.
        weight: ``A``, ``(out_features, in1_features, in2_features)``; it and ``bias`` ``(out_features,)`` start uniform
            in ``+- 1 / sqrt(in1_features)``.

    Raises:
        ValueError: ``in1_features`` is not positive.
        RuntimeError: in a call, the shapes do not fit.

    Examples:
        >>> nn.Bilinear(3, 4, 5)(taeda.randn(8, 3), taeda.randn(8, 4)).shape
        taeda.Size([8, 5])
    """

    __constants__ = ("in1_features", "in2_features", "out_features")

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        bias_shape = (out_features,) if bias else None
        _make_parameters(self, device, dtype, weight=(out_features, in1_features, in2_features), bias=bias_shape)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the parameters again."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A :class:`Linear` that takes ``in_features`` from its first input, as after ``Flatten``, whose size is work to
    find.

    Args:
        out_features: size of the last dimension of the output.
        bias: whether to add ``b``.
        device: of the parameters.
        dtype: of the parameters.

    Examples:
        >>> model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.LazyLinear(10))
        >>> model(taeda.randn(2, 1, 28, 28)).shape
        taeda.Size([2, 10])
        >>> model[2]
        Linear(in_features=2704, out_features=10, bias=True)
    """

    cls_to_become = Linear

    weight: Any
    bias: Any

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input) -> None:
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            if input.shape[-1] != self.weight.shape[-1]:
                raise RuntimeError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to in_features from "
                    f"self.weight: {self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]
