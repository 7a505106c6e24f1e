"""``parallelize_module``: a style for each of the named submodules."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch
from typing import Any

from taeda.nn import Module

from ...device_mesh import DeviceMesh, current_mesh
from .style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(
    module: Module, device_mesh: DeviceMesh | None = None, parallelize_plan: Any = None, *,
    src_data_rank: int | None = 0,
) -> Module:  # fmt: skip
    """Cut the parameters of ``module``, and convert inputs and outputs, as a plan says.

    Args:
        module: changed in place.
        device_mesh: the processes, a line: of a grid take ``mesh["tp"]``.
        parallelize_plan: a style, or a dict from paths of submodules (``*`` for any name) to styles.
        src_data_rank: whose parameters count; None where all processes have the same.
    Returns:
        ``module``.
    Raises:
        ValueError: the mesh is no line.
        TypeError: the plan is something else.
    """
    mesh = device_mesh if device_mesh is not None else current_mesh()
    if mesh.ndim != 1:
        raise ValueError(f"parallelize_module: expected a mesh of one dimension, got {mesh}; slice it by name")
    if parallelize_plan is None:
        warnings.warn("No parallelize_plan is provided and auto-parallel is not supported at the moment", stacklevel=2)
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        found = [module] if path == "" else _matching(module, path.split("."))
        if not found:
            warnings.warn(f"parallelize_module: no submodule matches {path!r}", stacklevel=2)
        for inner in found:
            parallelize_module(inner, mesh, style, src_data_rank=src_data_rank)
    return module


def _matching(module: Module, path: list[str]) -> list[Module]:
    if not path:
        return [module]
    inner = [child for name, child in module.named_children() if fnmatch(name, path[0])]
    return [m for child in inner for m in _matching(child, path[1:])]
