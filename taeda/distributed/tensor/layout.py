"""The parts of a distributed tensor: sizes and offsets, from the mesh, the placements and the whole's
sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..device_mesh import DeviceMesh
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard


class Layout(NamedTuple):
    """The mesh, a placement for each of its dimensions, and the sizes of the whole."""

    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    shape: tuple[int, ...]

    def cuts(self, dim: int) -> list[tuple[int, Placement]]:
        """The (mesh dimension, placement) pairs that cut ``dim``, in the order of cutting."""
        return [(j, self.placements[j]) for j in cut_order(self.placements) if self.placements[j].is_shard(dim)]

    def sizes_before(self, at: int) -> tuple[int, ...]:
        """The sizes at this process before mesh dimension ``at`` cut."""
        return self._after(at)[0]

    def local_shape(self, coordinate: Sequence[int] | None = None) -> tuple[int, ...]:
        """The sizes of the part at this process, or at ``coordinate``."""
        return self._after(None, coordinate)[0]

    def offsets(self, coordinate: Sequence[int] | None = None) -> tuple[int, ...]:
        """The start of that part in the whole. Only the last of several cuts may be strided."""
        return self._after(None, coordinate)[1]

    def _after(self, stop: int | None, coordinate: Sequence[int] | None = None) -> tuple[tuple, tuple]:
        sizes, starts = list(self.shape), [0] * len(self.shape)
        at = coordinate if coordinate is not None else self.mesh.get_coordinate()
        for j in cut_order(self.placements):
            if j == stop:
                break
            place = self.placements[j]
            if isinstance(place, Shard):
                if at is None:  # outside the mesh
                    sizes[place.dim] = 0
                    continue
                start, sizes[place.dim] = chunk(sizes[place.dim], self.mesh.size(j), at[j])
                starts[place.dim] += start
        return tuple(sizes), tuple(starts)


def cut_order(placements: Sequence[Placement]) -> list[int]:
    """The dimensions of the mesh in the order in which they cut: from the first to the last, then the strided ones."""
    strided = [j for j, p in enumerate(placements) if isinstance(p, _StridedShard)]
    return [j for j in range(len(placements)) if j not in strided] + strided


def chunk(size: int, n: int, i: int) -> tuple[int, int]:
    """The start of part ``i`` of ``n`` and its length, as ``torch.chunk`` cuts."""
    length = -(-size // n)
    start = min(i * length, size)
    return start, min(length, size - start)


def check_placements(mesh: DeviceMesh, placements: Sequence[Placement] | None, ndim: int) -> tuple[Placement, ...]:
    """``placements``, of which negative dimensions are counted from the last; Replicate where None.

    Args:
        mesh: the processes.
        placements: one for each dimension of the mesh, or None.
        ndim: number of dimensions of the tensor.

    Returns:
        A placement for each dimension of the mesh.

    Raises:
        ValueError: there are not as many as the mesh has dimensions.
        IndexError: the tensor has no such dimension.
        TypeError: something is no Placement.
    """
    if placements is None:
        return (Replicate(),) * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError(
            "`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
            f"{len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    found: list[Placement] = []
    for p in placements:
        if not isinstance(p, Placement):
            raise TypeError(f"placements: expected Shard, Replicate or Partial, got {p!r}")
        if isinstance(p, Shard):
            if not -ndim <= p.dim < ndim:
                raise IndexError(f"{p!r}: dimension out of range of a tensor with {ndim} dimensions")
            p = p.at(p.dim % ndim)
        found.append(p)
    return tuple(found)


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes of this process's part, and where it begins in the whole."""
    layout = Layout(mesh, check_placements(mesh, placements, len(global_shape)), tuple(global_shape))
    return layout.local_shape(), layout.offsets()


def replicated(mesh: DeviceMesh) -> tuple[Placement, ...]:
    """Replicate on every dimension of ``mesh``."""
    return (Replicate(),) * mesh.ndim


def without_partial(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """``placements`` with Replicate for Partial."""
    return tuple(Replicate() if isinstance(p, Partial) else p for p in placements)
