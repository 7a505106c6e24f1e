"""Adafactor (Shazeer & Stern 2018): second moments kept as a row times a column."""

from __future__ import annotations

from typing import Any

from .._core import preserve_format
from .._typed import Tensor
from ..autograd import no_grad
from ..ops.creation import zeros_like
from ..types import finfo
from ._elementwise import new_counter
from .optimizer import Optimizer, at_least_zero, options, refuse_capture, to_scalar

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Adam without the mean of gradients and with a factored mean of squares, so that its state takes little memory.

    For a matrix of ``n`` rows and ``m`` columns the state is ``n + m`` numbers rather than ``2 n m``: the means ``R``
    of ``g**2`` over rows and ``C`` over columns, and ``V = R C / mean(R)``. In step ``t`` the means take
    ``t**beta2_decay`` of the new. With ``U = g / sqrt(V)``, scaled down to a root mean square of at most ``d``, the
    step is ``p -= max(eps[1], rms(p)) * min(lr, 1 / sqrt(t)) * U``. Parameters of one dimension keep all of ``V``.
    Source: Shazeer & Stern 2018, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost".

    Args:
        params: the tensors to update, or dicts with such a list under ``"params"``. Any shape, floating-point.
        lr: largest step relative to the size of the parameter.
        beta2_decay: exponent, at most 0.
        eps: least ``sqrt(V)`` (the dtype's epsilon if None), and least size of a parameter.
        d: largest root mean square of ``U``, at least 1.
        weight_decay: shrinks the parameters directly, ``p *= 1 - lr * weight_decay``.
        foreach: accepted, changes nothing.
        maximize: climb rather than descend.

    Raises:
        ValueError: an option is out of its range.
        RuntimeError: in a step, a parameter is complex.

    Examples:
        >>> w = taeda.ones(300, 200, requires_grad=True)
        >>> optimizer = taeda.optim.Adafactor([w])
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> sum(s.numel() for s in optimizer.state[w].values())  # Adam has 120001
        501
    """

    def __init__(
        self, params: Any, lr: float | Tensor = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
        foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        defaults = options(locals())
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for wrong, text in (
            (not at_least_zero("lr", lr), f"Learning rate should be >= 0 but is: {lr}"),
            (not beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}"),
            (eps[0] is not None and not eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}"),
            (not eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}"),
            (not d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}"),
            (not weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}"),
        ):
            if wrong:
                raise ValueError(text)
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            for p in group["params"]:
                own = self.state.get(p)
                if own and not isinstance(own["step"], Tensor):
                    own["step"] = new_counter(float(own["step"]))

    @staticmethod
    def _init_state(state: dict, grad: Tensor) -> None:
        state["step"] = new_counter(0.0)
        if grad.dim() > 1:
            state["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
            state["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1]))
        else:
            state["variance"] = zeros_like(grad, memory_format=preserve_format)

    def step(self, closure: Any = None) -> Any:
        """Update every parameter that has a gradient."""
        refuse_capture("Adafactor")
        loss = self._loss(closure)
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    if p.is_complex():
                        raise RuntimeError("Adafactor does not support complex parameters")
                    state = self.state[p]
                    if not state:
                        self._init_state(state, p.grad)
                    self._update(group, p, -p.grad if group["maximize"] else p.grad, state)
        return loss

    @staticmethod
    def _update(group: dict, p: Tensor, grad: Tensor, state: dict) -> None:
        lr = to_scalar(group["lr"])
        eps1, eps2 = group["eps"]
        eps1 = finfo(p.dtype).eps if eps1 is None else eps1
        state["step"] += 1
        step = state["step"].item()
        rest = step ** group["beta2_decay"]
        size = p.norm(2).item() / p.numel() ** 0.5
        alpha = max(eps2, size) * min(lr, 1 / step**0.5)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        if grad.dim() > 1:
            row, col = state["row_var"], state["col_var"]
            row.lerp_(grad.norm(dim=-1, keepdim=True).square_().div_(grad.size(-1)), rest)
            col.lerp_(grad.norm(dim=-2, keepdim=True).square_().div_(grad.size(-2)), rest)
            variance = (row @ col).div_(row.mean(dim=-2, keepdim=True).clamp_(min=eps1))
        else:
            variance = state["variance"].lerp_(grad * grad, rest).clone()
        update = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        too_large = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"]))
        p.add_(update, alpha=-alpha / too_large)
