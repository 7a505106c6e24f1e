"""Prefixes of trees: what ``in_dims`` and ``out_dims`` are of arguments and results."""

from __future__ import annotations

from typing import Any

from ..utils._pytree import tree_leaves


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
        found.extend([prefix] * len(tree_leaves(x)))


def _describe(x: Any) -> str:
    if isinstance(x, (tuple, list)):
        inner = ", ".join(_describe(item) for item in x)
        return f"({inner})" if isinstance(x, tuple) else f"[{inner}]"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{key!r}: {_describe(item)}" for key, item in x.items()) + "}"
    return "*"
