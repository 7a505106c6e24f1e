"""``Variable``, which is Tensor."""

from .._core import Tensor as Variable

__all__ = ["Variable"]
