"""Elementwise ONNX ops: arithmetic, comparison, logic, activations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import taeda
import taeda.nn.functional as F

from ..._typed import Tensor
from ..pairs import BINARY, FLOATING, UNARY
from ..table import op

# ---- one input -------------------------------------------------------------------------------------------------------
_UNARY: dict[str, Callable] = {
    **FLOATING, **UNARY, "BitwiseNot": taeda.bitwise_not, "Ceil": taeda.ceil, "Floor": taeda.floor,
    "IsNaN": taeda.isnan, "Mish": F.mish, "Not": taeda.logical_not, "Round": taeda.round,
}  # fmt: skip
for _name, _function in _UNARY.items():
    op(_name)(_function)


@op("Softplus")
def softplus(x: Tensor) -> Tensor:
    return taeda.logaddexp(x, taeda.zeros_like(x))  # F.softplus is the identity from 20 on


@op("IsInf")
def is_inf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    found = taeda.isinf(x)
    if not detect_negative:
        found = found & (x > 0)
    return found if detect_positive else found & (x < 0)


op("Elu")(lambda x, *, alpha=1.0: F.elu(x, alpha))
op("Celu")(lambda x, *, alpha=1.0: F.celu(x, alpha))
op("Selu")(lambda x, *, alpha=1.6732632423543772, gamma=1.0507009873554805: gamma * F.elu(x, alpha))
op("LeakyRelu")(lambda x, *, alpha=0.01: F.leaky_relu(x, alpha))
op("ThresholdedRelu")(lambda x, *, alpha=1.0: taeda.where(x > alpha, x, 0))
op("HardSigmoid")(lambda x, *, alpha=0.2, beta=0.5: taeda.clamp(alpha * x + beta, 0, 1))
op("Gelu")(lambda x, *, approximate="none": F.gelu(x, approximate=approximate))


@op("Shrink")
def shrink(x: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    shrunk = taeda.where(x < -lambd, x + bias, taeda.where(x > lambd, x - bias, 0))
    return shrunk.to(x.dtype)


@op("Swish")
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x * taeda.sigmoid(alpha * x)


op("SwiGLU")(lambda gate, x, *, alpha=1.0: swish(gate, alpha=alpha) * x)
op("Clip", 1)(lambda x, *, min=None, max=None: x if min is None and max is None else taeda.clamp(x, min, max))
op("Clip", 11)(lambda x, low=None, high=None: x if low is None and high is None else taeda.clamp(x, low, high))


# ---- two inputs ------------------------------------------------------------------------------------------------------
def _aligned(function: Callable) -> Callable:
    """``function`` of two tensors, with the ways in which opsets before 7 name the dimensions that are repeated."""

    @functools.wraps(function)
    def run(a: Any, b: Any, *, axis: int | None = None, broadcast: int = 0, **attributes: Any) -> Any:
        if axis is not None and broadcast:
            b = b.reshape([*b.shape, *[1] * (a.ndim - axis % a.ndim - b.ndim)])
        return function(a, b, **attributes)

    return run


def _divide(a: Tensor, b: Tensor) -> Tensor:
    return a / b if a.is_floating_point() else taeda.div(a, b, rounding_mode="trunc")


def _equal(a: Any, b: Any) -> Tensor:
    return taeda.from_numpy(np.asarray(a == b, dtype=bool)) if isinstance(a, np.ndarray) else taeda.eq(a, b)


def _power(a: Tensor, b: Tensor) -> Tensor:
    return taeda.pow(a, b).to(a.dtype)


for _name, _function in {
    **BINARY, "Add": taeda.add, "Sub": taeda.sub, "Div": _divide, "Pow": _power, "Equal": _equal,
    "And": taeda.logical_and, "Or": taeda.logical_or, "Xor": taeda.logical_xor, "BitwiseAnd": taeda.bitwise_and,
    "BitwiseOr": taeda.bitwise_or, "BitwiseXor": taeda.bitwise_xor,
}.items():  # fmt: skip
    op(_name)(_aligned(_function))


op("Mod")(lambda a, b, *, fmod=0: taeda.fmod(a, b) if fmod else taeda.remainder(a, b))
op("BitShift")(lambda x, by, *, direction: (
    taeda.bitwise_left_shift if direction == "LEFT" else taeda.bitwise_right_shift)(x, by))  # fmt: skip


op("PRelu", 1)(lambda x, slope: prelu(x, slope.reshape(-1, *[1] * (x.ndim - 2)) if slope.ndim == 1 else slope))


@op("PRelu", 7)
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    return taeda.where(x < 0, slope * x, x)


# ---- any number of inputs --------------------------------------------------------------------------------------------
op("Max")(lambda *inputs: functools.reduce(taeda.maximum, inputs))
op("Min")(lambda *inputs: functools.reduce(taeda.minimum, inputs))
op("Sum")(lambda *inputs: functools.reduce(taeda.add, inputs))
op("Mean")(lambda *inputs: functools.reduce(taeda.add, inputs) / len(inputs))


@op("Where")
def where(condition: Tensor, a: Any, b: Any) -> Any:
    if isinstance(a, np.ndarray):
        return np.where(condition.numpy(), a, b)
    return taeda.where(condition, a, b)
