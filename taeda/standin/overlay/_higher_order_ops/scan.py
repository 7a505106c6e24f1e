"""``torch._higher_order_ops.scan``."""

from taeda.func.control_flow import scan

__all__ = ["scan"]
