"""``taeda.onnx.symbolic_helper``: decorators of functions that would write ONNX."""

from __future__ import annotations

from typing import Any


def parse_args(*kinds: Any) -> Any:
    """Decorator that gives the function back."""
    return lambda fn: fn
