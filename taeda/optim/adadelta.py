"""Adadelta (Zeiler 2012)."""

from __future__ import annotations

from typing import Any

from .._typed import Tensor
from ._elementwise import ElementwiseOptimizer, descent, number, step_lists
from .optimizer import checked

__all__ = ["Adadelta", "adadelta"]


def _rule(x, flags, scalars, p, g, squares, deltas):
    """Step by the ratio of the root mean squares of past steps and gradients."""
    decay, maximize = flags
    lr, weight_decay, rho, rest, eps = scalars
    g = descent(x, p, g, weight_decay if decay else None, maximize)
    squares = x.fma(rest * g, g, rho * squares)
    delta = x.sqrt(deltas + eps) / x.sqrt(squares + eps) * g
    return p - lr * delta, squares, x.fma(rest * delta, delta, rho * deltas)


class Adadelta(ElementwiseOptimizer, rule=_rule, scalars=5):
    """Adadelta: the root mean square of recent steps over that of recent gradients, times the gradient.

    With gradient ``g``::

        s = rho * s + (1 - rho) * g**2
        d = sqrt(a + eps) / sqrt(s + eps) * g
        a = rho * a + (1 - rho) * d**2
        p -= lr * d

    Steps have the unit of the parameter, so that ``lr`` hardly needs tuning. Source: Zeiler 2012, "ADADELTA: An
    Adaptive Learning Rate Method".

    Args:
        params: the tensors to update, ``(name, tensor)`` pairs, or dicts with ``"params"`` and options. Of any
            sizes, of floating-point or complex dtypes.
        lr: factor of the step.
        rho: decay of the two running means, in ``[0, 1]``.
        eps: added inside both roots.
        weight_decay: adds ``weight_decay * p`` to the gradient.
        foreach: accepted, changes nothing: all parameters are updated together.
        capturable: accepted, changes nothing.
        maximize: climb rather than descend.
        differentiable: record the step in the graph, so that one can differentiate through it.

    Raises:
        ValueError: ``lr``, ``eps`` or ``weight_decay`` is negative, or ``rho`` not in ``[0, 1]``.

    Examples:
        >>> w = taeda.tensor([1.0, -200.0], requires_grad=True)
        >>> optimizer = taeda.optim.Adadelta([w])
        >>> before = w.detach().clone()
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> (before - w).detach()  # the first steps are small, and alike for large and small gradients
        tensor([ 0.0032, -0.0032])
    """

    def __init__(
        self, params: Any, lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, checked(locals(), "lr", "rho", "eps", "weight_decay", "maximize", "capturable"))

    _states = staticmethod(lambda flags: ("square_avg", "acc_delta"))

    @staticmethod
    def _scalars(group, counters):
        rho = group["rho"]
        return (counters[0] + 1,), (number(group["lr"], group), group["weight_decay"], rho, 1 - rho, group["eps"])


def adadelta(
    params: list[Tensor], grads: list[Tensor], square_avgs: list[Tensor], acc_deltas: list[Tensor],
    state_steps: list[Tensor], capturable: bool = False, foreach: bool | None = None, differentiable: bool = False,
    has_complex: bool = False, *, lr: float | Tensor, rho: float, eps: float, weight_decay: float, maximize: bool,
) -> None:  # fmt: skip
    """One step of :class:`Adadelta` on lists, of which the state and the steps so far are written, too."""
    step_lists(Adadelta, locals(), params, grads, (square_avgs, acc_deltas), state_steps)
