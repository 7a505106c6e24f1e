"""What the modules of ``taeda.backends`` share: a context manager that sets a module's switches and puts them back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def flags_of(module: str, **values: Any) -> Iterator[None]:
    """Within the block, the attributes of ``module`` named by ``values`` have those values (None leaves one alone)."""
    target = sys.modules[module]
    before = {name: getattr(target, name) for name in values}
    for name, value in values.items():
        if value is not None:
            setattr(target, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(target, name, value)
