"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from ..._typed import Tensor
from ...ops.creation import empty
from ...ops.elementary import sigmoid, tanh
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .attention import MultiheadAttention
from .module import Module

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid",
    "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


def _inplace(module, separator: str = ", ") -> str:
    return f"{separator}inplace=True" if module.inplace else ""


class _Elementwise(Module):
    """A function of each element.

    Shape:
        input: ``(*)``, any shape. Floating-point.
        output: ``(*)``, the shape and dtype of the input.
    """


class Threshold(_Elementwise):
    """``x`` where it is above ``threshold``, else ``value``.

    Args:
        threshold: the bound.
        value: what replaces elements that are not above it.
        inplace: overwrite the input.

    Raises:
        NotImplementedError: in a call, the input is of booleans.

    Examples:
        >>> nn.Threshold(0.1, 20.0)(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([20., 20.,  2.])
    """

    __constants__ = ("threshold", "value", "inplace")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}{_inplace(self)}"


class _Inplace(_Elementwise):
    """An activation without parameters.

    Args:
        inplace: overwrite the input.
    """

    __constants__ = ("inplace",)
    _shows_inplace = True  # two do not, as in PyTorch

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return _inplace(self, "") if self._shows_inplace else ""


class ReLU(_Inplace):
    """``max(0, x)``: the rectified linear unit, the usual first choice.

    Raises:
        NotImplementedError: in a call, the input is of booleans.

    Examples:
        >>> nn.ReLU()(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class SiLU(_Inplace):
    """``x * sigmoid(x)``, also called swish (Hendrycks & Gimpel 2016; Ramachandran et al. 2017): a smooth ReLU.

    Raises:
        NotImplementedError: in a call, the input is of integers or booleans.

    Examples:
        >>> nn.SiLU()(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.2689,  0.0000,  1.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_Inplace):
    """``x * tanh(log(1 + exp(x)))`` (Misra 2019, "Mish: A Self Regularized Non-Monotonic Activation Function").

    Raises:
        NotImplementedError: in a call, the input is of integers or booleans.

    Examples:
        >>> nn.Mish()(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.3034,  0.0000,  1.9440])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class SELU(_Inplace):
    """``scale * (max(0, x) + min(0, alpha * (exp(x) - 1)))`` with ``scale = 1.0507`` and ``alpha = 1.6733``.

    With these constants the mean and variance of activations go to 0 and 1 from layer to layer, if weights are drawn
    with variance ``1 / fan_in``. Source: Klambauer et al. 2017, "Self-Normalizing Neural Networks". See
    :class:`AlphaDropout`.

    Raises:
        NotImplementedError: in a call, the input is of integers or booleans.

    Examples:
        >>> nn.SELU()(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.1113,  0.0000,  2.1014])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class Hardsigmoid(_Inplace):
    """``min(max(0, x / 6 + 1 / 2), 1)``: the sigmoid from three straight lines.

    Raises:
        NotImplementedError: in a call, the input is of integers or booleans.

    Examples:
        >>> nn.Hardsigmoid()(taeda.tensor([-4.0, 0.0, 1.5, 4.0]))
        tensor([0.0000, 0.5000, 0.7500, 1.0000])
    """

    _shows_inplace = False

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Hardswish(_Inplace):
    """``x * min(max(0, x / 6 + 1 / 2), 1)``: :class:`SiLU` from straight lines (Howard et al. 2019, "Searching for
    MobileNetV3").

    Raises:
        NotImplementedError: in a call, the input is of integers or booleans.

    Examples:
        >>> nn.Hardswish()(taeda.tensor([-4.0, 0.0, 1.5, 4.0]))
        tensor([-0.0000, 0.0000, 1.1250, 4.0000])
    """

    _shows_inplace = False

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class RReLU(_Elementwise):
    """``x`` where positive, else ``a * x`` with a random slope ``a``.

    In training each element draws ``a`` uniformly from ``[lower, upper]``; in evaluation ``a = (lower + upper) / 2``.
    Source: Xu et al. 2015, "Empirical Evaluation of Rectified Activations in Convolutional Network".

    Args:
        lower: least slope.
        upper: largest slope.
        inplace: overwrite the input.

    Raises:
        RuntimeError: in a call, ``lower`` is above ``upper``.
        NotImplementedError: in a call, the input is of integers or booleans.

    Examples:
        >>> layer = nn.RReLU(0.1, 0.3).eval()
        >>> layer(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.2000,  0.0000,  2.0000])
    """

    __constants__ = ("lower", "upper", "inplace")

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}{_inplace(self)}"


class Hardtanh(_Elementwise):
    """``min(max(min_val, x), max_val)``.

    Args:
        min_val: lower bound.
        max_val: upper bound.
        inplace: overwrite the input.
        min_value: older name of ``min_val``.
        max_value: older name of ``max_val``.

    Raises:
        AssertionError: ``max_val`` is not above ``min_val``.

    Examples:
        >>> nn.Hardtanh()(taeda.tensor([-2.0, 0.5, 2.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """

    __constants__ = ("min_val", "max_val", "inplace")

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be larger than min_val ({self.min_val})")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}{_inplace(self)}"


class ReLU6(Hardtanh):
    """``min(max(0, x), 6)``: a ReLU with a bound, as in networks for low precision (Howard et al. 2017).

    Args:
        inplace: overwrite the input.

    Examples:
        >>> nn.ReLU6()(taeda.tensor([-1.0, 2.0, 8.0]))
        tensor([0., 2., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return _inplace(self, "")


class Sigmoid(_Elementwise):
    """``1 / (1 + exp(-x))``: any number to a probability. For a loss, give :class:`BCEWithLogitsLoss` the numbers
    before it.

    Examples:
        >>> nn.Sigmoid()(taeda.tensor([-2.0, 0.0, 2.0]))
        tensor([0.1192, 0.5000, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        return sigmoid(input)


class Tanh(_Elementwise):
    """``(exp(x) - exp(-x)) / (exp(x) + exp(-x))``: the hyperbolic tangent, between -1 and 1.

    Examples:
        >>> nn.Tanh()(taeda.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.7616,  0.0000,  0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return tanh(input)


class LogSigmoid(_Elementwise):
    """``log(1 / (1 + exp(-x)))``, exact where the sigmoid is too small for its dtype.

    Raises:
        NotImplementedError: in a call, the input is of integers or booleans.

    Examples:
        >>> nn.LogSigmoid()(taeda.tensor([-200.0, 0.0, 2.0]))
        tensor([-2.0000e+02, -6.9315e-01, -1.2693e-01])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(_Elementwise):
    """``x / (1 + abs(x))``: between -1 and 1, as tanh, but slower to saturate.

    Examples:
        >>> nn.Softsign()(taeda.tensor([-1.0, 0.0, 3.0]))
        tensor([-0.5000,  0.0000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(_Elementwise):
    """``x - tanh(x)``.

    Examples:
        >>> nn.Tanhshrink()(taeda.tensor([-1.0, 0.0, 3.0]))
        tensor([-0.2384,  0.0000,  2.0049])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _Alpha(_Elementwise):
    """An activation that is exponential for negative numbers.

    Args:
        alpha: minus its limit.
        inplace: overwrite the input.
    """

    __constants__ = ("alpha", "inplace")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}{_inplace(self)}"


class ELU(_Alpha):
    """``x`` where positive, else ``alpha * (exp(x) - 1)``.

    Negative outputs bring the mean of activations nearer to 0. Source: Clevert et al. 2015, "Fast and Accurate Deep
    Network Learning by Exponential Linear Units (ELUs)".

    Raises:
        NotImplementedError: in a call, the input is of integers or booleans.

    Examples:
        >>> nn.ELU()(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.6321,  0.0000,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Alpha):
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``: :class:`ELU` with a slope of 1 at 0 for every ``alpha``
    (Barron 2017).

    Raises:
        NotImplementedError: in a call, the input is of integers or booleans.
        RuntimeError: in a call, ``alpha`` is 0.

    Examples:
        >>> nn.CELU(alpha=2.0)(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.7869,  0.0000,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class GLU(Module):
    """``a * sigmoid(b)`` of the halves ``a`` and ``b`` of the input: the gated linear unit.

    Source: Dauphin et al. 2016, "Language Modeling with Gated Convolutional Networks".

    Args:
        dim: the dimension that is halved.

    Shape:
        input: ``(*, n, *)`` with an even ``n`` at ``dim``. Floating-point.
        output: ``(*, n / 2, *)``, of the same dtype.

    Raises:
        RuntimeError: the size at ``dim`` is odd.

    Examples:
        >>> nn.GLU()(taeda.tensor([[1.0, 2.0, 0.0, 100.0]]))
        tensor([[0.5000, 2.0000]])
    """

    __constants__ = ("dim",)
    _shown = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class GELU(_Elementwise):
    """``x * P(X <= x)`` for a standard normal ``X``: ``x * (1 + erf(x / sqrt(2))) / 2``. The activation of most
    transformers.

    Source: Hendrycks & Gimpel 2016, "Gaussian Error Linear Units (GELUs)".

    Args:
        approximate: ``"none"``, or ``"tanh"`` for ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``.

    Raises:
        RuntimeError: in a call, ``approximate`` is something else.

    Examples:
        >>> nn.GELU()(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.1587,  0.0000,  1.9545])
    """

    __constants__ = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class _Shrink(_Elementwise):
    """An activation that is 0 around 0.

    Args:
        lambd: how far.
    """

    __constants__ = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Hardshrink(_Shrink):
    """``x`` where ``abs(x) > lambd``, else 0.

    Raises:
        NotImplementedError: in a call, the input is of integers or booleans.

    Examples:
        >>> nn.Hardshrink()(taeda.tensor([-1.0, 0.3, 2.0]))
        tensor([-1.,  0.,  2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """``x`` moved towards 0 by ``lambd``, and 0 where ``abs(x) <= lambd``.

    Raises:
        NotImplementedError: in a call, the input is of integers or booleans.
        RuntimeError: in a call, ``lambd`` is below 0.

    Examples:
        >>> nn.Softshrink()(taeda.tensor([-1.0, 0.3, 2.0]))
        tensor([-0.5000,  0.0000,  1.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class LeakyReLU(_Elementwise):
    """``x`` where positive, else ``negative_slope * x``, so that negative inputs keep a gradient.

    Args:
        negative_slope: the slope below 0.
        inplace: overwrite the input.

    Raises:
        NotImplementedError: in a call, the input is of integers or booleans.

    Examples:
        >>> nn.LeakyReLU(0.1)(taeda.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.1000,  0.0000,  2.0000])
    """

    __constants__ = ("inplace", "negative_slope")

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}{_inplace(self)}"


class Softplus(_Elementwise):
    """``log(1 + exp(beta * x)) / beta``, and ``x`` itself where ``beta * x > threshold``. A smooth ReLU, always
    positive.

    Args:
        beta: how sharp the bend at 0 is.
        threshold: where the function is a straight line.

    Raises:
        NotImplementedError: in a call, the input is of integers or booleans.

    Examples:
        >>> nn.Softplus()(taeda.tensor([-1.0, 0.0, 30.0]))
        tensor([ 0.3133,  0.6931, 30.0000])
    """

    __constants__ = ("beta", "threshold")
    _shown = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class PReLU(Module):
    """``x`` where positive, else ``a * x`` with an ``a`` that is learnt, one for all channels or one for each.

    Source: He et al. 2015, "Delving Deep into Rectifiers". Weight decay on ``a`` pulls it to 0: give it a group
    without.

    Args:
        num_parameters: 1, or ``C``.
        init: first value of ``a``.
        device: of the parameter.
        dtype: of the parameter.

    Shape:
        input: ``(N, C, *)``, any shape where there is one ``a``. Floating-point, of the parameter's dtype.
        output: the shape and dtype of the input.
        weight: ``(num_parameters,)``.

    Raises:
        RuntimeError: in a call, ``num_parameters`` is neither 1 nor ``C``, or the dtypes differ.

    Examples:
        >>> layer = nn.PReLU()
        >>> layer(taeda.tensor([-1.0, 0.0, 2.0])).detach()
        tensor([-0.2500,  0.0000,  2.0000])
    """

    __constants__ = ("num_parameters",)
    _shown = ("num_parameters",)

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """``a`` as it was first."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


class _Softmax(Module):
    """Softmax and its kin.

    Args:
        dim: the dimension whose elements add up to 1. Without it 0 or 1 is chosen, with a warning.

    Shape:
        input: ``(*)``, any shape. Floating-point.
        output: ``(*)``, the shape and dtype of the input.
    """

    __constants__ = ("dim",)
    _shown = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)


class Softmin(_Softmax):
    """``exp(-x) / sum(exp(-x))`` along ``dim``: the smallest element gets the largest share.

    Raises:
        NotImplementedError: in a call, the input is of integers.
        IndexError: in a call, the input has no dimension ``dim``.

    Examples:
        >>> nn.Softmin(dim=1)(taeda.tensor([[1.0, 2.0, 3.0]]))
        tensor([[0.6652, 0.2447, 0.0900]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_Softmax):
    """``exp(x) / sum(exp(x))`` along ``dim``: any numbers to probabilities, which add up to 1.

    Do not use it before :class:`CrossEntropyLoss`, which takes the numbers as they are.

    Raises:
        NotImplementedError: in a call, the input is of integers or booleans.
        IndexError: in a call, the input has no dimension ``dim``.

    Examples:
        >>> scores = taeda.tensor([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]])
        >>> nn.Softmax(dim=1)(scores)
        tensor([[0.0900, 0.2447, 0.6652],
                [0.3333, 0.3333, 0.3333]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_Softmax):
    """``log(exp(x) / sum(exp(x)))`` along ``dim``, exact where a probability is too small for its dtype.

    Raises:
        NotImplementedError: in a call, the input is of integers or booleans.
        IndexError: in a call, the input has no dimension ``dim``.

    Examples:
        >>> nn.LogSoftmax(dim=1)(taeda.tensor([[0.0, 0.0, 200.0]]))
        tensor([[-200., -200.,    0.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of an image, at each pixel.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``. Floating-point.
        output: the shape and dtype of the input.

    Raises:
        ValueError: in a call, the input has other dimensions.

    Examples:
        >>> x = taeda.randn(2, 5, 4, 4)
        >>> nn.Softmax2d()(x).sum(1).shape  # the channels of a pixel add up to 1
        taeda.Size([2, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)
