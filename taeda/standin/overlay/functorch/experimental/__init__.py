"""``functorch.experimental``: control flow, and ``functionalize``."""

from __future__ import annotations

from taeda.func import functionalize

from . import control_flow

__all__ = ["control_flow", "functionalize"]
