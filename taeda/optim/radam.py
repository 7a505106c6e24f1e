"""RAdam (Liu et al. 2019): Adam with a rectified second moment."""

from __future__ import annotations

from typing import Any

from taeda import Tensor

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
    """Adam that does without the second moment until its variance is tractable.

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        betas: decay of the two running means.
        eps: added to the root.
        weight_decay: adds this times the parameter to the gradient; with ``decoupled_weight_decay`` shrinks the
            parameter instead.
        decoupled_weight_decay: see ``weight_decay``.
        foreach, capturable: accepted; the one implementation does all parameters together.
        maximize: climb rather than descend.
        differentiable: record the step in the graph.
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
