"""``taeda.onnx``: ONNX models read as modules; taeda does not write them yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refuse import refused_class, refused_function
from .table import NodeError

if TYPE_CHECKING:
    from .loading import Model

__all__ = ["NodeError", "ONNXProgram", "dynamo_export", "export", "is_in_onnx_export", "load"]

_WHY = "models cannot be written as ONNX yet; save the state_dict with taeda.save"

ONNXProgram = refused_class("onnx.ONNXProgram", _WHY)
export, dynamo_export = refused_function("onnx.export", _WHY), refused_function("onnx.dynamo_export", _WHY)


def load(file: Any) -> Model:
    """Read an ONNX model as a :class:`taeda.nn.Module`.

    Floating-point initializers are its parameters (but for the statistics of BatchNormalization), the others its buffers.
    It is called with tensors in the order of the
    graph's inputs, or by their names, and gives a tensor, or a tuple in the order of the outputs. No code of the file is run.

    Args:
        file: a path, the bytes of a file, an open file, or an ``onnx.ModelProto``. Data in other files needs the path.
    Raises:
        ImportError: the package ``onnx`` is not installed.
        ValueError: the model is broken: cut off, cyclic, of wrong types.
        NotImplementedError: it has an op or a type that taeda does not have; the message names the node.
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError("taeda.onnx.load needs the package onnx: pip install 'taeda[onnx]'") from error
    from . import loading

    return loading.load(file)


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: object, opset_version: int) -> None:
    """Accepted: nothing is written."""


def is_in_onnx_export() -> bool:
    """Whether this runs while a model is being exported: False."""
    return False
