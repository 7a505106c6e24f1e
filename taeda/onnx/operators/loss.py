"""ONNX's losses."""

from __future__ import annotations

import taeda.nn.functional as F

from ..._core import int64
from ..._typed import Tensor
from ..table import op


@op("NegativeLogLikelihoodLoss")
def nll_loss(
    x: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int | None = None, reduction: str = "mean"
) -> Tensor:
    target = target.to(int64)
    return F.nll_loss(
        x, target, weight, ignore_index=-(2**31) if ignore_index is None else ignore_index, reduction=reduction
    )


@op("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    x: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int | None = None, reduction: str = "mean"
) -> tuple[Tensor, Tensor]:
    """The loss and the logarithms of probabilities."""
    logarithms = F.log_softmax(x, 1)
    return nll_loss(logarithms, target, weight, ignore_index=ignore_index, reduction=reduction), logarithms
