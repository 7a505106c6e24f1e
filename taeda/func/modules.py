"""Modules as functions of their parameters: ``functional_call`` and ``stack_module_state``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._core import Tensor
from ..ops.joining import stack
from ..utils._pytree import tree_leaves, tree_map


def functional_call(
    module: Any, parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]], args: Any = None,
    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """``module(*args, **kwargs)`` with other tensors in place of its parameters and buffers.

    Args:
        module: what to call; it is as before afterwards.
        parameter_and_buffer_dicts: tensors by name, or several such mappings with different names.
        args: a tuple, or a single argument.
        tie_weights: parameters that are one tensor in the module are one tensor here.
        strict: all names must be given, and none more.
    """
    from ..nn.utils.stateless import functional_call as call

    if isinstance(parameter_and_buffer_dicts, Mapping):
        merged = dict(parameter_and_buffer_dicts)
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        if not all(isinstance(d, Mapping) for d in parameter_and_buffer_dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for d in parameter_and_buffer_dicts for name in d]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        merged = {name: value for d in parameter_and_buffer_dicts for name, value in d.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    return call(module, merged, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of several modules of the same class, stacked by name, for ``vmap`` over an ensemble.

    Args:
        models: modules, all in training or all in evaluation mode.

    Returns:
        ``(parameters, buffers)``: dicts from a name to a tensor with the models as its first dimension. They share no
        memory with the models. ``vmap`` over both hands ``functional_call`` those of one model.
    Raises:
        RuntimeError: there is no model, or they differ in class, mode or ``requires_grad``.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = {}
    for name, _ in models[0].named_parameters():
        values = [dict(m.named_parameters())[name] for m in models]
        needs = {v.requires_grad for v in values}
        if len(needs) > 1:
            raise RuntimeError(f"Expected {name} parameter from each model to have the same .requires_grad")
        parameters[name] = stack([v.detach() for v in values], 0).requires_grad_(needs.pop())
    buffers = {}
    for name, _ in models[0].named_buffers():
        buffers[name] = stack([dict(m.named_buffers())[name].detach() for m in models], 0)
    return parameters, buffers


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """``func`` as a function without lasting effects on its arguments' values: they are copied first.

    Args:
        func: may write into its arguments in place.
        remove: "mutations" or "mutations_and_views"; views that stay inside do not matter.
    Raises:
        RuntimeError: ``remove`` is neither.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(f"functionalize: expected remove to be 'mutations' or 'mutations_and_views', got {remove!r}")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given = tree_map(lambda x: x.clone() if isinstance(x, Tensor) else x, (args, kwargs))
        out = func(*given[0], **given[1])
        before, after = tree_leaves((args, kwargs)), tree_leaves(given)
        for x, y in zip(before, after, strict=True):
            if isinstance(x, Tensor) and y._version:
                x.copy_(y)
        return out

    return wrapped


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let every batch norm under ``root`` normalise by the batch alone, without running statistics, in place; gives
    it."""
    for module in root.modules():
        if hasattr(module, "track_running_stats") and hasattr(module, "num_batches_tracked"):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
