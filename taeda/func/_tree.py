"""Nested tuples, lists and dicts as flat lists of leaves and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def flatten(x: Any) -> tuple[list, Any]:
    """The leaves of ``x`` in order, and its structure."""
    leaves: list = []
    return leaves, _walk(x, leaves)


def _walk(x: Any, leaves: list) -> Any:
    if isinstance(x, (tuple, list)):
        return type(x), [_walk(item, leaves) for item in x]
    if isinstance(x, dict):
        return type(x), [(key, _walk(item, leaves)) for key, item in x.items()]
    leaves.append(x)
    return None


def unflatten(leaves: Any, structure: Any) -> Any:
    """A nested structure with ``leaves`` in place of its own."""
    return _build(iter(leaves), structure)


def _build(leaves: Any, structure: Any) -> Any:
    if structure is None:
        return next(leaves)
    kind, children = structure
    if issubclass(kind, dict):
        items = [(key, _build(leaves, child)) for key, child in children]
        made = kind() if kind.__init__ is dict.__init__ or kind.__name__ == "OrderedDict" else dict()
        made.update(items)
        return made
    items = [_build(leaves, child) for child in children]
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def map_leaves(function: Callable, x: Any) -> Any:
    """``x`` with ``function`` applied to every leaf."""
    leaves, structure = flatten(x)
    return unflatten([function(leaf) for leaf in leaves], structure)


def broadcast(prefix: Any, x: Any, what: str) -> list:
    """One item per leaf of ``x`` from ``prefix``, which has the structure of ``x`` as far as it goes.

    Raises:
        ValueError: the structures differ.
    """
    found: list = []
    _spread(prefix, x, found, what)
    return found


def _spread(prefix: Any, x: Any, found: list, what: str) -> None:
    if isinstance(x, (tuple, list)) and isinstance(prefix, (tuple, list)):
        if len(prefix) != len(x) or isinstance(prefix, tuple) != isinstance(x, tuple):
            raise ValueError(f"{what}: its structure {_describe(prefix)} does not fit {_describe(x)}")
        for a, b in zip(prefix, x, strict=True):
            _spread(a, b, found, what)
    elif isinstance(x, dict) and isinstance(prefix, dict):
        if prefix.keys() != x.keys():
            raise ValueError(f"{what}: keys {list(prefix)} do not fit {list(x)}")
        for key in x:
            _spread(prefix[key], x[key], found, what)
    elif isinstance(prefix, (tuple, list, dict)):
        raise ValueError(f"{what}: its structure {_describe(prefix)} does not fit {_describe(x)}")
    else:
        found.extend([prefix] * len(flatten(x)[0]))


def _describe(x: Any) -> str:
    if isinstance(x, (tuple, list)):
        inner = ", ".join(_describe(item) for item in x)
        return f"({inner})" if isinstance(x, tuple) else f"[{inner}]"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{key!r}: {_describe(item)}" for key, item in x.items()) + "}"
    return "*"
