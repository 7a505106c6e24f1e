from taeda import Tensor as Tensor

__all__ = ["Tensor"]
