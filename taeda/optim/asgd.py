"""Averaged stochastic gradient descent (Polyak & Juditsky 1992)."""

from __future__ import annotations

from typing import Any

from .._core import preserve_format
from .._typed import Tensor
from ..ops.creation import zeros_like
from ._elementwise import ElementwiseOptimizer, descent, new_counter, number, step_lists
from .optimizer import checked, to_scalar

__all__ = ["ASGD", "asgd"]


def _rule(x, flags, scalars, p, g, average):
    """One step, and the running average of the parameters once ``mu`` falls below 1."""
    decay, maximize = flags
    weight_decay, shrink, eta, mu = scalars
    g = descent(x, p, g, weight_decay if decay else None, maximize)
    p = p * shrink - eta * g
    return p, x.where(mu == 1.0, p, x.fma(mu, p - average, average))


class ASGD(ElementwiseOptimizer, rule=_rule, scalars=4):
    """Averaged SGD: plain steps, and the mean of the parameters from step ``t0`` on in the state ``"ax"``.

    With gradient ``g`` in step ``t`` (from 1) and ``eta = lr`` at first::

        p = p * (1 - lambd * eta) - eta * g
        ax += (p - ax) / max(1, t - 1 - t0)
        eta = lr / (1 + lambd * lr * t)**alpha

    Take ``ax`` for the trained weights: the mean is nearer to the minimum than the last step, which noise moves about.
    Source: Polyak & Juditsky 1992, "Acceleration of Stochastic Approximation by Averaging".

    Args:
        params: the tensors to update, ``(name, tensor)`` pairs, or dicts with ``"params"`` and options. Of any
            sizes, of floating-point or complex dtypes.
        lr: learning rate, at least 0: a number or a tensor with one element.
        lambd: rate at which parameters and learning rate fall.
        alpha: exponent of the learning rate's fall.
        t0: step after which the mean is taken.
        weight_decay: adds ``weight_decay * p`` to the gradient.
        foreach: accepted, changes nothing: all parameters are updated together.
        maximize: climb rather than descend.
        differentiable: record the step in the graph, so that one can differentiate through it.
        capturable: accepted, changes nothing.

    Raises:
        ValueError: ``lr`` or ``weight_decay`` is negative.

    Examples:
        >>> w = taeda.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = taeda.optim.ASGD([w], lr=0.1, t0=1)
        >>> for step in range(4):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w, optimizer.state[w]["ax"]
        (tensor([ 0.4096, -0.8192], requires_grad=True), tensor([ 0.4608, -0.9216]))
    """

    _counters = ("step", "eta", "mu")

    def __init__(
        self, params: Any, lr: float | Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, checked(locals()))

    _states = staticmethod(lambda flags: ("ax",))

    def _init_state(self, group, p, state):
        state["step"] = new_counter(0.0)
        state["eta"] = new_counter(float(to_scalar(group["lr"])))
        state["mu"] = new_counter(1.0)
        state["ax"] = zeros_like(p, memory_format=preserve_format)

    @staticmethod
    def _scalars(group, counters):
        step, eta, mu = counters
        step = step + 1
        lr, lambd = number(group["lr"], group), group["lambd"]
        new_eta = to_scalar(lr) / ((1 + lambd * to_scalar(lr) * step) ** group["alpha"])
        new_mu = 1 / max(1, step - group["t0"])
        return (step, new_eta, new_mu), (group["weight_decay"], 1 - lambd * eta, eta, mu)


def asgd(
    params: list[Tensor], grads: list[Tensor], axs: list[Tensor], mus: list[Tensor], etas: list[Tensor],
    state_steps: list[Tensor], foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    capturable: bool = False, has_complex: bool = False, *, lambd: float, lr: float | Tensor, t0: float,
    alpha: float, weight_decay: float,
) -> None:  # fmt: skip
    """One step of :class:`ASGD` on lists, of which the state and the steps so far are written, too."""
    step_lists(ASGD, locals(), params, grads, (axs,), state_steps, etas, mus)
