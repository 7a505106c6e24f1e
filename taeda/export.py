"""``taeda.export``: programs as graphs, which taeda does not write yet. Save weights with ``taeda.save``."""

from __future__ import annotations

from ._refuse import refused_class, refused_function

__all__ = ["Dim", "ExportedProgram", "export", "load", "register_dataclass", "save"]

_WHY = "programs cannot be written as graphs yet; save the state_dict with taeda.save and keep the Python code"

ExportedProgram = refused_class("export.ExportedProgram", _WHY)
ExportGraphSignature = refused_class("export.ExportGraphSignature", _WHY)
Dim = refused_class("export.Dim", _WHY)
export, save, load, register_dataclass, draft_export, export_for_training = (
    refused_function(f"export.{name}", _WHY)
    for name in "export save load register_dataclass draft_export export_for_training".split()
)
