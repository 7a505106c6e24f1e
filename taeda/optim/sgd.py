"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from typing import Any

from .._typed import Tensor
from ..autograd import no_grad
from ._elementwise import ElementwiseOptimizer, TensorMath, descent, number, step_lists
from .optimizer import checked

__all__ = ["SGD", "sgd"]


def _rule(x, flags, scalars, p, g, *state):
    """One step of SGD; ``first``: the momentum buffer starts as the gradient (Sutskever et al. 2013)."""
    decay, momentum, nesterov, maximize, first = flags
    lr, weight_decay, mu, one_minus_dampening = scalars
    g = descent(x, p, g, weight_decay if decay else None, maximize)
    if not momentum:
        return (p - lr * g,)
    buf = g if first else mu * state[0] + one_minus_dampening * g
    return p - lr * (x.fma(mu, buf, g) if nesterov else buf), buf


class SGD(ElementwiseOptimizer, rule=_rule, scalars=4):
    """Stochastic gradient descent: ``p -= lr * g``, where ``g`` is the gradient of ``p``.

    With ``momentum`` the step is a running sum of gradients, ``b = momentum * b + (1 - dampening) * g``, then
    ``p -= lr * b``. The first ``b`` is ``g``. With ``nesterov`` the step is ``g + momentum * b``. Sources: Sutskever et
    al. 2013, "On the importance of initialization and momentum in deep learning"; Nesterov 1983.

    Args:
        params: the tensors to update, ``(name, tensor)`` pairs, or dicts with ``"params"`` and options. Of any
            sizes, of floating-point or complex dtypes.
        lr: learning rate, at least 0: a number or a tensor with one element.
        momentum: factor of the running sum; 0 for none.
        dampening: the gradient enters the sum times ``1 - dampening``.
        weight_decay: adds ``weight_decay * p`` to the gradient.
        nesterov: look ahead along the momentum. Needs ``momentum > 0`` and ``dampening == 0``.
        maximize: climb rather than descend.
        foreach: accepted, changes nothing: all parameters are updated together.
        differentiable: record the step in the graph, so that one can differentiate through it.
        fused: changes nothing: the step is one kernel in any case, except a ``differentiable`` one.

    Raises:
        ValueError: ``lr``, ``momentum`` or ``weight_decay`` is negative; or ``nesterov`` is set without a momentum, or
            with a dampening.
        RuntimeError: ``fused`` is True together with ``foreach`` or ``differentiable``.

    Examples:
        >>> w = taeda.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = taeda.optim.SGD([w], lr=0.1, momentum=0.9)
        >>> for step in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.0620, -0.1240], requires_grad=True)
    """

    _counters = ()
    _by_rows = True

    def __init__(
        self, params: Any, lr: float | Tensor = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: float | Tensor = 0, nesterov: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, checked(locals()))
        self._check_fused(fused, foreach, differentiable)

    def _sparse(self, group, flags, scalars, p, grad, states):
        if flags[1]:  # momentum moves every entry
            self._check_sparse(group)
            with no_grad():
                after = _rule(TensorMath, flags, scalars, p, grad.to_dense(), *states)
                for t, values in zip((p, *states), after, strict=True):
                    t.copy_(values)
        else:
            super()._sparse(group, flags, scalars, p, grad, states)

    @staticmethod
    def _flags(group):
        weight_decay = group["weight_decay"]
        decay = isinstance(weight_decay, Tensor) or weight_decay != 0
        return decay, group["momentum"] != 0, bool(group["nesterov"]), bool(group["maximize"]), False

    _states = staticmethod(lambda flags: ("momentum_buffer",) if flags[1] else ())

    def _init_state(self, group, p, state):
        pass  # the first step, which differs, makes the buffer

    def _fresh(self, flags, state):
        return (*flags[:4], True)

    @staticmethod
    def _scalars(group, counters):
        momentum, dampening = group["momentum"], group["dampening"]
        return (), (number(group["lr"], group), number(group["weight_decay"], group), momentum, 1 - dampening)


def sgd(
    params: list[Tensor], d_p_list: list[Tensor], momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False, foreach: bool | None = None, fused: bool | None = None,
    grad_scale: Tensor | None = None, found_inf: Tensor | None = None, *, weight_decay: float, momentum: float,
    lr: float | Tensor, dampening: float, nesterov: bool, maximize: bool,
) -> None:  # fmt: skip
    """One step of :class:`SGD` on lists; buffers that are None are made and put into their list."""
    step_lists(SGD, locals(), params, d_p_list, (momentum_buffer_list,) if momentum else ())
