"""``torch._inductor``: PyTorch's compiler, for programs that set its options."""

from . import config

__all__ = ["config"]
