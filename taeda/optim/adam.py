"""Adam (Kingma & Ba 2014), AMSGrad (Reddi et al. 2018) and AdamW (Loshchilov & Hutter 2017)."""

from __future__ import annotations

from typing import Any

from taeda import Tensor

from ._elementwise import ElementwiseOptimizer, descent, number, step_lists
from .optimizer import checked, to_scalar

__all__ = ["Adam", "AdamW", "adam", "adamw"]


def _rule(x, flags, scalars, p, g, m, v, *largest):
    """One step of Adam; ``step_size`` is the learning rate over the first bias correction."""
    decay, decoupled, amsgrad, maximize = flags
    step_size, rest1, beta2, rest2, root_correction, eps, weight_decay, shrink = scalars
    g = descent(x, p, g, weight_decay if decay and not decoupled else None, maximize)
    if decay and decoupled:
        p = p * shrink
    m = x.fma(rest1, g - m, m)
    v = x.fma(rest2 * g, g, beta2 * v)
    if amsgrad:
        top = x.maximum(largest[0], v)
        return p - step_size * (m / (x.sqrt(top) * root_correction + eps)), m, v, top
    return p - step_size * (m / (x.sqrt(v) * root_correction + eps)), m, v


class Adam(ElementwiseOptimizer, rule=_rule, scalars=8):
    """Adam: steps of the running mean of gradients over the root of that of their squares.

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        betas: decay of the two running means.
        eps: added to the root.
        weight_decay: adds this times the parameter to the gradient; with ``decoupled_weight_decay`` shrinks the
            parameter instead.
        amsgrad: use the largest mean square so far.
        foreach, capturable, fused: accepted; the one implementation does all parameters together.
        maximize: climb rather than descend.
        differentiable: record the step in the graph.
        decoupled_weight_decay: see ``weight_decay``.
    """

    def __init__(
        self, params: Any, lr: float | Tensor = 1e-3, betas: tuple = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        defaults = checked(locals())
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, Tensor) and foreach and not capturable:
                raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
            if isinstance(beta, Tensor) and beta.numel() != 1:
                raise ValueError(f"Tensor betas[{i}] must be 1-element")
        super().__init__(params, defaults | {"betas": tuple(map(to_scalar, betas))})
        self._check_fused(fused, foreach, differentiable)

    @staticmethod
    def _flags(group):
        decay = group["weight_decay"] != 0
        return decay, bool(group["decoupled_weight_decay"]), bool(group["amsgrad"]), bool(group["maximize"])

    @staticmethod
    def _states(flags):
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if flags[2] else ("exp_avg", "exp_avg_sq")

    @staticmethod
    def _scalars(group, counters):
        step = counters[0] + 1
        beta1, beta2 = group["betas"]
        lr, weight_decay = number(group["lr"], group), group["weight_decay"]
        root = (1 - beta2**step) ** 0.5
        return (step,), (
            lr / (1 - beta1**step), 1 - beta1, beta2, 1 - beta2, 1 / root, group["eps"], weight_decay,
            1 - lr * weight_decay,
        )  # fmt: skip


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters directly; arguments as :class:`Adam`."""

    def __init__(
        self, params: Any, lr: float | Tensor = 1e-3, betas: tuple = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def adam(
    params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor], state_steps: list[Tensor], foreach: bool | None = None, capturable: bool = False,
    differentiable: bool = False, fused: bool | None = None, grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None, has_complex: bool = False, decoupled_weight_decay: bool = False, *,
    amsgrad: bool, beta1: float | Tensor, beta2: float | Tensor, lr: float | Tensor, weight_decay: float,
    eps: float, maximize: bool,
) -> None:  # fmt: skip
    """One step of :class:`Adam` on lists, of which the state and the steps so far are written, too."""
    given = locals()
    states = (exp_avgs, exp_avg_sqs, *([max_exp_avg_sqs] if amsgrad else ()))
    step_lists(Adam, given, params, grads, states, state_steps, betas=(to_scalar(beta1), to_scalar(beta2)))


def adamw(
    params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor], state_steps: list[Tensor], foreach: bool | None = None, capturable: bool = False,
    differentiable: bool = False, fused: bool | None = None, grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None, has_complex: bool = False, **options: Any,
) -> None:  # fmt: skip
    """:func:`adam` whose weight decay shrinks the parameters directly."""
    adam(
        params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach, capturable, differentiable, fused,
        grad_scale, found_inf, has_complex, True, **options,
    )  # fmt: skip
