"""``summary``: a model's layers, sizes, arithmetic, time and memory, as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from .. import nn
from ..profiler.table import format_memory, format_time, lay_out
from ._calls import Call, record

__all__ = ["Summary", "summary"]

_HEADINGS = ("Output", "Parameters", "Flops", "Time", "Memory")
#: How many calls in a row are looked at as one pattern that repeats.
_PATTERN = 48


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        depth: how deep it lies.
        call: what it shows; the last one of a pattern.
        again: whether the module was called before.
        alike: all that it stands for: a list for each repetition, with one call, or those of a pattern.
        times: how often the layer or pattern repeats in the layer around it.
    """

    depth: int
    call: Call
    again: bool
    alike: list[list[Call]]
    times: int


class Summary:
    """The result of :func:`summary`. ``print`` shows a table; notebooks show it with a bar for the time.

    Attributes:
        call: the run as a tree of calls.
        parameters: numbers that are trained and that are not, each parameter once.
        depth: how deep the layers of the table lie; None: all.
        fold: whether one row stands for layers in a row that do the same.
    """

    def __init__(self, model: nn.Module, call: Call, depth: int | None, fold: bool = True) -> None:
        self.call, self.depth, self.fold = call, depth, fold
        found = list(model.parameters())
        self.parameters = sum(p.numel() for p in found)
        self.trained = sum(p.numel() for p in found if p.requires_grad)
        self.parameter_bytes = sum(p.nbytes for p in found)
        self.buffer_bytes = sum(b.nbytes for b in model.buffers())

    def rows(self) -> Iterator[Row]:
        """The modules that were called, in order; one row for those in a row that do the same."""
        seen: set[int] = set()
        again: dict[int, bool] = {}
        for call in self.call.walk():
            again[id(call)] = id(call.module) in seen
            seen.add(id(call.module))

        def mark(call: Call) -> tuple:
            count = sum(p.numel() for p in call.module.parameters())
            inside = [mark(child) for child in call.children if child.module is not None]
            settings = "" if inside else call.module.extra_repr()
            return call.name, again[id(call)], describe_outputs(call), count, call.all_flops(), settings, *inside

        def walk(alike: list[Call], times: int, deep: int, depth: int) -> Iterator[Row]:
            yield Row(depth, alike[0], again[id(alike[0])], [[call] for call in alike], times)
            if self.depth is not None and deep >= self.depth:
                return
            lists = [[child for child in call.children if child.module is not None] for call in alike]
            marks, i = [mark(child) for child in lists[0]], 0
            while i < len(marks):
                period, times = longest_repeat(marks, i) if self.fold else (1, 1)
                parts = [calls[i + k * period : i + (k + 1) * period] for calls in lists for k in range(times)]
                if period > 1:
                    yield Row(depth + 1, parts[0][-1], False, parts, times)
                for same in zip(*parts, strict=True):
                    alone = times if period == 1 else 1
                    yield from walk(list(same), alone, deep + 1, depth + 1 + (period > 1))
                i += period * times

        yield from walk([self.call], 1, 0, 0)

    def _cells(self, row: Row, sign: str = "x") -> list[str]:
        first, last = row.alike[0], row.alike[row.times - 1]
        text = title(row.call) if len(first) == 1 else f"{len(first)} layers"
        if row.times > 1 and len(first) == 1 and row.call.path and first[0].path != last[0].path:
            text = with_several(text, *(title(call).partition(":")[0] for call in (first[0], last[0])))
        own = sum(p.numel() for call in first for p in call.module.parameters())
        flops = sum(call.all_flops() for call in first)
        seconds = sum(call.seconds for part in row.alike for call in part) / len(row.alike)
        peak = max(call.peak for part in row.alike for call in part)
        return [
            f"{text} {sign} {row.times}" if row.times > 1 else text, describe_outputs(row.call),
            ("again" if row.again else f"{own:,}") if own else "", with_unit(flops),
            format_time(seconds * 1e6) if seconds else "", format_memory(peak) if peak else "",
        ]  # fmt: skip

    def _totals(self) -> list[str]:
        lines = [f"parameters: {self.parameters:,}, of them trained: {self.trained:,}"]
        lines.append(f"memory of parameters: {format_memory(self.parameter_bytes)}")
        if self.buffer_bytes:
            lines[-1] += f", of buffers: {format_memory(self.buffer_bytes)}"
        lines[-1] += f"; the call takes at most {format_memory(self.call.peak)} more"
        seconds, flops = self.call.seconds, self.call.all_flops()
        lines.append(f"flops: {with_unit(flops) or 0}")
        if seconds:
            lines[-1] += f", time: {format_time(seconds * 1e6)}, {flops / seconds / 1e9:.1f} Gflop/s"
        if any(len(row.alike) > 1 for row in self.rows()):
            lines.append("a row of several layers has the figures of each: the mean time, the largest memory")
        return lines

    def __str__(self) -> str:
        rows = [self._cells(row) for row in self.rows()]
        for cells, row in zip(rows, self.rows(), strict=True):
            cells[0] = "  " * row.depth + cells[0]
        columns = [("Layer", "<"), *((heading, "<" if heading == "Output" else ">") for heading in _HEADINGS)]
        widths = [max(len(row[i]) for row in (*rows, [h for h, _ in columns])) for i in range(len(columns))]
        laid = [(heading, width, side) for (heading, side), width in zip(columns, widths, strict=True)]
        return lay_out(laid, rows, below="\n".join(self._totals())).rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{heading}</th>" for heading in ("Layer", *_HEADINGS))
        whole = self.call.seconds or 1.0
        body = []
        for row in self.rows():
            share = min(100.0, 100 * sum(call.seconds for part in row.alike for call in part) / whole)
            name, *rest = self._cells(row, "\N{MULTIPLICATION SIGN}")
            cells = [f"<td>{escape(cell)}</td>" for cell in rest]
            bar = f"background:linear-gradient(to left,#f4a58288 {share:.0f}%,transparent {share:.0f}%)"
            cells[3] = cells[3].replace("<td>", f'<td style="{bar}">')
            text = f'<td style="padding-left:{0.5 + 1.2 * row.depth:.1f}em">{escape(name)}</td>'
            body.append(f"<tr>{text}{''.join(cells)}</tr>")
        below = "<br>".join(escape(line) for line in self._totals())
        return (
            '<div class="taeda-summary"><style>.taeda-summary td,.taeda-summary th{text-align:right;padding:2px 8px}'
            ".taeda-summary td:nth-child(-n+2),.taeda-summary th:nth-child(-n+2){text-align:left}</style>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table><p>{below}</p></div>"
        )


def title(call: Call) -> str:
    """``fc: Linear``; for an op its name."""
    above = f"{call.parent.path}." if call.parent is not None and call.parent.path else ""
    name = call.path.removeprefix(above)
    return f"{name}: {call.name}" if name else call.name


def with_several(text: str, first: str, last: str) -> str:
    """``h.0 ... 11: Block`` from ``h.0: Block`` and the names of the first and the last."""
    return text.replace(first, f"{first} ... {last.rpartition('.')[2]}", 1)


def longest_repeat(marks: Sequence[Any], i: int) -> tuple[int, int]:
    """The length of a pattern that begins at ``i``, and how often it is there in a row: ``(1, 1)`` for none.

    Of two or more marks it is a pattern only if it covers six.
    """
    best = (1, 1)
    for period in range(1, min(_PATTERN, (len(marks) - i) // 2) + 1):
        times = 1
        while marks[i + times * period : i + (times + 1) * period] == marks[i : i + period]:
            times += 1
        if times > 1 and period * times > math.prod(best) and (period == 1 or period * times >= 6):
            best = (period, times)
    return best


def describe_outputs(call: Call) -> str:
    """Sizes of the outputs: ``[2, 64, 8, 8]``."""
    shown = [str(list(value.shape)) for value in call.outputs[:3]]
    return ", ".join(shown) + (", ..." if len(call.outputs) > 3 else "")


def with_unit(number: float) -> str:
    """``1.23 G``: in powers of 1000; empty for 0."""
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g}" if number else ""


def summary(
    model: nn.Module, *args: Any, depth: int | None = None, fold: bool = True, kwargs: Mapping[str, Any] | None = None
) -> Summary:
    """Run ``model`` on ``args``, and show its layers as a table: sizes of outputs, parameters, flops, time and memory.

    The model runs up to eight times, in the mode in which it is (``train()`` or ``eval()``, with or without
    ``no_grad``): to build kernels, to count, and for the time, of which the quickest of three counts. Afterwards its
    buffers and the random generator are as before.

    The columns: *Output*, sizes of the outputs. *Parameters*, numbers in the layer and those inside. *Flops*,
    multiplications and additions of products, convolutions, attention and recurrent layers. *Time*, of the forward
    pass; empty on device meta, which computes nothing. *Memory*, bytes that tensors took at most during the call,
    beyond those that there were before it. Layers that repeat are one row with their number, as ``h.0 ... 11: Block x
    12``, and the figures of each.

    Args:
        model: a Module.
        args: what it is called with.
        depth: show layers down to this depth only; the model itself has depth 0.
        fold: show layers in a row that do the same once.
        kwargs: what it is called with, by name.
    Raises:
        TypeError: ``model`` is no Module.

    Example:
        >>> model = taeda.nn.Sequential(taeda.nn.Linear(4, 8), taeda.nn.ReLU(), taeda.nn.Linear(8, 2))
        >>> table = taeda.utils.summary(model, taeda.randn(3, 4))
        >>> table.parameters, table.call.all_flops()
        (58, 288)
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"summary(): expected a Module, got {type(model).__name__}")
    return Summary(model, record(model, args, dict(kwargs or {})).call, depth, fold)
