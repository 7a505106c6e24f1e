"""``torch._custom_ops``: the older names of ``torch.library``."""

from taeda.library import custom_op, impl
from taeda.library import register_fake as impl_abstract

__all__ = ["custom_op", "impl", "impl_abstract"]
