"""``taeda.onnx.symbolic_helper``: functions of the user's own that write ops, as ``dynamo=False`` takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["parse_args", "registered", "translations"]

#: The registered functions by the names of ops, ``"aten::erfinv"``.
registered: dict[str, Callable] = {}


def parse_args(*kinds: Any) -> Any:
    """Decorator that gives the function back: arguments come as the numbers, lists and tensors that they are."""
    return lambda fn: fn


class _Graph:
    """The writer as such functions know it: domains are in names, and the kinds of attributes in theirs."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def op(self, opname: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """A node; its result, or a tuple of ``outputs`` of them."""
        domain, _, kind = opname.rpartition("::")
        domain = "" if domain in ("onnx", "ai.onnx") else domain
        named = {k[:-2] if k[-2:] in ("_i", "_f", "_s", "_t") else k: v for k, v in attributes.items()}
        return self._writer.op(kind, *inputs, outputs=outputs, domain=domain, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)


def translations() -> dict[Any, Callable]:
    """The functions that were registered as translations, by the functions of taeda that they are for.

    Returns:
        A dict.

    Raises:
        ValueError: there is no op of a name.
    """
    from taeda.aten import DECLARED
    from taeda.ops.table import OPS

    found: dict[Any, Callable] = {}
    for name, function in registered.items():
        space, _, label = name.partition("::")
        own = DECLARED.get(name)
        target = OPS.get(label) if space == "aten" else None if own is None else own._overload
        if target is None:
            raise ValueError(f"onnx.export: register_custom_op_symbolic was given {name!r}, and there is no such op")
        found[target] = _translation(function)
    return found


def _translation(function: Callable) -> Callable:
    def translate(g: Any, *args: Any, **kwargs: Any) -> Any:
        return function(_Graph(g), *args, **kwargs)

    return translate
