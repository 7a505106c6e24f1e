"""``taeda.onnx.verification``: the difference between onnxruntime's results and the model's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from taeda.utils import _pytree as pytree

from .._core import complex128, float64
from .._typed import Tensor
from .program import ONNXProgram

__all__ = ["VerificationInfo", "verify_onnx_program"]


@dataclass
class VerificationInfo:
    """The difference of an output from the expected one.

    Attributes:
        name: of the output.
        max_abs_diff, max_rel_diff: the largest difference, and the largest one over the size of the number expected.
        expected_dtype, actual_dtype: the dtypes.
    """

    name: str
    max_abs_diff: float
    max_rel_diff: float
    expected_dtype: Any
    actual_dtype: Any


def verify_onnx_program(
    onnx_program: ONNXProgram, args: tuple | None = None, kwargs: dict[str, Any] | None = None,
    compare_intermediates: bool = False,
) -> list[VerificationInfo]:  # fmt: skip
    """Run a model in onnxruntime, and compare its outputs with those of the program that it was made from.

    Args:
        onnx_program: the model.
        args: arguments; those of the example by default.
        kwargs: arguments by name.
        compare_intermediates: refused where it is True.
    Returns:
        An entry for each output.
    Raises:
        ValueError: no arguments were given, and there is no example.
        NotImplementedError: ``compare_intermediates`` is True. ``onnx_program.compute_values`` gives values inside.
    """
    if compare_intermediates:
        raise NotImplementedError("verify_onnx_program: compare_intermediates is not available; see compute_values")
    program = onnx_program.exported_program
    if args is None and kwargs is None:
        if program.example_inputs is None:
            raise ValueError("verify_onnx_program: no arguments were given, and the program has no example")
        args, kwargs = program.example_inputs
    args, kwargs = args or (), kwargs or {}
    wanted = [x for x in pytree.tree_leaves(program.module()(*args, **kwargs)) if isinstance(x, Tensor)]
    names = [x.name for x in onnx_program.model_proto.graph.output]
    return [_compared(*each) for each in zip(names, onnx_program(*args, **kwargs), wanted, strict=True)]


def _compared(name: str, got: Tensor, wanted: Tensor) -> VerificationInfo:
    if got.shape != wanted.shape:
        raise ValueError(f"verify_onnx_program: {name} has sizes {list(got.shape)}, expected {list(wanted.shape)}")
    kind = complex128 if wanted.is_complex() else float64
    x, y = got.detach().to(kind), wanted.detach().to(kind)
    apart = (x - y).abs()
    apart = apart.masked_fill((x == y) | ((x != x) & (y != y)), 0.0)
    relative = apart / (y.abs() + 1e-7)
    far, near = (float(d.max()) if d.numel() else 0.0 for d in (apart, relative))
    return VerificationInfo(name, far, near, wanted.dtype, got.dtype)
