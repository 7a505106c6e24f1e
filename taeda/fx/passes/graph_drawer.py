"""``FxGraphDrawer``: a Graph as a picture, in the language of Graphviz (DOT)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from ..graph_module import GraphModule, _get_attr
from ..node import Node, _format_arg
from .shape_prop import TensorMetadata

__all__ = ["FxGraphDrawer"]

_COLORS = {"placeholder": "AliceBlue", "call_module": "LemonChiffon1", "get_attr": "LightGrey", "output": "PowderBlue"}
_CALLS = (
    "CadetBlue1 Coral DarkOliveGreen1 DarkSeaGreen1 GhostWhite Khaki1 LavenderBlush1 LightSkyBlue MistyRose1 "
    "PaleTurquoise1 PeachPuff1 Salmon Thistle1 Thistle3 Wheat1"
).split()


class Dot:
    """A graph in DOT. ``write(path)`` writes the text, ``to_string()`` gives it; a program draws it, such as
    ``dot``."""

    def __init__(self, name: str, shape: str = "record") -> None:
        self.name, self.shape = name, shape
        self.nodes: list[tuple[str, dict[str, str]]] = []
        self.edges: list[tuple[str, str]] = []
        self.clusters: list[Dot] = []

    def _lines(self, kind: str) -> Iterator[str]:
        yield f"{kind} {_quoted(self.name)} {{"
        yield "  rankdir=TB;" if kind == "digraph" else f"  label={_quoted(self.name)};"
        for name, style in self.nodes:
            yield f"  {_quoted(name)} [{', '.join(f'{k}={_quoted(v)}' for k, v in style.items())}];"
        for cluster in self.clusters:
            yield from (f"  {line}" for line in cluster._lines("subgraph"))
        for source, target in self.edges:
            yield f"  {_quoted(source)} -> {_quoted(target)};"
        yield "}"

    def to_string(self) -> str:
        """The text."""
        return "\n".join(self._lines("digraph")) + "\n"

    __str__ = to_string

    def write(self, path: str) -> None:
        """Write the text to a file."""
        with open(path, "w") as file:
            file.write(self.to_string())

    write_raw = write_dot = write


def _quoted(text: str) -> str:
    return '"' + text.replace('"', r"\"") + '"'


class FxGraphDrawer:
    """Draws a GraphModule, and those inside it.

    Args:
        graph_module: the module.
        name: the name of the picture.
        ignore_getattr: leave out attributes.
        ignore_parameters_and_buffers: leave out the parameters of modules.
        skip_node_names_in_args: no names of Nodes among the arguments.
        parse_stack_trace: write the line of the program to each Node, where it is known.
        dot_graph_shape: the shape of the boxes.
        normalize_args: accepted.
    """

    def __init__(
        self, graph_module: GraphModule, name: str, ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False, skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False, dot_graph_shape: str | None = None, normalize_args: bool = False,
    ) -> None:  # fmt: skip
        self._name = name
        self.dot_graph_shape = dot_graph_shape or "record"
        self.normalize_args = normalize_args
        self._options = (ignore_getattr, ignore_parameters_and_buffers, skip_node_names_in_args, parse_stack_trace)
        self._dot_graphs = {name: self._to_dot(graph_module, name)}
        for node in graph_module.graph.nodes:
            if node.op == "call_module":
                inner = _get_attr(graph_module, node.target)
                if isinstance(inner, GraphModule):
                    self._dot_graphs[f"{name}_{node.target}"] = self._to_dot(inner, f"{name}_{node.target}")

    def get_dot_graph(self, submod_name: str | None = None) -> Dot:
        """The picture, or the one of a GraphModule inside: ``write(path)`` it."""
        return self._dot_graphs[self._name if submod_name is None else submod_name]

    get_main_dot_graph = get_dot_graph

    def get_submod_dot_graph(self, submod_name: str) -> Dot:
        """The picture of a GraphModule inside."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Dot]:
        """All pictures, by name."""
        return self._dot_graphs

    def _get_node_style(self, node: Node) -> dict[str, str]:
        style = {
            "shape": self.dot_graph_shape,
            "fillcolor": "#CAFFE3",
            "style": '"filled,rounded"',
            "fontcolor": "#000000",
        }
        if node.op in _COLORS:
            style["fillcolor"] = _COLORS[node.op]
        else:
            target = node._pretty_print_target(node.target)
            style["fillcolor"] = _CALLS[int(hashlib.md5(target.encode()).hexdigest()[:8], 16) % len(_CALLS)]
        style["style"] = style["style"].strip('"')
        return style

    def _get_node_label(self, module: GraphModule, node: Node, skip_names: bool, parse_stack_trace: bool) -> str:
        def escaped(text: str) -> str:
            return "".join(f"\\{c}" if c in "{}|<>" else c for c in text)

        parts = [f"name=%{node.name}", f"op_code={node.op}"]
        if node.op == "call_module":
            inner = _get_attr(module, node.target)
            parts.append(type(inner).__name__)
            parts += [f"{name}: {getattr(inner, name)}" for name in getattr(inner, "__constants__", ())]
        else:
            parts.append(f"target={node._pretty_print_target(node.target)}")
            for label, held in (("args", node.args), ("kwargs", node.kwargs)):
                if held and not (
                    skip_names and node.all_input_nodes and label == "args" and len(held) == len(node.all_input_nodes)
                ):
                    parts.append(f"{label}={_format_arg(held, 4)}")
        parts.append(f"num_users={len(node.users)}")
        meta = node.meta.get("tensor_meta")
        if isinstance(meta, TensorMetadata):
            parts += [
                f"dtype={meta.dtype}",
                f"shape={tuple(meta.shape)}",
                f"requires_grad={meta.requires_grad}",
                f"stride={meta.stride}",
            ]
        if parse_stack_trace and node.stack_trace:
            parts.append(node.stack_trace.strip().split("\n")[-2].strip())
        return "{" + "|".join(escaped(part) for part in parts) + r"\n}"

    def _to_dot(self, module: GraphModule, name: str) -> Dot:
        ignore_getattr, ignore_parameters, skip_names, parse_stack_trace = self._options
        dot = Dot(name, self.dot_graph_shape)
        for node in module.graph.nodes:
            if ignore_getattr and node.op == "get_attr":
                continue
            label = self._get_node_label(module, node, skip_names, parse_stack_trace)
            dot.nodes.append((node.name, {"label": label, **self._get_node_style(node)}))
            if node.op == "call_module" and not ignore_parameters:
                inner: Any = _get_attr(module, node.target)
                for label, held in (
                    () if isinstance(inner, GraphModule) else (*inner.named_parameters(), *inner.named_buffers())
                ):
                    path = f"{node.target}.{label}"
                    dot.nodes.append((path,
                    {"label": f"{{name={path}|op_code=get_parameter|{held.dtype}{list(held.shape)}}}",
                                             **self._get_node_style(node)}))  # fmt: skip
                    dot.edges.append((path, node.name))
            for user in node.users:
                dot.edges.append((node.name, user.name))
        return dot
