"""Results of a simulation: numbers, a drawing of the schedule, and a file for Perfetto."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from .network import Device
from .timeline import LANES, Span

__all__ = ["Memory", "Simulation"]

_COLOURS = {
    "forward": "#4e79a7", "backward": "#f28e2b", "collective": "#59a14f", "send": "#b07aa1", "optimizer": "#9c755f",
}  # fmt: skip
_LEFT, _WIDTH = 110, 1000
_ROWS = {"compute": (0, 20), "network": (21, 9), "messages": (31, 9)}  # where they are and how tall
_TALL = 44


@dataclass(frozen=True)
class Memory:
    """Bytes of one process at the worst moment.

    Attributes:
        parameters, gradients, state: of the model and its optimizer.
        activations: what is kept for backward passes.
        work: what one layer needs beside.
    """

    parameters: float
    gradients: float
    state: float
    activations: float
    work: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.parameters + self.gradients + self.state + self.activations + self.work


@dataclass(frozen=True)
class Simulation:
    """The result of :func:`simulate`.

    Attributes:
        seconds: of one step.
        processes: how many there are.
        stages: processes along the pipeline; the others do what these do.
        flops: of one step on all processes, without those of recomputation.
        memory: of each process along the pipeline.
        traffic: bytes that each process along the pipeline sends, by dimension of the mesh.
        spans: the schedule.
        device: the processors.
    """

    seconds: float
    processes: int
    stages: int
    flops: float
    memory: list[Memory]
    traffic: list[dict[str, float]]
    spans: tuple[Span, ...]
    device: Device

    @property
    def utilization(self) -> float:
        """The share of all processors' ``flops`` that the model uses (MFU)."""
        return self.flops / (self.seconds * self.processes * self.device.flops)

    @property
    def flops_per_second(self) -> float:
        """Floating point operations per second of one process."""
        return self.flops / (self.seconds * self.processes)

    @property
    def peak_bytes(self) -> float:
        """Peak memory of the process that needs most."""
        return max(m.total for m in self.memory)

    @property
    def fits(self) -> bool:
        """Whether every process has enough memory."""
        return self.peak_bytes <= self.device.memory

    def busy(self, rank: int = 0) -> float:
        """The share of the step in which a process computes."""
        kinds = ("forward", "backward", "optimizer")
        return sum(s.end - s.start for s in self.spans if s.rank == rank and s.kind in kinds) / self.seconds

    def __repr__(self) -> str:
        sent = {k: max(t.get(k, 0.0) for t in self.traffic) for k in dict.fromkeys(k for t in self.traffic for k in t)}
        traffic = ", ".join(f"{name} {nbytes / 1e9:.3g} GB" for name, nbytes in sent.items()) or "none"
        return (
            f"Simulation({self.processes} processes: {self.seconds:.4g} s a step, "
            f"{self.flops_per_second / 1e12:.4g} TFLOP/s each ({self.utilization:.1%}), {self.peak_bytes / 1e9:.4g} GB"
            f"{'' if self.fits else f' of {self.device.memory / 1e9:.4g} GB: DOES NOT FIT'}, sent: {traffic})"
        )

    # ---- files ----

    def trace(self, path: str | Path | None = None) -> dict[str, Any]:
        """The schedule in the Trace Event Format, for https://ui.perfetto.dev; written to ``path`` if given."""
        events: list[dict] = []
        for rank in range(self.stages):
            events.append({"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"stage process {rank}"}})
            for tid, lane in enumerate(LANES):
                events.append({"ph": "M", "name": "thread_name", "pid": rank, "tid": tid, "args": {"name": lane}})
        for s in self.spans:
            events.append({
                "ph": "X", "name": s.name, "cat": s.kind, "pid": s.rank, "tid": LANES.index(s.lane),
                "ts": s.start * 1e6, "dur": (s.end - s.start) * 1e6,
            })  # fmt: skip
        made = {"traceEvents": events, "displayTimeUnit": "ms"}
        if path is not None:
            Path(path).write_text(json.dumps(made))
        return made

    def svg(self, path: str | Path | None = None) -> str:
        """The schedule drawn: for each process arithmetic, collectives, messages; written to ``path`` if given."""
        bottom = 40 + _TALL * self.stages
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 20}" height="{bottom + 60}" '
            f'font-family="sans-serif" font-size="12">',
            '<rect width="100%" height="100%" fill="white"/>',
            f'<text x="{_LEFT}" y="20">{escape(repr(self)[11:-1])}</text>',
        ]
        for rank in range(self.stages):
            lines.append(f'<text x="8" y="{55 + _TALL * rank}">process {rank}</text>')
        for s in _joined(self.spans):
            down, tall = _ROWS[s.lane]
            x, wide = _LEFT + _WIDTH * s.start / self.seconds, _WIDTH * (s.end - s.start) / self.seconds
            y = 40 + _TALL * s.rank + down
            lines.append(
                f'<rect x="{x:.2f}" y="{y}" width="{max(wide, 0.2):.2f}" height="{tall}" fill="{_COLOURS[s.kind]}" '
                f'stroke="white" stroke-width="0.3"><title>{escape(s.name)}: {s.start * 1e3:.4g} to '
                f"{s.end * 1e3:.4g} ms</title></rect>"
            )
        for i, (kind, colour) in enumerate(_COLOURS.items()):
            x = _LEFT + 120 * i
            lines.append(f'<rect x="{x}" y="{bottom + 12}" width="14" height="14" fill="{colour}"/>')
            lines.append(f'<text x="{x + 20}" y="{bottom + 24}">{kind}</text>')
        for i in range(6):
            x = _LEFT + _WIDTH * i / 5
            lines.append(
                f'<text x="{x:.0f}" y="{bottom + 48}" text-anchor="middle">{self.seconds * i / 5 * 1e3:.4g} ms</text>'
            )
        text = "\n".join([*lines, "</svg>\n"])
        if path is not None:
            Path(path).write_text(text)
        return text


def _joined(spans: tuple[Span, ...]) -> list[Span]:
    """The layers of one pass as one span."""
    made: list[Span] = []
    at: dict[tuple[int, str], int] = {}
    for s in spans:
        before = at.get((s.rank, s.lane))
        if before is not None and made[before].name == s.name and s.start - made[before].end < 1e-9:
            made[before] = made[before]._replace(end=s.end)
        else:
            at[s.rank, s.lane] = len(made)
            made.append(s)
    return made
