"""Module hooks: registration, and the call of a module that has some."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable
from typing import Any

from taeda.autograd import Function

from ..._typed import Tensor

#: Hooks on every module, by kind; see the ``register_module_*`` functions.
forward_hooks: dict[int, Callable] = {}
forward_pre_hooks: dict[int, Callable] = {}
backward_hooks: dict[int, Callable] = {}
backward_hooks_are_full: bool | None = None
backward_pre_hooks: dict[int, Callable] = {}
forward_hooks_with_kwargs: dict[int, bool] = {}
forward_hooks_always: dict[int, bool] = {}
parameter_registration_hooks: dict[int, Callable] = {}
buffer_registration_hooks: dict[int, Callable] = {}
module_registration_hooks: dict[int, Callable] = {}

_ids = itertools.count()


class RemovableHandle:
    """The result of registering a hook: ``remove()`` removes the hook; also a context manager."""

    def __init__(self, hooks_dict: dict, *, extra_dict: dict | list[dict] | None = None):
        self.id = next(_ids)
        self.hooks = hooks_dict
        self.also = [extra_dict] if isinstance(extra_dict, dict) else extra_dict or []

    def remove(self) -> None:
        """Remove the hook. Nothing happens if it was removed before."""
        for table in (self.hooks, *self.also):
            table.pop(self.id, None)

    def hooks_dict_ref(self) -> dict:
        """The table that holds the hook."""
        return self.hooks

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc) -> None:
        self.remove()


def add(hooks: dict, hook: Callable, prepend: bool = False, **flags: dict) -> RemovableHandle:
    """Put ``hook`` into the table ``hooks`` and mark it in the tables of ``flags``."""
    handle = RemovableHandle(hooks, extra_dict=[*flags.values()])
    hooks[handle.id] = hook
    for table in flags.values():
        table[handle.id] = True
    if prepend:
        before = [(k, v) for k, v in hooks.items() if k != handle.id]
        hooks.clear()
        hooks[handle.id] = hook
        hooks.update(before)
    return handle


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, args)`` before every module's ``forward``."""
    return add(forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after every module's ``forward``."""
    flags: dict[str, Any] = {}
    if with_kwargs:
        flags["kwargs"] = forward_hooks_with_kwargs
    if always_call:
        flags["always"] = forward_hooks_always
    return add(forward_hooks, hook, **flags)


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before every module's backward."""
    return add(backward_pre_hooks, hook)


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` when the last node of every module has run (deprecated).

    Raises:
        RuntimeError: there are hooks of :func:`register_module_full_backward_hook`.
    """
    return add(_global_backward_hooks(full=False), hook)


def _global_backward_hooks(full: bool) -> dict[int, Callable]:
    """The table of hooks on the backward of every module. It holds one kind, full ones or others."""
    global backward_hooks_are_full
    if backward_hooks and backward_hooks_are_full is not full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    backward_hooks_are_full = full
    return backward_hooks


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` after every module's backward."""
    return add(_global_backward_hooks(full=True), hook)


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` whenever a parameter is registered; a result replaces it."""
    return add(parameter_registration_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` whenever a buffer is registered; a result replaces it."""
    return add(buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, name, child)`` whenever a child is registered; a result replaces it."""
    return add(module_registration_hooks, hook)


class BackwardHookFunction(Function):
    """Identity on several tensors whose backward sees all gradients at once: ``seen`` may replace them.

    ``zeros``: it sees zeros where there is no gradient, rather than None.
    """

    @staticmethod
    def forward(ctx, seen, zeros, *tensors):
        ctx.seen = seen
        ctx.set_materialize_grads(zeros)
        made = tuple(t.view_as(t) for t in tensors)
        ctx.mark_non_differentiable(*[m for m, t in zip(made, tensors, strict=True) if not t.requires_grad])
        return made

    @staticmethod
    def backward(ctx, *grads):
        return (None, None, *ctx.seen(grads))


class _Backward:
    """The backward hooks of one call of a module."""

    def __init__(self, module, hooks: list[Callable], pre_hooks: list[Callable]):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.n_in = self.n_out = 0
        self.at_in: list[int] = []
        self.at_out: list[int] = []
        self.grad_output: tuple | None = None

    def _wrap(self, seen, values: tuple, zeros: bool) -> tuple[tuple, list[int]]:
        at = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
        chosen = [values[i] for i in at]
        if not at or not any(t.requires_grad for t in chosen):
            return values, []
        wrapped = BackwardHookFunction.apply(seen, zeros, *chosen)
        wrapped = wrapped if isinstance(wrapped, tuple) else (wrapped,)
        result = list(values)
        for i, t in zip(at, wrapped, strict=True):
            result[i] = t
        return tuple(result), at

    def inputs(self, args: tuple) -> tuple:
        self.n_in = len(args)
        args, self.at_in = self._wrap(self._input_grads, args, zeros=True)
        return args

    def outputs(self, result):
        single = not isinstance(result, tuple)
        values = (result,) if single else result
        self.n_out = len(values)
        values, self.at_out = self._wrap(self._output_grads, tuple(values), zeros=False)
        if single:
            return values[0]
        return type(result)(*values) if hasattr(result, "_fields") else values

    @staticmethod
    def _spread(grads: tuple, at: list[int], n: int) -> tuple:
        full = [None] * n
        for i, g in zip(at, grads, strict=True):
            full[i] = g
        return tuple(full)

    def _output_grads(self, grads: tuple) -> tuple:
        full = self._spread(grads, self.at_out, self.n_out)
        for hook in self.pre_hooks:
            changed = hook(self.module, full)
            if changed is not None:
                full = self._checked(changed, full, "grad_output")
        self.grad_output = full
        if self.hooks and not self.at_in:  # no input wants a gradient: nothing later to wait for
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                "inputs require gradients.",
                stacklevel=2,
            )
            for hook in self.hooks:
                changed = hook(self.module, (None,) * self.n_in, full)
                if changed is not None and not (isinstance(changed, tuple) and all(g is None for g in changed)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None "
                        "for all gradients."
                    )
            self.grad_output = None
        return tuple(full[i] for i in self.at_out)

    def _input_grads(self, grads: tuple) -> tuple:
        if self.grad_output is None:  # it came to the input by no output, as in a second derivative
            return grads
        full = self._spread(grads, self.at_in, self.n_in)
        for hook in self.hooks:
            changed = hook(self.module, full, self.grad_output)
            if changed is not None:
                full = self._checked(changed, full, "grad_input")
        self.grad_output = None
        return tuple(full[i] for i in self.at_in)

    @staticmethod
    def _checked(changed, full: tuple, what: str) -> tuple:
        changed = tuple(changed) if isinstance(changed, (tuple, list)) else (changed,)
        if len(changed) != len(full):
            raise RuntimeError(
                f"Backward hook returned an invalid number of {what}, got {len(changed)}, but expected {len(full)}"
            )
        return changed


def call_hooked(module, args: tuple, kwargs: dict):
    """``module(*args, **kwargs)`` with every hook, in PyTorch's order: global ones first, then the module's own."""
    called: set[tuple] = set()
    try:
        return _call(module, args, kwargs, called)
    except Exception:
        _always(module, args, kwargs, called)
        raise


def _pre(module, args, kwargs):
    with_kwargs = module._forward_pre_hooks_with_kwargs
    own = [(i, h) for i, h in module._forward_pre_hooks.items()]
    for key, hook in [*((None, h) for h in forward_pre_hooks.values()), *own]:
        if key in with_kwargs:
            result = hook(module, args, kwargs)
            if result is not None:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
        else:
            result = hook(module, args)
            if result is not None:
                args = result if isinstance(result, tuple) else (result,)
    return args, kwargs


def _post_hooks(module):
    """(table, id, hook, with_kwargs) of forward hooks, global ones first."""
    for i, hook in list(forward_hooks.items()):
        yield forward_hooks_always, i, hook, i in forward_hooks_with_kwargs
    for i, hook in list(module._forward_hooks.items()):
        yield module._forward_hooks_always_called, i, hook, i in module._forward_hooks_with_kwargs


def _call(module, args: tuple, kwargs: dict, called: set):
    args, kwargs = _pre(module, args, kwargs)
    full = [*backward_hooks.values()] if backward_hooks_are_full else []
    plain = [] if backward_hooks_are_full else [*backward_hooks.values()]
    if module._is_full_backward_hook is False:
        plain += module._backward_hooks.values()
    else:
        full += module._backward_hooks.values()
    pre = [*backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
    backward = _Backward(module, full, pre) if full or pre else None
    if backward is not None:
        args = backward.inputs(args)
    result = module.forward(*args, **kwargs)
    for table, i, hook, with_kwargs in _post_hooks(module):
        if i in table:
            called.add((id(table), i))
        changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
        if changed is not None:
            result = changed
    if backward is not None:
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}",
                stacklevel=3,
            )
        else:
            result = backward.outputs(result)
    if plain:
        _hook_node(module, plain, result)
    return result


def _hook_node(module, hooks: list[Callable], result) -> None:
    """Non-full backward hooks: on the node that made the first tensor of the result, as PyTorch still allows."""
    while not isinstance(result, Tensor):
        result = next(r for r in result.values() if isinstance(r, Tensor)) if isinstance(result, dict) else result[0]
    node = result.grad_fn
    if node is not None:
        for hook in hooks:
            node.register_hook(functools.partial(hook, module))


def _always(module, args: tuple, kwargs: dict, called: set) -> None:
    """After a failure: the hooks registered with ``always_call`` that have not run yet. Their errors are warnings."""
    for table, i, hook, with_kwargs in _post_hooks(module):
        if i not in table or (id(table), i) in called:
            continue
        try:
            if with_kwargs:
                hook(module, args, kwargs, None)
            else:
                hook(module, args, None)
        except Exception as error:
            warnings.warn(
                f"forward hook with always_call=True raised an exception that was silenced: {error}", stacklevel=3
            )
