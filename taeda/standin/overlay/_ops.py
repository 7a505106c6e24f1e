"""``torch.ops``: PyTorch's registry of C++ ops, which has none of a library here."""

from __future__ import annotations

import importlib
import types
from typing import Any

from taeda.aten import OpOverload, OpOverloadPacket, packet

__all__ = ["OpOverload", "OpOverloadPacket", "classes", "ops"]


HigherOrderOperator = OpOverload


class _Namespace(types.ModuleType):
    """``torch.ops.<name>``: the ops of a library. ``aten`` has taeda's own functions."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        library = self.__name__.rpartition(".")[2]
        if library == "aten":
            return packet(name)
        from taeda.aten import DECLARED as own

        if library == "profiler":
            importlib.import_module("taeda.standin.internals.profiler")  # declares them
        if f"{library}::{name}" in own:
            return OpOverloadPacket(library, name, own[f"{library}::{name}"])
        if library.startswith("c10d"):
            from taeda.distributed.tensor.debug._comm_mode import packet_of

            collective = packet_of(library, name)
            if collective is not None:
                return collective
        raise AttributeError(f"'_OpNamespace' '{library}' object has no attribute '{name}' (taeda has no C++ ops)")


class _Ops(types.ModuleType):
    """``torch.ops``, which can be imported."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.loaded_libraries: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Namespace(f"torch.ops.{name}")
        setattr(self, name, made)
        return made

    def load_library(self, path: Any) -> None:
        """Load a library that was built for PyTorch's stable ABI; its ops are ``torch.ops.<namespace>.<name>``.

        Raises:
            OSError: it calls PyTorch's C++ itself, or cannot be read.
        """
        from taeda.standin import stable

        stable.load(path)
        self.loaded_libraries.add(str(path))


class _Classes:
    """``torch.classes``."""

    loaded_libraries: frozenset = frozenset()

    def load_library(self, path: Any) -> None:
        """Fails: the stable ABI has no classes."""
        raise OSError(f"Could not load this library: {path}: it is built for PyTorch's C++, which taeda does not have")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"torch.classes has no '{name}' (taeda has no C++ classes)")


ops, classes = _Ops("torch.ops"), _Classes()
