"""A DTensor's parts as a table."""

from __future__ import annotations

from typing import Any

from ..dtensor import DTensor

__all__ = ["visualize_sharding"]


def visualize_sharding(dtensor: DTensor, header: str = "", use_rich: bool = False) -> None:
    """Print which process has which rows and columns, at the first process of the mesh.

    Args:
        dtensor: of one or two dimensions; nothing is printed of one without elements.
        header: accepted; the table has none.
        use_rich: accepted; the table is plain text, as PyTorch prints it without ``rich``.
    Raises:
        RuntimeError: it has three dimensions or more.
    """
    if dtensor.numel() == 0:
        return
    if dtensor.dim() >= 3:
        raise RuntimeError("visualize sharding supports only 1D or 2D DTensor")
    mesh = dtensor.device_mesh
    if any(mesh.get_coordinate() or [1]):
        return
    layout = dtensor._layout
    cells: dict[tuple, list[str]] = {}
    for at, rank in _processes(mesh.mesh.tolist()):
        shape, offsets = layout.local_shape(at), layout.offsets(at)
        ranges = [(o, o + n - 1) for o, n in zip(offsets, shape, strict=True)]
        cells.setdefault((*ranges, (0, 0))[:2], []).append(str(rank))
    rows, columns = (sorted({place[i] for place in cells}) for i in (0, 1))
    kind = mesh.device_type
    table = [["", *(f"Col {a}-{b}" for a, b in columns)]]
    for row in rows:
        names = [",".join(cells.get((row, column), [])) for column in columns]
        table.append([f"Row {row[0]}-{row[1]}", *(f"{kind}:{name}" if name else "" for name in names)])
    widths = [max(len(column[0]) + 2, *map(len, column)) for column in zip(*table, strict=True)]
    table.insert(1, ["-" * width for width in widths])
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _processes(mesh: Any, at: tuple[int, ...] = ()) -> list[tuple[tuple[int, ...], int]]:
    """The place of each process in the mesh, and its rank."""
    if not isinstance(mesh, list):
        return [(at, mesh)]
    return [found for i, part in enumerate(mesh) for found in _processes(part, (*at, i))]
