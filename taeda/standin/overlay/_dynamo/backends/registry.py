"""``torch._dynamo.backends.registry``."""

from taeda.compiler import list_backends, register_backend

__all__ = ["list_backends", "register_backend"]
