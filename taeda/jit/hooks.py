"""What lower modules of this package need of higher ones, which put it here when they are imported."""

from __future__ import annotations

from collections.abc import Callable

#: ``compile``: what runs a function. ``save``, ``script``: the public functions. ``recorder``: the trace of this
#: thread.
HOOKS: dict[str, Callable] = {}
