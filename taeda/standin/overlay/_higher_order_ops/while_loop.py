"""``torch._higher_order_ops.while_loop``."""

from taeda.func.control_flow import while_loop

__all__ = ["while_loop"]
