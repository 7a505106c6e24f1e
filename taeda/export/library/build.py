"""``build``: a model to a shared library and its header, for this machine or another."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from taeda.kernels.target import host
from taeda.nn import Module

from .._archive import save
from .._trace import export
from ..exported_program import ExportedProgram
from .write import write_library

#: Targets, and what `kernels/target.py` calls the machine that their kernels are planned for.
TARGETS = {"x86-64-v3": "avx2", "arm64": "arm64"}


def build(
    program: ExportedProgram | Module, path: str | os.PathLike, args: tuple | None = None, kwargs: dict | None = None,
    *, dynamic_shapes: Any = None, name: str | None = None, target: str | None = None, weights: str = "inside",
) -> Path:  # fmt: skip
    """Write a program as a shared library of machine code, for Linux.

    The library runs without Python and without this package. Beside it lies its C header. Sizes may be dynamic: symbols
    of an exported program, with ranges. The launches of every combination in the ranges are recorded.

    Args:
        program: an exported program, or a module with ``args``.
        path: of the library, such as ``"model.so"``; the header is ``"model.h"``.
        args: arguments of the model; of an exported program those of its example if None.
        kwargs: arguments by name, likewise.
        dynamic_shapes: of a module: which sizes change, as for :func:`export`.
        name: before the names of its functions; the file's name if None.
        target: the processors that it is for: None for this one and those that can do as much, ``"x86-64-v3"`` for all
            with AVX2, ``"arm64"``.
        weights: ``"inside"`` the library, or ``"beside"`` it in ``"model.weights"``, which the program loads.

    Returns:
        The path of the header.

    Raises:
        NotImplementedError: the model does something that is no kernel, as drawing random numbers or calling LAPACK, or
            a tensor is of a dtype that C has no name for.
        ValueError: there are no arguments, the ranges have more than 4096 combinations or no end, or the target or
            ``weights`` is none of those.

    Examples:
        >>> import os
        >>> _ = taeda.export.build(nn.Linear(3, 2), "model.so", (taeda.randn(4, 3),))
        >>> sorted(os.listdir("."))[:2] == ["model.h", "model.so"]
        True
    """
    path = Path(path)
    name = re.sub(r"\W", "_", path.name.partition(".")[0]) if name is None else name
    if not re.fullmatch(r"[A-Za-z]\w*", name):
        raise ValueError(f"build: expected a name that C can use, got {name!r}; pass name=")
    if dynamic_shapes is not None:
        if isinstance(program, ExportedProgram):
            raise ValueError("build: the sizes of an exported program are known; pass dynamic_shapes to export")
        program = _export(program, args, kwargs, dynamic_shapes)
    if weights not in ("inside", "beside"):
        raise ValueError(f"build: expected weights to be 'inside' or 'beside', got {weights!r}")
    if target is not None:
        return _build_for(target, program, path, args, kwargs, name, weights)
    return write_library(program, path, args, kwargs, name, host(), weights == "beside")


def _export(module: Module, args: tuple | None, kwargs: dict | None, dynamic_shapes: Any) -> ExportedProgram:
    if args is None:
        raise ValueError("build: expected args, a tuple of arguments of the model: there is no example")
    return export(module, tuple(args), kwargs, dynamic_shapes=dynamic_shapes)


def _build_for(
    target: str, program: ExportedProgram | Module, path: Path, args: tuple | None, kwargs: dict | None, name: str,
    weights: str,
) -> Path:  # fmt: skip
    """Build in a process of its own: kernels and how work is cut depend on the machine, and are kept by a process."""
    if target not in TARGETS:
        raise ValueError(f"build: expected target to be one of {', '.join(TARGETS)}, got {target!r}")
    if target.startswith("x86") and not host().triple.startswith("x86_64"):
        raise NotImplementedError(f"build: a library for {target} is built on such a processor, got {host().triple}")
    if not isinstance(program, ExportedProgram):
        program = _export(program, args, kwargs, None)
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder, "program.pt2")
        save(program, saved, format="taeda")
        paths = [str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])]
        settings = {**os.environ, "TAEDA_TARGET": TARGETS[target], "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-m", "taeda.export.library", str(saved), str(path.resolve()), name, target, weights]
        found = subprocess.run(command, env=settings, capture_output=True, text=True)
    if found.returncode:
        *_, last = found.stderr.strip().splitlines() or ["it ended without a message"]
        kind, _, text = last.partition(": ")
        raise (
            NotImplementedError(text) if kind == "NotImplementedError" else RuntimeError(f"build for {target}: {last}")
        )
    return path.with_suffix(".h")
