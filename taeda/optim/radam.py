"""RAdam (Liu et al. 2019): Adam with a rectified second moment."""

from __future__ import annotations

from typing import Any

from .._typed import Tensor
from ._elementwise import ElementwiseOptimizer, descent, number, step_lists
from .optimizer import checked

__all__ = ["RAdam", "radam"]


def _rule(x, flags, scalars, p, g, m, v):
    """``rectified / (root + eps) + plain`` scales the running mean; one of the two is zero."""
    decay, decoupled, maximize = flags
    step_size, rectified, plain, rest1, beta2, rest2, eps, weight_decay, shrink = scalars
    g = descent(x, p, g, weight_decay if decay and not decoupled else None, maximize)
    if decay and decoupled:
        p = p * shrink
    m = x.fma(rest1, g - m, m)
    v = x.fma(rest2 * g, g, beta2 * v)
    return p - step_size * (m * (rectified / (x.sqrt(v) + eps) + plain)), m, v


class RAdam(ElementwiseOptimizer, rule=_rule, scalars=9):
    """Adam that does without the mean of squares until there are enough steps to estimate it well.

    ``m`` and ``v`` are as in :class:`Adam`. In step ``t``, with ``n = 2 / (1 - beta2) - 1`` and ``r = n - 2 t beta2**t
    / (1 - beta2**t)``: while ``r <= 5`` the step is ``p -= lr * m / (1 - beta1**t)``. After that it is Adam's, times
    ``sqrt((r - 4) (r - 2) n / ((n - 4) (n - 2) r))``, which rises to 1. It replaces a warm-up of the rate. Source: Liu
    et al. 2019, "On the Variance of the Adaptive Learning Rate and Beyond".

    Args:
        params: the tensors to update, ``(name, tensor)`` pairs, or dicts with ``"params"`` and options. Of any
            sizes, of floating-point or complex dtypes.
        lr: learning rate, at least 0: a number or a tensor with one element.
        betas: ``(beta1, beta2)``, each in ``[0, 1)``.
        eps: added to the denominator, so that it is not zero.
        weight_decay: adds ``weight_decay * p`` to the gradient; with ``decoupled_weight_decay`` shrinks the parameter
            instead, ``p *= 1 - lr * weight_decay``.
        decoupled_weight_decay: see ``weight_decay``.
        foreach: accepted, changes nothing: all parameters are updated together.
        maximize: climb rather than descend.
        capturable: accepted, changes nothing.
        differentiable: record the step in the graph, so that one can differentiate through it.

    Raises:
        ValueError: an option is negative, or a beta is not in ``[0, 1)``.

    Examples:
        >>> w = taeda.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = taeda.optim.RAdam([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w  # the first steps are those of momentum: p - 0.1 g
        tensor([ 0.8000, -1.6000], requires_grad=True)
    """

    def __init__(
        self, params: Any, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            params, checked(locals(), "lr", "betas", "eps", "weight_decay", "maximize", "foreach", "capturable")
        )

    @staticmethod
    def _flags(group):
        return group["weight_decay"] != 0, bool(group["decoupled_weight_decay"]), bool(group["maximize"])

    _states = staticmethod(lambda flags: ("exp_avg", "exp_avg_sq"))

    @staticmethod
    def _scalars(group, counters):
        step = counters[0] + 1
        beta1, beta2 = group["betas"]
        lr, weight_decay = number(group["lr"], group), group["weight_decay"]
        correction2 = 1 - beta2**step
        rho_inf = 2 / (1 - beta2) - 1
        rho = rho_inf - 2 * step * beta2**step / correction2
        rectified, plain = 0.0, 1.0
        if rho > 5.0:
            root = ((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)) ** 0.5
            rectified, plain = root * correction2**0.5, 0.0
        return (step,), (
            lr / (1 - beta1**step), rectified, plain, 1 - beta1, beta2, 1 - beta2, group["eps"], weight_decay,
            1 - lr * weight_decay,
        )  # fmt: skip


def radam(
    params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor], decoupled_weight_decay: bool = False, foreach: bool | None = None,
    differentiable: bool = False, capturable: bool = False, has_complex: bool = False, maximize: bool = False, *,
    beta1: float, beta2: float, lr: float | Tensor, weight_decay: float, eps: float,
) -> None:  # fmt: skip
    """One step of :class:`RAdam` on lists, of which the state and the steps so far are written, too."""
    step_lists(RAdam, locals(), params, grads, (exp_avgs, exp_avg_sqs), state_steps, betas=(beta1, beta2))
