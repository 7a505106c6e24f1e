"""Lists and dicts that cannot be changed, for the arguments of a Node.

A change in place would bypass the Node, which keeps count of its users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from taeda.utils import _pytree

__all__ = ["immutable_dict", "immutable_list"]


def _refusal(kind: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises TypeError: arguments of a Node are changed by assigning to ``node.args`` or ``node.kwargs``."""
        raise TypeError(
            f"'{type(self).__name__}' object does not support mutation. If you are changing the arguments of a Node, "
            f"make a plain {kind} of them, change that, and assign it to node.args or node.kwargs"
        )

    return refuse


class immutable_list(list):
    """A list that refuses every change. It can be hashed if its items can."""

    append = clear = extend = insert = pop = remove = reverse = sort = _refusal("list")
    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refusal("list")

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict):
    """A dict that refuses every change. It can be hashed if its items can."""

    clear = pop = popitem = setdefault = update = _refusal("dict")
    __delitem__ = __ior__ = __setitem__ = _refusal("dict")

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)


def _dict_of(values: Iterable, keys: list) -> immutable_dict:
    return immutable_dict(zip(keys, values, strict=True))


_pytree.register_pytree_node(immutable_list, lambda x: (list(x), None), lambda values, _: immutable_list(values))
_pytree.register_pytree_node(immutable_dict, lambda x: (list(x.values()), list(x)), _dict_of)
