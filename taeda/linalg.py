"""Linear algebra under the names of ``torch.linalg``."""

from .ops.reduction import vector_norm

__all__ = ["vector_norm"]
