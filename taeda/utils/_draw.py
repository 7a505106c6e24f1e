"""``draw``: a model's modules, or the graph of a loss, as nested boxes: SVG, a page that folds, DOT text."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from .. import _core, autograd, nn
from .._core import Tensor
from ..ops.creation import ones_like
from ..profiler.table import format_memory, format_time
from ._calls import Call, Record, Value, record, tensors
from ._layout import Box, Wire, draw_svg
from ._summary import describe_outputs, longest_repeat, title, with_several, with_unit
from .dot import _quote

__all__ = ["Drawing", "draw"]

#: The largest number of boxes in a picture, unless a depth is given.
_ENOUGH = 70
_DTYPES = {"float": "f", "int": "i", "uint": "u", "bfloat": "bf", "complex": "c"}


class Drawing:
    """The result of :func:`draw`. A notebook shows the picture.

    Attributes:
        root: the outermost box.
        wires: from box to box.
        depth: how deep the picture looks.
    """

    def __init__(self, root: Box, wires: list[Wire], depth: int | None) -> None:
        self.root, self.wires = root, list(dict.fromkeys(wires))
        _fold(self.root, self)
        deepest = _height(root)
        self.deepest = deepest
        self.depth = min(depth, deepest) if depth is not None else self._suitable(deepest)

    def _suitable(self, deepest: int) -> int:
        """The deepest look with at most so many boxes."""
        found = 1
        for depth in range(1, deepest + 1):
            if sum(1 for _ in _visible(self.root, depth)) <= _ENOUGH:
                found = depth
        return found

    def svg(self, depth: int | None = None) -> str:
        """The picture as SVG.

        Args:
            depth: how deep it looks; default: that of the drawing.
        """
        depth = self.depth if depth is None else depth
        more = depth < self.deepest
        note = f"depth {depth} of {self.deepest}: draw(..., depth={self.deepest}) shows all" if more else ""
        return draw_svg(*_cut(self.root, self.wires, depth), note=note)

    _repr_svg_ = svg

    def html(self) -> str:
        """A page of its own: the picture, and below it each box that has others inside, to fold and unfold."""
        numbers = {box: i for i, box in enumerate(_walk(self.root))}

        def link(box: Box) -> str | None:
            return f"#b{numbers[box.facts]}" if isinstance(box.facts, Box) and box.facts.inside else None

        def section(box: Box, level: int) -> str:
            picture = draw_svg(*_cut(box, self.wires, 1), link=link)
            inner = "".join(section(child, level + 1) for child in box.inside if child.inside)
            times = f" \N{MULTIPLICATION SIGN} {box.times}" if box.times > 1 else ""
            name = escape(box.title or "group") + times
            facts = escape(" · ".join(box.lines))
            return (
                f"<details{' open' if level == 0 else ''}><summary><b>{name}</b> <small>{facts}</small></summary>"
                f'<div id="b{numbers[box]}">{picture}</div>{inner}</details>'
            )

        return (
            f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>{escape(self.root.title)}</title><style>'
            "body{font-family:sans-serif;margin:1em;color-scheme:light dark}details{margin:.4em 0 .4em 1em;"
            "border-left:3px solid #7a869944;padding-left:.8em}summary{cursor:pointer}svg{max-width:100%;height:auto}"
            "</style></head><body>"
            + section(self.root, 0)
            + f"<details><summary>everything, depth {self.depth}</summary>{self.svg()}</details></body></html>"
        )

    def dot(self, depth: int | None = None) -> str:
        """The picture as Graphviz DOT text, with a cluster for each box that has others inside."""
        root, wires = _cut(self.root, self.wires, self.depth if depth is None else depth)
        names: dict[Box, str] = {}
        lines = ["digraph taeda {", '  node [shape="box", fontname="monospace", fontsize="10"];', "  compound=true;"]

        def write(box: Box, indent: str) -> None:
            names[box] = f"n{len(names)}"
            times = f" x {box.times}" if box.times > 1 else ""
            label = "\\n".join(map(_quote, [box.title + times, *box.lines]))
            if not box.inside:
                lines.append(f'{indent}{names[box]} [label="{label}"];')
                return
            lines.append(f"{indent}subgraph cluster_{names[box]} {{")
            lines.append(f'{indent}  label="{label}";')
            for child in box.inside:
                write(child, indent + "  ")
            lines.append(f"{indent}}}")

        for box in root.inside:
            write(box, "  ")
        lines += [f'  {names[w.source]} -> {names[w.target]} [label="{_quote(w.label)}"];' for w in wires]
        return "\n".join([*lines, "}"]) + "\n"

    def save(self, path: Any) -> None:
        """Write it to a file.

        Args:
            path: its ending says what: ``.svg``, ``.html``, ``.dot``.
        Raises:
            ValueError: it has another ending.
        """
        writers = {".svg": self.svg, ".html": self.html, ".dot": self.dot}
        suffix = Path(path).suffix
        if suffix not in writers:
            raise ValueError(f"Drawing.save(): expected a path that ends in .svg, .html or .dot, got {str(path)!r}")
        Path(path).write_text(writers[suffix](), encoding="utf-8")

    def __repr__(self) -> str:
        count = sum(1 for _ in _walk(self.root)) - 1
        return f"<Drawing of {self.root.title}: {count} boxes, depth {self.depth} of {self.deepest}>"


# ---- boxes -----------------------------------------------------------------------------------------------------------


def _walk(box: Box) -> Iterator[Box]:
    yield box
    for child in box.inside:
        yield from _walk(child)


def _height(box: Box) -> int:
    return 1 + max(map(_height, box.inside)) if box.inside else 0


def _visible(box: Box, depth: int) -> Iterator[Box]:
    for child in box.inside:
        yield child
        if depth > 1:
            yield from _visible(child, depth - 1)


def _cut(root: Box, wires: Iterable[Wire], depth: int) -> tuple[Box, list[Wire]]:
    """``root`` down to ``depth``, as boxes of their own whose ``facts`` are those that they stand for, with its wires.

    Values from outside of ``root``, or going there, begin and end in boxes of kind ``end``.
    """
    shown: dict[Box, Box] = {}

    def copy(box: Box, level: int) -> Box:
        inside = [copy(child, level + 1) for child in box.inside] if level < depth else []
        made = Box(box.title, box.lines, box.kind, inside, box.times, box.heat, box.hint, box)
        if not inside:
            shown.update(dict.fromkeys(box.leaves(), made))
            if box.inside:
                made.lines = [*box.lines, f"{len(box.inside)} inside"]
        return made

    top = copy(root, 0)
    before: dict[tuple, Box] = {}
    after: dict[tuple, Box] = {}
    found: dict[Wire, None] = {}
    for wire in wires:
        source, target = shown.get(wire.source), shown.get(wire.target)
        if source is None and target is not None:
            source = before.setdefault((wire.source, wire.label), Box(f"from {wire.source.title}", kind="end"))
        elif target is None and source is not None:
            target = after.setdefault((source, wire.label), Box("out", kind="end"))
        if source is not None and target is not None and source is not target:
            found[Wire(source, target, wire.label)] = None
    top.inside = [*before.values(), *top.inside, *after.values()]
    return top, list(found)


def _signature(box: Box) -> tuple:
    """Equal for boxes that do the same work: without names of their own, times and memory."""
    return (*box.facts["like"], box.times, *map(_signature, box.inside)) if box.facts else (box.title, box.kind)


def _fold(root: Box, drawing: Drawing) -> None:
    """Let one box, or row of boxes, stand for its repetitions, the innermost first."""
    for child in root.inside:
        _fold(child, drawing)
    marks = [_signature(box) for box in root.inside]
    kept: list[Box] = []
    i = 0
    while i < len(marks):
        period, times = longest_repeat(marks, i)
        members = [root.inside[i + k * period : i + (k + 1) * period] for k in range(times)]
        if times > 1 and all(box.kind != "end" for box in members[0]) and _join(members, drawing):
            first = members[0]
            if period == 1:
                box = first[0]
            else:
                facts = {"like": ("group",), **_sum([box.facts for box in first])}
                box = Box("", kind="group", inside=first, facts=facts)
            box.times = times
            kept.append(box)
            i += period * times
        else:
            kept.append(root.inside[i])
            i += 1
    root.inside = kept


def _sum(facts: list[dict]) -> dict:
    return {key: sum(f.get(key, 0) for f in facts) for key in ("seconds", "bytes")}


def _join(members: list[list[Box]], drawing: Drawing) -> bool:
    """Lead the wires of the other members to the first one, if all have the same wires inside; else change nothing.

    Members side by side, as two heads on one body, are one only if what takes their results looks the same.
    """
    first = [leaf for box in members[0] for leaf in box.leaves()]
    place: dict[Box, tuple[int, int]] = {}
    for k, member in enumerate(members):
        for at, leaf in enumerate(leaf for box in member for leaf in box.leaves()):
            place[leaf] = (k, at)
    inner: list[set] = [set() for _ in members]
    outer: list[set] = [set() for _ in members]
    in_a_row = False
    for wire in drawing.wires:
        a, b = place.get(wire.source), place.get(wire.target)
        if a is not None and b is not None and a[0] == b[0]:
            inner[a[0]].add((a[1], b[1], wire.label))
        elif a is not None and b is not None:
            in_a_row = True
        elif a is not None:
            outer[a[0]].add((a[1], wire.target.title, wire.label))
    if any(found != inner[0] for found in inner) or not (in_a_row or all(found == outer[0] for found in outer)):
        return False
    wires: dict[Wire, None] = {}
    for wire in drawing.wires:
        a, b = place.get(wire.source), place.get(wire.target)
        if a is not None and b is not None and a[0] != b[0]:
            continue  # from one to the next
        source = first[a[1]] if a is not None else wire.source
        target = first[b[1]] if b is not None else wire.target
        wires[Wire(source, target, wire.label)] = None
    drawing.wires = list(wires)
    rows = [[box for top in member for box in _walk(top)] for member in members]
    for same in zip(*rows, strict=True):  # one box shows the mean
        for key in ("seconds", "bytes"):
            same[0].facts[key] = sum(box.facts.get(key, 0) for box in same) / len(same)
        same[0].facts["names"] = (same[0].facts.get("name", ""), same[-1].facts.get("name", ""))
    return True


def _describe(root: Box, whole: float, memory: str) -> None:
    """Write the lines of all boxes from their facts."""
    shares = {root: 1 / whole if whole else 0.0}
    for box in _walk(root):
        shares.update((child, shares[box] * box.times) for child in box.inside)
        facts = box.facts
        if not facts:
            continue
        parts = [facts.get("cost", "")]
        if facts.get("seconds"):
            each = " each" if box.times > 1 else ""
            parts.append(_short(format_time(facts["seconds"] * 1e6)) + each)
        if facts.get("bytes"):
            parts.append(_short(format_memory(int(facts["bytes"]))) + memory)
        box.lines = [*facts.get("detail", ()), " · ".join(part for part in parts if part)]
        box.lines = [line for line in box.lines if line]
        names = facts.get("names")
        if names and names[0] != names[1] and box.title.startswith(names[0]):
            box.title = with_several(box.title, *names)
        box.heat = min(1.0, facts.get("seconds", 0) * shares[box] * box.times)


def _label(shape: Iterable[int], dtype: str) -> str:
    """Sizes and dtype, short."""
    name = dtype.removeprefix("taeda.")
    for long, short in _DTYPES.items():
        rest = name.removeprefix(long)
        if rest != name and rest[:1].isdigit():
            name = short + rest
    return ("\N{MULTIPLICATION SIGN}".join(map(str, shape)) or "scalar") + f" {name}"


def _short(text: str) -> str:
    """``12.345ms`` as ``12.3 ms``."""
    number, unit = re.fullmatch(r"([\d.]+) ?(\D+)", text).groups()  # type: ignore[union-attr]
    value = float(number)
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def _settings(module: nn.Module) -> str:
    """The text of ``extra_repr``, without default values."""
    defaults = {n: repr(p.default) for n, p in inspect.signature(type(module).__init__).parameters.items()}
    items = (part.strip() for part in re.findall(r"(?:\w+=)?(?:\([^()]*\)|[^,()])+", module.extra_repr()))
    kept = []
    for item in filter(None, items):
        name, _, value = item.partition("=")
        usual = defaults.get(name)
        if value != usual and set(value.strip("()").split(", ")) != {usual}:
            kept.append(item)
    return _clip(", ".join(kept))


def _clip(text: str, width: int = 48) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


# ---- of a run --------------------------------------------------------------------------------------------------------


def _model_drawing(made: Record, depth: int | None) -> Drawing:
    boxes: dict[Call, Box] = {}
    root = _call_box(made.call, boxes)
    if not made.call.children:  # a single layer
        root = Box(root.title, inside=[root])
    values: list[Value] = []
    wires: list[Wire] = []
    ends: dict[Value, Box] = {}
    for i, value in enumerate(made.call.inputs):
        name = "input" if len(made.call.inputs) == 1 else f"input {i}"
        ends.setdefault(value, Box(name, kind="end"))
    consumed: set[Call] = set()
    for call, box in boxes.items():
        if box.inside:
            continue
        for value in call.inputs:
            source = boxes.get(value.source) if value.source is not None else ends.get(value)
            if source is not None and not source.inside:
                wires.append(Wire(source, box, _label(value.shape, value.dtype)))
                consumed.update([value.source] if value.source is not None else [])
    outs = []
    for value in made.call.outputs:
        source = boxes.get(value.source) if value.source is not None else ends.get(value)
        if source is not None and not source.inside and value not in values:
            values.append(value)
            outs.append(Box("output", kind="end"))
            wires.append(Wire(source, outs[-1], _label(value.shape, value.dtype)))
            consumed.update([value.source] if value.source is not None else [])
    _drop(root, {boxes[c] for c in boxes if c.module is None and c not in consumed and not c.inputs})
    root.inside = [*ends.values(), *root.inside, *outs]
    drawing = Drawing(root, wires, depth)
    _describe(root, made.call.seconds, "")
    return drawing


def _drop(box: Box, unwanted: set[Box]) -> None:
    box.inside = [child for child in box.inside if child not in unwanted]
    for child in box.inside:
        _drop(child, unwanted)


def _call_box(call: Call, boxes: dict[Call, Box]) -> Box:
    inside = [_call_box(child, boxes) for child in call.children]
    detail = []
    cost = f"{with_unit(call.all_flops())}flop" if call.all_flops() else ""
    if call.module is not None:
        count = sum(p.numel() for p in call.module.parameters())
        if not inside and call.module.extra_repr():
            detail.append(_settings(call.module))
        if count:
            cost = " · ".join([f"{with_unit(count)} parameters".replace("  ", " "), *([cost] if cost else [])])
    like = (call.name, describe_outputs(call), tuple(_label(v.shape, v.dtype) for v in call.inputs), cost, *detail)
    facts = {
        "like": like, "seconds": call.seconds, "bytes": call.peak, "cost": cost, "detail": detail,
        "name": title(call).partition(":")[0] if call.path else "",
    }  # fmt: skip
    kind = "module" if call.module is not None else "op"
    boxes[call] = Box(title(call), kind=kind, inside=inside, hint=call.path, facts=facts)
    return boxes[call]


# ---- of a graph ------------------------------------------------------------------------------------------------------


class _Watcher:
    """Told of every node that runs backward: its time, and the sizes of the gradients that it was given."""

    def __init__(self) -> None:
        self.seconds: dict[int, float] = {}
        self.shapes: dict[int, list] = {}
        self.started = 0.0

    def enter(self, name: str, number: int) -> int:
        self.started = time.perf_counter()
        return number

    def leave(self, number: int) -> None:
        self.seconds[number] = self.seconds.get(number, 0.0) + time.perf_counter() - self.started

    def weigh(self, number: int, found: tuple) -> None:
        self.shapes[number] = [None if g is None else _label(g.shape, str(g.dtype)) for g in found[0]]


def _graph_drawing(outputs: list[Tensor], params: Any, made: Record | None, timed: bool, depth: int | None) -> Drawing:
    nodes = _nodes(outputs)
    inner = sorted((n for n in nodes if getattr(n, "variable", None) is None), key=lambda n: n._sequence_nr())
    leaves = [n.variable for n in nodes if getattr(n, "variable", None) is not None]
    watcher = _run_backward(outputs, leaves, timed)
    names = _names(params)
    boxes: dict[Any, Box] = {}
    wires: list[Wire] = []
    paths = _paths(inner, params, names, made)
    root = Box("graph of the loss" if len(outputs) == 1 else "graph")
    open_: list[tuple[Any, Box]] = []
    leaf_boxes: dict[int, Box] = {}
    for node, path in zip(inner, paths, strict=True):
        while open_ and [key for key, _ in open_] != [key for key, _ in path][: len(open_)]:
            open_.pop()
        for key, text in path[len(open_) :]:
            box = Box(text, facts={"like": (text.rpartition(": ")[2],), "name": text.rpartition(": ")[0]})
            (open_[-1][1] if open_ else root).inside.append(box)
            open_.append((key, box))
        kept = sum(t.nbytes for _, t in node.saved_items()) if isinstance(node, _core.Node) else 0
        detail, number = [], node._sequence_nr()
        for source, _ in node.next_functions:
            leaf = getattr(source, "variable", None)
            if leaf is not None and (id(leaf) in names or isinstance(leaf, nn.Parameter)):
                name = names.get(id(leaf), "parameter")
                detail.append(_clip(f"{name.rpartition('.')[2]} {_label(leaf.shape, str(leaf.dtype))}"))
        text = node.name().removesuffix("0").removesuffix("Backward").rpartition("::")[2]
        op = _core.node_op(node) if isinstance(node, _core.Node) else None
        if op is not None and "flops" in op.traits and callable(op.traits.get("node")):
            text = op.name.capitalize()  # a product's name depends on its ranks: linear may be Addmm, Mm or View
        labels = tuple(str(label) for label in watcher.shapes.get(number, ()))
        facts = {"like": (text, labels, *detail), "seconds": watcher.seconds.get(number, 0.0), "bytes": kept,
                 "detail": detail}  # fmt: skip
        boxes[node] = Box(text, kind="op", hint=node.name(), facts=facts)
        (open_[-1][1] if open_ else root).inside.append(boxes[node])
        for source, nr in node.next_functions:
            leaf = getattr(source, "variable", None)
            if leaf is not None:
                if id(leaf) in names or isinstance(leaf, nn.Parameter):
                    continue
                if id(leaf) not in leaf_boxes:
                    leaf_boxes[id(leaf)] = Box("leaf", kind="end")
                wires.append(Wire(leaf_boxes[id(leaf)], boxes[node], _label(leaf.shape, str(leaf.dtype))))
            elif source is not None:
                found = watcher.shapes.get(source._sequence_nr(), [])
                wires.append(Wire(boxes[source], boxes[node], (found[nr] if nr < len(found) else None) or ""))
    _shorten(root)
    outs = []
    for t in outputs:
        outs.append(Box("output" if len(outputs) > 1 else "loss", kind="end"))
        wires.append(Wire(boxes[t.grad_fn], outs[-1], _label(t.shape, str(t.dtype))))
    for box in reversed(list(_walk(root))):
        if box.inside and box.facts:
            box.facts.update(_sum([child.facts for child in box.inside]))
    root.inside = [*leaf_boxes.values(), *root.inside, *outs]
    drawing = Drawing(root, wires, depth)
    _describe(root, sum(watcher.seconds.values()), " kept")
    return drawing


def _shorten(box: Box) -> None:
    """A module with one node is drawn as that node."""
    for i, child in enumerate(box.inside):
        _shorten(child)
        if len(child.inside) == 1 and not child.inside[0].inside:
            node = child.inside[0]
            node.title, node.kind, node.hint = child.title, "module", node.hint or node.title
            node.facts["detail"] = [node.facts["like"][0], *node.facts["detail"]]
            node.facts["name"] = child.facts["name"]
            node.facts["like"] = (*child.facts["like"], *node.facts["like"])
            box.inside[i] = node


def _nodes(outputs: list[Tensor]) -> list[Any]:
    found: dict[Any, None] = {}
    stack = [t.grad_fn for t in outputs]
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = None
            stack += [source for source, _ in node.next_functions if source is not None]
    return list(found)


def _run_backward(outputs: list[Tensor], leaves: list[Tensor], timed: bool) -> _Watcher:
    """Run the graph backward for times and sizes; no gradient is written anywhere."""
    watcher = _Watcher()
    if not leaves:
        return watcher
    ones = [ones_like(t) for t in outputs]
    for _ in range(2 if timed else 1):  # kernels are built in the first run
        watcher.seconds.clear()
        _core.watch_nodes(watcher)
        try:
            autograd.grad(outputs, leaves, ones, retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            if "second time" not in str(error):
                raise
            break  # its tensors were freed, so there are no sizes
        finally:
            _core.watch_nodes(None)
    if not timed:
        watcher.seconds.clear()
    return watcher


def _names(params: Any) -> dict[int, str]:
    if params is None:
        return {}
    named = params.named_parameters() if hasattr(params, "named_parameters") else params.items()
    return {id(t): name for name, t in named}


def _paths(inner: list, params: Any, names: dict[int, str], made: Record | None) -> list[list[tuple[Any, str]]]:
    """For each node the modules around it, the outermost first: (key, title).

    They are known where the run was watched. Otherwise a node belongs where the parameters before and after it do.
    """
    if made is not None:
        return [_path_of_call(made.nodes.get(node._sequence_nr())) for node in inner]
    if not isinstance(params, nn.Module):
        return [[] for _ in inner]
    own: list[list[str] | None] = []
    for node in inner:
        found = [getattr(source, "variable", None) for source, _ in node.next_functions]
        homes = [names[id(t)].split(".")[:-1] for t in found if t is not None and id(t) in names]
        own.append(homes[0] if homes else None)
    before, after = list(own), list(own)
    for i in range(1, len(own)):
        before[i] = own[i] if own[i] is not None else before[i - 1]
    for i in range(len(own) - 2, -1, -1):
        after[i] = own[i] if own[i] is not None else after[i + 1]
    paths = []
    for mine, a, b in zip(own, before, after, strict=True):
        words = mine if mine is not None else _common(a or [], b or [])
        if mine is not None and not dict(params.get_submodule(".".join(mine)).named_children()):
            words = mine[:-1]  # a layer: its box is the node's
        steps = [".".join(words[: k + 1]) for k in range(len(words))]
        kinds = [type(params.get_submodule(step)).__name__ for step in steps]
        paths.append([(step, f"{word}: {kind}") for step, word, kind in zip(steps, words, kinds, strict=True)])
    return paths


def _common(a: list[str], b: list[str]) -> list[str]:
    count = 0
    while count < min(len(a), len(b)) and a[count] == b[count]:
        count += 1
    return a[:count]


def _path_of_call(call: Call | None) -> list[tuple[Any, str]]:
    path: list[tuple[Any, str]] = []
    while call is not None and call.parent is not None:
        if call.module is not None:
            path.append((call, title(call)))
        call = call.parent
    return path[::-1]


# ---- the function ----------------------------------------------------------------------------------------------------


def draw(
    model_or_loss: Any, *args: Any, graph: bool | None = None, params: Any = None, depth: int | None = None,
    timed: bool = True, kwargs: Mapping[str, Any] | None = None,
) -> Drawing:  # fmt: skip
    """A picture of a model, or of the autograd graph of a loss: boxes in boxes, sizes and dtypes on the lines.

    Modules are boxes around what they call. Layers that repeat are one box with their number. Boxes have parameters,
    flops, time and memory, and the redder a box is, the more of the time it takes. No other program is needed.

    Args:
        model_or_loss: a Module or a function, which is called with ``args`` and ``kwargs``; or a tensor with a graph,
            or a tuple of them.
        args: what it is called with.
        graph: draw the autograd graph of the result: each node with its time backward and the bytes that it keeps.
            Default: only where a tensor is given.
        params: a Module, or a mapping from names to tensors: names of the leaves of a graph. A Module also says which
            nodes belong to which module, by the parameters next to them; where the model or function itself is given
            that is known exactly.
        depth: how deep the picture looks; default: as deep as leaves it readable.
        timed: measure times. A model is called up to eight times for that, otherwise once. A graph is run backward
            twice, otherwise once; no gradient is written.
        kwargs: what the model is called with, by name.
    Returns:
        A :class:`Drawing`, which a notebook shows, with ``svg()``, ``html()``, ``dot()`` and ``save(path)``.
    Raises:
        ValueError: a tensor has no graph.
        TypeError: it is none of those.

    Example:
        >>> model = taeda.nn.Sequential(*[taeda.nn.Linear(4, 4) for _ in range(8)])
        >>> taeda.utils.draw(model, taeda.randn(2, 4))
        <Drawing of Sequential: 3 boxes, depth 1 of 1>
    """
    made = None
    result = model_or_loss
    if callable(model_or_loss) and not isinstance(model_or_loss, Tensor):
        made = record(model_or_loss, args, dict(kwargs or {}), timed=timed)
        if not graph:
            return _model_drawing(made, depth)
        result = made.result
        if params is None and isinstance(model_or_loss, nn.Module):
            params = model_or_loss
    outputs = tensors(result)
    if not outputs:
        raise TypeError(f"draw(): expected a Module, a function or a tensor, got {type(model_or_loss).__name__}")
    known = [t for t in outputs if t.grad_fn is not None]
    if not known:
        raise ValueError("draw(): the tensor has no graph: it requires no grad, or was made under no_grad()")
    return _graph_drawing(known, params, made, timed, depth)
