"""Functions that are steps of exported programs and that no op is for: sizes, checks, modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda._core import Tensor
from taeda.fx import has_side_effect
from taeda.fx.experimental._sizes import assert_scalar, sym_size
from taeda.nn.lower import native_batch_norm
from taeda.utils import _pytree as pytree

from .. import _core

__all__ = ["assert_scalar", "batch_norm_functional", "item", "set_grad_enabled", "sym_size", "with_grad_enabled"]


def item(x: Tensor) -> Any:
    """The element of ``x`` as a number."""
    return x.item()


def leaf(tree: Any, index: int) -> Any:
    """One of the tensors in the result of a module."""
    return pytree.tree_leaves(tree)[index]


@has_side_effect
def set_grad_enabled(mode: bool) -> None:
    """From here on, steps are recorded for differentiation, or are not."""
    _core.set_grad_enabled(mode)


def with_grad_enabled(mode: bool, graph: Callable, args: tuple) -> Any:
    """``graph(*args)``, recorded for differentiation or not."""
    before = _core.is_grad_enabled()
    _core.set_grad_enabled(mode)
    try:
        return graph(*args)
    finally:
        _core.set_grad_enabled(before)


def batch_norm_functional(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor,
    training: bool, momentum: float, eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Batch norm without writes: the result, the batch's statistics, and the running statistics as they are
    afterwards."""
    mean, var = running_mean.clone(), running_var.clone()
    return (*native_batch_norm(input, weight, bias, mean, var, training, momentum, eps), mean, var)


def _native_batch_norm(
    call: Callable, write: Callable, input: Tensor, weight: Any, bias: Any, running_mean: Tensor, running_var: Tensor,
    training: bool, momentum: float, eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    given = input, weight, bias, running_mean, running_var, training, momentum, eps
    *made, mean, var = call(batch_norm_functional, given, {})
    write(running_mean, mean)
    write(running_var, var)
    return tuple(made)


def _batch_norm(
    call: Callable, write: Callable, input: Tensor, running_mean: Tensor, running_var: Tensor, weight: Any = None,
    bias: Any = None, training: bool = False, momentum: float | None = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    share = 0.0 if momentum is None else momentum
    return _native_batch_norm(call, write, input, weight, bias, running_mean, running_var, training, share, eps)[0]


#: Replacements of functions that write to arguments besides the first, by name: a step that does not write, which
#: ``call`` records, and ``write``, which gives a tensor the values of another.
WITHOUT_WRITES: dict[str, Callable] = {"batch_norm": _batch_norm, "native_batch_norm": _native_batch_norm}
