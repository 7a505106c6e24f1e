"""Products of matrices."""

from __future__ import annotations

from typing import Any

from ..._core import int32
from ..writer import Value, Writer
from .elementwise import wide
from .table import translates


@translates("nn.functional.linear")
def linear(g: Writer, input: Value, weight: Value, bias: Value | None = None) -> Value:
    if input.rank == 2 and weight.rank == 2:
        return g.Gemm(input, weight, bias, transB=1)
    made = g.MatMul(input, g.transpose(weight, [1, 0]) if weight.rank == 2 else weight)
    return made if bias is None else g.Add(made, bias)


@translates("matmul")
def matmul(g: Writer, input: Value, other: Value) -> Value:
    return g.MatMul(*wide(g, input, other))


translates("mm bmm")(lambda g, input, mat2: matmul(g, input, mat2))
translates("mv")(lambda g, input, vec: matmul(g, input, vec))
translates("dot")(lambda g, input, tensor: matmul(g, input, tensor))


@translates("addmm")
def addmm(g: Writer, input: Value, mat1: Value, mat2: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    if input.dtype.is_floating_point:
        return g.Gemm(mat1, mat2, None if beta == 0 else input, alpha=float(alpha), beta=float(beta))
    return added(g, input, g.MatMul(*wide(g, mat1, mat2)), beta, alpha)


def added(g: Writer, input: Value, product: Value, beta: Any, alpha: Any) -> Value:
    """``beta * input + alpha * product``."""
    product = product if alpha == 1 else g.Mul(product, g.cast(alpha, product.dtype))
    if beta == 0:
        return product
    input = g.cast(input, product.dtype)
    return g.Add(product, input if beta == 1 else g.Mul(input, g.cast(beta, product.dtype)))


@translates("baddbmm")
def baddbmm(g: Writer, input: Value, batch1: Value, batch2: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    return added(g, input, g.MatMul(*wide(g, batch1, batch2)), beta, alpha)


@translates("functional.einsum")
def einsum(g: Writer, *args: Any) -> Value:
    equation, operands = args[0], args[1:]
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    return g.Einsum(*g.promoted(*operands), equation=equation)


translates("_det det")(lambda g, A: g.Det(A))


@translates("_slogdet")
def slogdet(g: Writer, A: Value) -> tuple:
    value = g.Det(A)
    return g.Sign(value), g.Log(g.Abs(value)), None, None, None


@translates("_euclidean")
def euclidean(g: Writer, x1: Value, x2: Value) -> Value:
    return g.reduce("ReduceL2", g.Sub(g.Unsqueeze(x1, [-2]), g.Unsqueeze(x2, [-3])), [-1])


translates("_int_mm")(lambda g, input, mat2: g.MatMul(g.cast(input, int32), g.cast(mat2, int32)))
