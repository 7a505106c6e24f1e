"""Reductions: how the values of several processes become one."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Sequence
from functools import reduce as fold
from typing import Any

from .._core import bfloat16, float16
from .._typed import Tensor
from ..ops.extrema import maximum, minimum
from ..ops.pointwise import add

HALVES = (float16, bfloat16)


class ReduceOp(enum.Enum):
    """The ways in which values of several processes become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    @classmethod
    def _missing_(cls, value: object) -> ReduceOp:
        raise TypeError(f"ReduceOp: expected one of {', '.join(f'ReduceOp.{op.name}' for op in cls)}, got {value!r}")

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Whether complex numbers have this reduction: sums and means."""
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM)


_COMBINE: dict[ReduceOp, Callable[[Tensor, Tensor], Tensor]] = {
    ReduceOp.SUM: operator.add, ReduceOp.AVG: operator.add, ReduceOp.PRODUCT: operator.mul, ReduceOp.MIN: minimum,
    ReduceOp.MAX: maximum, ReduceOp.BAND: operator.and_, ReduceOp.BOR: operator.or_, ReduceOp.BXOR: operator.xor,
}  # fmt: skip


def check_op(name: str, op: Any, tensor: Tensor) -> ReduceOp:
    """``op``, if it is one for the dtype of ``tensor``.

    Args:
        name: of the collective, for messages.
        op: a ReduceOp.
        tensor: what is combined.

    Returns:
        ``op``.

    Raises:
        TypeError: it is no ReduceOp.
        ValueError, RuntimeError: it is not defined for the dtype.
    """
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{name}: expected op to be a ReduceOp, got {op!r}")
    if op is ReduceOp.PREMUL_SUM:
        raise ValueError(f"{name}: ReduceOp.PREMUL_SUM is not supported; multiply the tensor first")
    if tensor.is_complex() and not supports_complex(op):
        raise ValueError(f"{name} does not support {op!r} on complex tensors")
    if op.name.startswith("B") and (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op is ReduceOp.AVG and not (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(
            f"{name}: ReduceOp.AVG of {tensor.dtype}: the mean is not a whole number; use SUM and divide"
        )
    return op


def combined(op: ReduceOp, parts: Sequence[Tensor]) -> Tensor:
    """The tensors ``parts`` of one form, combined in their order; half precision is added up in float32."""
    dtype = parts[0].dtype
    if dtype in HALVES and len(parts) > 1:
        return combined(op, [part.float() for part in parts]).to(dtype)
    result = fold(_COMBINE[op], parts)
    return result / len(parts) if op is ReduceOp.AVG and len(parts) > 1 else result


def combine_into(out: Tensor, op: ReduceOp, parts: Sequence[Tensor]) -> None:
    """Write :func:`combined` to ``out``, without memory of its own for two tensors that are added."""
    if len(parts) == 2 and op is ReduceOp.SUM and out.dtype not in HALVES:
        add(parts[0], parts[1], out=out)
    else:
        out.copy_(combined(op, parts))
