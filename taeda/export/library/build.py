"""``build``: a model to a shared library and its header."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from taeda._core import Tensor
from taeda._core.replay import bytes_at
from taeda.kernels.target import host
from taeda.nn import Module

from ..exported_program import ExportedProgram
from .assemble import assemble
from .elf import link
from .header import DTYPES, Interface
from .header import Tensor as TensorInfo
from .record import Recording, as_call, record
from .tables import Tables


def build(
    program: ExportedProgram | Module, path: str | os.PathLike, args: tuple | None = None, kwargs: dict | None = None, *,
    name: str | None = None,
) -> Path:  # fmt: skip
    """Write ``program`` as a shared library of machine code, for Linux.

    The library runs without Python and without this package. Beside it lies its C header.

    Args:
        program: an exported program, or a module with ``args``.
        path: of the library, such as ``"model.so"``; the header is ``"model.h"``.
        args, kwargs: arguments of the model; of an exported program those of its example.
        name: before the names of its functions; the file's name, where it is left out.
    Returns:
        The path of the header.
    Raises:
        NotImplementedError: the model does something that is no kernel, as drawing random numbers or calling LAPACK, or a
            tensor is of a dtype that C has no name for.
        ValueError: there are no arguments.
    """
    path = Path(path)
    name = re.sub(r"\W", "_", path.name.partition(".")[0]) if name is None else name
    if not re.fullmatch(r"[A-Za-z]\w*", name):
        raise ValueError(f"build: expected a name that C can use, got {name!r}; pass name=")
    function, args, kwargs = _model(program, args, kwargs)
    call, tensors, names = as_call(function, args, kwargs)
    recording = record(call, tensors, names)
    tables = Tables(len(tensors), len(recording.outputs))
    tables.add(0, recording)
    interface = Interface(name, _infos(names, tensors), _outputs(recording), None)
    code = assemble(interface, tables, host())
    header = path.with_suffix(".h")
    _write(path, list(link(code, path.name, weights(tables))))
    _write(header, [interface.header().encode()])
    return header


def _model(program: Any, args: tuple | None, kwargs: dict | None) -> tuple[Any, tuple, dict]:
    """What to call, and with what."""
    function = program
    if isinstance(program, ExportedProgram):
        function = program.module()
        if args is None and program.example_inputs is not None:
            args, kwargs = program.example_inputs
    elif not callable(program):
        raise TypeError(f"build: expected an ExportedProgram or a module, got {type(program).__name__}")
    if args is None:
        raise ValueError("build: expected args, a tuple of arguments of the model: there is no example")
    return function, tuple(args), dict(kwargs or {})


def _info(name: str, dtype: Any, sizes: Sequence[int | None]) -> TensorInfo:
    if dtype.name not in DTYPES:
        raise NotImplementedError(f"build: {name} is of dtype {dtype.name}; expected one of {', '.join(DTYPES)}")
    return TensorInfo(name, dtype.name, dtype.itemsize, tuple(sizes))


def _infos(names: Sequence[str], tensors: Sequence[Tensor]) -> list[TensorInfo]:
    for name, t in zip(names, tensors, strict=True):
        if not t.is_contiguous():
            raise ValueError(f"build: expected contiguous arguments, got {name} with strides {t.stride()}")
    return [_info(name, t.dtype, t.shape) for name, t in zip(names, tensors, strict=True)]


def _outputs(r: Recording) -> list[TensorInfo]:
    return [_info(f"output{i}", dtype, sizes) for i, (dtype, sizes) in enumerate(zip(r.dtypes, r.outputs, strict=True))]


def weights(tables: Tables) -> list[bytes]:
    """What the launches read, each from a multiple of 64 bytes on."""
    found = []
    for _, address, nbytes in tables.held.values():
        found += [bytes_at(address, nbytes), bytes(-nbytes % 64)]
    return found


def _write(path: Path, parts: Sequence[bytes | bytearray]) -> None:
    """Write a file at once: a program that has the old one loaded keeps it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
