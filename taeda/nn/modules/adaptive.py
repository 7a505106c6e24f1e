"""Adaptive softmax for large vocabularies."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from ..._typed import Tensor
from ...ops.joining import cat
from ...ops.reduction import argmax
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Softmax for very many classes: rare ones are in clusters, each with a smaller projection, computed where needed.

    The head decides between the frequent classes and the clusters; a cluster's classes have ``P(cluster) * P(class in
    it)``. The result has ``output``, each target's log-probability, and ``loss``, minus their mean. Source: Grave et
    al. 2016, "Efficient softmax approximation for GPUs".

    Args:
        in_features: size of the input.
        n_classes: number of classes, the most frequent first.
        cutoffs: the class numbers at which clusters begin, rising, below ``n_classes``.
        div_value: each cluster's projection is that many times smaller than the one before.
        head_bias: whether the head has a bias.
        device: of the parameters.
        dtype: of the parameters.

    Shape:
        input: ``(N, in_features)`` or ``(in_features,)``. Floating-point.
        target: ``(N,)`` or ``()``, class numbers.
        output: ``(N,)`` or ``()``; ``loss`` is ``()``.

    Raises:
        ValueError: the cutoffs do not rise or are out of range.
        RuntimeError: in a call, the shapes do not fit, or a class number is out of range.

    Examples:
        >>> layer = nn.AdaptiveLogSoftmaxWithLoss(16, 1000, cutoffs=[20, 200])
        >>> output, loss = layer(taeda.randn(8, 16), taeda.randint(1000, (8,)))
        >>> output.shape, loss.shape
        (taeda.Size([8]), taeda.Size([]))
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(set(cutoffs))
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                f"value is between 1 and n_classes-1, got {cutoffs} with n_classes={n_classes}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        where = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **where)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(itertools.pairwise(self.cutoffs)):
            hidden = int(in_features // (div_value ** (i + 1)))
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **where), Linear(hidden, high - low, bias=False, **where)
                )
            )

    def reset_parameters(self) -> None:
        """Initialise the parameters again."""
        self.head.reset_parameters()
        for i2h, h2o in self.tail:
            i2h.reset_parameters()
            h2o.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """The log-probability of each target, ``output``, and their negative mean, ``loss``."""
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        batched = target_.dim() == 1
        if batched and input_.size(0) != target_.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input_.dim() != target_.dim() + 1:
            raise RuntimeError(
                f"{target_.dim()}D target tensor expects {target_.dim() + 1}D input tensors, but found inputs with "
                f"size {input_.size()}"
            )
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        used = 0
        output = input.new_zeros(target.size(0))
        chosen = target.new_empty(target.size(0))
        for i, (low, high) in enumerate(itertools.pairwise([0, *self.cutoffs])):
            mask = (target >= low) & (target < high)
            rows = mask.nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            used += rows.numel()
            if i == 0:
                chosen.index_copy_(0, rows, target[mask])
                continue
            log_prob = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
            chosen.index_fill_(0, rows, self.shortlist_size + i - 1)
            output = output.index_copy(0, rows, log_prob.gather(1, (target[mask] - low).unsqueeze(1)).squeeze(1))
        if used != target.size(0):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, chosen.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            parts.append(F.log_softmax(cluster(input), dim=1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities ``(N, n_classes)`` of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row; rows that the head decides do without the clusters."""
        head = self.head(input)
        output = argmax(head, dim=1)
        rare = output >= self.shortlist_size
        if not rare.any():
            return output
        output[rare] = argmax(self._get_full_log_prob(input[rare], head[rare]), dim=1)
        return output
