"""A module called with other parameters than its own."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import contextmanager
from typing import Any

from ..._core import Size
from ..._typed import Tensor
from ..modules.module import Module
from ..parallel import DataParallel

__all__ = ["functional_call"]

#: What :func:`_swap` gives and takes where a module has no such attribute.
_MISSING = object()


def _slots(module: Module) -> dict[str, tuple[dict, str]]:
    """The place of each named parameter and buffer: a registry and a key."""
    found = {}
    for path, sub in module.named_modules(remove_duplicate=False):
        for registry in (sub._parameters, sub._buffers):
            for name, value in registry.items():
                if value is not None:
                    found[f"{path}.{name}" if path else name] = (registry, name)
    return found


def _untied(slots: dict[str, tuple[dict, str]], given: dict[str, Tensor]) -> dict[str, Tensor]:
    """``given`` with a value for every name that shares its tensor with a given one."""
    names: dict[int, list[str]] = {}
    for name, (registry, key) in slots.items():
        names.setdefault(id(registry[key]), []).append(name)
    result = dict(given)
    for tied in names.values():
        values = {id(given[name]): given[name] for name in tied if name in given}
        if len(tied) > 1 and len(values) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(tied)}, which are tied. Consider using "
                "tie_weights=False"
            )
        if values:
            value = next(iter(values.values()))
            result.update((name, value) for name in tied)
    return result


def _owner(module: Module, path: str) -> Module:
    """The module at ``path`` below ``module``."""
    for name in filter(None, path.split(".")):
        below = getattr(module, name, None)
        if below is None and not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if not isinstance(below, Module):
            raise TypeError(f"submodule `{name}`: {below!r} is not an instance of {Size.__module__}.nn.Module")
        module = below
    return module


def _swap(module: Module, name: str, value: Any) -> Any:
    """Put ``value`` in place of a tensor of the module, and give what was there; ``_MISSING`` stands for nothing."""
    for registry in (module._parameters, module._buffers):
        if name in registry:
            before = registry[name]
            if value is _MISSING:
                del registry[name]
            else:
                registry[name] = value
            return before
    before = getattr(module, name, _MISSING)
    if before is not _MISSING and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before!r} is not an instance of {Size.__module__}.Tensor")
    if value is not _MISSING:
        setattr(module, name, value)
    elif before is not _MISSING:
        delattr(module, name)
    return before


@contextmanager
def _reparametrize_module(
    module: Module, parameters_and_buffers: Mapping[str, Tensor], tie_weights: bool = False, strict: bool = False
):
    """Put other tensors in place of the module's while the block runs. The mapping then has what the block left."""
    slots = _slots(module) if tie_weights or strict else {}
    given = dict(parameters_and_buffers)
    values = _untied(slots, given) if tie_weights else given
    if strict:
        errors = []
        unexpected = sorted(k for k in values if k not in slots)
        missing = sorted(k for k in slots if k not in values)
        if unexpected:
            errors.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
        if missing:
            errors.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
        if errors:
            raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(errors))
    before: list[tuple[str, Module, str, Any]] = []
    try:
        for name, value in values.items():
            path, _, key = name.rpartition(".")
            owner = _owner(module, path)
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"{value!r} is not an instance of {Size.__module__}.Tensor")
            before.append((name, owner, key, _swap(owner, key, value)))
        yield
    finally:
        for name, owner, key, value in reversed(before):
            after = _swap(owner, key, value)
            if name in given and after is not _MISSING and isinstance(parameters_and_buffers, dict):
                parameters_and_buffers[name] = after


def functional_call(
    module: Module, parameters_and_buffers: dict[str, Tensor], args: Any = None, kwargs: dict[str, Any] | None = None,
    *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """``module(*args, **kwargs)`` with ``parameters_and_buffers`` in place of its own of those names: the older form of
    :func:`taeda.func.functional_call`.

    Args:
        module: what to call.
        parameters_and_buffers: tensors by dotted name.
        args: positional arguments, a tuple, or the only one.
        kwargs: keyword arguments.
        tie_weights: names that share a tensor in the module share the given one.
        strict: every parameter and buffer must be given, and nothing else.
    Returns:
        What the module gives.
    Raises:
        RuntimeError: the module is a DataParallel, or names do not fit with ``strict``.
    """
    package = Size.__module__
    warnings.warn(
        f"`{package}.nn.utils.stateless.functional_call` is deprecated. Use `{package}.func.functional_call` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return call_with(module, parameters_and_buffers, args, kwargs, tie_weights, strict)


def call_with(
    module: Module, values: Mapping[str, Tensor], args: Any, kwargs: dict[str, Any] | None, tied: bool, strict: bool
) -> Any:
    """``module(*args, **kwargs)`` with ``values`` in place of its own parameters and buffers."""
    if isinstance(module, DataParallel):
        raise RuntimeError("The stateless API can't be used with nn.DataParallel module")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, values, tied, strict):
        return module(*args, **(kwargs or {}))
