"""Functions that lower modules of this package need from higher ones, which set them here when they are imported."""

from __future__ import annotations

from collections.abc import Callable

#: ``compile``: what runs a function. ``save``, ``script``: the public functions. ``recorder``: the trace of this
#: thread. ``python_type``, ``enum_type``, ``class_type``: the types that objects of Python mean (``classes.py``).
HOOKS: dict[str, Callable] = {}
