"""Profiles as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .floors import measure_floors

_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def format_time(us: float, unit: str | None = None) -> str:
    """``12.345ms``: in ``unit``, or in what suits the number."""
    unit = unit or ("s" if us >= 1e6 else "ms" if us >= 1e3 else "us")
    return f"{us / _UNITS[unit]:.3f}{unit}"


def format_memory(nbytes: float) -> str:
    """``1.50 MB``: in powers of 1024."""
    for name, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {name}"
    return f"{nbytes} B"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "NaN"


def _scale_flops(values: Sequence[float]) -> tuple[float, str]:
    """A power of 1000 that suits the value in the middle, and its name."""
    middle, scale = sorted(values)[len(values) // 2], 1.0
    for name in ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs"):
        if middle < 1000 * scale or name == "TFLOPs":
            return scale, name
        scale *= 1000
    raise AssertionError


def rates(moved: float, flops: float, us: float, calls: int, floors: Any, written: float) -> list[str]:
    """Achieved GB/s and GFLOP/s, and the floor of the time in per cent of it."""
    if us <= 0:
        return ["", "", ""]
    floor = floors.seconds(moved, flops, calls, written) * 1e6
    return [
        f"{moved / us / 1e3:.1f}" if moved else "",
        f"{flops / us / 1e3:.1f}" if flops else "",
        f"{100 * floor / us:.0f}%" if floor else "",
    ]


def _known(floors: Any) -> Any:
    return measure_floors() if floors is True else floors


def lay_out(columns: list[tuple[str, int, str]], rows: list[list[str]], above: str = "", below: str = "") -> str:
    """Columns of (heading, width, ``<`` or ``>``) between rules."""
    rule = "  ".join("-" * width for _, width, _ in columns)

    def line(cells: Sequence[str]) -> str:
        return "  ".join(f"{cell:{side}{width}}" for cell, (_, width, side) in zip(cells, columns, strict=True))

    lines = [rule, line([heading for heading, _, _ in columns]), rule, *map(line, rows), rule]
    return "\n".join(([above] if above else []) + lines + ([below] if below else [])) + "\n"


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _clip_left(text: str, width: int) -> str:
    return text if len(text) <= width else "..." + text[3 - width :]


def format_table(
    events: Any, *, sort_by: str | None, row_limit: int, source_width: int, name_width: int, shapes_width: int,
    header: str | None, memory: bool, flops: bool, top_level: bool, unit: str | None, floors: Any,
) -> str:  # fmt: skip
    """See :meth:`EventList.table`."""
    if not events:
        return ""
    if unit not in (None, *_UNITS):
        raise ValueError(f"table: time_unit must be one of 's', 'ms', 'us' or None, got {unit!r}")
    whole = sum(event.self_cpu_time_total for event in events)
    shown = list(events)
    if sort_by is not None:
        name = sort_by.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        if not hasattr(shown[0], name):
            raise AttributeError(f"table: sort_by must name an attribute of an event, got {sort_by!r}")
        shown.sort(key=lambda event: getattr(event, name), reverse=True)
    if top_level:
        shown = [event for event in shown if event.cpu_parent is None]
    floors = _known(floors)
    columns = [("Name", min(max(len(e.key) for e in events) + 4, name_width or 1 << 30), ">")]
    columns += [(h, 12, ">") for h in ("Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg")]
    columns += [(h, 12, ">") for h in ("CPU Mem", "Self CPU Mem") if memory]
    columns.append(("# of Calls", 12, ">"))
    shapes = any(event.input_shapes for event in events)
    if shapes:
        widest = max(len(str(event.input_shapes)) for event in events) + 4
        columns.append(("Input Shapes", min(widest, shapes_width or widest), ">"))
    stacks = any(event.stack for event in events)
    if stacks:
        widest = max(len(line) for event in events for line in event.stack) + 4
        columns.append(("Source Location", min(widest, source_width or widest), "<"))
    counted = [event.flops for event in events if event.flops > 0] if flops else []
    if counted:
        scale, title = _scale_flops(counted)
        columns.append((f"Total {title}", 12, ">"))
    if floors:
        columns += [("GB/s", 8, ">"), ("GFLOP/s", 8, ">"), ("% of floor", 10, ">")]
    rows = []
    for event in shown if row_limit < 0 else shown[:row_limit]:
        row = [
            _clip(event.key, columns[0][1]), _share(event.self_cpu_time_total, whole),
            format_time(event.self_cpu_time_total, unit), _share(event.cpu_time_total, whole),
            format_time(event.cpu_time_total, unit), format_time(event.cpu_time, unit),
        ]  # fmt: skip
        if memory:
            row += [format_memory(event.cpu_memory_usage), format_memory(event.self_cpu_memory_usage)]
        row.append(str(event.count))
        if shapes:
            row.append(str(event.input_shapes)[: columns[len(row)][1]])
        if stacks:
            row.append(_clip_left(event.stack[0], columns[len(row)][1]) if event.stack else "")
        if counted:
            row.append(f"{event.flops / scale:.3f}" if event.flops > 0 else "--")
        if floors:
            row += rates(event.moved, event.flops, event.cpu_time_total, event.count, floors, event.written)
        rows.append(row)
        if stacks:
            place = [heading for heading, _, _ in columns].index("Source Location")
            for line in event.stack[1:]:
                rows.append([_clip_left(line, columns[i][1]) if i == place else "" for i in range(len(columns))])
    above = [header] if header else []
    if top_level:
        above.append("This report only display top-level ops statistics")
    return lay_out(columns, rows, "\n".join(above), f"Self CPU time total: {format_time(whole, unit)}")


def format_kernels(averages: list, row_limit: int, floors: Any, total: float | None) -> str:
    """See :meth:`KernelAverages.table`."""
    if not averages:
        return ""
    floors = _known(floors)
    whole = total or sum(row.elapsed for row in averages)
    columns = [("Kernel", min(max(len(row.name) for row in averages) + 2, 60), "<")]
    columns += [("Count", 8, ">"), ("Time", 11, ">"), ("Share", 8, ">"), ("Time avg", 11, ">")]
    if floors:
        columns += [("GB/s", 8, ">"), ("GFLOP/s", 8, ">"), ("% of floor", 10, ">")]
    rows = []
    for row in averages if row_limit < 0 else averages[:row_limit]:
        cells = [_clip(row.name, columns[0][1]), str(row.runs), format_time(row.elapsed), _share(row.elapsed, whole)]
        cells.append(format_time(row.elapsed / row.runs))
        if floors:
            cells += rates(row.moved, row.flops, row.elapsed, row.runs, floors, row.written)
        rows.append(cells)
    return lay_out(columns, rows)
