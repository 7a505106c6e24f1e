"""``torch._inductor``: PyTorch's compiler, for programs that set its options."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda.export import ExportedProgram, load, save
from taeda.graph.options import MODES, OPTIONS

from . import config

__all__ = [
    "aoti_compile_and_package", "aoti_load_package", "compile", "config", "list_mode_options", "list_options",
]  # fmt: skip


def compile(gm: Any, example_inputs: Sequence, options: dict[str, Any] | None = None) -> Callable:
    """A graph of ``torch.fx`` as a compiled function."""
    from .compile_fx import compile_fx

    return compile_fx(gm, example_inputs)


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """The options of each mode, or of ``mode``."""
    return MODES if mode is None else MODES[mode]


def list_options() -> list[str]:
    """The options that ``compile`` takes."""
    return sorted(OPTIONS)


def aoti_compile_and_package(
    exported_program: ExportedProgram, _deprecated_unused_args: Any = None, _deprecated_unused_kwargs: Any = None, *,
    package_path: Any = None, inductor_configs: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Write a program as a file that :func:`aoti_load_package` reads; gives its path.

    The file is an exported program: its kernels are compiled, or found in the cache, when it first runs.
    ``taeda.export.build`` makes a library of machine code.

    Raises:
        AssertionError: ``package_path`` does not end in ``.pt2``.
    """
    if package_path is None:
        package_path = os.path.join(tempfile.mkdtemp(), "model.pt2")
    elif isinstance(package_path, (str, os.PathLike)) and not os.fspath(package_path).endswith(".pt2"):
        raise AssertionError(
            f"Expect package path to be a file ending in .pt2, is None, or is a buffer. Instead got {package_path}"
        )
    save(exported_program, package_path)
    return package_path


class AOTICompiledModel:
    """The program of a package: a function, without gradients."""

    def __init__(self, program: ExportedProgram) -> None:
        self._module = program.module()
        self._names = [
            *(name for name, _ in program.named_parameters()),
            *(name for name, _ in program.named_buffers()),
        ]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with taeda.no_grad():
            return self._module(*args, **kwargs)

    def get_constant_fqns(self) -> list[str]:
        """The paths of parameters and buffers."""
        return list(self._names)

    def load_constants(
        self, constants_map: dict[str, Any], *, check_full_update: bool, user_managed: bool = False
    ) -> None:
        """Use other parameters and buffers.

        Raises:
            RuntimeError: ``check_full_update`` holds, and one is missing; or a name is not known.
        """
        missing, unknown = set(self._names) - set(constants_map), set(constants_map) - set(self._names)
        if unknown or (missing and check_full_update):
            raise RuntimeError(f"load_constants: missing {sorted(missing)}, unknown {sorted(unknown)}")
        held = {**dict(self._module.named_parameters()), **dict(self._module.named_buffers())}
        with taeda.no_grad():
            for name, x in constants_map.items():
                held[name].copy_(x)


def aoti_load_package(
    path: Any, run_single_threaded: bool = False, device_index: int = -1, **options: Any
) -> AOTICompiledModel:
    """The function in a file of :func:`aoti_compile_and_package`."""
    return AOTICompiledModel(load(path))
