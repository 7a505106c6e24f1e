"""``torch._higher_order_ops``: control flow as functions."""

from taeda.func.control_flow import associative_scan, cond, map, scan, while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
