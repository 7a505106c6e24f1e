"""The arguments of a call by name, from the signature of the called function."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from taeda._core import Composite, Method, Op, Tensor
from taeda.aten import OpOverload, OpOverloadPacket
from taeda.nn import Module
from taeda.ops.registry import is_in_place
from taeda.ops.table import asked_for, trait

__all__ = [
    "ArgsKwargsPair", "check_for_mutable_operation", "create_type_hint", "get_signature_for_torch_op",
    "normalize_function", "normalize_module", "type_matches",
]  # fmt: skip


class ArgsKwargsPair(NamedTuple):
    """Positional arguments, and arguments by name."""

    args: tuple
    kwargs: dict[str, Any]


#: Python's operators that write, and what methods of a tensor change besides elements.
_WRITING = {operator.setitem, operator.delitem} | {
    f for name, f in vars(operator).items() if name[0] == "i" and {name[1:], f"{name[1:]}_"} & vars(operator).keys()
}
_CHANGING = "backward register_hook register_post_accumulate_grad_hook retain_grad".split()


def method(name: str) -> Any:
    """The function that is the method ``name`` of a tensor; the name, where a tensor has no such method."""
    if name.startswith("__"):
        return getattr(operator, name.strip("_"), name)
    found = vars(Tensor).get(name)
    return found.function if isinstance(found, Method) else name


def writes(target: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> bool:
    """Whether a call of a function changes its arguments."""
    kwargs = kwargs or {}
    known: Any = None
    if isinstance(target, (OpOverload, OpOverloadPacket)):
        native = target if isinstance(target, OpOverload) else target.default
        if native.mutates:
            return True
        known, target = native.signature, native.overloadpacket.function
    if isinstance(target, str):
        return is_in_place(target) or target in _CHANGING
    if (target in _WRITING and args) or kwargs.get("out") is not None or writes_in_place(target, args, kwargs):
        return True
    rule = trait(target, "writes")
    if rule is not None:
        names = _names(target) if known is None else [a.name for a in known.arguments]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        return bool(rule(*(given.get(name) for name in asked_for(rule))))
    return isinstance(target, (Op, Composite)) and is_in_place(target)


def writes_in_place(target: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether this is the call of an activation with ``inplace=True``."""
    if not isinstance(target, Composite) or "inplace" not in _names(target):
        return bool(kwargs.get("inplace"))
    place = _names(target).index("inplace")
    return bool(kwargs.get("inplace", args[place] if place < len(args) else False))


@functools.cache
def _names(function: Callable) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def draws(target: Any) -> bool | str:
    """Whether a function draws random numbers; ``"noise"`` if a layer draws them for its computation."""
    if isinstance(target, OpOverloadPacket):
        target = target.default
    if isinstance(target, OpOverload):
        return target.draws
    return trait(target, "random", False) if isinstance(target, (Op, Composite, FunctionType)) else False


def check_for_mutable_operation(target: Callable, args: tuple, kwargs: dict[str, Any]) -> None:
    """Refuse a function that changes its arguments.

    Args:
        target: the function.
        args: its positional arguments.
        kwargs: its arguments by name.
    Raises:
        RuntimeError: it does.
    """
    if writes(target, args, kwargs):
        raise RuntimeError(
            f"Tried to trace mutable operation {getattr(target, '__name__', target)}. FX only supports functional "
            "code, so operations that mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


def get_signature_for_torch_op(op: Callable, return_schemas: bool = False) -> Any:
    """The signatures of a function of the framework, None where it has none.

    A function that takes ``out`` has two, as in PyTorch: one without it, and one with it.
    """
    try:
        found = [inspect.signature(op)]
    except (TypeError, ValueError):
        return (None, None) if return_schemas else None
    if isinstance(op, (Op, Composite)) and "out" in found[0].parameters:
        found.insert(0, found[0].replace(parameters=[p for p in found[0].parameters.values() if p.name != "out"]))
    return (found, None) if return_schemas else found


def create_type_hint(x: Any) -> Any:
    """The type of a list or tuple of types as an annotation: ``[int, int]`` is ``list[int]``."""
    if isinstance(x, (list, tuple)):
        first = create_type_hint(x[0]) if x else Any
        same = all(create_type_hint(item) == first for item in x)
        kind = first if same else Any
        return list[kind] if isinstance(x, list) else tuple[kind, ...]  # type: ignore[valid-type]
    return x


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of one type fits an annotation."""
    if signature_type is argument_type or signature_type is Any or signature_type is inspect.Parameter.empty:
        return True
    options = getattr(signature_type, "__args__", ())
    if getattr(signature_type, "__origin__", None) is not None and type(None) in options:
        return any(type_matches(option, argument_type) for option in options)
    if isinstance(signature_type, type) and isinstance(argument_type, type):
        return issubclass(argument_type, signature_type) or (signature_type is float and argument_type is int)
    return False


def normalize_function(
    target: Callable, args: tuple, kwargs: dict[str, Any] | None = None, arg_types: tuple | None = None,
    kwarg_types: dict[str, Any] | None = None, normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:  # fmt: skip
    """The arguments of a call of ``target`` by name, defaults filled in.

    Args:
        target: the function.
        args: its positional arguments.
        kwargs: its arguments by name.
        arg_types: accepted.
        kwarg_types: accepted.
        normalize_to_only_use_kwargs: all by name; else those that are positional in the signature stay so.
    Returns:
        None if the signature is not known or the arguments do not fit it.
    """
    if getattr(target, "__module__", None) == "_operator":
        return None
    for signature in get_signature_for_torch_op(target) or ():
        bound = _bind(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
        if bound is not None:
            return bound
    return None


def normalize_module(
    root: Module, target: str, args: tuple, kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:  # fmt: skip
    """:func:`normalize_function` for a call of a submodule."""
    try:
        module = root.get_submodule(target)
    except AttributeError:
        raise RuntimeError(f"Tried to normalize node with target {target} but root did not have that target!") from None
    return _bind(inspect.signature(module.forward), args, kwargs or {}, normalize_to_only_use_kwargs)


def _bind(signature: inspect.Signature, args: tuple, kwargs: dict, named_only: bool) -> ArgsKwargsPair | None:
    kinds = {p.kind for p in signature.parameters.values()}
    if named_only and (inspect.Parameter.VAR_POSITIONAL in kinds or inspect.Parameter.VAR_KEYWORD in kinds):
        return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    if named_only:
        return ArgsKwargsPair((), dict(bound.arguments))
    given = len(args)
    positional, named = [], {}
    for i, (name, value) in enumerate(bound.arguments.items()):
        if i < given:
            positional.append(value)
        else:
            named[name] = value
    return ArgsKwargsPair(tuple(positional), named)
