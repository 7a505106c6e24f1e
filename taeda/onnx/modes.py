"""Names for how a model is exported, and whether one is being exported now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

__all__ = ["OperatorExportTypes", "TrainingMode", "exporting", "is_in_onnx_export", "select_model_mode_for_export"]


class TrainingMode(Enum):
    """The mode that a model is in while it is exported with ``dynamo=False``."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(Enum):
    """The treatment of ops that ONNX does not have. Only ``ONNX`` is supported: they are errors."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


_depth = 0


@contextmanager
def exporting() -> Iterator[None]:
    """A model is exported within it."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


def is_in_onnx_export() -> bool:
    """Whether this runs while a model is being exported."""
    return _depth > 0


@contextmanager
def select_model_mode_for_export(model: Any, mode: TrainingMode) -> Iterator[None]:
    """Within it ``model`` and the modules in it are in this mode; afterwards in their own ones again."""
    before = [(m, m.training) for m in model.modules()]
    try:
        if mode is not TrainingMode.PRESERVE:
            model.train(mode is TrainingMode.TRAINING)
        yield
    finally:
        for module, training in before:
            module.training = training
