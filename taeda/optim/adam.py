"""Adam (Kingma & Ba 2014), AMSGrad (Reddi et al. 2018) and AdamW (Loshchilov & Hutter 2017)."""

from __future__ import annotations

from typing import Any

from .._typed import Tensor
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
    """Adam: the mean of recent gradients over the root of the mean of their squares.

    With gradient ``g`` in step ``t`` (from 1)::

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        p -= lr * (m / (1 - beta1**t)) / (sqrt(v / (1 - beta2**t)) + eps)

    Each element takes steps of about ``lr``, whatever the size of its gradient. That makes Adam a good first choice.
    Sources: Kingma & Ba 2014, "Adam: A Method for Stochastic Optimization"; for ``amsgrad`` Reddi, Kale & Kumar 2018,
    "On the Convergence of Adam and Beyond".

    Args:
        params: the tensors to update, ``(name, tensor)`` pairs, or dicts with ``"params"`` and options. Of any
            sizes, of floating-point or complex dtypes.
        lr: learning rate, at least 0: a number or a tensor with one element.
        betas: ``(beta1, beta2)``, each in ``[0, 1)``.
        eps: added to the denominator, so that it is not zero.
        weight_decay: adds ``weight_decay * p`` to the gradient; with ``decoupled_weight_decay`` shrinks the parameter
            instead, ``p *= 1 - lr * weight_decay``.
        amsgrad: use the largest ``v`` so far in place of ``v``.
        maximize: climb rather than descend.
        foreach: changes nothing: all parameters are updated together.
        capturable: changes nothing, but that ``foreach`` may be True where ``lr`` or a beta is a tensor.
        differentiable: record the step in the graph, so that one can differentiate through it.
        fused: changes nothing: the step is one kernel in any case, except a ``differentiable`` one.
        decoupled_weight_decay: see ``weight_decay``; :class:`AdamW` sets it.

    Raises:
        ValueError: an option is out of its range; one of ``betas`` alone is a tensor; or ``foreach`` is True,
            ``capturable`` is not, and ``lr`` or a beta is a tensor.
        RuntimeError: ``fused`` is True together with ``foreach`` or ``differentiable``.

    Examples:
        >>> w = taeda.tensor([1.0, -200.0], requires_grad=True)
        >>> optimizer = taeda.optim.Adam([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([   0.9000, -199.9000], requires_grad=True)

        Options differ between parts of a model:

        >>> model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
        >>> optimizer = taeda.optim.Adam(
        ...     [{"params": model[0].parameters()}, {"params": model[1].parameters(), "lr": 1e-2}], lr=1e-3
        ... )
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.001, 0.01]
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
    """Adam whose weight decay shrinks the parameters directly: ``p *= 1 - lr * weight_decay`` before the step of Adam.

    In :class:`Adam` the decay goes through the gradient and is divided by its size, so that weights with large
    gradients decay less. Here all decay alike. Source: Loshchilov & Hutter 2017, "Decoupled Weight Decay
    Regularization".

    Args:
        params: the tensors to update, ``(name, tensor)`` pairs, or dicts with ``"params"`` and options. Of any
            sizes, of floating-point or complex dtypes.
        lr: learning rate, at least 0: a number or a tensor with one element.
        betas: ``(beta1, beta2)``, each in ``[0, 1)``.
        eps: added to the denominator, so that it is not zero.
        weight_decay: rate of the decay.
        amsgrad: use the largest ``v`` so far in place of ``v``.
        maximize: climb rather than descend.
        foreach: changes nothing: all parameters are updated together.
        capturable: changes nothing, but that ``foreach`` may be True where ``lr`` or a beta is a tensor.
        differentiable: record the step in the graph, so that one can differentiate through it.
        fused: changes nothing: the step is one kernel in any case, except a ``differentiable`` one.

    Raises:
        ValueError: as of :class:`Adam`.
        RuntimeError: as of :class:`Adam`.

    Examples:
        >>> w = taeda.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = taeda.optim.AdamW([w], lr=0.1, weight_decay=0.5)
        >>> w.grad = taeda.zeros(2)  # no gradient: what is left is the decay
        >>> optimizer.step()
        >>> w
        tensor([ 0.9500, -1.9000], requires_grad=True)
    """

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
    found_inf: Tensor | None = None, has_complex: bool = False, decoupled_weight_decay: bool = False, *, amsgrad: bool,
    beta1: float | Tensor, beta2: float | Tensor, lr: float | Tensor, weight_decay: float, eps: float, maximize: bool,
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
