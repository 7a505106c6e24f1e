"""``taeda.onnx.errors``: what exporting raises."""

from __future__ import annotations

__all__ = ["OnnxExporterError", "UnsupportedOperatorError"]


class OnnxExporterError(RuntimeError):
    """A model could not be written as ONNX: the message names the op, the user's line and what to do instead."""


class UnsupportedOperatorError(OnnxExporterError):
    """The model has an op that ONNX, or the opset that was asked for, has no form of."""
