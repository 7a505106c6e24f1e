"""``torch._tensor``: where PyTorch defines Tensor."""

from taeda import Tensor

__all__ = ["Tensor"]
