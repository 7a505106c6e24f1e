"""Charts as SVG and as text: lines over a number, areas upon each other over time, bars. Nothing else is needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["COLOURS", "areas", "bars", "lines", "sparkline", "text_lines"]

#: Okabe and Ito's colours, which people who are colour-blind can tell apart; the last one for what is left.
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#f0e442", "#8a919c"]
_STYLE = (
    ".t{fill:#1c2430;font-size:12px}.s{fill:#4b5666;font-size:11px}.g{stroke:#7a869944}.x{stroke:#7a8699;fill:none}"
    "@media (prefers-color-scheme:dark){.bg{fill:#15181d}.t{fill:#e8edf4}.s{fill:#aab4c2}}"
)
_LEFT, _TOP, _RIGHT, _BOTTOM = 74.0, 14.0, 12.0, 40.0
_BLOCKS = " ▁▂▃▄▅▆▇█"
#: Of a braille character: the bits of its dots, by column from the top.
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers between ``low`` and ``high``, about ``count`` of them."""
    if not high > low:
        return [low]
    step = 10.0 ** math.floor(math.log10((high - low) / count))
    step *= next(f for f in (1, 2, 5, 10) if (high - low) / (f * step) <= count)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten between two numbers, or round numbers where there are fewer than two."""
    found = [10.0**i for i in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    return found if len(found) > 1 else [t for t in ticks(low, high) if t > 0]


class _Frame:
    """The axes of a chart: where a number lies, and the picture around it."""

    def __init__(
        self, width: float, height: float, x: tuple[float, float], y: tuple[float, float], log: bool = False
    ) -> None:
        self.width, self.height, self.log = width, height, log
        self.x0, self.x1 = x if x[1] > x[0] else (x[0], x[0] + 1)
        low, high = (math.log10(y[0]), math.log10(y[1])) if log else y
        self.y0, self.y1 = (low, high) if high > low else (low - 0.5, low + 0.5)

    def at_x(self, x: float) -> float:
        return _LEFT + (x - self.x0) / (self.x1 - self.x0) * (self.width - _LEFT - _RIGHT)

    def at_y(self, y: float) -> float:
        y = math.log10(y) if self.log else y
        return self.height - _BOTTOM - (y - self.y0) / (self.y1 - self.y0) * (self.height - _TOP - _BOTTOM)

    def picture(
        self, inside: str, names: Sequence[tuple[str, str]], xlabel: str, show: Callable[[float], str],
        marks: Sequence[float] | None = None, title: str = "",
    ) -> str:  # fmt: skip
        """The whole: the axes, what is inside, and a legend of (name, colour)."""
        parts = []
        if marks is None:
            marks = _log_ticks(10**self.y0, 10**self.y1) if self.log else ticks(self.y0, self.y1)
        right = self.width - _RIGHT
        for mark in marks:
            y = self.at_y(mark)
            parts.append(f'<path class="g" d="M{_LEFT:g} {y:.1f}H{right:g}"/>')
            text = escape(show(mark))
            parts.append(f'<text class="s" x="{_LEFT - 6:g}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
        floor = self.height - _BOTTOM
        for mark in ticks(self.x0, self.x1, 8):
            x = self.at_x(mark)
            parts.append(f'<path class="x" d="M{x:.1f} {floor:g}v4"/>')
            parts.append(f'<text class="s" x="{x:.1f}" y="{floor + 16:g}" text-anchor="middle">{mark:g}</text>')
        label = escape(xlabel)
        parts.append(f'<text class="s" x="{right:g}" y="{self.height - 8:g}" text-anchor="end">{label}</text>')
        x = _LEFT
        for name, colour in names:
            parts.append(f'<rect x="{x:.0f}" y="{self.height - 17:g}" width="10" height="10" fill="{colour}"/>')
            parts.append(f'<text class="t" x="{x + 14:.0f}" y="{self.height - 8:g}">{escape(name)}</text>')
            x += 30 + 7.2 * len(name)
        size = f'width="{self.width:g}" height="{self.height:g}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" {size} role="img" '
            f'font-family="DejaVu Sans,Verdana,Helvetica,Arial,sans-serif"><style>{_STYLE}</style>'
            f'<title>{escape(title)}</title><rect class="bg" {size} fill="#fff"/>'
            f'<g>{"".join(parts)}</g>{inside}<path class="x" d="M{_LEFT:g} {_TOP:g}V{floor:g}H{right:g}"/></svg>'
        )


def areas(
    xs: Sequence[float], layers: Mapping[str, Sequence[float]], *, xlabel: str, show: Callable[[float], str],
    marks: Callable[[float], Sequence[float]] | None = None, title: str = "", width: float = 860, height: float = 360,
) -> str:  # fmt: skip
    """Areas upon each other, the first one lowest. Each value holds until the next ``x``.

    Args:
        xs: where values begin, ascending, and the end.
        layers: the values of each layer, one fewer than ``xs``.
        xlabel: below the axis.
        show: a value as text.
        marks: from the highest value to those that have a line; default: round numbers.
        title: what is shown where the pointer rests.
        width: of the picture, in pixels.
        height: of the picture.
    """
    count = len(xs) - 1
    total = [sum(values[i] for values in layers.values()) for i in range(count)]
    top = max(total, default=0.0) or 1.0
    frame = _Frame(width, height, (xs[0], xs[-1]), (0.0, 1.04 * top))
    parts, below = [], [0.0] * count
    used = [(name, values, colour) for (name, values), colour in zip(layers.items(), COLOURS, strict=False)]
    for name, values, colour in used:
        above = [b + v for b, v in zip(below, values, strict=True)]
        if not any(values):
            continue
        path = f"M{frame.at_x(xs[0]):.1f} {frame.at_y(above[0]):.1f}"
        for i in range(1, count):
            if above[i] != above[i - 1]:
                path += f"H{frame.at_x(xs[i]):.1f}V{frame.at_y(above[i]):.1f}"
        path += f"H{frame.at_x(xs[count]):.1f}V{frame.at_y(below[-1]):.1f}"
        for i in range(count - 1, 0, -1):
            if below[i] != below[i - 1]:
                path += f"H{frame.at_x(xs[i]):.1f}V{frame.at_y(below[i - 1]):.1f}"
        path += f"H{frame.at_x(xs[0]):.1f}z"
        parts.append(f'<path d="{path}" fill="{colour}" fill-opacity="0.8"><title>{escape(name)}</title></path>')
        below = above
    names = [(name, colour) for name, values, colour in used if any(values)]
    return frame.picture("".join(parts), names, xlabel, show, marks(top) if marks else None, title)


def _finite(series: Mapping[str, tuple[Sequence[float], Sequence[float]]], log: bool) -> dict[str, list]:
    """The points of each series that can be shown."""
    return {
        name: [(x, y) for x, y in zip(xs, ys, strict=True) if math.isfinite(y) and (y > 0 or not log)]
        for name, (xs, ys) in series.items()
    }


def _bounds(points: Mapping[str, list]) -> tuple[tuple[float, float], tuple[float, float]]:
    every = [p for found in points.values() for p in found] or [(0.0, 1.0)]
    return (min(x for x, _ in every), max(x for x, _ in every)), (min(y for _, y in every), max(y for _, y in every))


def lines(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, xlabel: str, log: bool = False,
    width: float = 640, height: float = 320,
) -> str:  # fmt: skip
    """A line for each series, by name: ``(xs, ys)``. What is not finite, or not positive where ``log``, is left out."""
    points = _finite(series, log)
    x, y = _bounds(points)
    frame = _Frame(width, height, x, y, log)
    parts, names = [], []
    for i, (name, found) in enumerate(points.items()):
        colour = COLOURS[i % (len(COLOURS) - 1)]
        names.append((name, colour))
        places = [f"{frame.at_x(a):.1f} {frame.at_y(b):.1f}" for a, b in found]
        if len(places) == 1:
            a, b = places[0].split()
            parts.append(f'<circle cx="{a}" cy="{b}" r="3" fill="{colour}"/>')
        elif places:
            parts.append(f'<path d="M{"L".join(places)}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
    return frame.picture("".join(parts), names, xlabel, lambda v: f"{v:.4g}")


def text_lines(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, log: bool = False, width: int = 60,
    height: int = 10,
) -> str:  # fmt: skip
    """The same as text, a small chart below the other for each series: braille characters, and the bounds."""
    charts = []
    for name, found in _finite(series, log).items():
        x, y = _bounds({name: found})
        low, high = (math.log10(y[0]), math.log10(y[1])) if log and found else y
        cells = [[0] * width for _ in range(height)]
        before = None
        for a, b in found:
            b = math.log10(b) if log else b
            column = round((a - x[0]) / ((x[1] - x[0]) or 1) * (2 * width - 1))
            row = round((high - b) / ((high - low) or 1) * (4 * height - 1))
            for c, r in _between(before, (column, row)):
                cells[r // 4][c // 2] |= _DOTS[c % 2][r % 4]
            before = (column, row)
        labels = [f"{y[1]:.4g}", *[""] * (height - 2), f"{y[0]:.4g}"]
        margin = max(map(len, labels))
        last = f", now {found[-1][1]:.4g}" if found else ""
        rows = [f"{label:>{margin}} ┤{''.join(chr(0x2800 + c) for c in row)}" for label, row in
                zip(labels, cells, strict=True)]  # fmt: skip
        below = f"{x[0]:g}".ljust(width - len(f"{x[1]:g}")) + f"{x[1]:g}"
        charts.append("\n".join([f"{name}{last}", *rows, " " * (margin + 2) + below]))
    return "\n\n".join(charts)


def _between(start: tuple[int, int] | None, end: tuple[int, int]) -> list[tuple[int, int]]:
    """The places on the way to ``end``."""
    if start is None:
        return [end]
    n = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    return [tuple(round(s + (e - s) * i / n) for s, e in zip(start, end, strict=True)) for i in range(1, n + 1)]  # type: ignore[misc]


def sparkline(counts: Sequence[float]) -> str:
    """Counts as characters of eight heights; one that is not 0 has some height."""
    top = max(counts, default=0) or 1
    return "".join(_BLOCKS[math.ceil(8 * count / top) if count else 0] for count in counts)


def bars(counts: Sequence[float], hints: Sequence[str] = (), *, width: int = 150, height: int = 28) -> str:
    """Counts as a small picture of bars. ``hints`` are shown where the pointer rests."""
    top, step = max(counts, default=0) or 1, width / max(len(counts), 1)
    parts: list[Any] = []
    for i, count in enumerate(counts):
        tall = height * count / top
        hint = f"<title>{escape(hints[i])}</title>" if hints else ""
        parts.append(
            f'<rect x="{i * step:.1f}" y="{height - tall:.1f}" width="{step - 0.6:.1f}" height="{tall:.1f}" '
            f'fill="{COLOURS[0]}">{hint}</rect>'
        )
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{"".join(parts)}</svg>'
