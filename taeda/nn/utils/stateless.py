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


@contextmanager
def _reparametrize_module(
    module: Module, parameters_and_buffers: Mapping[str, Tensor], tie_weights: bool = False, strict: bool = False
):
    """Put other tensors in place of the module's while the block runs. In-place changes of buffers reach the
    mapping."""
    slots = _slots(module)
    given = dict(parameters_and_buffers)
    values = _untied(slots, given) if tie_weights else given
    if strict:
        errors = []
        unexpected = [k for k in values if k not in slots]
        missing = [k for k in slots if k not in values]
        if unexpected:
            errors.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
        if missing:
            errors.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
        if errors:
            raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(errors))
    before = []
    for name, value in values.items():
        if name not in slots:
            continue
        registry, key = slots[name]
        before.append((name, registry, key, registry[key]))
        registry[key] = value
    try:
        yield
    finally:
        for name, registry, key, value in reversed(before):
            if name in given and isinstance(parameters_and_buffers, dict):
                parameters_and_buffers[name] = registry[key]
            registry[key] = value


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
    module: Module, values: dict[str, Tensor], args: Any, kwargs: dict[str, Any] | None, tied: bool, strict: bool
) -> Any:
    """``module(*args, **kwargs)`` with ``values`` in place of its own parameters and buffers."""
    if isinstance(module, DataParallel):
        raise RuntimeError("The stateless API can't be used with nn.DataParallel module")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, values, tied, strict):
        return module(*args, **(kwargs or {}))
