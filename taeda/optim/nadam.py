"""NAdam (Dozat 2016): Adam with Nesterov's momentum."""

from __future__ import annotations

from typing import Any

from .._core import preserve_format
from .._typed import Tensor
from ..ops.creation import zeros_like
from ._elementwise import ElementwiseOptimizer, descent, new_counter, number, step_lists
from .optimizer import checked

__all__ = ["NAdam", "nadam"]


def _rule(x, flags, scalars, p, g, m, v):
    """Adam's step with the gradient's own share taken from the present and the mean's from the next step."""
    decay, decoupled, maximize = flags
    by_gradient, by_mean, rest1, beta2, rest2, root_correction, eps, weight_decay, shrink = scalars
    g = descent(x, p, g, weight_decay if decay and not decoupled else None, maximize)
    if decay and decoupled:
        p = p * shrink
    m = x.fma(rest1, g - m, m)
    v = x.fma(rest2 * g, g, beta2 * v)
    root = x.sqrt(v) * root_correction + eps
    return p - by_gradient * (g / root) - by_mean * (m / root), m, v


class NAdam(ElementwiseOptimizer, rule=_rule, scalars=9):
    """Adam with Nesterov's momentum.

    With gradient ``g`` in step ``t`` (from 1)::

        mu[t] = beta1 * (1 - 0.5 * 0.96**(t * momentum_decay))
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        n = mu[t + 1] * m / (1 - mu[1] ... mu[t + 1]) + (1 - mu[t]) * g / (1 - mu[1] ... mu[t])
        p -= lr * n / (sqrt(v / (1 - beta2**t)) + eps)

    Source: Dozat 2016, "Incorporating Nesterov Momentum into Adam".

    Args:
        params: the tensors to update, ``(name, tensor)`` pairs, or dicts with ``"params"`` and options. Of any
            sizes, of floating-point or complex dtypes.
        lr: learning rate, at least 0: a number or a tensor with one element.
        betas: ``(beta1, beta2)``, each in ``[0, 1)``.
        eps: added to the denominator, so that it is not zero.
        weight_decay: adds ``weight_decay * p`` to the gradient; with ``decoupled_weight_decay`` shrinks the parameter
            instead, ``p *= 1 - lr * weight_decay``.
        momentum_decay: how fast ``mu`` approaches ``beta1``.
        decoupled_weight_decay: see ``weight_decay``.
        maximize: climb rather than descend.
        foreach: accepted, changes nothing: all parameters are updated together.
        capturable: accepted, changes nothing.
        differentiable: record the step in the graph, so that one can differentiate through it.

    Raises:
        ValueError: an option is negative, or a beta is not in ``[0, 1)``.

    Examples:
        >>> w = taeda.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = taeda.optim.NAdam([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.8944, -1.8944], requires_grad=True)
    """

    _counters = ("step", "mu_product")
    _recorded = ("mu_product",)

    def __init__(
        self, params: Any, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
        maximize: bool = False, foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, checked(locals()))

    @staticmethod
    def _flags(group):
        return group["weight_decay"] != 0, bool(group["decoupled_weight_decay"]), bool(group["maximize"])

    _states = staticmethod(lambda flags: ("exp_avg", "exp_avg_sq"))

    def _init_state(self, group, p, state):
        state["step"] = new_counter(0.0)
        state["mu_product"] = new_counter(1.0)
        for name in ("exp_avg", "exp_avg_sq"):
            state[name] = zeros_like(p, memory_format=preserve_format)

    @staticmethod
    def _scalars(group, counters):
        step = counters[0] + 1
        beta1, beta2 = group["betas"]
        lr, weight_decay, psi = number(group["lr"], group), group["weight_decay"], group["momentum_decay"]
        mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * psi)))
        mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * psi)))
        product = counters[1] * mu
        return (step, product), (
            lr * (1.0 - mu) / (1.0 - product), lr * mu_next / (1.0 - product * mu_next), 1 - beta1, beta2, 1 - beta2,
            (1 - beta2**step) ** -0.5, group["eps"], weight_decay, 1 - lr * weight_decay,
        )  # fmt: skip


def nadam(
    params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor], state_steps: list[Tensor], decoupled_weight_decay: bool = False,
    foreach: bool | None = None, capturable: bool = False, differentiable: bool = False, has_complex: bool = False,
    maximize: bool = False, *, beta1: float, beta2: float, lr: float | Tensor, weight_decay: float,
    momentum_decay: float, eps: float,
) -> None:  # fmt: skip
    """One step of :class:`NAdam` on lists, of which the state and the steps so far are written, too."""
    step_lists(NAdam, locals(), params, grads, (exp_avgs, exp_avg_sqs), state_steps, mu_products, betas=(beta1, beta2))
