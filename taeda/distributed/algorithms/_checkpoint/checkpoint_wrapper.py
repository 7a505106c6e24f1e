"""Modules wrapped so that their forward pass runs again in the backward pass, under the names that they had."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

from taeda.nn import Module
from taeda.utils.checkpoint import checkpoint

from ...._typed import Tensor
from ...fsdp.wrap import as_policy, modules_to_wrap

__all__ = [
    "ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "apply_activation_checkpointing", "checkpoint_wrapper",
    "offload_wrapper",
]  # fmt: skip

_NAME = "_checkpoint_wrapped_module"
_PREFIX = f"{_NAME}."


class CheckpointImpl(Enum):
    """The kind of ``checkpoint``: see its ``use_reentrant``."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """Holds a module; names of parameters and of a state dict are those without it."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = module
        self.register_state_dict_post_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(_NAME), name)

    def __getitem__(self, key: Any) -> Any:
        inner: Any = self._checkpoint_wrapped_module
        return inner[key]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The parameters, by the names without the wrapper."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), parameter


def _without_prefix(module: Module, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    for name in [name for name in state if name.startswith(prefix + _PREFIX)]:
        state[prefix + name[len(prefix + _PREFIX) :]] = state.pop(name)


def _with_prefix(module: Module, state: dict[str, Any], prefix: str, *args: Any) -> None:
    for name in [name for name in state if name.startswith(prefix) and not name.startswith(prefix + _PREFIX)]:
        state[prefix + _PREFIX + name[len(prefix) :]] = state.pop(name)


class CheckpointWrapper(ActivationWrapper):
    """Runs the module again in the backward pass.

    Args:
        mod: the module.
        checkpoint_impl: which ``checkpoint``.
        checkpoint_fn: in its place, ``checkpoint_fn(module, *args, **kwargs)``.
        checkpoint_fn_kwargs: further arguments of either.
    """

    def __init__(
        self, mod: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable | None = None, **checkpoint_fn_kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            again = checkpoint_impl is CheckpointImpl.REENTRANT
            self.checkpoint_fn: Callable = partial(checkpoint, use_reentrant=again, **checkpoint_fn_kwargs)
        else:
            self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """Run the module's forward pass."""
        return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)


def checkpoint_wrapper(
    module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable | None = None, **checkpoint_fn_kwargs: Any,
) -> CheckpointWrapper:  # fmt: skip
    """``module`` in a :class:`CheckpointWrapper`."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def offload_wrapper(module: Module) -> Module:
    """Refused: activations are on the CPU.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("offload_wrapper: activations lie on the CPU already; use checkpoint_wrapper")


def apply_activation_checkpointing(
    model: Module, checkpoint_wrapper_fn: Callable = checkpoint_wrapper, check_fn: Callable = lambda _: True,
    auto_wrap_policy: Callable | None = None,
) -> None:  # fmt: skip
    """Wrap the modules inside ``model`` for which ``check_fn(module)`` is true, or that ``auto_wrap_policy`` names.

    Args:
        model: changed in place; it is not wrapped itself.
        checkpoint_wrapper_fn: gives the wrapped module.
        check_fn: asked for each module.
        auto_wrap_policy: one of ``taeda.distributed.fsdp.wrap``, in its place.
    """

    def chosen(module: Module, recurse: bool, numel: int) -> bool:
        return recurse or (not isinstance(module, ActivationWrapper) and bool(check_fn(module)))

    policy = chosen if auto_wrap_policy is None else as_policy(auto_wrap_policy)
    for parent, name in modules_to_wrap(model, policy, set(), set()):
        setattr(parent, name, checkpoint_wrapper_fn(getattr(parent, name)))
