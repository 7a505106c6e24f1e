"""Nested state dicts as flat ones, and back."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from ..._typed import Tensor

Path = tuple


def _is_tree(value: Any) -> bool:
    """A dict, or a list that holds tensors somewhere; a list of plain values is a value."""
    if isinstance(value, (list, tuple)):
        return any(isinstance(x, Tensor) or _is_tree(x) or isinstance(x, dict) for x in value)
    return isinstance(value, dict) and bool(value)


def leaves(state: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """(path, value) pairs of the values that are no dicts and no lists of dicts."""
    items = state.items() if isinstance(state, dict) else enumerate(state)
    for key, value in items:
        if not isinstance(key, (str, int)):
            raise TypeError(f"checkpoint: expected names or numbers as keys, got {key!r}")
        if _is_tree(value):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def flat_name(path: Path) -> str:
    """The path joined by dots."""
    return ".".join(map(str, path))


def assign(state: Any, path: Path, value: Any) -> None:
    """Put ``value`` at ``path``; a tuple on the way is refused, as it cannot be changed."""
    for key in path[:-1]:
        state = state[key]
    if not isinstance(state, (MutableMapping, list)):
        raise TypeError(f"checkpoint: cannot put a loaded value into a {type(state).__name__} at {flat_name(path)}")
    state[path[-1]] = value
