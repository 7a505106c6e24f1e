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
    """A module called with other tensors in place of its parameters and buffers, so that it is a function of them.

    Args:
        module: what to call; it is as before afterwards.
        parameter_and_buffer_dicts: tensors by name, of the shapes that the module's code takes, or several such
            mappings with different names. Other attributes that are tensors can be named, and new ones. A single dict
            has afterwards what the module assigned to these names.
        args: a tuple of arguments, or a single one.
        kwargs: keyword arguments.
        tie_weights: parameters that are one tensor in the module are one tensor here.
        strict: all names must be given, and none more.

    Returns:
        The result of the module.

    Raises:
        RuntimeError: with ``strict``, names are missing or unknown.
        ValueError: it is no dict and no list of dicts, or two of them have the same name.

    Examples:
        >>> layer = nn.Linear(2, 1)
        >>> weights = {"weight": taeda.tensor([[1.0, 10.0]]), "bias": taeda.zeros(1)}
        >>> taeda.func.functional_call(layer, weights, taeda.tensor([3.0, 4.0]))
        tensor([43.])
    """
    from ..nn.utils.stateless import call_with

    if isinstance(parameter_and_buffer_dicts, Mapping):
        merged = parameter_and_buffer_dicts
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
    return call_with(module, merged, args, kwargs, tie_weights, strict)


def stack_module_state(models: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of several modules of the same class, stacked by name: for ``vmap`` over an ensemble.

    Args:
        models: modules, all in training or all in evaluation mode.

    Returns:
        ``(parameters, buffers)``: dicts from a name to a tensor with the models as its first dimension. They share no
            memory
        with the models. ``vmap`` over both hands ``functional_call`` those of one model.

    Raises:
        RuntimeError: there is no model, or they differ in class, mode or ``requires_grad``.

    Examples:
        >>> models = [nn.Linear(2, 3) for _ in range(5)]
        >>> parameters, buffers = taeda.func.stack_module_state(models)
        >>> parameters["weight"].shape
        taeda.Size([5, 3, 2])
        >>> def call(parameters, buffers, x):
        ...     return taeda.func.functional_call(models[0], (parameters, buffers), x)
        >>> taeda.vmap(call, in_dims=(0, 0, None))(parameters, buffers, taeda.randn(7, 2)).shape
        taeda.Size([5, 7, 3])
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
    """A function that works on copies of its arguments; changes to them are written to the arguments once, at the end.

    Inside, no argument changes, as tools that record a function require. The effect outside is that of ``func``.

    Args:
        func: from tensors, nested in tuples, lists or dicts, to anything. It may write into its arguments in place.
        remove: ``"mutations"`` or ``"mutations_and_views"``; views that stay inside do not matter.

    Returns:
        A function with the arguments and results of ``func``.

    Raises:
        RuntimeError: ``remove`` is neither.

    Examples:
        >>> x = taeda.ones(2)
        >>> taeda.func.functionalize(lambda t: t.add_(1) * 10)(x), x
        (tensor([20., 20.]), tensor([2., 2.]))
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
    """Let every batch normalisation in a module use the batch alone, without running statistics, in place.

    Running statistics are written in each call, which :func:`vmap` cannot do for each example.

    Args:
        root: the module.

    Returns:
        ``root``.

    Examples:
        >>> model = taeda.func.replace_all_batch_norm_modules_(nn.Sequential(nn.BatchNorm1d(3)))
        >>> model[0].running_mean is None
        True
    """
    for module in root.modules():
        if hasattr(module, "track_running_stats") and hasattr(module, "num_batches_tracked"):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
