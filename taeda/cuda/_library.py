"""A library of NVIDIA's as a table of C functions: where they come from, and calls of them.

They come from the library that a package brings, or, where ``TAEDA_CUDA`` names a package that stands in for the
driver, from a module of that package: its ``table()`` gives ``{"cufftXtExec": address, ...}``.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import _native
from ._driver import INT, POINTER, MissingError, provided


class Library:
    """A library.

    Args:
        what: its name, as ``"cuFFT"``; in small letters that of the module which stands in for it.
        file: the shared library.
        folder: the package in whose folder ``lib`` the file is.
        package: what brings it, for ``pip install``.
        signatures: the types of the parameters of each function.
        results: the types of results that are no int.
    """

    def __init__(
        self, what: str, file: str, folder: str, package: str, signatures: Mapping[str, tuple],
        results: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.what, self.file, self.folder, self.package = what, file, folder, package
        self.signatures, self.results = signatures, results or {}

    def _places(self) -> list[str]:
        """The paths under which the library may be found: in the package, and by the system."""
        try:
            found = find_spec(self.folder)
        except ModuleNotFoundError:
            found = None
        folders = found.submodule_search_locations or () if found else ()
        paths = [Path(folder) / "lib" / self.file for folder in folders]
        return [*(str(path) for path in paths if path.exists()), self.file]

    def _table(self) -> Mapping[str, int]:
        chosen = os.environ.get("TAEDA_CUDA", "")
        if chosen:
            return provided(f"{chosen}.{self.what.lower()}", self.what, self.signatures)
        failed = ""
        for place in self._places():
            try:
                library = ctypes.CDLL(place)
                return {name: ctypes.cast(getattr(library, name), POINTER).value or 0 for name in self.signatures}
            except (OSError, AttributeError) as error:
                failed = failed or str(error)
        raise MissingError(f"{self.what} was not found ({failed}); install it with: pip install {self.package}")

    @functools.cached_property
    def functions(self) -> dict[str, Any]:
        """The functions, by name.

        Raises:
            MissingError: there is no such library.
        """
        table = self._table()
        return {
            name: ctypes.CFUNCTYPE(self.results.get(name, INT), *types)(table[name])
            for name, types in self.signatures.items()
        }

    @functools.cached_property
    def why_none(self) -> str:
        """Why there is no such library; empty where there is one."""
        try:
            _ = self.functions
        except MissingError as error:
            return str(error)
        return ""

    def get(self, kind: Any, name: str, *args: Any) -> Any:
        """Value that a function writes to its last parameter, a pointer to a ``kind``."""
        made = kind()
        self.functions[name](*args, ctypes.byref(made))
        return made.value


def address(x: Any) -> int:
    """Address of the first element of a tensor."""
    return x.data_ptr()


@contextmanager
def calling(index: int, *tensors: Any) -> Iterator[tuple[int, ...]]:
    """Within the block a library may be called for work with ``tensors``, or memory at addresses, on the current stream
    of a device; gives the stream's handle and the addresses. A capture allows memory for a library's own tables."""
    addresses = [x if isinstance(x, int) else address(x) for x in tensors]
    stream = _native.begin_call(index, *addresses)
    before = _native.exchange_mode(_native.RELAXED)
    try:
        yield (stream, *addresses)
    finally:
        _native.exchange_mode(before)
    _native.end_call_of(index)


def keep_for_graph(thing: Any) -> None:
    """Let what a library's work uses live as long as the graph into which this thread captures it, if it does."""
    captured = _native.captured_here()
    if captured is not None and thing not in captured.keeps:
        captured.keeps.append(thing)
