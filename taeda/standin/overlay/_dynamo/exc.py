"""``torch._dynamo.exc``: the errors of a program that cannot be recorded."""

from taeda.export.dynamic_shapes import UserError

__all__ = ["UserError"]
