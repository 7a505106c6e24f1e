"""ONNX's products of matrices."""

from __future__ import annotations

import taeda

from ..._typed import Tensor
from ..table import op

op("MatMul")(lambda a, b: taeda.matmul(a, b))


@op("Gemm")
def gemm(
    a: Tensor, b: Tensor, c: Tensor | None = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
    transB: int = 0, broadcast: int = 0,
) -> Tensor:  # fmt: skip
    """``alpha * a @ b + beta * c``, either factor transposed."""
    a, b = (a.T if transA else a), (b.T if transB else b)
    if c is None:
        return (alpha * (a @ b)).to(a.dtype) if alpha != 1 else a @ b
    if alpha == 1 and beta == 1 and a.is_floating_point():
        return taeda.addmm(c, a, b)
    return (alpha * (a @ b) + beta * c).to(a.dtype)


op("Einsum")(lambda *inputs, equation: taeda.einsum(equation, *inputs))
op("Det")(lambda x: taeda.linalg.det(x))
