"""Adagrad (Duchi, Hazan & Singer 2011)."""

from __future__ import annotations

from typing import Any

from .._core import preserve_format
from .._typed import Tensor
from ..ops.creation import full_like
from ._elementwise import ElementwiseOptimizer, descent, new_counter, number, step_lists
from .optimizer import checked

__all__ = ["Adagrad", "adagrad"]


def _rule(x, flags, scalars, p, g, total):
    """Divide by the root of the sum of squared gradients."""
    decay, maximize = flags
    lr, weight_decay, eps = scalars
    g = descent(x, p, g, weight_decay if decay else None, maximize)
    total = x.fma(g, g, total)
    return p - lr * (g / (x.sqrt(total) + eps)), total


class Adagrad(ElementwiseOptimizer, rule=_rule, scalars=3):
    """Adagrad: each element's rate falls with the root of the sum of its squared gradients.

    With gradient ``g`` in step ``t`` (from 1): ``s += g**2``, then ``p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s)
    + eps)``. Elements whose gradient is seldom other than zero, such as the rows of an embedding, keep large steps.
    Source: Duchi, Hazan & Singer 2011, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization".

    Args:
        params: the tensors to update, ``(name, tensor)`` pairs, or dicts with ``"params"`` and options. Of any
            sizes, of floating-point or complex dtypes.
        lr: learning rate, at least 0: a number or a tensor with one element.
        lr_decay: the rate is divided by ``1 + (t - 1) * lr_decay``.
        weight_decay: adds ``weight_decay * p`` to the gradient.
        initial_accumulator_value: first value of ``s``.
        eps: added to the denominator, so that it is not zero.
        foreach: accepted, changes nothing: all parameters are updated together.
        maximize: climb rather than descend.
        differentiable: record the step in the graph, so that one can differentiate through it.
        fused: changes nothing: the step is one kernel in any case, except a ``differentiable`` one.

    Raises:
        ValueError: an option is negative.
        RuntimeError: ``fused`` is True together with ``foreach`` or ``differentiable``.

    Examples:
        >>> w = taeda.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = taeda.optim.Adagrad([w], lr=0.1)
        >>> for step in range(2):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.8331, -1.8311], requires_grad=True)
    """

    _by_rows = True

    def __init__(
        self, params: Any, lr: float | Tensor = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, checked(locals(), "lr", "lr_decay", "eps"))
        self._check_fused(fused, foreach, differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                self._init_state(group, p, self.state[p])

    def share_memory(self) -> None:
        """Move the sums to shared memory."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    _states = staticmethod(lambda flags: ("sum",))

    def _init_state(self, group, p, state):
        first = self.defaults["initial_accumulator_value"]
        state["step"] = new_counter(0.0)
        state["sum"] = full_like(p, complex(first, first) if p.is_complex() else first, memory_format=preserve_format)

    @staticmethod
    def _scalars(group, counters):
        step = counters[0] + 1
        lr = number(group["lr"], group) / (1 + (step - 1) * group["lr_decay"])
        return (step,), (lr, group["weight_decay"], group["eps"])


def adagrad(
    params: list[Tensor], grads: list[Tensor], state_sums: list[Tensor], state_steps: list[Tensor],
    fused: bool | None = None, grad_scale: Tensor | None = None, found_inf: Tensor | None = None,
    has_sparse_grad: bool = False, foreach: bool | None = None, differentiable: bool = False, has_complex: bool = False,
    *, lr: float | Tensor, weight_decay: float, lr_decay: float, eps: float, maximize: bool,
) -> None:  # fmt: skip
    """One step of :class:`Adagrad` on lists, of which the state and the steps so far are written, too."""
    step_lists(Adagrad, locals(), params, grads, (state_sums,), state_steps)
