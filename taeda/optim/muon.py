"""Muon (Jordan et al. 2024): momentum whose matrix is made nearly orthogonal."""

from __future__ import annotations

import math
from typing import Any

from .._core import preserve_format
from .._typed import Tensor
from ..autograd import no_grad
from ..ops.creation import zeros_like
from ..ops.matmul import addmm
from .optimizer import Optimizer, options, refuse_capture, to_scalar

__all__ = ["Muon"]


def _orthogonalise(grad: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """``U V^T`` of the singular value decomposition, nearly: Newton-Schulz iteration in bfloat16."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = grad.size(0) > grad.size(1)
    x = grad.bfloat16()
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = addmm(x, addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


class Muon(Optimizer):
    """Momentum whose matrix is made nearly orthogonal, for matrices only.

    With gradient ``g``: ``b += (1 - momentum) * (g - b)``, and ``u`` is ``b``, or ``g + momentum * (b - g)`` with
    ``nesterov``. Then ``O`` is ``U V^T`` of the singular value decomposition of ``u``, nearly: ``ns_steps`` iterations
    of a polynomial in bfloat16. ``p`` is shrunk by ``1 - lr * weight_decay``, and ``p -= lr * ratio * O``. All
    directions in which the layer can change get steps of the same size. Embeddings, biases and the last layer take
    :class:`AdamW`. Source: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/.

    Args:
        params: parameters of shape ``(n, m)``, or groups of them.
        lr: learning rate.
        weight_decay: shrinks the parameters directly.
        momentum: decay of the running mean of gradients.
        nesterov: look ahead along it.
        ns_coefficients: ``(a, b, c)`` of the polynomial ``a x + b x^3 + c x^5``.
        eps: least norm to divide by.
        ns_steps: iterations.
        adjust_lr_fn: ``"original"`` (or None): ``ratio`` is ``sqrt(max(1, n / m))``; ``"match_rms_adamw"``:
            ``0.2 * sqrt(max(n, m))``, so that rates found for AdamW fit.

    Raises:
        ValueError: a parameter is no matrix, or an option is out of its range.

    Examples:
        >>> w = taeda.zeros(2, 2, requires_grad=True)
        >>> optimizer = taeda.optim.Muon([w], lr=0.1)
        >>> w.grad = taeda.tensor([[5.0, 0.0], [0.0, 0.01]])
        >>> optimizer.step()
        >>> bool(abs(w[1, 1]) > 0.03)  # the small gradient moves its direction, too
        True
    """

    def __init__(
        self, params: Any, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        defaults = options(locals())
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not value >= 0.0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}"
                    )

    def step(self, closure: Any = None) -> Any:
        """Update every parameter that has a gradient."""
        refuse_capture("Muon")
        loss = self._loss(closure)
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        self._update(group, p)
        return loss

    def _update(self, group: dict, p: Tensor) -> None:
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        lr, momentum = to_scalar(group["lr"]), group["momentum"]
        state, grad = self.state[p], p.grad
        assert grad is not None  # step passes over parameters without one
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = zeros_like(grad, memory_format=preserve_format)
        buf = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        update = grad.lerp(buf, momentum) if group["nesterov"] else buf
        update = _orthogonalise(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, cols = p.shape
        ratio = math.sqrt(max(1, rows / cols))
        if group["adjust_lr_fn"] == "match_rms_adamw":
            ratio = 0.2 * math.sqrt(max(rows, cols))
        p.mul_(1 - lr * group["weight_decay"])
        p.add_(update.to(p.dtype), alpha=-lr * ratio)
