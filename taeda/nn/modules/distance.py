"""Distances between the rows of two tensors."""

from __future__ import annotations

from ..._typed import Tensor
from .. import functional as F
from .module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The ``p``-norm of ``x1 - x2 + eps`` over the last dimension.

    Args:
        p: of the norm.
        eps: added to each difference, so that there is a gradient where both are equal.
        keepdim: keep the last dimension with size 1.

    Shape:
        x1: ``(N, D)`` or ``(D,)``. Floating-point.
        x2: of a shape that broadcasts with it.
        output: ``(N,)`` or ``()``; with ``keepdim`` ``(N, 1)`` or ``(1,)``.

    Raises:
        RuntimeError: in a call, the sizes do not broadcast.

    Examples:
        >>> nn.PairwiseDistance()(taeda.tensor([[0.0, 0.0]]), taeda.tensor([[3.0, 4.0]]))
        tensor([5.0000])
    """

    __constants__ = ("norm", "eps", "keepdim")

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle of two vectors: ``x1 . x2 / (max(|x1|, eps) * max(|x2|, eps))`` along ``dim``.

    Args:
        dim: the dimension of the vectors.
        eps: least length that is divided by.

    Shape:
        x1: ``(*, D, *)``, with ``D`` at ``dim``. Floating-point.
        x2: of a shape that broadcasts with it.
        output: the shape to which they broadcast, without ``dim``.

    Raises:
        RuntimeError: in a call, the sizes do not broadcast, or both are of integers.

    Examples:
        >>> nn.CosineSimilarity(dim=0)(taeda.tensor([1.0, 0.0]), taeda.tensor([1.0, 1.0]))
        tensor(0.7071)
    """

    __constants__ = ("dim", "eps")

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
