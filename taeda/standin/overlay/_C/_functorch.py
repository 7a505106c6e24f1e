"""``torch._C._functorch``: what asks whether this runs inside a transformation."""

from __future__ import annotations

from typing import Any

from taeda import _core
from taeda.func.batched import Batched


def is_batchedtensor(x: Any) -> bool:
    """Whether ``x`` has a value per example of a vmap."""
    return isinstance(x, Batched)


def is_functorch_wrapped_tensor(x: Any) -> bool:
    """Whether ``x`` belongs to a transformation."""
    return isinstance(x, Batched)


def is_gradtrackingtensor(x: Any) -> bool:
    """False: derivatives need no wrapping."""
    return False


def maybe_get_level(x: Any) -> int:
    """The number of transformations that ``x`` is in."""
    return len(_core.mode_stack()) if isinstance(x, Batched) else -1
