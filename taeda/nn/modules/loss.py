"""Loss functions as modules.

Where a class takes ``reduction``, it is ``"mean"``, ``"sum"`` or ``"none"``; ``size_average`` and ``reduce`` are its
older spelling.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..._typed import Tensor
from .. import functional as F
from .._reduction import legacy_get_string
from .distance import PairwiseDistance
from .linear import Linear
from .module import Module

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "MSELoss", "MarginRankingLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss",
    "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip


class _Loss(Module):
    """A loss.

    Args:
        size_average: older form of ``reduction``.
        reduce: older form of ``reduction``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.

    Shape:
        input: ``(*)``, any shape. Floating-point.
        target: ``(*)``, the shape of the input.
        output: ``()``; with ``reduction="none"`` the shape of the input. Its dtype.
    """

    __constants__: tuple[str, ...] = ("reduction",)

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = legacy_get_string(size_average, reduce)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """A loss with weights.

    Args:
        weight: of each class, or of each element where there are no classes.
        size_average: older form of ``reduction``.
        reduce: older form of ``reduction``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.
    """

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """Absolute error: ``abs(input - target)`` per element, then the mean. Outliers pull less than in :class:`MSELoss`.

    Raises:
        RuntimeError: in a call, the sizes do not broadcast, or a mean is of integers.
        ValueError: in a call, ``reduction`` is not ``"none"``, ``"mean"`` or ``"sum"``.

    Examples:
        >>> nn.L1Loss()(taeda.tensor([1.0, 2.0]), taeda.tensor([0.0, 5.0]))
        tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """Squared error: ``(input - target) ** 2`` per element, then the mean.

    Both should have one shape: ``(N, 1)`` with ``(N,)`` broadcasts to ``(N, N)``, with a warning.

    Raises:
        RuntimeError: in a call, the sizes do not broadcast.
        NotImplementedError: in a call, both are of integers.
        ValueError: in a call, ``reduction`` is not ``"none"``, ``"mean"`` or ``"sum"``.

    Examples:
        >>> nn.MSELoss()(taeda.tensor([1.0, 2.0]), taeda.tensor([0.0, 5.0]))
        tensor(5.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """``d ** 2 / (2 * beta)`` where ``d < beta``, else ``d - beta / 2``, with ``d = abs(input - target)``.

    Smooth at 0, and outliers pull no more than in :class:`L1Loss`. Source: Girshick 2015, "Fast R-CNN".

    Args:
        size_average: older form of ``reduction``.
        reduce: older form of ``reduction``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.
        beta: where the two forms meet, at least 0.

    Raises:
        RuntimeError: in a call, ``beta`` is negative.

    Examples:
        >>> nn.SmoothL1Loss(reduction="none")(taeda.tensor([0.5, 4.0]), taeda.zeros(2))
        tensor([0.1250, 3.5000])
    """

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """``d ** 2 / 2`` where ``d <= delta``, else ``delta * (d - delta / 2)``, with ``d = abs(input - target)`` (Huber
    1964).

    It is ``delta`` times :class:`SmoothL1Loss`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.
        delta: where the two forms meet, above 0.

    Raises:
        TypeError: ``delta`` is no number.
        RuntimeError: in a call, ``delta`` is not positive.

    Examples:
        >>> nn.HuberLoss(reduction="none")(taeda.tensor([0.5, 4.0]), taeda.zeros(2))
        tensor([0.1250, 3.5000])
    """

    __constants__ = ("reduction", "delta")

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class CrossEntropyLoss(_WeightedLoss):
    """``-log(softmax(input)[target])``: how surprised the scores of the classes are by the right class.

    The input is any numbers, one for each class: no softmax before it. ``"mean"`` divides by the sum of the weights of
    the targets that count.

    Args:
        weight: ``(C,)``, a weight for each class, or None.
        size_average: older form of ``reduction``.
        ignore_index: a class number that does not count, as for padding.
        reduce: older form of ``reduction``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.
        label_smoothing: share of the target that is spread over all classes, in ``[0, 1]`` (Szegedy et al. 2015).

    Shape:
        input: ``(N, C)``, ``(C,)`` or ``(N, C, d1, ...)``. Floating-point.
        target: class numbers, ``(N,)``, ``()`` or ``(N, d1, ...)``, int64; or probabilities, of the shape and dtype of
            the input.
        output: ``()``; with ``reduction="none"`` the shape of the class numbers.

    Raises:
        IndexError: in a call, a class number is out of range.
        RuntimeError: in a call, shapes or dtypes do not fit.

    Examples:
        >>> scores = taeda.tensor([[3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        >>> target = taeda.tensor([0, 2])
        >>> nn.CrossEntropyLoss(reduction="none")(scores, target)  # 1.0986 = log(3): no idea
        tensor([0.0949, 1.0986])
        >>> nn.CrossEntropyLoss()(scores, target)
        tensor(0.5968)
    """

    __constants__ = ("ignore_index", "reduction", "label_smoothing")

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100,
        reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )  # fmt: skip


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer and the cross entropy of its output, which need not be held in memory as a whole.

    With a large vocabulary the scores ``(N, num_classes)`` are the largest tensor of a language model. ``options``
    computes them piece by piece.

    Args:
        in_features: size of each input row.
        num_classes: number of classes.
        out_features: further dimensions of the scores, after the classes.
        bias: whether the linear layer has one.
        device: of its parameters.
        dtype: of its parameters.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.
        weight: ``(num_classes,)``, a weight for each class, or None.
        ignore_index: a class number that does not count.
        label_smoothing: share of the target that is spread over all classes.
        options: a :class:`LinearCrossEntropyOptions`, or None to compute all at once.

    Shape:
        input: ``(N, in_features)`` or ``(in_features,)``. Floating-point.
        target: class numbers, ``(N, *out_features)``, int64, or probabilities of the shape of the scores.
        output: ``()``; with ``reduction="none"`` the shape of the class numbers.

    Raises:
        RuntimeError: ``weight`` has another shape, or ``label_smoothing`` is not in ``[0, 1]``.

    Examples:
        >>> loss = nn.LinearCrossEntropyLoss(8, 50_000, options=nn.LinearCrossEntropyOptions(batch_chunk_size=16))
        >>> loss(taeda.randn(64, 8), taeda.randint(50_000, (64,))).shape
        taeda.Size([])
    """

    __constants__ = ("num_classes", "out_features", "reduction", "ignore_index", "label_smoothing")

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
        device: Any = None, dtype: Any = None, reduction: str = "mean", weight: Tensor | None = None,
        ignore_index: int | None = None, label_smoothing: float = 0.0,
        options: F.LinearCrossEntropyOptions | None = None,
    ) -> None:  # fmt: skip
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, None, None, reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias, device, dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        bias = self.linear.bias
        shape = (self.num_classes, *self.out_features)
        return F.linear_cross_entropy(
            input, self.linear.weight.reshape((*shape, self.linear.in_features)), target,
            linear_bias=None if bias is None else bias.reshape(shape), weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class NLLLoss(_WeightedLoss):
    """``-weight[target] * input[target]`` of log-probabilities: :class:`CrossEntropyLoss` without its softmax.

    It goes after :class:`LogSoftmax`. Probabilities themselves give a wrong loss without an error.

    Args:
        weight: ``(C,)``, a weight for each class, or None.
        size_average: older form of ``reduction``.
        ignore_index: a class number that does not count.
        reduce: older form of ``reduction``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.

    Shape:
        input: ``(N, C)``, ``(C,)`` or ``(N, C, d1, ...)``. Floating-point.
        target: class numbers, ``(N,)``, ``()`` or ``(N, d1, ...)``, int64.
        output: ``()``; with ``reduction="none"`` the shape of the target.

    Raises:
        IndexError: in a call, a class number is out of range.

    Examples:
        >>> log_p = taeda.tensor([[0.9, 0.1], [0.5, 0.5]]).log()
        >>> nn.NLLLoss(reduction="none")(log_p, taeda.tensor([0, 1]))
        tensor([0.1054, 0.6931])
    """

    __constants__ = ("ignore_index", "reduction")

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100,
        reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """Older name of :class:`NLLLoss`, for images."""


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities: ``-(y * log(x) + (1 - y) * log(1 - x))``, each logarithm at least -100.

    :class:`BCEWithLogitsLoss` takes the numbers before the sigmoid and is exact where probabilities round to 0 or 1.

    Args:
        weight: a factor of each element, which broadcasts, or None.

    Raises:
        RuntimeError: in a call, an input is not in ``[0, 1]``, or the dtypes differ.
        ValueError: in a call, the shapes differ.

    Examples:
        >>> nn.BCELoss(reduction="none")(taeda.tensor([0.9, 0.9]), taeda.tensor([1.0, 0.0]))
        tensor([0.1054, 2.3026])
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of ``sigmoid(input)``, without overflow: ``max(x, 0) - x * y + log(1 + exp(-abs(x)))``.

    Args:
        weight: a factor of each element, which broadcasts, or None.
        size_average: older form of ``reduction``.
        reduce: older form of ``reduction``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.
        pos_weight: a factor of the term of ``y``, which broadcasts: above 1 for classes that are rare.

    Raises:
        ValueError: in a call, the shapes differ.
        RuntimeError: in a call, a target is no float.

    Examples:
        >>> scores, target = taeda.tensor([2.0, -200.0]), taeda.tensor([1.0, 1.0])
        >>> nn.BCEWithLogitsLoss(reduction="none")(scores, target)
        tensor([1.2693e-01, 2.0000e+02])
    """

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean", pos_weight: Tensor | None = None,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence from log-probabilities: ``y * (log(y) - x)``, 0 where ``y`` is 0.

    The divergence of distributions, a row each, is ``reduction="batchmean"``: the sum over ``N``. ``"mean"`` divides by
    the number of elements.

    Args:
        size_average: older form of ``reduction``.
        reduce: older form of ``reduction``.
        reduction: ``"batchmean"``, ``"mean"``, ``"sum"`` or ``"none"``.
        log_target: the target holds log-probabilities, too.

    Raises:
        RuntimeError: in a call, the sizes do not broadcast, or the input or the target is no float.
        ValueError: in a call, ``reduction`` is not ``"none"``, ``"mean"`` or ``"sum"``.

    Examples:
        >>> log_p = taeda.tensor([[0.5, 0.5]]).log()
        >>> nn.KLDivLoss(reduction="batchmean")(log_p, taeda.tensor([[0.9, 0.1]]))
        tensor(0.3681)
    """

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
        log_target: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of counts under a Poisson distribution: ``exp(input) - target * input``.

    Args:
        log_input: the input is the logarithm of the rate; else the rate, and the loss ``input - target * log(input +
            eps)``.
        full: add Stirling's approximation of ``log(target!)`` where the target is above 1.
        size_average: older form of ``reduction``.
        eps: keeps ``log(0)`` away.
        reduce: older form of ``reduction``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.

    Raises:
        RuntimeError: in a call, the sizes do not broadcast.
        ValueError: in a call, ``reduction`` is not ``"none"``, ``"mean"`` or ``"sum"``.

    Examples:
        >>> nn.PoissonNLLLoss()(taeda.tensor([0.0, 1.0]), taeda.tensor([2.0, 3.0]))
        tensor(0.3591)
    """

    __constants__ = ("log_input", "full", "eps", "reduction")

    def __init__(
        self, log_input: bool = True, full: bool = False, size_average: bool | None = None, eps: float = 1e-8,
        reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood under a normal distribution: ``(log(var) + (input - target) ** 2 / var) / 2``.

    A network that gives ``input`` and ``var`` learns how sure it may be (Nix & Weigend 1994).

    Args:
        full: add the constant ``log(2 * pi) / 2``.
        eps: least variance that is used.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.

    Shape:
        input: ``(N, *)``, the mean. Floating-point.
        target: ``(N, *)``.
        var: ``(N, *)``, or without its last dimension, or with size 1 there; or a number.
        output: ``()``; with ``reduction="none"`` the shape of the input.

    Raises:
        ValueError: in a call, ``var`` has another shape or is negative.

    Examples:
        >>> loss = nn.GaussianNLLLoss(reduction="none")
        >>> loss(taeda.zeros(2), taeda.tensor([0.0, 2.0]), taeda.tensor([1.0, 4.0]))
        tensor([0.0000, 1.1931])
    """

    __constants__ = ("full", "eps", "reduction")

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class _MarginLoss(_Loss):
    """A loss with a margin.

    Args:
        margin: a difference below it costs something.
        size_average: older form of ``reduction``.
        reduce: older form of ``reduction``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.
    """

    __constants__ = ("margin", "reduction")

    def __init__(
        self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class HingeEmbeddingLoss(_MarginLoss):
    """``x`` where ``y = 1``, ``max(0, margin - x)`` where ``y = -1``: distances small for pairs that belong together.

    Args:
        margin: a difference below it costs something.
        size_average: older form of ``reduction``.
        reduce: older form of ``reduction``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.

    Raises:
        RuntimeError: in a call, the sizes do not broadcast, or a mean is of integers.
        ValueError: in a call, ``reduction`` is not ``"none"``, ``"mean"`` or ``"sum"``.

    Examples:
        >>> nn.HingeEmbeddingLoss(reduction="none")(taeda.tensor([0.25, 0.25]), taeda.tensor([1, -1]))
        tensor([0.2500, 0.7500])
    """

    def __init__(
        self, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """``1 - c`` where ``y = 1``, ``max(0, c - margin)`` where ``y = -1``, with ``c`` the cosine of the angle of two
    vectors.

    Shape:
        input1: ``(N, D)`` or ``(D,)``. Floating-point.
        input2: the shape of ``input1``.
        target: ``(N,)`` or ``()``, of 1 and -1.
        output: ``()``; with ``reduction="none"`` the shape of the target.

    Raises:
        RuntimeError: in a call, the shapes do not fit.

    Examples:
        >>> a, b = taeda.tensor([[1.0, 0.0]]), taeda.tensor([[1.0, 1.0]])
        >>> nn.CosineEmbeddingLoss()(a, b, taeda.tensor([1]))
        tensor(0.2929)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_MarginLoss):
    """``max(0, -y * (x1 - x2) + margin)``: where ``y = 1`` the first should be ranked higher, where ``y = -1`` the
    second.

    Shape:
        input1: ``(*)``, any shape. Floating-point.
        input2: ``(*)``, the same.
        target: ``(*)``, of 1 and -1.
        output: ``()``; with ``reduction="none"`` the shape of the inputs.

    Raises:
        RuntimeError: in a call, the numbers of dimensions differ.

    Examples:
        >>> x1, x2 = taeda.tensor([3.0, 1.0]), taeda.tensor([1.0, 3.0])
        >>> nn.MarginRankingLoss(reduction="none")(x1, x2, taeda.tensor([1, 1]))
        tensor([0., 2.])
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-y * x))`` for targets ``y`` of 1 and -1: logistic regression.

    Raises:
        RuntimeError: in a call, the sizes do not broadcast.
        NotImplementedError: in a call, both are of integers.
        ValueError: in a call, ``reduction`` is not ``"none"``, ``"mean"`` or ``"sum"``.

    Examples:
        >>> nn.SoftMarginLoss(reduction="none")(taeda.tensor([2.0, 2.0]), taeda.tensor([1.0, -1.0]))
        tensor([0.1269, 2.1269])
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """The hinge loss of several classes: ``sum over i != y of max(0, margin - x[y] + x[i]) ** p / C``.

    Args:
        p: 1 or 2.
        margin: by how much the right class should be ahead.
        weight: ``(C,)``, a factor for each right class, or None.
        size_average: older form of ``reduction``.
        reduce: older form of ``reduction``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.

    Shape:
        input: ``(N, C)`` or ``(C,)``, scores. Floating-point.
        target: class numbers, ``(N,)`` or ``()``, int64.
        output: ``()``; with ``reduction="none"`` the shape of the target.

    Raises:
        ValueError: ``p`` is neither 1 nor 2, or ``weight`` is no vector.
        RuntimeError: in a call, the shapes do not fit.

    Examples:
        >>> nn.MultiMarginLoss()(taeda.tensor([[0.1, 0.2, 0.4, 0.8]]), taeda.tensor([3]))
        tensor(0.3250)
    """

    __constants__ = ("p", "margin", "reduction")

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: bool | None = None,
        reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class MultiLabelMarginLoss(_Loss):
    """The hinge loss of several right classes: ``sum over labels j, others i of max(0, 1 - (x[j] - x[i])) / C``.

    Shape:
        input: ``(N, C)`` or ``(C,)``, scores. Floating-point.
        target: ``(N, C)`` or ``(C,)``, int64: the labels of each sample, ended by the first -1.
        output: ``()``; with ``reduction="none"`` ``(N,)`` or ``()``.

    Raises:
        RuntimeError: in a call, the shapes do not fit.

    Examples:
        >>> scores = taeda.tensor([[0.1, 0.2, 0.4, 0.8]])
        >>> nn.MultiLabelMarginLoss()(scores, taeda.tensor([[3, 0, -1, 1]]))  # labels 3 and 0
        tensor(0.8500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """:class:`BCEWithLogitsLoss` of each class, and their mean: each sample may have several labels.

    Args:
        weight: ``(C,)``, a factor for each class, or None.

    Shape:
        input: ``(N, C)``, scores. Floating-point.
        target: ``(N, C)``, of 0 and 1.
        output: ``()``; with ``reduction="none"`` ``(N,)``.

    Raises:
        RuntimeError: in a call, the sizes do not broadcast.
        NotImplementedError: in a call, the input is of integers.
        ValueError: in a call, ``reduction`` is not ``"none"``, ``"mean"`` or ``"sum"``.

    Examples:
        >>> nn.MultiLabelSoftMarginLoss()(taeda.tensor([[2.0, -2.0, 0.0]]), taeda.tensor([[1.0, 0.0, 1.0]]))
        tensor(0.3157)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """``max(0, d(a, p) - d(a, n) + margin)``: an anchor should be nearer to the positive than to the negative.

    ``d`` is the ``p``-norm of the difference over the last dimension. Source: Balntas et al. 2016, "Learning local
    feature descriptors with triplets and shallow convolutional neural networks".

    Args:
        margin: by how much nearer, above 0.
        p: of the norm.
        eps: added to each difference.
        swap: use the distance of positive and negative where it is below that of anchor and negative.
        size_average: older form of ``reduction``.
        reduce: older form of ``reduction``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.

    Shape:
        anchor: ``(N, D)`` or ``(D,)``. Floating-point.
        positive: the same.
        negative: the same.
        output: ``()``; with ``reduction="none"`` ``(N,)`` or ``()``.

    Raises:
        ValueError: ``margin`` is not positive.
        RuntimeError: in a call, the numbers of dimensions differ.

    Examples:
        >>> anchor, positive, negative = taeda.tensor([[0.0], [1.0], [1.5]])
        >>> nn.TripletMarginLoss()(anchor, positive, negative)
        tensor(0.5000)
    """

    __constants__ = ("margin", "p", "eps", "swap", "reduction")

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
        size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class TripletMarginWithDistanceLoss(_Loss):
    """``max(0, d(a, p) - d(a, n) + margin)`` with a distance function of the caller's.

    Args:
        distance_function: ``d``, a function of two tensors; the Euclidean distance if None.
        margin: by how much nearer the positive should be, above 0.
        swap: use the distance of positive and negative where it is below that of anchor and negative.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what is made of the losses of the elements.

    Shape:
        anchor: as the distance function takes them, with it ``(N, D)`` or ``(D,)``. Floating-point.
        positive: the same.
        negative: the same.
        output: ``()``; with ``reduction="none"`` the shape of the distances.

    Raises:
        ValueError: ``margin`` is not positive.

    Examples:
        >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().amax(-1))
        >>> anchor, positive, negative = taeda.tensor([[0.0], [1.0], [1.5]])
        >>> loss(anchor, positive, negative)
        tensor(0.5000)
    """

    __constants__ = ("margin", "swap", "reduction")

    def __init__(
        self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
        swap: bool = False, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average=None, reduce=None, reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.distance_function = distance_function if distance_function is not None else PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class CTCLoss(_Loss):
    """Connectionist temporal classification: the loss of a label sequence that is not aligned with the input.

    ``-log`` of the sum of the probabilities of all alignments: paths of one class per step that give the labels when
    repetitions are merged, then blanks removed. Source: Graves et al. 2006, "Connectionist Temporal Classification:
    Labelling Unsegmented Sequence Data with Recurrent Neural Networks".

    Args:
        blank: the class that stands for no label.
        reduction: ``"mean"`` (each loss over its target's length, then over the batch), ``"sum"`` or ``"none"``.
        zero_infinity: losses of targets that do not fit count as 0, and have no gradient.

    Shape:
        log_probs: ``(T, N, C)`` or ``(T, C)``, log-probabilities, float32 or float64.
        targets: ``(N, S)``, or all labels one after another. Integers, none of them ``blank``.
        input_lengths: ``(N,)``, integers up to ``T``.
        target_lengths: ``(N,)``, integers up to ``S``.
        output: ``()``; with ``reduction="none"`` ``(N,)``.

    Raises:
        RuntimeError: in a call, shapes, lengths or dtypes do not fit.

    Examples:
        >>> log_p = taeda.full((2, 1, 3), 1 / 3).log()  # two steps, three classes
        >>> loss = nn.CTCLoss()
        >>> loss(log_p, taeda.tensor([[1]]), taeda.tensor([2]), taeda.tensor([1]))  # 11, 01, 10: -log(3 / 9)
        tensor(1.0986)
    """

    __constants__ = ("blank", "reduction")

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
