"""A context of PyTorch's tracer in which indexing by tensors is recorded."""

from __future__ import annotations

from contextlib import nullcontext


class TransformGetItemToIndex(nullcontext):
    """Nothing: indices may be tensors anyway."""
