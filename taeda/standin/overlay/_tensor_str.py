"""``torch._tensor_str``: how tensors are printed."""

from __future__ import annotations

from typing import Any

from taeda import get_printoptions, printoptions, set_printoptions
from taeda._print import _body, tensor_repr

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]


def _str(self: Any, *, tensor_contents: Any = None) -> str:
    """Printed form of a tensor; ``tensor_contents`` stands for its numbers, where it is given."""
    return repr(self) if tensor_contents is None else tensor_repr(self, contents=tensor_contents)


_str_intern = _str


def _tensor_str(self: Any, indent: int) -> str:
    """The numbers of a tensor."""
    return _body(self, indent)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    return ", ".join([tensor_str, *suffixes]) + ")"


class _Options:
    """The options of printing as attributes: ``precision``, ``threshold``, ``edgeitems``, ``linewidth``,
    ``sci_mode``."""

    def __getattr__(self, name: str) -> Any:
        try:
            return get_printoptions()[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        set_printoptions(**{name: value})


PRINT_OPTS = _Options()
