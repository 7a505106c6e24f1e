"""An older name of the events of ``taeda.profiler``, which lies above this layer and is imported when something is
asked for."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if not name.startswith("__"):
        found = getattr(importlib.import_module("taeda.profiler.events"), name, None)
        if found is not None:
            return found
    raise AttributeError(f"module 'taeda.autograd.profiler_util' has no attribute '{name}'")
