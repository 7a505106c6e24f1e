"""taeda as a backend of ONNX's own tests: arrays in, arrays out."""

from __future__ import annotations

from typing import Any

import onnx
from onnx.backend.base import Backend, BackendRep

import taeda.onnx
from taeda.onnx.values import to_array


class Run(BackendRep):
    """A model that has been loaded."""

    def __init__(self, model: taeda.onnx.Model):
        self.model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        results = self.model(*inputs)
        return tuple(map(to_array, results if len(self.model.output_names) > 1 else [results]))


class TaedaBackend(Backend):
    """What ``onnx.backend.test`` calls."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Run:
        return Run(taeda.onnx.load(model))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"
