"""``tree_flatten_spec``: the leaves of arguments by the nesting that they had when the Graph was traced."""

from __future__ import annotations

from typing import Any

__all__ = ["tree_flatten_spec"]


def tree_flatten_spec(pytree: Any, spec: Any, *_: Any) -> list[Any]:
    """The leaves of ``pytree``, which must nest as ``spec`` says.

    Raises:
        ValueError: it nests in another way.
    """
    if spec.type in (list, tuple):  # the code lists arguments that were a tuple
        return [leaf for inner, x in zip(spec.children_specs, pytree, strict=True) for leaf in inner.flatten_up_to(x)]
    return spec.flatten_up_to(pytree)
