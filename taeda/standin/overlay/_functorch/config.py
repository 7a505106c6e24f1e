"""Settings of ``torch._functorch``: any may be set, and none has an effect."""

from __future__ import annotations

import sys
from typing import Any

from taeda.graph.options import Patch

donated_buffer = functionalize_rng_ops = strict_autograd_cache = enable_autograd_cache = False
activation_memory_budget = 1.0


def patch(arg: Any = None, value: Any = None, **changes: Any) -> Patch:
    """Settings for a block, or for calls of a function: ``patch(name=value)``, ``patch("name", value)``,
    ``patch({...})``."""
    return Patch(vars(sys.modules[__name__]), arg, value, changes)
