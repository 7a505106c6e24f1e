"""Extension libraries that were built for PyTorch's stable ABI: their ops run on taeda's tensors, on the processor.

A library calls about a hundred C functions (:mod:`.native`) and names its ops with their signatures as it is loaded.
Libraries that call PyTorch's C++ itself cannot be loaded. Source: PyTorch's notes on the LibTorch stable ABI.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from taeda._core import mode_stack

_lock = threading.Lock()
_loaded: dict[Path, tuple] = {}


def load(path: str | os.PathLike) -> None:
    """Load a library and declare its ops, once.

    Raises:
        OSError: there is no such file, it needs PyTorch's C++, or PyTorch itself is in this process.
    """
    found = Path(path).resolve()
    with _lock:
        if found not in _loaded:
            _loaded[found] = _load(found)


def _load(path: Path) -> tuple:
    if not path.is_file():
        raise OSError(f"Could not load this library: {path}: there is no such file")
    if sys.platform != "linux":
        raise OSError(f"Could not load this library: {path}: taeda loads those of Linux alone")
    if "libtorch_cpu.so" in Path("/proc/self/maps").read_text():
        raise OSError(f"Could not load this library: {path}: PyTorch is loaded in this process, and would get its ops")
    try:
        native = importlib.import_module("taeda.standin.stable.native")
    except ImportError as error:
        raise OSError(
            f"Could not load this library: {path}: taeda was built without a C++ compiler, which its part for such "
            f"libraries needs ({error})"
        ) from None
    from taeda.standin.stable import calls, elf

    ctypes.CDLL(native.__file__, mode=ctypes.RTLD_GLOBAL)  # its functions are found from now on
    calls.declared.clear()
    calls.implemented.clear()
    try:
        library = ctypes.CDLL(os.fspath(elf.prepared(path)), mode=os.RTLD_LAZY | os.RTLD_LOCAL)
    except OSError as error:
        raise OSError(
            f"Could not load this library: {path}: {error}. taeda loads libraries of PyTorch's stable ABI; this one "
            "may be built for PyTorch's C++, which taeda does not have"
        ) from None
    return library, _declare(calls, native)


def _declare(calls: Any, native: Any) -> list:
    """Declare the ops that the library named."""
    from taeda.aten import DECLARED
    from taeda.library import Library

    libraries: dict[tuple, Library] = {}
    for place, schema in calls.declared:
        if place not in libraries:
            libraries[place] = Library(*place)
        libraries[place].define(schema)
    for place, name, address in calls.implemented:
        if place not in libraries:
            libraries[place] = Library(place[0], "IMPL", place[2])
        label = f"{place[0]}::{name.rpartition('::')[2]}"
        schema = DECLARED[label]._read if label in DECLARED else None
        if schema is not None:
            libraries[place].impl(name, _function(label, native.call, address, schema, *calls.forms(schema)), place[2])
    return list(libraries.values())


def _function(label: str, call: Callable, address: int, schema: Any, forms: list, results: list) -> Callable:
    """A function of the library as one of Python, with the defaults of its signature."""

    def run(*args: Any, **kwargs: Any) -> Any:
        if any(getattr(mode, "records", False) for mode in mode_stack()):
            raise NotImplementedError(
                f"{label}: make_fx records what an op for CompositeImplicitAutograd calls, and a library's function "
                "writes to memory by itself; register it for the CPU"
            )
        given = [*args, *(kwargs.get(a.name, a.default) for a in schema.arguments[len(args) :])]
        made = call(address, given, forms, results)
        return made[0] if len(made) == 1 else tuple(made) if made else None

    return run
