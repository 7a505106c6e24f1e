"""``functorch.experimental.control_flow``."""

from taeda.func.control_flow import cond, map, while_loop

__all__ = ["cond", "map", "while_loop"]
