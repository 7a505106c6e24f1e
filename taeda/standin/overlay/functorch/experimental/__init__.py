"""``functorch.experimental``: control flow, ``chunk_vmap``, and names that :mod:`taeda.func` has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda.func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_, vmap
from taeda.func.vmap import _arguments

from . import control_flow

__all__ = [
    "chunk_vmap", "control_flow", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_",
]  # fmt: skip


def chunk_vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable:
    """``vmap`` in ``chunks`` parts of the batch, one after the other."""

    def mapped(*args: Any, **kwargs: Any) -> Any:
        size = _arguments(func, in_dims, args, kwargs)[3]
        return vmap(func, in_dims, out_dims, randomness, chunk_size=max(-(-size // chunks), 1))(*args, **kwargs)

    return mapped
