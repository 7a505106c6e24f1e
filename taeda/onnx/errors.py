"""``taeda.onnx.errors``: what exporting raises."""

from __future__ import annotations

__all__ = ["ConversionError", "OnnxExporterError", "TorchExportError", "UnsupportedOperatorError"]


class OnnxExporterError(RuntimeError):
    """A model could not be written as ONNX: the message names the op, the user's line and what to do instead."""


class TorchExportError(OnnxExporterError):
    """The model could not be recorded: the cause is what ``export`` raised."""


class ConversionError(OnnxExporterError):
    """A program that was recorded could not be written."""


class UnsupportedOperatorError(ConversionError):
    """The model has an op that ONNX, or the opset that was asked for, has no form of."""
