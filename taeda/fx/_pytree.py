"""``tree_flatten_spec``: the leaves of arguments by the nesting that they had when the Graph was traced."""

from __future__ import annotations

from typing import Any

from taeda._core import Size
from taeda.utils._pytree import tree_map

__all__ = ["tree_flatten_spec"]


def tree_flatten_spec(pytree: Any, spec: Any, *_: Any) -> list[Any]:
    """The leaves of ``pytree``, which must nest as ``spec`` says; a Size is a tuple.

    Raises:
        ValueError: it nests in another way.
    """
    pytree = tree_map(lambda x: tuple(x) if isinstance(x, Size) else x, pytree)
    if spec.type in (list, tuple):  # the code lists arguments that were a tuple
        return [leaf for inner, x in zip(spec.children_specs, pytree, strict=True) for leaf in inner.flatten_up_to(x)]
    return spec.flatten_up_to(pytree)
