"""Boxes in boxes with wires between them: where each goes, and the picture as SVG.

Layers from top to bottom, as Sugiyama, Tagawa and Toda (1981) have it, one box at a time from the innermost outwards:
ranks by the longest path, an order in each rank by the middle of the neighbours, and places as near to the neighbours'
as the widths allow (isotonic regression by pooling adjacent violators). A wire that passes ranks has a lane of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

__all__ = ["Box", "Wire", "draw_svg"]

_GAP, _PAD, _TITLE, _LANE, _SIDE, _ROW = 30.0, 14.0, 20.0, 16.0, 22.0, 80.0
_BIG, _SMALL, _BOLD = 12.0, 10.0, 1.2
_STYLE = """
.b{fill:#fff;stroke:#7a8699;stroke-width:1}.c{fill:#5b7da10f;stroke:#7a8699;stroke-width:1;stroke-dasharray:5 3}
.o{fill:#eef1f5;stroke:#b5bdc9}.i{fill:#dff0e2;stroke:#6f9c78}.f{fill:#fff;stroke:#7a8699}
.w{fill:none;stroke:#5f6c80;stroke-width:1.2}.a{fill:#5f6c80}.t{fill:#1c2430;font-weight:600}.s{fill:#4b5666}
.l{fill:#3565a8}.n{fill:#b3541e;font-weight:700}
.h{paint-order:stroke;stroke:#f6f8fa;stroke-width:3px;stroke-linejoin:round;pointer-events:none}
@media (prefers-color-scheme:dark){.bg{fill:#15181d}.h{stroke:#15181d}
.b,.f{fill:#20262e}.c{fill:#8fb3d90f}.o{fill:#2a313b}
.i{fill:#1f3a28}.t{fill:#e8edf4}.s{fill:#aab4c2}.l{fill:#8db8f2}.n{fill:#ffa66b}.w{stroke:#93a0b4}.a{fill:#93a0b4}}
"""


@dataclass(eq=False)
class Box:
    """A thing to draw.

    Attributes:
        title: its first line.
        lines: smaller lines below.
        kind: ``module``, ``op``, ``end`` (what comes from outside or goes there) or ``group``.
        inside: boxes in it; their lines go below the title, and its own beside the title.
        times: how many it stands for.
        heat: 0 to 1: how much of the whole time it takes.
        hint: what is shown where the pointer rests on it.
        facts: what it stands for, for whoever makes boxes.
    """

    title: str
    lines: list[str] = field(default_factory=list)
    kind: str = "module"
    inside: list[Box] = field(default_factory=list)
    times: int = 1
    heat: float = 0.0
    hint: str = ""
    facts: Any = None

    def leaves(self) -> list[Box]:
        """The innermost boxes, in order."""
        return [leaf for box in self.inside for leaf in box.leaves()] if self.inside else [self]


@dataclass(frozen=True)
class Wire:
    """From the innermost box ``source`` to the innermost box ``target``. Wires with the same source and label are drawn
    as one.
    """

    source: Box
    target: Box
    label: str = ""


@dataclass(eq=False)
class _Spot:
    """A box, a place where a wire crosses the border, or a lane, in the ranks of a box."""

    width: float
    height: float
    box: Box | None = None
    rank: int = 0
    x: float = 0.0  # of the middle
    y: float = 0.0  # of the top
    spots: list[_Spot] = field(default_factory=list)  # spots of the boxes inside
    links: list[tuple] = field(default_factory=list)  # inside: (from, to, key, whether it ends in an arrow)
    enters: dict[Any, float] = field(default_factory=dict)  # by wire: where on the border, from the middle
    leaves: dict[Any, float] = field(default_factory=dict)
    part: _Spot | None = None  # the tall box whose place this keeps in a further rank

    @property
    def solid(self) -> bool:
        return self.box is not None or self.part is not None

    @property
    def port(self) -> bool:
        return not self.solid and not self.width


def text_width(text: str, size: float) -> float:
    """About how wide a text is in the usual sans-serif."""
    return sum(0.35 if c in "iljt.,:;|'()[] " else 0.85 if c in "mwMW@%" else 0.6 for c in text) * size


def _measure(box: Box, label: str) -> tuple[float, float]:
    width = text_width(_heading(box), _BIG) * _BOLD
    for line in box.lines:
        width = max(width, text_width(line, _SMALL))
    width = max(width + 18, 2 * text_width(label, _SMALL) + 14, 44)
    return width, 22.0 + 13.0 * len(box.lines)


def _heading(box: Box) -> str:
    return box.title + (f"  \N{MULTIPLICATION SIGN} {box.times}" if box.times > 1 else "")


def _place(box: Box, wires: Sequence[Wire], home: dict[Box, set[Box]]) -> _Spot:
    """The layout of ``box`` and of the boxes in it. ``home``: the innermost boxes that each box has."""
    if not box.inside:
        labels = [wire.label for wire in wires if wire.source is box]
        width, height = _measure(box, max(labels, key=len, default=""))
        return _Spot(width, height, box)
    own = home[box]
    wires = [wire for wire in wires if wire.source in own or wire.target in own]
    spots = {child: _place(child, wires, home) for child in box.inside}
    inner = {leaf: spots[child] for child in box.inside for leaf in home[child]}
    made = _Spot(0, 0, box, spots=list(spots.values()))
    ports: dict[Any, _Spot] = {}
    edges: dict[tuple, list] = {}  # (from, key) to targets
    for wire in wires:
        key = (wire.source, wire.label)
        start = inner.get(wire.source) or ports.setdefault(("in", key), _Spot(0, 0))
        end = inner.get(wire.target) or ports.setdefault(("out", key), _Spot(0, 0))
        if start is not end and end not in edges.setdefault((start, key), []):
            edges[start, key].append(end)
    entering = [spot for (side, _), spot in ports.items() if side == "in"]
    leaving = [spot for (side, _), spot in ports.items() if side == "out"]
    ranks, links = _rank(entering, made.spots, leaving, edges)
    _order(ranks, links)
    _spread(ranks, links)
    _finish(made, ranks, links)
    for (side, key), spot in ports.items():
        (made.enters if side == "in" else made.leaves)[key] = spot.x
        spot.y = 0.0 if side == "in" else made.height
    made.links = [(a.part or a, b, key, b.box is not None and not b.spots) for a, b, key in links if key is not None]
    return made


def _rank(entering: list, boxes: list, leaving: list, edges: dict) -> tuple[list[list[_Spot]], list[tuple]]:
    """The spots by rank, lanes among them, and the links between neighbouring ranks."""
    first = 1 if entering else 0
    sources: dict[_Spot, list[_Spot]] = {}
    targets: dict[_Spot, list[_Spot]] = {}
    for (start, _), ends in edges.items():
        for end in ends:
            sources.setdefault(end, []).append(start)
            targets.setdefault(start, []).append(end)
    spans = {spot: max(1, round(spot.height / _ROW)) for spot in boxes}
    for spot in boxes:  # in the order of time: its sources have their ranks
        spot.rank = max([first, *(source.rank + spans.get(source, 1) for source in sources.get(spot, ()))])
    for spot in reversed(boxes):  # a box without sources goes near its targets
        near = [target.rank for target in targets.get(spot, ()) if target.box is not None]
        if spot not in sources and near:
            spot.rank = max(first, min(near) - spans[spot])
    last = max((spot.rank + spans[spot] for spot in boxes), default=1)
    for spot in leaving:
        spot.rank = last
    ranks: list[list[_Spot]] = [[] for _ in range(last + bool(leaving))]
    links: list[tuple] = []
    bottoms: dict[_Spot, _Spot] = {}
    for spot in (*entering, *boxes, *leaving):
        ranks[spot.rank].append(spot)
        bottoms[spot] = spot
        for rank in range(spot.rank + 1, spot.rank + spans.get(spot, 1)):
            below = _Spot(spot.width, 0, rank=rank, leaves=spot.leaves, part=spot)
            ranks[rank].append(below)
            links.append((bottoms[spot], below, None))
            bottoms[spot] = below
    for (start, key), ends in edges.items():
        begin = bottoms[start]
        lanes: dict[int, _Spot] = {begin.rank: begin}
        for end in sorted(ends, key=lambda spot: spot.rank):
            for rank in range(begin.rank + 1, end.rank):
                if rank not in lanes:
                    lanes[rank] = _Spot(_LANE, 0, rank=rank)
                    ranks[rank].append(lanes[rank])
                    links.append((lanes[rank - 1], lanes[rank], key))
            links.append((lanes[end.rank - 1], end, key))
    return ranks, links


def _ends(links: list[tuple], down: bool) -> dict[_Spot, list[tuple[_Spot, float, float]]]:
    """By spot: its neighbours above or below, with where on either the link begins and ends, from the middle."""
    found: dict[_Spot, list[tuple[_Spot, float, float]]] = {}
    for start, end, key in links:
        at_start, at_end = (start.leaves.get(key, 0.0), end.enters.get(key, 0.0)) if key is not None else (0.0, 0.0)
        if down:
            found.setdefault(end, []).append((start, at_start, at_end))
        else:
            found.setdefault(start, []).append((end, at_end, at_start))
    return found


def _order(ranks: list[list[_Spot]], links: list[tuple]) -> None:
    above, below = _ends(links, True), _ends(links, False)
    for rank in ranks:
        _pack(rank)
    for sweep in range(6):
        down = sweep % 2 == 0
        for rank in ranks if down else reversed(ranks):
            near = above if down else below
            middle = {
                spot: sum(n.x + at for n, at, _ in near[spot]) / len(near[spot]) if spot in near else spot.x
                for spot in rank
            }
            rank.sort(key=lambda spot: middle[spot])
            _pack(rank)


def _pack(rank: list[_Spot]) -> None:
    at = -sum(spot.width + _SIDE for spot in rank) / 2
    for spot in rank:
        spot.x = at + (spot.width + _SIDE) / 2
        at += spot.width + _SIDE


def _spread(ranks: list[list[_Spot]], links: list[tuple]) -> None:
    """Move each spot as near to its neighbours as the order and the widths allow."""
    above, below = _ends(links, True), _ends(links, False)
    for sweep in range(12):
        down = sweep % 2 == 0
        for rank in ranks if down else reversed(ranks):
            near = above if down else below
            wanted, weights = [], []
            for spot in rank:
                found = near.get(spot)
                whole = spot.part or spot
                if found:  # boxes stand in a line, and lanes go round them
                    pulls = [1e3 if (n.part or n) is whole else 8.0 if n.solid else 1.0 for n, _, _ in found]
                    wanted.append(
                        sum(p * (n.x + at - own) for p, (n, at, own) in zip(pulls, found, strict=True)) / sum(pulls)
                    )
                else:
                    wanted.append(spot.x)
                tall = any((n.part or n) is whole for n, _, _ in found or ())
                weights.append(100.0 if tall else (1.0 + len(found) if spot.solid else 2.0) if found else 0.2)
            _settle(rank, wanted, weights)


def _settle(rank: list[_Spot], wanted: list[float], weights: list[float]) -> None:
    """The least squared distance from ``wanted`` that keeps the order and the gaps."""
    offsets, at = [], 0.0
    for i, spot in enumerate(rank):
        if i:
            at += (rank[i - 1].width + spot.width) / 2 + (_SIDE if spot.solid or rank[i - 1].solid else 4)
        offsets.append(at)
    blocks: list[list[float]] = []  # weight, weighted mean, number
    for want, offset, weight in zip(wanted, offsets, weights, strict=True):
        blocks.append([weight, want - offset, 1])
        while len(blocks) > 1 and blocks[-2][1] > blocks[-1][1]:
            weight, mean, count = blocks.pop()
            last = blocks[-1]
            last[1] = (last[0] * last[1] + weight * mean) / (last[0] + weight)
            last[0] += weight
            last[2] += count
    means = [mean for _, mean, count in blocks for _ in range(int(count))]
    for spot, mean, offset in zip(rank, means, offsets, strict=True):
        spot.x = mean + offset


def _finish(made: _Spot, ranks: list[list[_Spot]], links: list[tuple]) -> None:
    """Heights, the size of the whole, and where wires end on boxes that have several."""
    spots = [spot for rank in ranks for spot in rank]
    real = [spot for spot in spots if not spot.port]
    assert made.box is not None
    titled = bool(_heading(made.box) or made.box.lines)
    low = min(spot.x - spot.width / 2 for spot in real) - _PAD
    high = max(spot.x + spot.width / 2 for spot in real) + _PAD
    needed = text_width(" ".join([_heading(made.box), *made.box.lines]), _BIG) + 2 * _PAD if titled else 0
    extra = max(0.0, needed - (high - low)) / 2
    middle, made.width = (low + high) / 2, high - low + 2 * extra
    y = (_TITLE if titled else 0) + (0 if ranks[0][0].port else _PAD)
    starts, due, bottom = [], 0.0, y
    for rank in ranks:
        if not any(spot.part for spot in rank):  # tall boxes above have ended
            y = max(y, due)
        starts.append(y)
        height = max((spot.height for spot in rank if not spot.spots), default=0.0)
        due = max([due, *(y + spot.height + _GAP for spot in rank if spot.spots)])
        bottom = max([bottom, *(y + spot.height for spot in rank)])
        for spot in rank:
            spot.x -= middle
            spot.y = y
        if any(spot.spots or spot.port for spot in rank) and not height:
            y += 14
        elif height:
            y += height + _GAP
    for rank, start, following in zip(ranks, starts, [*starts[1:], y], strict=True):
        for spot in rank:
            if spot.box is None and spot.part is None and spot.width:  # a lane passes the whole rank
                spot.height = max(0.0, following - start - _GAP)
    made.height = bottom + (18 if ranks[-1][0].port else _PAD)
    ends: dict[_Spot, list[tuple[float, Any]]] = {}
    for start, end, key in links:
        if end.box is not None and not end.spots:
            ends.setdefault(end, []).append((start.x + start.leaves.get(key, 0.0), key))
    for spot, found in ends.items():
        found.sort(key=lambda entry: entry[0])
        step = min(24.0, 0.8 * spot.width / len(found))
        for i, (_, key) in enumerate(found):
            spot.enters[key] = (i - (len(found) - 1) / 2) * step


def draw_svg(
    root: Box, wires: Sequence[Wire], *, link: Callable[[Box], str | None] | None = None, note: str = ""
) -> str:
    """The picture of the boxes in ``root``.

    Args:
        root: the boxes in it are drawn, itself not.
        wires: from and to innermost boxes.
        link: gives the address that a box leads to, or None.
        note: a line at the bottom.
    """
    home: dict[Box, set[Box]] = {}

    def fill(box: Box) -> set[Box]:
        home[box] = {leaf for child in box.inside for leaf in fill(child)} if box.inside else {box}
        return home[box]

    fill(root)
    top = _place(root, wires, home)
    parts: list[str] = []
    over: list[str] = []
    _render(top, top.width / 2, 0.0, parts, over, link, False)
    parts += over
    height = top.height + 8
    if note:
        parts.append(_text(10, height + 8, note, "s", _SMALL))
        height += 18
    width = max(top.width, text_width(note, _SMALL) + 20)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="DejaVu Sans,Verdana,Helvetica,Arial,sans-serif">'
        f'<style>{_STYLE}</style><rect class="bg" width="{width:.0f}" height="{height:.0f}" fill="#fff"/>'
        + "".join(parts)
        + "</svg>"
    )


def _text(x: float, y: float, text: str, kind: str, size: float, middle: bool = False) -> str:
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" font-size="{size:g}"{anchor}>{escape(text)}</text>'


def _render(spot: _Spot, x: float, y: float, parts: list[str], over: list[str], link: Any, shown: bool = True) -> None:
    """Draw ``spot`` with the middle of its top at ``(x, y)``. Texts that wires may cross go to ``over``."""
    box = spot.box
    assert box is not None
    left, address = x - spot.width / 2, link(box) if link and shown else None
    if address:
        parts.append(f'<a href="{escape(address, quote=True)}">')
    size = f'width="{spot.width:.1f}" height="{spot.height:.1f}" rx="5"'
    if shown:
        if box.times > 1:  # a sheet behind it
            parts.append(f'<rect class="f" x="{left + 4:.1f}" y="{y + 4:.1f}" {size}/>')
        kind = "c" if spot.spots else {"op": "b o", "end": "b i"}.get(box.kind, "b")
        parts.append(
            f'<rect class="{kind}" x="{left:.1f}" y="{y:.1f}" {size}>'
            + (f"<title>{escape(box.hint)}</title>" if box.hint else "")
            + "</rect>"
        )
        if box.heat > 0.005 and not spot.spots:
            parts.append(
                f'<rect x="{left:.1f}" y="{y:.1f}" {size} '
                f'fill="#f0803c" fill-opacity="{min(0.75, 0.9 * box.heat**0.6):.2f}" pointer-events="none"/>'
            )
    if spot.spots:
        if shown and (box.title or box.lines or box.times > 1):
            over.append(_text(left + 8, y + 14, box.title, "t h", _BIG))
            at = left + 8 + text_width(box.title, _BIG) * _BOLD + 8
            if box.times > 1:
                times = f"\N{MULTIPLICATION SIGN} {box.times}"
                over.append(_text(at, y + 14, times, "n h", _BIG))
                at += text_width(times, _BIG) * _BOLD + 8
            over.append(_text(at, y + 14, " ".join(box.lines), "s h", _SMALL))
    else:
        times = f' <tspan class="n">\N{MULTIPLICATION SIGN} {box.times}</tspan>' if box.times > 1 else ""
        parts.append(_text(x, y + 15, box.title, "t", _BIG, True).replace("</text>", times + "</text>"))
        parts += [_text(x, y + 28 + 13 * i, line, "s", _SMALL, True) for i, line in enumerate(box.lines)]
    if address:
        parts.append("</a>")
    for inner in spot.spots:
        _render(inner, x + inner.x, y + inner.y, parts, over, link)
    labelled: set = set()
    lanes = {end for _, end, _, _ in spot.links if end.box is None and end.height}
    parts += [_curve(x + s.x, y + s.y, x + s.x, y + s.y + s.height) for s in lanes]
    for start, end, key, arrow in spot.links:
        x0, y0 = x + start.x + start.leaves.get(key, 0.0), y + start.y + start.height
        x1, y1 = x + end.x + end.enters.get(key, 0.0), y + end.y
        parts.append(_curve(x0, y0, x1, y1 - (5 if arrow else 0)))
        if arrow:
            parts.append(f'<path class="a" d="M{x1:.1f} {y1:.1f}l-3.5-7h7z"/>')
        if start.box is key[0] and key not in labelled and key[1]:
            labelled.add(key)
            place = sum(1 for other in labelled if other[0] is key[0]) - 1
            over.append(_text(x0 + 5, y0 + 11 + 11 * place, key[1], "l h", _SMALL))


def _curve(x0: float, y0: float, x1: float, y1: float) -> str:
    if abs(x0 - x1) < 0.5:
        return f'<path class="w" d="M{x0:.1f} {y0:.1f}V{y1:.1f}"/>'
    bend = max(10.0, (y1 - y0) / 2)
    return (
        f'<path class="w" d="M{x0:.1f} {y0:.1f}C{x0:.1f} {y0 + bend:.1f} {x1:.1f} {y1 - bend:.1f} {x1:.1f} {y1:.1f}"/>'
    )
