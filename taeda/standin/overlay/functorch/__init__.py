"""``functorch``, the package that ``torch.func`` was before: the same functions, and modules taken apart by
position."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda import nn
from taeda.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)
from taeda.fx.experimental.proxy_tensor import make_fx

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad",
    "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers",
    "make_fx", "vjp", "vmap",
]  # fmt: skip


class FunctionalModuleWithBuffers(nn.Module):
    """A module as a function of its parameters, its buffers and its inputs: ``f(params, buffers, *inputs)``."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        # Out of the reach of parameters(): what is called with comes from outside.
        self.__dict__["stateless_model"] = model
        self.param_names = tuple(name for name, _ in model.named_parameters())
        self.buffer_names = tuple(name for name, _ in model.named_buffers())

    def forward(self, params: Sequence, buffers: Sequence, *args: Any, **kwargs: Any) -> Any:
        state = _named("parameters", self.param_names, params) | _named("buffers", self.buffer_names, buffers)
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers as a function of its parameters and its inputs: ``f(params, *inputs)``."""

    def forward(self, params: Sequence, *args: Any, **kwargs: Any) -> Any:
        return super().forward(params, (), *args, **kwargs)


def _named(what: str, names: tuple, values: Sequence) -> dict[str, Any]:
    if len(names) != len(values):
        raise ValueError(f"expected {len(names)} {what}, those of the module in their order, got {len(values)}")
    return dict(zip(names, values, strict=True))


def _state(model: nn.Module, disable_autograd_tracking: bool) -> tuple[tuple, tuple]:
    params = tuple(p.detach() if disable_autograd_tracking else p for p in model.parameters())
    return params, tuple(model.buffers())


def make_functional(
    model: nn.Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[taeda.Tensor, ...]]:
    """``f, params`` with ``f(params, *inputs) == model(*inputs)``; of a copy of ``model``.

    Raises:
        RuntimeError: the module has buffers.
    """
    if next(model.buffers(), None) is not None:
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    model = copy.deepcopy(model)
    return FunctionalModule(model), _state(model, disable_autograd_tracking)[0]


def make_functional_with_buffers(
    model: nn.Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[taeda.Tensor, ...], tuple[taeda.Tensor, ...]]:
    """``f, params, buffers`` with ``f(params, buffers, *inputs) == model(*inputs)``; of a copy of ``model``."""
    model = copy.deepcopy(model)
    return FunctionalModuleWithBuffers(model), *_state(model, disable_autograd_tracking)


def combine_state_for_ensemble(
    models: Sequence[nn.Module],
) -> tuple[Callable, tuple[taeda.Tensor, ...], tuple[taeda.Tensor, ...]]:
    """``f, params, buffers`` of several modules of one class, stacked, for ``vmap(f, in_dims=(0, 0, None))``."""
    params, buffers = stack_module_state(models)
    return make_functional_with_buffers(models[0])[0], tuple(params.values()), tuple(buffers.values())
