"""``memory_use``: the memory of a step over time, and who holds it."""

from __future__ import annotations

import gc
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from .. import _core, nn
from .._core import Tensor
from .._core.memory import memory_stats, reset_peak_memory_stats
from ..profiler.table import format_memory, format_time, lay_out
from . import _charts
from ._calls import Watcher, tensors, watched

__all__ = ["Block", "MemoryUse", "memory_use"]

#: The kinds of memory, in the order of the picture from below.
KINDS = ["parameters", "optimizer", "gradients", "buffers", "activations", "backward", "temporary", "other"]
#: Points of time in a picture.
_POINTS = 700


@dataclass(eq=False)
class Block:
    """Memory of one or of several tensors that share it.

    Attributes:
        nbytes: its size.
        kind: one of ``parameters``, ``optimizer`` (its state), ``gradients`` (of parameters), ``buffers``,
            ``activations`` (made by the forward pass, and there when the backward pass begins), ``backward`` (made by
            the backward pass), ``temporary``, ``other`` (there before the step).
        module: the path of the module that made it, or that it belongs to; empty outside.
        op: the op or node of the graph that made it, or the name of the parameter.
        shape: sizes of the first tensor that was seen on it.
        begun: seconds from the beginning of the step; 0 for what was there before.
        ended: the same for when it was freed; None for what is left after the step.
    """

    nbytes: int
    kind: str
    module: str
    op: str
    shape: tuple[int, ...]
    begun: float
    ended: float | None = None

    def at(self, seconds: float) -> bool:
        """Whether it was there."""
        return self.begun <= seconds and (self.ended is None or seconds < self.ended)


class MemoryUse:
    """The result of :func:`memory_use`. ``print`` shows who holds the most at the peak; notebooks show the picture.

    Attributes:
        blocks: every :class:`Block` that was seen, in the order in which they were made.
        seconds: how long the step took under watch.
        peak: bytes in use at most, as the allocator counted them: with what kernels use for themselves.
        peak_at: when the most was in use between two ops, in seconds.
        result: what the step returned.
    """

    def __init__(
        self, blocks: list[Block], samples: list[tuple[float, int]], seconds: float, peak: int, result: Any
    ) -> None:
        self.blocks, self.samples, self.seconds, self.peak, self.result = blocks, samples, seconds, peak, result
        self.peak_at = max(samples, key=lambda sample: sample[1])[0]

    def at(self, seconds: float) -> list[Block]:
        """The blocks that there were at some time, the largest first.

        Args:
            seconds: from the beginning of the step.
        """
        return sorted((b for b in self.blocks if b.at(seconds)), key=lambda b: -b.nbytes)

    def by_kind(self, seconds: float | None = None) -> dict[str, int]:
        """Bytes by kind. ``other`` is what else the allocator has given away.

        Args:
            seconds: from the beginning of the step; default: at the peak.
        """
        seconds = self.peak_at if seconds is None else seconds
        found = dict.fromkeys(KINDS, 0)
        for block in self.blocks:
            if block.at(seconds):
                found[block.kind] += block.nbytes
        allocated = next((n for t, n in reversed(self.samples) if t <= seconds), self.samples[0][1])
        found["other"] = max(found["other"], allocated - sum(found.values()) + found["other"])
        return found

    def by_module(self, seconds: float | None = None, depth: int | None = None) -> dict[tuple[str, str], int]:
        """Bytes by module and kind, the most first.

        Args:
            seconds: from the beginning of the step; default: at the peak.
            depth: add up what lies deeper: 1 for the model's own children.
        """
        sums: Counter[tuple[str, str]] = Counter()
        for block in self.at(self.peak_at if seconds is None else seconds):
            path = block.module if depth is None else ".".join(block.module.split(".")[:depth])
            sums[path, block.kind] += block.nbytes
        return dict(sums.most_common())

    def _lines(self) -> list[str]:
        peak, seen = format_memory(self.peak), max(n for _, n in self.samples)
        inside = f" ({format_memory(seen)} between ops)" if self.peak > 1.01 * seen else ""
        when = f"{format_time(self.peak_at * 1e6)} of {format_time(self.seconds * 1e6)}"
        return [f"at most {peak} in use{inside}, after {when}"]

    def _tables(self) -> tuple[list[list[str]], list[list[str]]]:
        kinds = self.by_kind()
        whole = sum(kinds.values()) or 1
        first = [[kind, format_memory(n), f"{100 * n / whole:.1f}%"] for kind, n in kinds.items() if n]
        rows = list(self.by_module().items())
        second = [[path or "(outside)", kind, format_memory(n)] for (path, kind), n in rows[:12]]
        if rest := sum(n for _, n in rows[12:]):
            second.append([f"{len(rows) - 12} more", "", format_memory(rest)])
        return first, second

    def __str__(self) -> str:
        first, second = self._tables()
        text = [*self._lines(), "", _laid([("At the peak", "<"), ("Memory", ">"), ("Share", ">")], first)]
        text += ["", _laid([("Module", "<"), ("What", "<"), ("Memory", ">")], second)]
        return "\n".join(text)

    __repr__ = __str__

    def _steps(self) -> tuple[list[float], dict[str, list[float]]]:
        """Times, and the bytes of each kind from each time on: of each short stretch, what is highest."""
        allocated = dict(self.samples)
        changes: list[tuple[float, str, int]] = []
        for block in self.blocks:
            changes.append((block.begun, block.kind, block.nbytes))
            if block.ended is not None:
                changes.append((block.ended, block.kind, -block.nbytes))
        changes += [(t, "", 0) for t in allocated]
        changes.sort(key=lambda change: change[0])
        now, total = dict.fromkeys(KINDS, 0), self.samples[0][1]
        best: dict[int, tuple[float, int, dict[str, int]]] = {}
        for t, kind, n in changes:
            if kind:
                now[kind] += n
            total = allocated.get(t, total + n if t else total)  # at 0 the allocator's number is known
            place = min(int(t / (self.seconds or 1) * _POINTS), _POINTS - 1)
            if place not in best or total >= best[place][1]:
                best[place] = (t, total, dict(now))
        xs: list[float] = []
        layers: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for place, (_, high, held) in sorted(best.items()):
            xs.append(1000 * self.seconds * place / _POINTS)
            held["other"] = max(held["other"], high - sum(held.values()) + held["other"])
            for kind, n in held.items():
                layers[kind].append(n)
        return [*xs, 1000 * self.seconds], layers

    def svg(self) -> str:
        """The memory of each kind over time, as SVG."""
        xs, layers = self._steps()
        return _charts.areas(xs, layers, xlabel="ms", show=format_memory, marks=_marks, title=self._lines()[0])

    def html(self) -> str:
        """A page of its own: the picture, who holds what at the peak, and the largest blocks."""
        blocks = [
            (format_memory(b.nbytes), b.kind, b.module, b.op, str(list(b.shape)), format_time(b.begun * 1e6),
             "left" if b.ended is None else format_time(b.ended * 1e6))
            for b in sorted(self.blocks, key=lambda b: -b.nbytes)[:200]
        ]  # fmt: skip
        from .._html import fold, table

        headings = ("Memory", "What", "Module", "Made by", "Sizes", "From", "To")
        return (
            '<!DOCTYPE html><html><head><meta charset="utf-8"><title>Memory</title><style>'
            "body{font-family:sans-serif;margin:1em;color-scheme:light dark}svg{max-width:100%;height:auto}"
            "td,th{padding:2px 10px}</style></head><body>"
            f"{self._repr_html_()}{fold('the largest blocks', table(headings, blocks))}</body></html>"
        )

    def _repr_html_(self) -> str:
        from .._html import table

        first, second = self._tables()
        side = '<div style="display:flex;gap:2em;flex-wrap:wrap;align-items:flex-start">'
        tables = table(("At the peak", "Memory", "Share"), first) + table(("Module", "What", "Memory"), second)
        return f"<div><p>{escape(self._lines()[0])}</p>{self.svg()}{side}{tables}</div></div>"

    def save(self, path: Any) -> None:
        """Write it to a file.

        Args:
            path: its ending says what: ``.svg`` or ``.html``.
        Raises:
            ValueError: it has another ending.
        """
        writers = {".svg": self.svg, ".html": self.html}
        suffix = Path(path).suffix
        if suffix not in writers:
            raise ValueError(f"MemoryUse.save(): expected a path that ends in .svg or .html, got {str(path)!r}")
        Path(path).write_text(writers[suffix](), encoding="utf-8")


def _laid(columns: Sequence[tuple[str, str]], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in (*rows, [name for name, _ in columns])) for i in range(len(columns))]
    laid = [(name, width, side) for (name, side), width in zip(columns, widths, strict=True)]
    return lay_out(laid, rows).rstrip("\n")


def _marks(top: float) -> list[float]:
    """Round numbers of bytes up to ``top``."""
    unit = next((size for size in (1 << 30, 1 << 20, 1 << 10) if top >= size), 1)
    return [t * unit for t in _charts.ticks(0.0, top / unit)]


class _Watch(Watcher):
    """The mode that sees ops, the hooks that see modules, and the watcher of the backward pass."""

    watches = True

    def __init__(self, model: nn.Module | None) -> None:
        super().__init__(model)
        self.blocks: list[Block] = []
        self.known: dict[int, tuple[Any, Block]] = {}  # by the id of the memory: (weak reference, block)
        self.samples: list[tuple[float, int]] = []
        self.nodes: dict[int, str] = {}  # of the graph, by number: the module
        self.node = ("", "")  # that runs, or ran last: (name, module)
        self.backward_at: list[float] = []
        self.task = -1
        devices = {p.device.type for p in model.parameters()} if model is not None else set()
        if devices - {"cpu", "meta"}:
            raise NotImplementedError(
                f"memory_use: expected a model on the CPU or on device meta, got one on {', '.join(sorted(devices))}: "
                "cuda.memory_stats and cuda.memory_snapshot tell what a GPU's memory is used for"
            )
        self.device, self.key = ("meta", "planned") if "meta" in devices else ("cpu", "allocated")
        self.start = time.perf_counter()

    def now(self) -> float:
        return time.perf_counter() - self.start

    def sample(self) -> None:
        self.samples.append((self.now(), memory_stats()[self.key]))

    def see(self, t: Tensor, kind: str, module: str, op: str, begun: float | None = None) -> None:
        """Note the memory of a tensor, if it is new and the allocator counts it. ``begun``: None for now."""
        if t.device.type != self.device:
            return
        if t._without_memory is not None:
            return
        storage = t.untyped_storage()
        if storage.owner is not None:  # memory of NumPy, of a file, or shared with other processes
            return
        key = id(storage)
        held = self.known.get(key)
        if held is not None and held[0]() is storage:
            return
        begun = self.now() if begun is None else begun
        block = Block(storage.nbytes(), kind, module, op, tuple(t.shape), begun)

        def freed(_: Any) -> None:
            block.ended = self.now()

        self.known[key] = (weakref.ref(storage, freed), block)
        self.blocks.append(block)

    def name_kind(self, t: Tensor, kind: str, module: str, op: str) -> None:
        """The memory of a tensor has a known purpose."""
        self.see(t, kind, module, op)
        held = self.known.get(id(t.untyped_storage()))
        if held is not None and held[1].kind in ("temporary", "backward", kind):
            held[1].kind, held[1].module, held[1].op = kind, module, op

    # ---- ops ---------------------------------------------------------------------------------------------------------

    def handle(self, op: Any, args: tuple, kwargs: dict) -> Any:
        if _core.is_mode_active():
            return _core.pass_through(self, op, args, kwargs)
        for t in tensors((args, kwargs)):
            self.see(t, "temporary", self.module, "made outside of ops")  # by randn(), say
        result = _core.pass_through(self, op, args, kwargs)
        name = (getattr(op, "name", None) or op.__name__).lstrip("_")
        backward = _core.current_task() != -1
        module = self.node[1] if backward else self.module
        for t in tensors(result):
            self.see(t, "backward" if backward else "temporary", module, name)
            if not backward and t.grad_fn is not None:
                self.nodes.setdefault(t.grad_fn._sequence_nr(), module)
        self.sample()
        return result


class _Backward:
    """Told of every node that runs backward."""

    def __init__(self, watch: _Watch) -> None:
        self.watch = watch

    def enter(self, name: str, number: int) -> tuple[str, str]:
        watch = self.watch
        if (task := _core.current_task()) != watch.task:
            watch.task = task
            watch.backward_at.append(watch.now())
        watch.node = (name, watch.nodes.get(number, ""))
        return watch.node

    def leave(self, place: Any) -> None:
        self.watch.sample()

    def weigh(self, place: tuple[str, str], found: tuple) -> None:
        for t in tensors(found[1]):
            self.watch.see(t, "backward", place[1], place[0])


def _optimizer_state(optimizer: Any, names: Mapping[int, str]) -> Iterator[tuple[Tensor, str, str]]:
    for p, state in optimizer.state.items():
        path = names.get(id(p), "")
        for key, value in state.items():
            if isinstance(value, Tensor):
                yield value, path.rpartition(".")[0], f"{key} of {path.rpartition('.')[2]}" if path else str(key)


def memory_use(step: Callable[[], Any], model: nn.Module | None = None, optimizer: Any = None) -> MemoryUse:
    """Run ``step()`` once, and tell what memory it used over time, and who held it.

    Each tensor's memory is followed from when it is made until it is freed: parameters, gradients, the optimiser's
    state, activations that the backward pass needs, and what is temporary; each with the module that made it. On device
    meta, which uses no memory, it tells what the step would take.

    It is a real step: parameters and the optimiser change as in any other. It takes some times as long as without
    watch, so times are longer than they would be.

    Args:
        step: takes no arguments, and does what a step of training (or an evaluation) does.
        model: the Module that is trained: gives names to parameters, gradients and modules.
        optimizer: the optimiser, or a list of them.
    Returns:
        A :class:`MemoryUse`: ``print`` it, look at it in a notebook, or ``save("memory.html")``.

    Raises:
        NotImplementedError: the model is on another device than the CPU or meta.

    Example:
        >>> model = taeda.nn.Sequential(taeda.nn.Linear(256, 256), taeda.nn.ReLU(), taeda.nn.Linear(256, 10))
        >>> x = taeda.randn(512, 256)
        >>> use = taeda.utils.memory_use(lambda: model(x).sum().backward(), model)
        >>> held = use.by_kind()
        >>> held["parameters"], held["activations"] >= 512 * 256 * 4
        (273448, True)
    """
    watch = _Watch(model)
    optimizers = list(optimizer) if isinstance(optimizer, (list, tuple)) else [] if optimizer is None else [optimizer]
    params = dict(model.named_parameters()) if model is not None else {}
    names = {id(p): name for name, p in params.items()}
    for name, p in params.items():
        path, _, own = name.rpartition(".")
        watch.see(p, "parameters", path, own, 0.0)
        if p.grad is not None:
            watch.see(p.grad, "gradients", path, own, 0.0)
    for name, b in model.named_buffers() if model is not None else ():
        path, _, own = name.rpartition(".")
        watch.see(b, "buffers", path, own, 0.0)
    for one in optimizers:
        for t, path, own in _optimizer_state(one, names):
            watch.see(t, "optimizer", path, own, 0.0)

    for t in (x for x in gc.get_objects() if isinstance(x, Tensor)):
        watch.see(t, "other", "", "there before", 0.0)

    def accumulated(name: str) -> Callable:
        path, _, own = name.rpartition(".")
        return lambda p: watch.name_kind(p.grad, "gradients", path, own)

    def stepped(one: Any, *_: Any) -> None:
        for t, path, own in _optimizer_state(one, names):
            watch.name_kind(t, "optimizer", path, own)
        watch.sample()

    with ExitStack() as stack:
        for name, p in params.items():
            if p.requires_grad and p.is_leaf:
                stack.callback(p.register_post_accumulate_grad_hook(accumulated(name)).remove)
        for one in optimizers:
            stack.callback(one.register_step_post_hook(stepped).remove)
        stack.enter_context(watched(watch))
        _core.watch_nodes(_Backward(watch))
        stack.callback(_core.watch_nodes, None)
        stack.enter_context(_core.modes([*_core.mode_stack(), watch]))
        reset_peak_memory_stats()
        watch.start = time.perf_counter()
        watch.sample()
        result = step()
        watch.sample()
    seconds, peak = watch.now(), memory_stats()[f"peak_{watch.key}"]
    watch.known.clear()
    for block in watch.blocks:
        begun = next((t for t in watch.backward_at if t >= block.begun), None)
        if block.kind == "temporary" and begun is not None and (block.ended is None or block.ended > begun):
            block.kind = "activations"
    return MemoryUse(watch.blocks, watch.samples, seconds, peak, result)
