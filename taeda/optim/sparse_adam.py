"""Adam for sparse gradients: only rows that have a gradient are updated."""

from __future__ import annotations

import math
from typing import Any

from .._core import preserve_format
from .._typed import Tensor
from ..ops.creation import zeros_like
from ._elementwise import ElementwiseOptimizer, number
from .optimizer import at_least_zero, checked

__all__ = ["SparseAdam"]


def _rule(x, flags, scalars, p, g, mean, square):
    """Adam without decay (Kingma and Ba 2014), its corrections in the step's size."""
    (maximize,) = flags
    size, one_minus_beta1, one_minus_beta2, eps = scalars
    if maximize:
        g = -g
    mean = mean + one_minus_beta1 * (g - mean)
    square = square + one_minus_beta2 * (g * g - square)
    return p - size * (mean / (x.sqrt(square) + eps)), mean, square


class SparseAdam(ElementwiseOptimizer, rule=_rule, scalars=4):
    """Adam for sparse gradients: only entries that a gradient has are updated, they and their moments.

    The formula is that of :class:`Adam`. It saves time where a large embedding sees few of its rows in a batch:
    ``nn.Embedding(..., sparse=True)`` makes such gradients.

    Args:
        params: the tensors to update: dense, real, with sparse gradients.
        lr: learning rate, at least 0: a number or a tensor with one element.
        betas: ``(beta1, beta2)``, each in ``[0, 1)``.
        eps: added to the denominator, so that it is not zero.
        maximize: climb rather than descend.

    Raises:
        ValueError: an option is out of its range, or a parameter is sparse or complex.
        RuntimeError: in a step, a gradient is dense.

    Examples:
        >>> words = nn.Embedding(1000, 3, sparse=True)
        >>> optimizer = taeda.optim.SparseAdam(words.parameters(), lr=0.1)
        >>> before = words.weight.detach().clone()
        >>> words(taeda.tensor([7, 42])).sum().backward()
        >>> optimizer.step()
        >>> (words.weight != before).any(1).nonzero().flatten()  # the rows that changed
        tensor([ 7, 42])
    """

    _counters = ()  # the step is a plain number here, as in PyTorch
    _by_rows = True

    def __init__(
        self, params: Any, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not at_least_zero("lr", lr) or lr == 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        super().__init__(params, checked(locals()))
        places = [(i, j, p) for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"])]
        if found := [[i, j] for i, j, p in places if p.is_sparse]:
            raise ValueError(f"Sparse params at indices {found}: SparseAdam requires dense parameter tensors")
        if found := [[i, j] for i, j, p in places if p.is_complex()]:
            raise ValueError(f"Complex params at indices {found}: SparseAdam does not support complex parameters")

    @staticmethod
    def _flags(group):
        return (bool(group["maximize"]),)

    _states = staticmethod(lambda flags: ("exp_avg", "exp_avg_sq"))

    def _init_state(self, group, p, state):
        state["step"] = 0
        for name in ("exp_avg", "exp_avg_sq"):
            state[name] = zeros_like(p, memory_format=preserve_format)

    def step(self, closure: Any = None) -> Any:
        """Update every parameter that has a gradient.

        Args:
            closure: computes the loss again and returns it.
        Returns:
            The loss, if there is a closure.
        Raises:
            RuntimeError: a gradient is dense.
        """
        loss = self._loss(closure)
        for group in self.param_groups:
            flags = self._flags(group)
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not p.grad.is_sparse:
                    raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
                state = self.state[p]
                if not state:
                    self._init_state(group, p, state)
                state["step"] = step = int(state["step"]) + 1
                beta1, beta2 = group["betas"]
                lr = number(group["lr"], group)
                size = lr * math.sqrt(1 - beta2**step) / (1 - beta1**step)
                scalars = (size, 1 - beta1, 1 - beta2, group["eps"])
                self._sparse(group, flags, scalars, p, p.grad, [state["exp_avg"], state["exp_avg_sq"]])
        return loss
