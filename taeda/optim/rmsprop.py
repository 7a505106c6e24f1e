"""RMSprop (Hinton 2012), centred as in Graves 2013."""

from __future__ import annotations

from typing import Any

from .._typed import Tensor
from ._elementwise import ElementwiseOptimizer, descent, number, step_lists
from .optimizer import check_nonnegative, checked

__all__ = ["RMSprop", "rmsprop"]


def _rule(x, flags, scalars, p, g, squares, *more):
    """Divide by the root of the running mean of squares; ``more`` is the momentum buffer, then the running mean."""
    decay, momentum, centered, maximize = flags
    lr, weight_decay, alpha, rest, eps, mu = scalars
    g = descent(x, p, g, weight_decay if decay else None, maximize)
    squares = x.fma(rest * g, g, alpha * squares)
    extra: tuple = ()
    variance = squares
    if centered:
        mean = x.fma(rest, g - more[-1], more[-1])
        variance, extra = squares - mean * mean, (mean,)
    step = g / (x.sqrt(variance) + eps)
    if momentum:
        step = x.fma(mu, more[0], step)
        extra = (step, *extra)
    return p - lr * step, squares, *extra


class RMSprop(ElementwiseOptimizer, rule=_rule, scalars=6):
    """RMSprop: the gradient over the root of the running mean of its squares.

    With gradient ``g``: ``s = alpha * s + (1 - alpha) * g**2``, then ``p -= lr * g / (sqrt(s) + eps)``. With
    ``momentum`` the step is ``b = momentum * b + g / (sqrt(s) + eps)``. With ``centered``, ``s`` less the square of the
    running mean of gradients is used: their variance. Sources: Tieleman & Hinton 2012, Coursera lecture 6.5; centered:
    Graves 2013, "Generating Sequences With Recurrent Neural Networks".

    Args:
        params: the tensors to update, ``(name, tensor)`` pairs, or dicts with ``"params"`` and options. Of any
            sizes, of floating-point or complex dtypes.
        lr: learning rate, at least 0: a number or a tensor with one element.
        alpha: decay of the running means.
        eps: added to the denominator, so that it is not zero.
        weight_decay: adds ``weight_decay * p`` to the gradient.
        momentum: factor of the running sum of steps; 0 for none.
        centered: divide by the root of the variance.
        capturable: accepted, changes nothing.
        foreach: accepted, changes nothing: all parameters are updated together.
        maximize: climb rather than descend.
        differentiable: record the step in the graph, so that one can differentiate through it.

    Raises:
        ValueError: an option is negative.

    Examples:
        >>> w = taeda.tensor([1.0, -200.0], requires_grad=True)
        >>> optimizer = taeda.optim.RMSprop([w], lr=0.01)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([   0.9000, -199.9000], requires_grad=True)
    """

    def __init__(
        self, params: Any, lr: float | Tensor = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
        momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_nonnegative(alpha=alpha)
        super().__init__(params, checked(locals(), "lr", "momentum", "alpha", "eps", "centered"))

    @staticmethod
    def _flags(group):
        return group["weight_decay"] != 0, group["momentum"] > 0, bool(group["centered"]), bool(group["maximize"])

    @staticmethod
    def _states(flags):
        return ("square_avg", *(("momentum_buffer",) if flags[1] else ()), *(("grad_avg",) if flags[2] else ()))

    @staticmethod
    def _scalars(group, counters):
        alpha = group["alpha"]
        return (counters[0] + 1,), (
            number(group["lr"], group), group["weight_decay"], alpha, 1 - alpha, group["eps"], group["momentum"]
        )  # fmt: skip


def rmsprop(
    params: list[Tensor], grads: list[Tensor], square_avgs: list[Tensor], grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor], state_steps: list[Tensor], foreach: bool | None = None,
    maximize: bool = False, differentiable: bool = False, capturable: bool = False, has_complex: bool = False, *,
    lr: float | Tensor, alpha: float, eps: float, weight_decay: float, momentum: float, centered: bool,
) -> None:  # fmt: skip
    """One step of :class:`RMSprop` on lists, of which the state and the steps so far are written, too."""
    given = locals()
    states = (square_avgs, *([momentum_buffer_list] if momentum > 0 else ()), *([grad_avgs] if centered else ()))
    step_lists(RMSprop, given, params, grads, states, state_steps)
