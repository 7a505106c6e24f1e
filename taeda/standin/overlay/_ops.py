"""``torch.ops``: PyTorch's registry of C++ ops, which has none of a library here."""

from __future__ import annotations

from typing import Any

from taeda._refuse import refuse

__all__ = ["OpOverload", "OpOverloadPacket", "classes", "ops"]


class OpOverload:
    """One signature of a C++ op: nothing is one."""


class OpOverloadPacket:
    """A C++ op by name: called, it is taeda's function of that name; where there is none it can only be named."""

    def __init__(self, name: str, function: Any = None) -> None:
        self.__name__ = name
        self.function = function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return OpOverloadPacket(f"{self.__name__}.{name}", self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.function is not None:
            return self.function(*args, **kwargs)
        refuse(f"torch.ops.{self.__name__}", "it is part of PyTorch's C++")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverloadPacket) and self.__name__ == other.__name__

    def __hash__(self) -> int:
        return hash(self.__name__)


HigherOrderOperator = OpOverload


class _Namespace:
    """``torch.ops.<name>``: the ops of a library. ``aten`` has taeda's own functions."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.name == "aten":
            from taeda.ops.table import OPS

            return OpOverloadPacket(f"aten.{name}", OPS.get(name))
        from taeda.library import _ops as own

        if f"{self.name}::{name}" in own:
            return OpOverloadPacket(f"{self.name}.{name}", own[f"{self.name}::{name}"])
        raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}' (taeda has no C++ ops)")


class _Ops:
    """``torch.ops``."""

    loaded_libraries: frozenset = frozenset()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Namespace(name)
        setattr(self, name, made)
        return made

    def load_library(self, path: Any) -> None:
        """Fails as it does for a library that cannot be loaded.

        Raises:
            OSError: always: a library built for PyTorch calls PyTorch's C++.
        """
        raise OSError(f"Could not load this library: {path}: it is built for PyTorch's C++, which taeda does not have")


class _Classes:
    """``torch.classes``."""

    loaded_libraries: frozenset = frozenset()
    load_library = _Ops.load_library

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"torch.classes has no '{name}' (taeda has no C++ classes)")


ops, classes = _Ops(), _Classes()
