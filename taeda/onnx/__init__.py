"""``taeda.onnx``: models written as ONNX, which taeda does not do yet."""

from __future__ import annotations

from .._refuse import refused_class, refused_function

__all__ = ["ONNXProgram", "dynamo_export", "export", "is_in_onnx_export"]

_WHY = "models cannot be written as ONNX yet; save the state_dict with taeda.save"

ONNXProgram = refused_class("onnx.ONNXProgram", _WHY)
export, dynamo_export = refused_function("onnx.export", _WHY), refused_function("onnx.dynamo_export", _WHY)


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: object, opset_version: int) -> None:
    """Accepted: nothing is written."""


def is_in_onnx_export() -> bool:
    """Whether this runs while a model is being exported: False."""
    return False
