"""Processes laid out in a grid, with a group along each of its dimensions."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from .groups import get_rank, get_world_size, new_group

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """The grid ``mesh`` of ranks; ``mesh_dim_names`` name its dimensions."""

    def __init__(self, device_type: str, mesh: Any, *, mesh_dim_names: tuple[str, ...] | None = None) -> None:
        self.device_type = device_type
        self.mesh: Tensor = mesh if isinstance(mesh, Tensor) else taeda.tensor(mesh, dtype=taeda.int32)
        self.mesh_dim_names = mesh_dim_names
        self._groups: list[Any] = []
        for dim in range(self.mesh.dim()):
            lines = self.mesh.transpose(dim, -1).reshape(-1, self.mesh.shape[dim]).tolist()
            made = [new_group(line) for line in lines]  # every process makes all of them
            own = [one for one, line in zip(made, lines, strict=True) if get_rank() in line]
            self._groups.append(own[0] if own else None)

    def _dim(self, which: int | str | None) -> int:
        if which is None:
            if self.mesh.dim() != 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.mesh.dim()} dimensions. Optional kwarg `mesh_dim` needs to be "
                    f"specified when device_mesh.ndim > 1."
                )
            return 0
        if isinstance(which, str):
            if which not in (self.mesh_dim_names or ()):
                raise KeyError(f"Mesh dimension '{which}' does not exist in {self.mesh_dim_names}.")
            return (self.mesh_dim_names or ()).index(which)
        return which

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The group of this process along a dimension."""
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list:
        """Those along all dimensions."""
        return list(self._groups)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many processes there are, in all or along a dimension."""
        return self.mesh.numel() if mesh_dim is None else self.mesh.shape[mesh_dim]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.mesh.dim()

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each."""
        return tuple(self.mesh.shape)

    def get_rank(self) -> int:
        """The rank of this process in the world."""
        return get_rank()

    def get_coordinate(self) -> list[int] | None:
        """Where this process is in the grid; None outside it."""
        found = (self.mesh == get_rank()).nonzero().tolist()
        return found[0] if found else None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Where this process is along a dimension."""
        return (self.get_coordinate() or [-1] * self.ndim)[self._dim(mesh_dim)]

    def __getitem__(self, name: str) -> DeviceMesh:
        dim = self._dim(name)
        made = DeviceMesh.__new__(DeviceMesh)
        made.device_type, made.mesh_dim_names, made._groups = self.device_type, (name,), [self._groups[dim]]
        at = list(self.get_coordinate() or [0] * self.ndim)
        made.mesh = self.mesh[tuple(slice(None) if i == dim else at[i] for i in range(self.ndim))]
        return made

    def __repr__(self) -> str:
        return f"DeviceMesh({self.shape}, {self.device_type!r}, stride={tuple(self.mesh.stride())})"


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:  # fmt: skip
    """All processes in a grid of ``mesh_shape``.

    Raises:
        RuntimeError: the grid is not as large as the world, or has not as many names as dimensions.
    """
    if mesh_dim_names is not None and len(mesh_dim_names) != len(mesh_shape):
        raise RuntimeError(
            f"mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): {len(mesh_dim_names)} "
            f"and len(mesh_shape):{len(mesh_shape)}."
        )
    world = get_world_size()
    grid = taeda.arange(world, dtype=taeda.int32)
    count = 1
    for size in mesh_shape:
        count *= size
    if count != world:
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {world}, and not smaller: got {mesh_shape}"
        )
    return DeviceMesh(device_type, grid.reshape(mesh_shape), mesh_dim_names=mesh_dim_names)
