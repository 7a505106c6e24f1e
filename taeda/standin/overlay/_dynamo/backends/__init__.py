"""``torch._dynamo.backends``: how programs make backends for ``compile``."""
