"""``load(weights_only=False)``: reads any pickle with Python's own unpickler, which runs code that the file names.

PyTorch's names stand for taeda's objects, so that files of either hold the same.
"""

from __future__ import annotations

import importlib
import io
import pathlib
import pickle
import sys
from collections.abc import Callable
from typing import Any

from .._core import Tensor
from .objects import Known, known
from .pickling import Constructor

#: Where PyTorch's compiled functions are known under their Python names.
_COMPILED = {
    "torch._C._nn": "taeda.nn.functional",
    "torch._C._special": "taeda.special",
    "torch._C._linalg": "taeda.linalg",
    "torch._C._fft": "taeda.fft",
}


def unpickle(module: Any = None, **arguments: Any) -> Callable[[Any, int, Callable], tuple[Any, int]]:
    """A function from ``(data, start, persistent)`` to the object that is pickled there, and where its pickle ends.

    Args:
        module: ``pickle``, or a module with an ``Unpickler`` like its own.
        arguments: what its ``Unpickler`` is given, such as ``encoding``.
    Returns:
        The function.
    """
    arguments.setdefault("encoding", "utf-8")

    class Unpickler((module or pickle).Unpickler):  # type: ignore[misc]
        def find_class(self, name_of_module: str, name: str) -> Any:
            found = _find(name_of_module, name)
            return super().find_class(name_of_module, name) if found is None else found

    def load(data: Any, start: int, persistent: Callable) -> tuple[Any, int]:
        file = io.BytesIO(data)
        file.seek(start)
        reader = Unpickler(file, **arguments)
        reader.persistent_load = lambda key: (
            key[1] if key[0] in ("module", b"module") else persistent(key)
        )  # before 1.6: with its source
        return reader.load(), file.tell()

    return load


def _find(module: str, name: str) -> Any:
    """taeda's object for a name of PyTorch's, or the object for a name of other versions and systems; None if the name
    itself is to be used.
    """
    if module.split(".")[0] in ("torch", "taeda"):
        found: Known = known(module, name)
        if isinstance(found, Constructor):
            return _rebuild_from_type if name == "_rebuild_from_type_v2" else found.function
        return _of_torch(module, name) if found is None else found
    if module.startswith("pathlib") and name in ("PosixPath", "WindowsPath"):
        return pathlib.Path
    if module.startswith("numpy._core"):  # as NumPy 2 says; NumPy 1 has it without the underscore
        import numpy

        return None if hasattr(numpy, "_core") else getattr(importlib.import_module("numpy.core" + module[11:]), name)
    return None


def _of_torch(module: str, name: str) -> Any:
    """taeda's object for ``torch.a.b.name``: from a module of that name or, if there is none, from the packages around
    it.
    """
    if name in ("_VariableFunctionsClass", "TensorBase"):  # functions and methods are their attributes
        return sys.modules["taeda"] if name == "_VariableFunctionsClass" else Tensor
    path = _COMPILED.get(module, "taeda" + module[5:])
    while path:
        try:
            found: Any = importlib.import_module(path)
            for part in name.split("."):
                found = getattr(found, part)
            return found
        except (ImportError, AttributeError):
            path = path.rpartition(".")[0]
    return None


def _rebuild_from_type(function: Callable, cls: type, args: tuple, state: Any) -> Any:
    """A tensor of a subclass, with its attributes."""
    made = function(*args)
    if made.is_nested:  # the attributes in the file are those of PyTorch's class
        return made
    if type(made) is not cls:
        made = made.as_subclass(cls)
    if hasattr(made, "__setstate__") and "__setstate__" in vars(cls):
        made.__setstate__(state)
        return made
    slots = None
    if type(state) is tuple and len(state) == 2:
        state, slots = state
    for attributes in (state or {}, slots or {}):
        for key, value in attributes.items():
            setattr(made, key, value)
    return made
