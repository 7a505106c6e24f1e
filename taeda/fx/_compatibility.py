"""``compatibility``: PyTorch's marks of how stable an interface is. They change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def compatibility(is_backward_compatible: bool) -> Callable[[Any], Any]:
    """A decorator that gives its argument back."""
    return lambda obj: obj
