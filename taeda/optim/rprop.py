"""Rprop (Riedmiller & Braun 1993)."""

from __future__ import annotations

from typing import Any

from .._core import preserve_format
from .._typed import Tensor
from ..ops.creation import full_like, zeros_like
from ._elementwise import ElementwiseOptimizer, new_counter, step_lists
from .optimizer import checked, to_scalar

__all__ = ["Rprop", "rprop"]


def _rule(x, flags, scalars, p, g, previous, size):
    """Step by the gradient's sign; sizes grow while signs agree and shrink when they change."""
    (maximize,) = flags
    shrink, grow, smallest, largest = scalars
    if maximize:
        g = -g
    agreement = g * previous
    turned = agreement < 0
    size = x.where(turned, size * shrink, x.where(agreement > 0, size * grow, size))
    size = x.minimum(x.maximum(size, smallest), largest)
    g = x.where(turned, 0.0, g)
    return p - x.sign(g) * size, g, size


class Rprop(ElementwiseOptimizer, rule=_rule, scalars=4):
    """Resilient backpropagation: each element has a step size of its own, and only the gradient's sign counts.

    Where the sign is that of the step before, the size is multiplied by ``etas[1]``. Where it has changed, the size is
    multiplied by ``etas[0]``, and the element stays for this step. Then ``p -= sign(g) * size``. For gradients without
    noise (all data in each step). Source: Riedmiller & Braun 1993, "A Direct Adaptive Method for Faster Backpropagation
    Learning: The RPROP Algorithm".

    Args:
        params: the tensors to update, ``(name, tensor)`` pairs, or dicts with ``"params"`` and options. Of any
            sizes, of floating-point or complex dtypes.
        lr: first step size.
        etas: factors by which a size shrinks, below 1, and grows, above 1.
        step_sizes: least and largest size.
        foreach: accepted, changes nothing: all parameters are updated together.
        maximize: climb rather than descend.
        differentiable: record the step in the graph, so that one can differentiate through it.
        capturable: accepted, changes nothing.

    Raises:
        ValueError: ``lr`` is negative, or ``etas`` are not as ``0 < etas[0] < 1 < etas[1]``.

    Examples:
        >>> w = taeda.tensor([1.0, -200.0], requires_grad=True)
        >>> optimizer = taeda.optim.Rprop([w], lr=0.1)
        >>> for step in range(2):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([   0.7800, -199.7800], requires_grad=True)
    """

    def __init__(
        self, params: Any, lr: float | Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, foreach: bool | None = None, maximize: bool = False,
        differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, checked(locals()))

    @staticmethod
    def _flags(group):
        return (bool(group["maximize"]),)

    _states = staticmethod(lambda flags: ("prev", "step_size"))

    def _init_state(self, group, p, state):
        lr = to_scalar(group["lr"])
        state["step"] = new_counter(0.0)
        state["prev"] = zeros_like(p, memory_format=preserve_format)
        state["step_size"] = full_like(p, complex(lr, lr) if p.is_complex() else lr, memory_format=preserve_format)

    @staticmethod
    def _scalars(group, counters):
        return (counters[0] + 1,), (*group["etas"], *group["step_sizes"])


def rprop(
    params: list[Tensor], grads: list[Tensor], prevs: list[Tensor], step_sizes: list[Tensor], state_steps: list[Tensor],
    foreach: bool | None = None, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    has_complex: bool = False, *, step_size_min: float, step_size_max: float, etaminus: float, etaplus: float,
) -> None:  # fmt: skip
    """One step of :class:`Rprop` on lists, of which the state and the steps so far are written, too."""
    given, etas, sizes = locals(), (etaminus, etaplus), (step_size_min, step_size_max)
    step_lists(Rprop, given, params, grads, (prevs, step_sizes), state_steps, etas=etas, step_sizes=sizes)
