"""``torch._higher_order_ops.map``."""

from taeda.func.control_flow import map

__all__ = ["map"]
