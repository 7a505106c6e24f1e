"""``taeda.export``: a model as a graph of ops that can be looked at, changed, saved and run without its Python code.

See ``docs/export.md``.
"""

from __future__ import annotations

from . import dynamic_shapes, exported_program, graph_signature, passes
from ._archive import load, save
from ._decompose import default_decompositions
from ._encoding import register_dataclass
from ._trace import draft_export, export, export_for_training
from .dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, dims
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import ExportGraphSignature
from .library import build
from .unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = [
    "AdditionalInputs", "Dim", "ExportGraphSignature", "ExportedProgram", "ModuleCallEntry", "ModuleCallSignature",
    "ShapesCollection", "build", "default_decompositions", "dims", "draft_export", "export", "export_for_training",
    "load", "passes", "register_dataclass", "save",
]  # fmt: skip
