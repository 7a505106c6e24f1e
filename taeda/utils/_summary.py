"""``summary``: a model's layers, sizes, arithmetic, time and memory, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from .. import nn
from ..profiler.table import format_memory, format_time, lay_out
from ._calls import Call, record

__all__ = ["Summary", "summary"]

_HEADINGS = ("Output", "Parameters", "Flops", "Time", "Memory")


class Summary:
    """The result of :func:`summary`. ``print`` shows a table; notebooks show it with a bar for the time.

    Attributes:
        call: the run as a tree of calls.
        parameters: numbers that are trained and that are not, each parameter once.
        depth: how deep the layers of the table lie; None: all.
    """

    def __init__(self, model: nn.Module, call: Call, depth: int | None) -> None:
        self.call, self.depth = call, depth
        found = list(model.parameters())
        self.parameters = sum(p.numel() for p in found)
        self.trained = sum(p.numel() for p in found if p.requires_grad)
        self.parameter_bytes = sum(p.nbytes for p in found)
        self.buffer_bytes = sum(b.nbytes for b in model.buffers())

    def rows(self) -> Iterator[tuple[int, Call, bool]]:
        """(depth, call, whether its module was called before) of the modules that were called, in order."""
        seen: set[int] = set()

        def walk(call: Call, depth: int) -> Iterator[tuple[int, Call, bool]]:
            yield depth, call, id(call.module) in seen
            seen.add(id(call.module))
            if self.depth is None or depth < self.depth:
                for child in call.children:
                    if child.module is not None:
                        yield from walk(child, depth + 1)

        yield from walk(self.call, 0)

    def _cells(self, call: Call, again: bool) -> list[str]:
        own = sum(p.numel() for p in call.module.parameters())
        flops = call.all_flops()
        return [
            describe_outputs(call), ("again" if again else f"{own:,}") if own else "", with_unit(flops),
            format_time(call.seconds * 1e6) if call.seconds else "", format_memory(call.peak) if call.peak else "",
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
        return lines

    def __str__(self) -> str:
        rows = [["  " * depth + title(call), *self._cells(call, again)] for depth, call, again in self.rows()]
        columns = [("Layer", "<"), *((heading, "<" if heading == "Output" else ">") for heading in _HEADINGS)]
        widths = [max(len(row[i]) for row in (*rows, [h for h, _ in columns])) for i in range(len(columns))]
        laid = [(heading, width, side) for (heading, side), width in zip(columns, widths, strict=True)]
        return lay_out(laid, rows, below="\n".join(self._totals())).rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{heading}</th>" for heading in ("Layer", *_HEADINGS))
        whole = self.call.seconds or 1.0
        body = []
        for depth, call, again in self.rows():
            share = min(100.0, 100 * call.seconds / whole)
            cells = [f"<td>{escape(cell)}</td>" for cell in self._cells(call, again)]
            bar = f"background:linear-gradient(to left,#f4a58288 {share:.0f}%,transparent {share:.0f}%)"
            cells[3] = cells[3].replace("<td>", f'<td style="{bar}">')
            text = f'<td style="padding-left:{0.5 + 1.2 * depth:.1f}em">{escape(title(call))}</td>'
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


def summary(model: nn.Module, *args: Any, depth: int | None = None, kwargs: Mapping[str, Any] | None = None) -> Summary:
    """Run ``model`` on ``args``, and show its layers as a table: sizes of outputs, parameters, flops, time and memory.

    The model runs up to eight times, in the mode in which it is (``train()`` or ``eval()``, with or without
    ``no_grad``): to build kernels, to count, and for the time, of which the quickest of three counts. Afterwards its
    buffers and the random generator are as before.

    The columns: *Output*, sizes of the outputs. *Parameters*, numbers in the layer and those inside. *Flops*,
    multiplications and additions of products, convolutions, attention and recurrent layers. *Time*, of the forward
    pass; empty on device meta, which computes nothing. *Memory*, bytes that tensors took at most during the call,
    beyond those that there were before it.

    Args:
        model: a Module.
        args: what it is called with.
        depth: show layers down to this depth only; the model itself has depth 0.
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
    return Summary(model, record(model, args, dict(kwargs or {})).call, depth)
