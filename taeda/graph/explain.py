"""The kernels that a compiled call runs: their ops, and how far they are from the limits of the machine."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Any

from taeda._core import fusion
from taeda._warn import is_own
from taeda.profiler.floors import Floors, measure_floors
from taeda.profiler.table import format_memory, format_time, lay_out

from .. import profiler

_NODE = 1  # the scope of a backward node


@dataclass
class Kernel:
    """One run of a kernel.

    Attributes:
        ops: its ops, in order.
        elements: elements of a result, for a pointwise kernel of several ops; else 0.
        read, written: bytes.
        flops: arithmetic operations.
        seconds: its time.
        floor: the least seconds that the machine needs; 0: not known.
        lines: the lines of the program that its ops come from.
    """

    ops: list[str]
    elements: int
    read: int
    written: int
    flops: float
    seconds: float
    floor: float = 0.0
    lines: list[str] = field(default_factory=list)


@dataclass
class Explanation:
    """The kernels of one compiled call, in order, and its result. ``print`` shows a table."""

    kernels: list[Kernel]
    result: Any

    def __str__(self) -> str:
        columns = [("Ops", 44, "<"), ("Elements", 10, ">"), ("Read", 10, ">"), ("Written", 10, ">"), ("Flops", 9, ">"),
                   ("Time", 10, ">"), ("Of floor", 8, ">"), ("Lines", 40, "<")]  # fmt: skip
        rows = []
        for _, group in itertools.groupby(self.kernels, lambda k: (k.ops, k.lines)):
            same = list(group)
            ops, k = " ".join(same[0].ops), _together(same)
            ops = ops if len(ops) <= 38 else ops[:35] + "..."
            rows.append([
                ops + f" x {len(same)}" * (len(same) > 1), str(k.elements or ""), _bytes(k.read), _bytes(k.written),
                f"{k.flops:.3g}" if k.flops else "", format_time(k.seconds * 1e6), _share(k), ", ".join(k.lines),
            ])  # fmt: skip
        k = _together(self.kernels)
        below = f"{len(self.kernels)} kernels, {format_time(k.seconds * 1e6)}, read {format_memory(k.read)}, "
        return lay_out(
            columns, rows, below=below + f"written {format_memory(k.written)}, floor {_share(k) or 'unknown'}"
        )

    def _repr_html_(self) -> str:
        from taeda._html import fold, pre

        return self.svg() + fold(f"{len(self.kernels)} kernels", pre(str(self)))

    def svg(self) -> str:
        """A drawing as SVG: a bar for each kernel, as long as its time; the dark part is the floor."""
        longest = max((k.seconds for k in self.kernels), default=0.0) or 1.0
        height = 24 * len(self.kernels) + 40
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="960" height="{height}" font-family="sans-serif" '
            'font-size="12">',
            '<text x="8" y="18">time (dark: the machine\'s floor), ops, lines</text>',
        ]
        for i, k in enumerate(self.kernels):
            y, width = 24 * i + 30, 300 * k.seconds / longest
            dark = min(300 * k.floor / longest, width)
            label = escape(f"{' '.join(k.ops)}  [{', '.join(k.lines)}]")
            parts += [
                f'<rect x="8" y="{y}" width="{width:.1f}" height="18" fill="#9ecae1"/>',
                f'<rect x="8" y="{y}" width="{dark:.1f}" height="18" fill="#3182bd"/>',
                f'<text x="320" y="{y + 13}">{format_time(k.seconds * 1e6)}  {label}</text>',
            ]
        return "\n".join([*parts, "</svg>"])


def _together(kernels: list[Kernel]) -> Kernel:
    """The sum of several kernels, with the ops and lines of the first."""
    first = kernels[0] if kernels else Kernel([], 0, 0, 0, 0, 0.0)
    elements, read, written = (sum(getattr(k, name) for k in kernels) for name in ("elements", "read", "written"))
    flops, seconds, floor = (sum(getattr(k, name) for k in kernels) for name in ("flops", "seconds", "floor"))
    return Kernel(first.ops, elements, read, written, flops, seconds, floor, first.lines)


def _bytes(n: int) -> str:
    """Bytes as text; empty if not known."""
    return format_memory(n) if n else ""


def _share(k: Kernel) -> str:
    """The floor in per cent of the time. It is above 100 if the data was in a cache, or was not all read."""
    share = 100 * k.floor / k.seconds if k.seconds else 0.0
    return "" if not share else f"{share:.0f}%" if share <= 100 else ">100%"


def explain(compiled: Callable, *args: Any, **kwargs: Any) -> Explanation:
    """Call a compiled function once, and list the kernels that it ran. Missing kernels are built first."""
    seen: list[tuple] = []
    before = fusion.watch(lambda *what: seen.append(what))
    try:
        with profiler.profile(with_stack=True, with_flops=True) as record:
            result = compiled(*args, **kwargs)
    finally:
        fusion.watch(before)
    reader = _Reader(record, seen, measure_floors())
    return Explanation(reader.kernels(record.kernels()), result)


class _Reader:
    """Turns the runs of a profile into kernels."""

    def __init__(self, record: Any, seen: list[tuple], floors: Floors) -> None:
        self.floors = floors
        self.seen: dict[str, list[tuple]] = {}
        for entry in seen:
            self.seen.setdefault(" ".join(entry[0]), []).append(entry)
        self.events = list(record.events())
        self.forward = {e.sequence_nr: e for e in reversed(self.events) if e.scope != _NODE and e.sequence_nr >= 0}

    def kernels(self, runs: list[Any]) -> list[Kernel]:
        """All runs. Consecutive runs of one kernel in one call are parts of one launch."""
        made: list[Kernel] = []
        before: Any = None
        for run in (run for run in runs if run.helps is None):
            if (
                before is not None
                and run.name == before.name
                and run.event is before.event
                and (" " in run.name or run.name in self.seen)
            ):
                made[-1].seconds += run.elapsed * 1e-6
            else:
                made.append(self.kernel(run))
            before = run
        return made

    def kernel(self, run: Any) -> Kernel:
        """One run."""
        entries = self.seen.get(run.name) or self.seen.get(run.name.partition("(")[0])
        if entries:
            return self.fused(run, *entries.pop(0))
        words = run.name.split()
        entries = next((x for i in range(len(words) - 1, 0, -1) if (x := self.seen.get(" ".join(words[:i])))), None)
        if entries:
            return self.prologue(run, words, entries.pop(0))
        event = run.event
        name = run.name.partition("(")[0]
        moved, written = run.moved, run.written
        others = [] if event is None else [r for r in event.kernels if r.name not in self.seen]
        if len(others) < len(event.kernels if event else ()) and run is max(others, key=lambda r: r.elapsed):
            moved, written = event.moved, event.written  # the profile assigned them to the kernel of an argument
        made = Kernel(
            name.split(), 0, moved - written, written, run.flops, run.elapsed * 1e-6,
            lines=[] if event is None else self.lines([event]),
        )  # fmt: skip
        return self.measured(made)

    def fused(self, run: Any, names: list[str], outs: list[int], read: int, written: int, elements: int) -> Kernel:
        """A run of a kernel of several pointwise ops."""
        found = [e for e in self.origins(names, run.start) if e is not None]
        flops = sum(e.flops for e in found)
        return self.measured(Kernel(names, elements, read, written, flops, run.elapsed * 1e-6, lines=self.lines(found)))

    def prologue(self, run: Any, words: list[str], entry: tuple) -> Kernel:
        """A run of a reduction or the like with a prologue or epilogue."""
        names, _, read, _, elements = entry
        found = [e for e in self.origins(names, run.start) if e is not None]
        own = [] if run.event is None else [run.event]
        flops, written = sum(e.flops for e in found + own), own[0].written if own else 0
        return self.measured(
            Kernel(words, elements, read, written, flops, run.elapsed * 1e-6, lines=self.lines(found + own))
        )

    def measured(self, k: Kernel) -> Kernel:
        moved = k.read + k.written
        k.floor = self.floors.seconds(moved, k.flops, 1, k.written) if moved else 0.0
        return k

    def origins(self, names: list[str], start: float) -> list[Any]:
        """The calls that these ops come from: the last ones with these names before ``start``, found from the last op
        on."""
        known = [e for e in self.events if e.time_range.start <= start]
        found: list[Any] = []
        place = len(known)
        for name in reversed(names):
            wanted = f"aten::{name}"
            for at in (*range(place - 1, -1, -1), *range(len(known) - 1, place - 1, -1)):
                if known[at].name == wanted:
                    found.append(known[at])
                    place = at
                    break
            else:
                found.append(None)
        return found[::-1]

    def lines(self, events: list[Any]) -> list[str]:
        """The program's lines with these calls; for a derivative, the lines of the differentiated call."""
        found: dict[str, None] = {}
        for event in events:
            node = event
            while node is not None and node.scope != _NODE:
                node = node.cpu_parent
            backward = node is not None and node.sequence_nr in self.forward
            stack = (self.forward[node.sequence_nr] if backward else event).stack
            frame = next((f for f in stack if not is_own(f) and not f.startswith("<")), None)
            if frame is not None:
                place = os.path.basename(frame.partition("(")[0]) + ":" + frame.partition("(")[2].partition(")")[0]
                found[place + " backward" * backward] = None
        return sorted(found)
