"""``torch.utils.flop_counter``: counting of operations, which is refused."""

from __future__ import annotations

from typing import Any

from taeda._refuse import refused_class

__all__ = ["FlopCounterMode", "register_flop_formula"]

FlopCounterMode = refused_class("torch.utils.flop_counter.FlopCounterMode", "operations are not counted yet")
flop_registry: dict = {}


def register_flop_formula(targets: Any, get_raw: bool = False) -> Any:
    """Accepted: nothing is counted."""
    return lambda formula: formula
