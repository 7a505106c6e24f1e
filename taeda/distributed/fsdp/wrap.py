"""Policies of ``FullyShardedDataParallel``: which inner modules are units of their own."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from taeda.nn import Module, ModuleDict, ModuleList

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip

_wrapping: list[tuple[Callable, dict[str, Any]]] = []  # arguments of enable_wrap's contexts, innermost last


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Every module."""
    return True


def lambda_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable) -> bool:
    """Modules of which ``lambda_fn(module)`` is true."""
    return recurse or bool(lambda_fn(module))


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Iterable[type]
) -> bool:
    """Modules of the given classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = int(1e8),
    force_leaf_modules: set | None = None, exclude_wrap_modules: set | None = None,
) -> bool:  # fmt: skip
    """Modules with at least ``min_num_params`` elements that belong to no inner unit."""
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(force_leaf_modules or ()))
    return large and not isinstance(module, tuple(exclude_wrap_modules or (ModuleList, ModuleDict)))


class ModuleWrapPolicy:
    """Modules of the given classes."""

    def __init__(self, module_classes: Iterable[type]) -> None:
        self._module_classes = tuple(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, self._module_classes)

    def __repr__(self) -> str:
        return f"ModuleWrapPolicy({set(self._module_classes)})"


class CustomPolicy:
    """Modules of which ``lambda_fn(module)`` is true, or a dict of options, which are not taken."""

    def __init__(self, lambda_fn: Callable) -> None:
        self._lambda_fn = lambda_fn

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        found = True if recurse else self._lambda_fn(module)
        if isinstance(found, dict) and found:
            raise NotImplementedError("CustomPolicy: options for single modules are not there; give True or False")
        return bool(found)


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Callable, **wrapper_kwargs: Any) -> Iterator[None]:
    """Within the block, :func:`wrap` calls ``wrapper_cls(module, **wrapper_kwargs)``."""
    _wrapping.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _wrapping.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """``module`` in the wrapper of :func:`enable_wrap`, with further arguments; itself outside that."""
    if not _wrapping:
        return module
    wrapper, options = _wrapping[-1]
    return wrapper(module, **{**options, **wrap_overrides})


def modules_to_wrap(module: Module, policy: Callable, ignored: set[int], taken: set[int]) -> list[tuple[Module, str]]:
    """(parent, name) of the inner modules that are units, the innermost first. Fills ``taken`` with their
    parameters."""
    found: list[tuple[Module, str]] = []
    for name, child in list(module.named_children()):
        if id(child) in ignored:
            continue
        if policy(child, True, _free(child, taken)):
            found += modules_to_wrap(child, policy, ignored, taken)
        if policy(child, False, _free(child, taken)) and not isinstance(child, (ModuleList, ModuleDict)):
            taken.update(id(p) for p in child.parameters())
            found.append((module, name))
    return found


def _free(module: Module, taken: set[int]) -> int:
    return sum(p.numel() for p in module.parameters() if id(p) not in taken)


def as_policy(policy: Any) -> Callable:
    """A policy as a function ``(module, recurse, nonwrapped_numel)``."""
    if isinstance(policy, (ModuleWrapPolicy, CustomPolicy)):
        return policy

    @functools.wraps(policy)
    def called(module: Module, recurse: bool, numel: int) -> bool:
        return policy(module=module, recurse=recurse, nonwrapped_numel=numel)

    return called
