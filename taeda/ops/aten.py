"""Ops by the names of PyTorch's native library: ``taeda.ops.aten.relu.default(x)`` is ``taeda.relu(x)``."""

from __future__ import annotations

from typing import Any

from .table import OPS


class Overloads:
    """What PyTorch has several functions for, one per signature: here each of them is the same function."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.function

    def __repr__(self) -> str:
        return f"<overloads of {self.function!r}>"


def __getattr__(name: str) -> Overloads:
    if name not in OPS:
        raise AttributeError(f"taeda has no op named {name}")
    return Overloads(OPS[name])
