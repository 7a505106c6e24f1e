"""Names inside ``torch.nn`` that packages use."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import taeda
from taeda import nn
from taeda._refuse import refuse, refused_function
from taeda.autograd import Function
from taeda.nn.modules import _hooks

_ONE = "batches are split among several devices, and there is one, the CPU"


def __getattr__(name: str) -> Any:
    """``_global_is_full_backward_hook``: None while there is no backward hook on all modules; else they are full
    ones."""
    if name != "_global_is_full_backward_hook":
        raise AttributeError(name)
    return _hooks.backward_hooks_are_full if _hooks.backward_hooks else None


def _has_any_global_hook() -> bool:
    """Whether there are hooks on all modules."""
    return bool(
        _hooks.backward_pre_hooks or _hooks.backward_hooks or _hooks.forward_pre_hooks or _hooks.forward_hooks
    )  # fmt: skip


_MISSING = object()

#: The types of scripted modules that instances of a class share: none here.
concrete_type_store = SimpleNamespace(type_store={})


def swap_tensor(module: nn.Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Put ``tensor`` in the place of a parameter, buffer or attribute as it is, and give what was there."""
    if "." in name or not name:
        raise KeyError(f"swap_tensor: expected the name of an attribute of the module itself, got {name!r}")
    for table in (module._parameters, module._buffers):
        if name in table:
            before = table[name]
            if tensor is _MISSING:
                del table[name]
            else:
                table[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before


def _of_several(name: str) -> Any:
    def forward(ctx: Any, *args: Any) -> Any:
        refuse(f"torch.nn.parallel._functions.{name}", _ONE)

    return type(name, (Function,), {"forward": staticmethod(forward), "__doc__": f"Refused: {_ONE}."})


Broadcast, Gather, ReduceAddCoalesced, Scatter = map(
    _of_several, ("Broadcast", "Gather", "ReduceAddCoalesced", "Scatter")
)
broadcast, broadcast_coalesced, gather, reduce_add, reduce_add_coalesced, scatter = (
    refused_function(f"torch.nn.parallel.comm.{name}", _ONE)
    for name in "broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter".split()
)


def _none_or_dtype(input: Any) -> Any:
    """The dtype of a tensor, or None."""
    return None if input is None else input.dtype


def factory_kwargs(kwargs: dict | None) -> dict:
    """``device``, ``dtype`` and ``memory_format`` among ``kwargs`` and in its ``factory_kwargs``, for functions that
    make tensors.

    Raises:
        TypeError: there are others, or one is given twice.
    """
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    if kwargs.keys() - (simple | {"factory_kwargs"}):
        raise TypeError(f"unexpected kwargs {kwargs.keys() - (simple | {'factory_kwargs'})}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for key in simple & kwargs.keys():
        if key in found:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        found[key] = kwargs[key]
    return found


class FloatFunctional(nn.Module):
    """Operations as methods of a module, whose results go through ``activation_post_process``."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x: Any) -> Any:
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Any, y: Any) -> Any:
        """``x + y``."""
        return self.activation_post_process(taeda.add(x, y))

    def mul(self, x: Any, y: Any) -> Any:
        """``x * y``."""
        return self.activation_post_process(taeda.mul(x, y))

    def cat(self, x: Any, dim: int = 0) -> Any:
        """Tensors joined along ``dim``."""
        return self.activation_post_process(taeda.cat(x, dim=dim))

    def add_relu(self, x: Any, y: Any) -> Any:
        """``relu(x + y)``."""
        return self.activation_post_process(taeda.relu(taeda.add(x, y)))

    def matmul(self, x: Any, y: Any) -> Any:
        """``x @ y``."""
        return self.activation_post_process(taeda.matmul(x, y))

    def add_scalar(self, x: Any, y: float) -> Any:
        """``x + y`` for a number."""
        return taeda.add(x, y)

    def mul_scalar(self, x: Any, y: float) -> Any:
        """``x * y`` for a number."""
        return taeda.mul(x, y)


FXFloatFunctional = FloatFunctional
