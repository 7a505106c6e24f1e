"""Processes laid out in a grid, with a group along each of its dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._core import int32
from .._typed import Tensor
from ..ops.creation import arange
from ..ops.exchange import tensor
from .groups import get_process_group_ranks, get_rank, get_world_size, init_process_group, is_initialized, new_group

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """The grid ``mesh`` of ranks; ``mesh_dim_names`` name its dimensions.

    ``mesh["name"]`` is the line of the grid along that dimension on which this process is, ``mesh["a", "b"]`` the
    plane.
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None, _groups: Any = None
    ) -> None:
        self.device_type = device_type
        self.mesh: Tensor = mesh if isinstance(mesh, Tensor) else tensor(mesh, dtype=int32, device="cpu")
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._root: DeviceMesh = self
        self._flattened: dict[str, DeviceMesh] = {}
        self._neighbours: dict[tuple[int, ...], Any] = {}  # groups of some processes, for fully_shard
        self._key = (device_type, tuple(self.mesh.shape), tuple(self.mesh.reshape(-1).tolist()), self.mesh_dim_names)
        found = (self.mesh == get_rank()).nonzero().tolist()
        self._coordinate: list[int] | None = found[0] if found else None
        self._groups: list[Any] = list(_groups) if _groups is not None else [
            _group_along(self.mesh, dim) for dim in range(self.mesh.dim())
        ]  # fmt: skip

    @staticmethod
    def from_group(
        group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None
    ) -> DeviceMesh:
        """The mesh of a group that there is, or of one for each dimension of ``mesh``."""
        if not isinstance(group, (list, tuple)):
            group, mesh = [group], get_process_group_ranks(group) if mesh is None else mesh
        if mesh is None:
            raise ValueError("DeviceMesh.from_group: mesh must be given with several groups")
        return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _groups=group)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

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
        """The groups along all dimensions."""
        return list(self._groups)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of processes, in all or along a dimension."""
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
        """This process's position in the grid; None outside it."""
        return None if self._coordinate is None else list(self._coordinate)

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The position of this process along a dimension."""
        return (self._coordinate or [-1] * self.ndim)[self._dim(mesh_dim)]

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (names,) if isinstance(names, str) else tuple(names)
        if names == self.mesh_dim_names:
            return self
        if len(names) == 1 and names[0] in self._root._flattened:
            return self._root._flattened[names[0]]
        dims = [self._dim(name) for name in names]
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"DeviceMesh: expected each of {self.mesh_dim_names} once at most, got {names}")
        at = list(self._coordinate or [0] * self.ndim)
        mesh = self.mesh[tuple(slice(None) if i in dims else at[i] for i in range(self.ndim))]
        mesh = mesh.permute([sorted(dims).index(d) for d in dims])
        made = DeviceMesh(self.device_type, mesh, mesh_dim_names=names, _groups=[self._groups[d] for d in dims])
        made._root = self._root
        return made

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """One dimension in place of all: every process of the root mesh has to call it."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ())
        if name not in self._root._flattened:
            root, dims = self._root, [self._root._dim(n) for n in self.mesh_dim_names or ()] or [*range(self.ndim)]
            rest = [d for d in range(root.ndim) if d not in dims]
            lines = root.mesh.permute(*rest, *dims).reshape(-1, math.prod(root.mesh.shape[d] for d in dims)).tolist()
            made = [new_group(line, sort_ranks=False) for line in lines]
            own, group = next(
                ((line, g) for line, g in zip(lines, made, strict=True) if get_rank() in line), (lines[0], None)
            )
            flat = DeviceMesh(self.device_type, own, mesh_dim_names=(name,), _groups=[group])
            flat._root = root
            root._flattened[name] = flat
        return self._root._flattened[name]

    def __enter__(self) -> DeviceMesh:
        _current.append(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        _current.pop()

    def __repr__(self) -> str:
        sizes = str(self.shape)
        if self.mesh_dim_names:
            sizes = ", ".join(f"{name}={size}" for name, size in zip(self.mesh_dim_names, self.shape, strict=True))
            sizes = f"({sizes})"
        return f"DeviceMesh({sizes}, {self.device_type!r}, stride={tuple(self.mesh.stride())})"


_current: list[DeviceMesh] = []


def current_mesh() -> DeviceMesh:
    """The innermost mesh whose ``with`` block this is.

    Returns:
        The mesh.

    Raises:
        RuntimeError: there is none.
    """
    if not _current:
        raise RuntimeError("No device mesh is currently active! Give device_mesh, or use `with mesh:`.")
    return _current[-1]


def _group_along(mesh: Tensor, dim: int) -> Any:
    """The group of this process along ``dim``; every process makes all of them.

    Its ranks are in the order of the mesh, which may differ from the world's.
    """
    lines = mesh.transpose(dim, -1).reshape(-1, mesh.shape[dim]).tolist()
    made = [new_group(line, sort_ranks=False) for line in lines]
    return next((one for one, line in zip(made, lines, strict=True) if get_rank() in line), None)


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:  # fmt: skip
    """All processes in a grid of ``mesh_shape``.

    Args:
        device_type: a kind of device, such as ``"cpu"``.
        mesh_shape: sizes of the grid.
        mesh_dim_names: a name for each dimension.
        backend_override: accepted.

    Returns:
        The mesh.

    Raises:
        RuntimeError: the grid is not as large as the world, or has not as many names as dimensions, or ``device_type``
            has a number.
    """
    if not device_type.isalpha():
        raise RuntimeError(f"init_device_mesh: expected a type of device without a number, got {device_type!r}")
    if mesh_dim_names is not None and len(mesh_dim_names) != len(mesh_shape):
        raise RuntimeError(
            f"mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): {len(mesh_dim_names)} "
            f"and len(mesh_shape):{len(mesh_shape)}."
        )
    if mesh_dim_names is not None and len(set(mesh_dim_names)) != len(mesh_dim_names):
        raise RuntimeError(f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in {mesh_dim_names}")
    if not is_initialized():
        init_process_group()
    world = get_world_size()
    if math.prod(mesh_shape) != world:
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {world}, and not smaller: got {mesh_shape}"
        )
    grid = arange(world, dtype=int32, device="cpu").reshape(mesh_shape)
    return DeviceMesh(device_type, grid, mesh_dim_names=mesh_dim_names)
