"""A profile as a page of its own: a timeline to zoom and move in, with threads, kernels and the memory in use."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Any

from .table import format_memory

__all__ = ["timeline_page"]

_KINDS = {"op": 0, "node": 1, "range": 2, "module": 3, "kernel": 4}

_STYLE = """
body{font-family:"DejaVu Sans",Verdana,Helvetica,Arial,sans-serif;font-size:13px;margin:0;color-scheme:light dark;
--text:#1c2430;--page:#fff;--line:#d5dae2;--soft:#4b5666}
@media (prefers-color-scheme:dark){body{--text:#e8edf4;--page:#15181d;--line:#363d48;--soft:#aab4c2}}
body{color:var(--text);background:var(--page)}header{padding:8px 12px;display:flex;gap:14px;flex-wrap:wrap;
align-items:center}canvas{display:block;width:100%;cursor:grab}input,button{font:inherit}
#about{white-space:pre;padding:8px 12px;min-height:6em;color:var(--soft);font-family:monospace;overflow-x:auto}
.key::before{content:"";display:inline-block;width:10px;height:10px;margin-right:5px;background:var(--c)}
"""

_SCRIPT = r"""
const data = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("timeline"), about = document.getElementById("about");
const g = canvas.getContext("2d");
const colours = ["#56b4e9", "#e69f00", "#9aa3ae", "#b5a0d8", "#3fae86"], row = 18, left = 110, graph = 70;
let from = 0, to = data.end, chosen = null, pointed = null, wanted = "";
const memory = data.memory, high = Math.max(1, ...memory.map(m => m[1]));
let lanes = [], y = 26 + (memory.length ? graph + 12 : 0);
for (const lane of data.lanes) {
  lanes.push({name: lane.name, top: y, boxes: lane.boxes});
  y += row * (1 + Math.max(0, ...lane.boxes.map(b => b[3]))) + 14;
}
const height = y;
const time = us => us >= 1e6 ? (us / 1e6).toFixed(3) + " s" : us >= 1e3 ? (us / 1e3).toFixed(3) + " ms"
  : us.toFixed(2) + " us";
const bytes = n => { for (const [u, s] of [["GB", 2 ** 30], ["MB", 2 ** 20], ["KB", 2 ** 10]])
  if (Math.abs(n) >= s) return (n / s).toFixed(2) + " " + u; return n + " B"; };
const name = b => data.names[b[0]];
const variable = v => getComputedStyle(document.body).getPropertyValue(v);
function draw() {
  const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
  canvas.style.height = height + "px";
  canvas.width = width * ratio; canvas.height = height * ratio;
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  const scale = (width - left - 8) / (to - from), x = t => left + (t - from) * scale;
  const text = variable("--text"), line = variable("--line"), soft = variable("--soft");
  g.font = "11px DejaVu Sans,Verdana,sans-serif"; g.textBaseline = "middle";
  let step = 10 ** Math.floor(Math.log10((to - from) / 6));
  step *= [1, 2, 5, 10].find(f => (to - from) / (f * step) <= 8);
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    g.fillStyle = line; g.fillRect(x(t), 0, 1, height);
    g.fillStyle = soft; g.fillText(time(t), x(t) + 3, 10);
  }
  if (memory.length) {
    const at = v => 26 + graph * (1 - v / high);
    g.beginPath(); g.moveTo(left, 26 + graph);
    let last = 0;
    for (const [t, v] of memory) {
      if (t < from) { last = v; continue; }
      if (t > to) break;
      g.lineTo(x(t), at(last)); g.lineTo(x(t), at(v)); last = v;
    }
    g.lineTo(width - 8, at(last)); g.lineTo(width - 8, 26 + graph); g.closePath();
    g.fillStyle = "#cc79a766"; g.fill();
    g.fillStyle = text; g.fillText("memory", 8, 32); g.fillStyle = soft; g.fillText(bytes(high), 8, 48);
  }
  const narrow = new Map();
  for (const lane of lanes) {
    g.fillStyle = text; g.fillText(lane.name, 8, lane.top + row / 2);
    g.fillStyle = line; g.fillRect(0, lane.top - 7, width, 1);
    narrow.clear();
    for (const b of lane.boxes) {
      if (b[1] > to || b[1] + b[2] < from) continue;
      const a = Math.max(left, x(b[1])), e = Math.min(width - 8, x(b[1] + b[2])), top = lane.top + b[3] * row;
      const place = b[3];
      if (e - a < 0.7 && narrow.get(place) >= a - 0.7) continue;  // there is a box already
      narrow.set(place, e);
      const found = wanted && name(b).toLowerCase().includes(wanted);
      g.globalAlpha = wanted && !found ? 0.2 : 1;
      g.fillStyle = b === chosen || found ? "#d55e00" : colours[b[4]];
      g.fillRect(a, top, Math.max(e - a, 0.7), row - 2);
      if (b === pointed) { g.strokeStyle = text; g.strokeRect(a + .5, top + .5, Math.max(e - a - 1, 1), row - 3); }
      if (e - a > 24) {
        g.save(); g.beginPath(); g.rect(a, top, e - a - 2, row); g.clip();
        g.fillStyle = "#10151c"; g.fillText(name(b), a + 3, top + row / 2 - 1); g.restore();
      }
      g.globalAlpha = 1;
    }
  }
}
function at(event) {
  const box = canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
  const per = (to - from) / (canvas.clientWidth - left - 8), t = from + (px - left) * per;
  for (const lane of lanes)
    for (const b of lane.boxes)
      if (py >= lane.top + b[3] * row && py < lane.top + (b[3] + 1) * row && t >= b[1] - per && t <= b[1] + b[2] + per)
        return b;
  return null;
}
function tell(b) {
  about.textContent = b ? [name(b), time(b[2]) + " from " + time(b[1]), ...(data.about[b[5]] || [])].join("\n")
    : "Wheel: zoom. Drag: move. Double click: all. Click: keep what is told. Rest on a box to see what it is.";
}
let drag = null;
canvas.addEventListener("wheel", event => {
  event.preventDefault();
  const px = event.clientX - canvas.getBoundingClientRect().left;
  const t = from + (px - left) / (canvas.clientWidth - left - 8) * (to - from);
  const f = Math.min(1.5, Math.max(0.67, 1.0015 ** event.deltaY));
  if ((to - from) * f < 0.05) return;
  from = Math.max(0, t - (t - from) * f); to = Math.min(data.end, t + (to - t) * f); draw();
}, {passive: false});
canvas.addEventListener("pointerdown", e => {
  drag = [e.clientX, from, to, false]; canvas.setPointerCapture(e.pointerId);
});
canvas.addEventListener("pointermove", event => {
  if (drag) {
    let by = (drag[0] - event.clientX) / (canvas.clientWidth - left - 8) * (drag[2] - drag[1]);
    by = Math.max(-drag[1], Math.min(data.end - drag[2], by));
    drag[3] = drag[3] || Math.abs(event.clientX - drag[0]) > 3;
    from = drag[1] + by; to = drag[2] + by; draw(); return;
  }
  const b = at(event);
  if (b !== pointed) { pointed = b; tell(b || chosen); draw(); }
});
canvas.addEventListener("pointerup", event => {
  if (drag && !drag[3]) { chosen = at(event); tell(chosen); draw(); }
  drag = null;
});
canvas.addEventListener("dblclick", () => { from = 0; to = data.end; draw(); });
document.getElementById("find").addEventListener("input", e => { wanted = e.target.value.toLowerCase(); draw(); });
document.getElementById("all").addEventListener("click", () => { from = 0; to = data.end; draw(); });
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
tell(null); draw();
"""


def _facts(event: Any) -> list[str]:
    found = []
    if event.input_shapes:
        found.append(f"sizes: {event.input_shapes}")
    if event.flops:
        found.append(f"flops: {event.flops:,}")
    if event.moved:
        found.append(f"bytes read and written: {format_memory(event.moved)}")
    if event.cpu_memory_usage:
        found.append(f"memory taken: {format_memory(event.cpu_memory_usage)}")
    return found + event.stack[:6]


def _kind(event: Any) -> str:
    if event.is_python_function:
        return "module"
    return "range" if event.is_user_annotation or event.scope == 7 else "node" if event.scope == 1 else "op"


def timeline_page(events: Any, runs: Iterable[Any], title: str) -> str:
    """The page: HTML with what was recorded in it. It loads nothing.

    Args:
        events: of a profile.
        runs: of kernels.
        title: what stands above.
    Returns:
        HTML.
    """
    names: dict[str, int] = {}
    about: list[list[str]] = []
    lanes: dict[tuple[int, str], list[list]] = {}  # by (thread, "ops" or "kernels")
    depths: dict[int, int] = {}

    def box(name: str, start: float, length: float, depth: int, kind: str, facts: list[str]) -> list:
        about.append(facts)
        number = names.setdefault(name, len(names))
        return [number, round(start, 3), round(max(length, 0.0), 3), depth, _KINDS[kind], len(about) - 1]

    for event in events:  # in order of beginning: parents first
        above = event.cpu_parent
        depth = depths[event.id] = 0 if above is None else depths.get(above.id, -1) + (above.thread == event.thread)
        times = event.time_range
        made = box(event.name, times.start, times.elapsed_us(), depth, _kind(event), _facts(event))
        lanes.setdefault((event.thread, "ops"), []).append(made)
    threads = {thread: i + 1 for i, (thread, _) in enumerate(lanes)}
    for run in runs:
        facts = [f"{run.pieces} pieces, {run.busy:.2f} us inside the kernel"]
        if run.event is not None:
            facts.append(f"of {run.event.name}")
        made = box(run.name, run.start, run.end - run.start, 0, "kernel", facts)
        lanes.setdefault((run.thread, "kernels"), []).append(made)
    others = {thread: i + 1 for i, thread in enumerate(dict.fromkeys(t for t, _ in lanes if t not in threads))}

    def order(entry: tuple[tuple[int, str], list]) -> tuple:
        (thread, what), _ = entry
        return thread not in threads, threads.get(thread, 0), what != "ops"

    shown = []
    for (thread, what), boxes in sorted(lanes.items(), key=order):
        name = f"pool {others[thread]}" if thread in others else f"thread {threads[thread]}" if what == "ops" else what
        shown.append({"name": name, "boxes": boxes})
    memory: list[tuple[float, int]] = []
    if events._profile_memory:
        memory = sorted((round(e.time_range.end, 3), e.allocated) for e in events if e.self_cpu_memory_usage)
    end = max([b[1] + b[2] for lane in shown for b in lane["boxes"]], default=1.0)
    content = {"names": list(names), "lanes": shown, "about": about, "memory": memory, "end": end}
    text = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    keys = "".join(
        f'<span class="key" style="--c:{colour}">{name}</span>'
        for name, colour in (("op", "#56b4e9"), ("backward node", "#e69f00"), ("range", "#9aa3ae"),
                             ("module", "#b5a0d8"), ("kernel", "#3fae86"))
    )  # fmt: skip
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body><header>'
        f'<b>{escape(title)}</b>{keys}<input id="find" placeholder="find a name"><button id="all">all</button></header>'
        f'<canvas id="timeline"></canvas><div id="about"></div>'
        f'<script type="application/json" id="data">{text}</script>'
        f"<script>{_SCRIPT}</script></body></html>"
    )
