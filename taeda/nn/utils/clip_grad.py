"""Limits on gradients: by their total norm, or element by element."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable

from taeda._core import is_mode_active, is_observing
from taeda.ops.updates import change_all
from taeda.ops.updates import total_norm as norm_of_all

from ..._core import Size
from ..._typed import Tensor
from ...autograd import no_grad
from ...ops.exchange import tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _list(tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    if hasattr(tensors, "named_parameters") and not hasattr(tensors, "__iter__"):
        raise TypeError(f"'{type(tensors).__name__}' object is not iterable: give its parameters, module.parameters()")
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """The norm of all elements of several tensors together.

    Args:
        tensors: one tensor or several, any shapes; floating-point.
        norm_type: ``p`` of the norm; infinity for the largest absolute value.
        error_if_nonfinite: raise where it is infinite or not a number.
        foreach: accepted, changes nothing.

    Returns:
        A tensor ``()``.

    Raises:
        RuntimeError: it is not finite, if asked for; or a tensor is empty, and the norm is that of infinity.

    Examples:
        >>> nn.utils.get_total_norm([taeda.tensor([3.0]), taeda.tensor([[4.0]])])
        tensor(5.)
    """
    norm_type = float(norm_type)
    tensors = _list(tensors)
    if not tensors:
        return tensor(0.0)
    if norm_type == float("inf") and not all(t.numel() for t in tensors):
        raise RuntimeError("get_total_norm: cannot compute the infinity norm of an empty tensor: it has no identity")
    with no_grad():
        total = norm_of_all(tensors, norm_type)
        if error_if_nonfinite and not bool(total.isfinite()):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
                "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
                "`error_if_nonfinite=False`"
            )
        return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale gradients by ``min(1, max_norm / (total_norm + 1e-6))``, in place: the second half of
    :func:`clip_grad_norm_`.

    Args:
        parameters: one tensor or several, whose ``grad`` is scaled; those without one are left out. Any shapes.
        max_norm: the limit.
        total_norm: the norm of all gradients, a tensor ``()``.
        foreach: accepted, changes nothing.

    Examples:
        >>> w = taeda.zeros(2, requires_grad=True)
        >>> w.grad = taeda.tensor([3.0, 4.0])
        >>> nn.utils.clip_grads_with_norm_(w, 1.0, taeda.tensor(10.0))
        >>> w.grad
        tensor([0.3000, 0.4000])
    """
    with no_grad():
        grads = [p.grad for p in _list(parameters) if p.grad is not None]
        if not grads:
            return
        if is_mode_active() or is_observing() or total_norm.is_meta:
            change_all(grads, "scale", (float(max_norm) / (total_norm.double() + 1e-6)).clamp(max=1.0))
            return
        factor = float(max_norm) / (float(total_norm) + 1e-6)
        if not factor >= 1.0:  # a NaN reaches the gradients
            change_all(grads, "scale", factor)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """Scale the gradients of all parameters by one factor, in place, so that their norm together is at most
    ``max_norm``.

    Between ``backward`` and the optimiser's step: it keeps a rare large gradient from ruining the weights. Source:
    Pascanu, Mikolov & Bengio 2012, "On the difficulty of training Recurrent Neural Networks".

    Args:
        parameters: one tensor or several; those without a gradient are left out. Any shapes.
        max_norm: the limit.
        norm_type: ``p`` of the norm; infinity for the largest absolute value.
        error_if_nonfinite: raise where the norm is infinite or not a number.
        foreach: accepted, changes nothing.

    Returns:
        The norm before, a tensor ``()``.

    Raises:
        RuntimeError: the norm is not finite, if asked for.

    Examples:
        >>> w = taeda.zeros(2, requires_grad=True)
        >>> (w * taeda.tensor([3.0, 4.0])).sum().backward()
        >>> nn.utils.clip_grad_norm_(w, max_norm=1.0)
        tensor(5.)
        >>> w.grad
        tensor([0.6000, 0.8000])
    """
    max_norm = float(max_norm)
    generator = isinstance(parameters, types.GeneratorType)
    parameters = _list(parameters)
    if generator and not parameters:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    grads = [p.grad for p in parameters if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """Older name of :func:`clip_grad_norm_`."""
    package = Size.__module__
    warnings.warn(
        f"`{package}.nn.utils.clip_grad_norm` is now deprecated in favor of `{package}.nn.utils.clip_grad_norm_`.",
        FutureWarning, stacklevel=2,
    )  # fmt: skip
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of the gradients to ``[-clip_value, clip_value]``, in place. It changes their direction.

    Args:
        parameters: one tensor or several; those without a gradient are left out. Any shapes.
        clip_value: the limit.
        foreach: accepted, changes nothing.

    Raises:
        ValueError: ``clip_value`` is no number.

    Examples:
        >>> w = taeda.zeros(2, requires_grad=True)
        >>> (w * taeda.tensor([0.5, 4.0])).sum().backward()
        >>> nn.utils.clip_grad_value_(w, 1.0)
        >>> w.grad
        tensor([0.5000, 1.0000])
    """
    limit = float(clip_value)
    with no_grad():
        grads = [p.grad for p in _list(parameters) if p.grad is not None]
        if grads:
            change_all(grads, "bound", limit)
