"""``torch._export``: programs compiled ahead of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda.export import export

from .._inductor import aoti_compile_and_package, aoti_load_package

__all__ = ["aot_compile", "aot_load"]


def aot_compile(
    f: Any, args: tuple, kwargs: dict[str, Any] | None = None, *, dynamic_shapes: Any = None,
    options: dict[str, Any] | None = None, **more: Any,
) -> str:  # fmt: skip
    """Write a module as a file that :func:`aot_load` reads; gives its path."""
    return aoti_compile_and_package(export(f, args, kwargs, dynamic_shapes=dynamic_shapes))


def aot_load(so_path: str, device: str) -> Callable:
    """The function in a file of :func:`aot_compile`."""
    return aoti_load_package(so_path)
