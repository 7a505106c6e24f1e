"""The names by which programs import context parallelism from PyTorch's module."""

from ...context_parallel import context_parallel, context_parallel_unshard, set_rotate_method

__all__ = ["context_parallel", "context_parallel_unshard", "set_rotate_method"]
