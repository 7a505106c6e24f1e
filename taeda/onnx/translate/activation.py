"""Activation functions."""

from __future__ import annotations

import math
from typing import Any

from ..writer import Value, Writer
from .elementwise import floating, wide
from .table import translates


@translates("hardtanh nn.functional.hardtanh")
def hardtanh(g: Writer, input: Value, min_val: Any = -1.0, max_val: Any = 1.0, inplace: bool = False) -> Value:
    (x,) = wide(g, input)
    return g.Clip(x, g.constant(min_val, x.dtype), g.constant(max_val, x.dtype))


translates("relu6 nn.functional.relu6")(lambda g, input, inplace=False: hardtanh(g, input, 0, 6))


@translates("leaky_relu nn.functional.leaky_relu")
def leaky_relu(g: Writer, input: Value, negative_slope: float = 0.01, inplace: bool = False) -> Value:
    return g.LeakyRelu(input, alpha=float(negative_slope))


translates("elu nn.functional.elu")(lambda g, input, alpha=1.0, inplace=False: g.Elu(input, alpha=float(alpha)))
translates("selu nn.functional.selu")(lambda g, input, inplace=False: g.Selu(input))


@translates("gelu")
def gelu(g: Writer, input: Value, *, approximate: str = "none") -> Value:
    if g.opset >= 20:
        return g.Gelu(input, approximate=approximate)
    if approximate == "tanh":
        cube = g.Mul(g.Mul(input, input), input)
        inner = g.Mul(g.Add(input, g.Mul(cube, 0.044715)), math.sqrt(2 / math.pi))
        return g.Mul(g.Mul(input, 0.5), g.Add(g.Tanh(inner), 1.0))
    return g.Mul(g.Mul(input, 0.5), g.Add(g.Erf(g.Mul(input, math.sqrt(0.5))), 1.0))


@translates("nn.functional.softplus")
def softplus(g: Writer, input: Value, beta: float = 1, threshold: float = 20) -> Value:
    scaled = input if beta == 1 else g.Mul(input, float(beta))
    made = g.Softplus(scaled)
    made = made if beta == 1 else g.Div(made, float(beta))
    return g.Where(g.Greater(scaled, float(threshold)), input, made, dtype=input.dtype)


@translates("mish nn.functional.mish")
def mish(g: Writer, input: Value, inplace: bool = False) -> Value:
    return g.Mish(input) if g.opset >= 18 else g.Mul(input, g.Tanh(g.Softplus(input)))


@translates("hardsigmoid nn.functional.hardsigmoid")
def hardsigmoid(g: Writer, input: Value, inplace: bool = False) -> Value:
    return g.HardSigmoid(input, alpha=1 / 6, beta=0.5)


translates("hardshrink")(lambda g, input, lambd=0.5: g.Shrink(input, lambd=float(lambd), bias=0.0))


@translates("nn.functional.softshrink")
def softshrink(g: Writer, input: Value, lambd: float = 0.5) -> Value:
    return g.Shrink(input, lambd=float(lambd), bias=float(lambd))


translates("nn.functional.logsigmoid")(lambda g, input: g.Neg(g.Softplus(g.Neg(input))))


@translates("nn.functional.rrelu")
def rrelu(
    g: Writer, input: Value, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Value:
    if not training:
        return g.LeakyRelu(input, alpha=(lower + upper) / 2)
    slope = g.RandomUniformLike(input, low=float(lower), high=float(upper))
    return g.Where(g.Less(input, 0.0), g.Mul(input, slope), input, dtype=input.dtype)


translates("softmax")(lambda g, input, dim, dtype=None: _along(g, "Softmax", input, dim))
translates("log_softmax")(lambda g, input, dim, dtype=None: _along(g, "LogSoftmax", input, dim))


def _along(g: Writer, kind: str, x: Value, dim: int) -> Value:
    x = floating(g, g.cast(x, g.result.dtype))
    if x.rank == 0:
        return g.squeeze(g.op(kind, g.unsqueeze(x, [0]), axis=0, shape=(1,)), [0])
    return g.op(kind, x, axis=dim)
