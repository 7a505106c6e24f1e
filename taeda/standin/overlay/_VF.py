"""``torch._VF``: the functions of PyTorch's compiled part, also those that Python functions of the same name hide."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import taeda

    found = None if name.startswith("__") else getattr(taeda, name, None)
    if not callable(found):
        raise AttributeError(f"module 'torch._VF' has no attribute '{name}'", name=name)
    return found
