"""ONNX's training ops: the gradient of a part of a graph, and steps of optimisers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import autograd
from ..._typed import Tensor
from ...autograd import enable_grad
from ...ops.creation import zeros_like
from ...ops.powers import sqrt
from ..table import TRAINING, op


@op("Gradient", domain=TRAINING)
def gradient(*inputs: Tensor, xs: list[str], y: str, body: Callable, zs: list[str] | None = None) -> tuple[Tensor, ...]:
    """The derivatives of ``y``, which ``body`` computes from the inputs, by the first of them."""
    with enable_grad():
        variables = [x if x.requires_grad else x.detach().requires_grad_() for x in inputs[: len(xs)]]
        (result,) = body(*variables, *inputs[len(xs) :])
        found = autograd.grad(result.sum(), variables, allow_unused=True)
    return tuple(zeros_like(x) if g is None else g for x, g in zip(variables, found, strict=True))


def _each(inputs: tuple[Tensor, ...], count: int, update: Callable) -> tuple[Tensor, ...]:
    """``update`` for each tensor with its gradient and ``count - 2`` states: new tensors first, then states by kind."""
    n = len(inputs) // count
    results = [update(*inputs[i::n]) for i in range(n)]
    return tuple(result for kind in zip(*results, strict=True) for result in kind)


@op("Adagrad", domain=TRAINING)
def adagrad(
    rate: Tensor, step: Tensor, *inputs: Tensor, decay_factor: float = 0.0, epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> tuple[Tensor, ...]:  # fmt: skip
    def update(x: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        g = norm_coefficient * x + g
        h = h + g * g
        return x - rate / (1 + step * decay_factor) * g / (sqrt(h) + epsilon), h

    return _each(inputs, 3, update)


@op("Adam", domain=TRAINING)
def adam(
    rate: Tensor, step: Tensor, *inputs: Tensor, alpha: float = 0.9, beta: float = 0.999, epsilon: float = 1e-6,
    norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0,
) -> tuple[Tensor, ...]:  # fmt: skip
    t: Any = int(step)
    adjusted = rate * (1 - beta**t) ** 0.5 / (1 - alpha**t) if t > 0 else rate

    def update(x: Tensor, g: Tensor, v: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        g = norm_coefficient * x + g
        v, h = alpha * v + (1 - alpha) * g, beta * h + (1 - beta) * g * g
        return (1 - norm_coefficient_post) * (x - adjusted * v / (sqrt(h) + epsilon)), v, h

    return _each(inputs, 4, update)


@op("Momentum", domain=TRAINING)
def momentum(
    rate: Tensor, step: Tensor, *inputs: Tensor, alpha: float, beta: float, mode: str, norm_coefficient: float
) -> tuple[Tensor, ...]:
    scale = beta if int(step) > 0 else 1.0

    def update(x: Tensor, g: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        g = norm_coefficient * x + g
        v = alpha * v + scale * g
        return x - rate * (g + alpha * v if mode == "nesterov" else v), v

    return _each(inputs, 3, update)
