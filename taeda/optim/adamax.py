"""Adamax (Kingma & Ba 2014): Adam with the maximum norm."""

from __future__ import annotations

from typing import Any

from .._typed import Tensor
from ._elementwise import ElementwiseOptimizer, descent, number, step_lists
from .optimizer import checked

__all__ = ["Adamax", "adamax"]


def _rule(x, flags, scalars, p, g, m, largest):
    """Divide the running mean by the decaying maximum of the gradients' sizes."""
    decay, maximize = flags
    step_size, weight_decay, rest1, beta2, eps = scalars
    g = descent(x, p, g, weight_decay if decay else None, maximize)
    m = x.fma(rest1, g - m, m)
    largest = x.maximum(beta2 * largest, x.abs(g) + eps)
    return p - step_size * (m / largest), m, largest


class Adamax(ElementwiseOptimizer, rule=_rule, scalars=5):
    """Adam with a decaying maximum of the gradients' sizes in place of the root mean square.

    With gradient ``g`` in step ``t`` (from 1)::

        m = beta1 * m + (1 - beta1) * g
        u = max(beta2 * u, abs(g) + eps)
        p -= lr / (1 - beta1**t) * m / u

    Source: Kingma & Ba 2014, "Adam: A Method for Stochastic Optimization", section 7.

    Args:
        params: the tensors to update, ``(name, tensor)`` pairs, or dicts with ``"params"`` and options. Of any
            sizes, of floating-point or complex dtypes.
        lr: learning rate, at least 0: a number or a tensor with one element.
        betas: ``(beta1, beta2)``, each in ``[0, 1)``.
        eps: added to the gradient's size.
        weight_decay: adds ``weight_decay * p`` to the gradient.
        foreach: accepted, changes nothing: all parameters are updated together.
        maximize: climb rather than descend.
        differentiable: record the step in the graph, so that one can differentiate through it.
        capturable: accepted, changes nothing.

    Raises:
        ValueError: an option is negative, or a beta is not in ``[0, 1)``.

    Examples:
        >>> w = taeda.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = taeda.optim.Adamax([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    def __init__(
        self, params: Any, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, checked(locals()))

    _states = staticmethod(lambda flags: ("exp_avg", "exp_inf"))

    @staticmethod
    def _scalars(group, counters):
        step = counters[0] + 1
        beta1, beta2 = group["betas"]
        step_size = number(group["lr"], group) / (1 - beta1**step)
        return (step,), (step_size, group["weight_decay"], 1 - beta1, beta2, group["eps"])


def adamax(
    params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_infs: list[Tensor],
    state_steps: list[Tensor], foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    capturable: bool = False, has_complex: bool = False, *, eps: float, beta1: float, beta2: float,
    lr: float | Tensor, weight_decay: float,
) -> None:  # fmt: skip
    """One step of :class:`Adamax` on lists, of which the state and the steps so far are written, too."""
    step_lists(Adamax, locals(), params, grads, (exp_avgs, exp_infs), state_steps, betas=(beta1, beta2))
