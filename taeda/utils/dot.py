"""Graphs drawn as Graphviz DOT text: ``print(graph(loss))``, and ``dot -Tsvg`` makes a picture of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core import Node, Tensor

__all__ = ["graph"]


def graph(
    output: Any, *args: Any, params: Mapping[str, Tensor] | Any = None, show_saved: bool = False,
    max_nodes: int = 100_000, **kwargs: Any,
) -> str:  # fmt: skip
    """The graph that made ``output``, as DOT text: leaves on top, edges in the direction of the computation.

    Args:
        output: a tensor, a node, a tuple of them, or a function, which is called with ``args`` and ``kwargs``.
        *args: for ``output``, if it is a function.
        params: names of leaves: a mapping from names to tensors, or a module.
        show_saved: also draw the tensors that nodes keep for the backward pass.
        max_nodes: raise a ValueError above this many nodes.
        **kwargs: for ``output``, if it is a function.
    Returns:
        The text.
    """
    if not isinstance(output, (Tensor, Node, tuple, list)):
        if params is None and hasattr(output, "named_parameters"):
            params = output
        output = output(*args, **kwargs)
    names = {id(t): name for name, t in _named(params)}
    lines = [
        "digraph taeda {",
        '  graph [rankdir="TB"];',
        '  node [shape="box", style="filled", fillcolor="white", fontname="monospace", fontsize="10"];',
    ]
    drawn: dict[Any, str] = {}
    stack: list[Any] = []

    def draw(node: Any) -> str:
        if node not in drawn:
            if len(drawn) >= max_nodes:
                raise ValueError(f"graph: more than max_nodes={max_nodes} nodes")
            drawn[node] = f"n{len(drawn)}"
            stack.append(node)
            leaf = getattr(node, "variable", None)
            if leaf is not None:
                lines.append(_box(drawn[node], names.get(id(leaf), ""), leaf, "lightblue"))
            else:
                lines.append(f'  {drawn[node]} [label="{_quote(node.name())}"];')
        return drawn[node]

    for i, t in enumerate(_outputs(output)):
        if isinstance(t, Node):
            draw(t)
            continue
        lines.append(_box(f"o{i}", names.get(id(t), ""), t, "darkolivegreen1"))
        if t.grad_fn is not None:
            lines.append(f"  {draw(t.grad_fn)} -> o{i};")
    while stack:
        node = stack.pop()
        for source, _ in node.next_functions:
            if source is not None:
                lines.append(f"  {draw(source)} -> {drawn[node]};")
        if show_saved:
            lines.extend(_saved(node, drawn[node]))
    return "\n".join([*lines, "}"]) + "\n"


def _named(params: Any) -> list[tuple[str, Tensor]]:
    if params is None:
        return []
    if hasattr(params, "named_parameters"):
        return list(params.named_parameters())
    return list(params.items())


def _outputs(output: Any) -> list:
    if isinstance(output, (Tensor, Node)):
        return [output]
    if isinstance(output, Mapping):
        output = output.values()
    if isinstance(output, (str, bytes)) or not hasattr(output, "__iter__"):
        return []
    return [t for item in output for t in _outputs(item)]


def _box(key: str, name: str, t: Tensor, color: str) -> str:
    label = "\\n".join(part for part in (_quote(name), f"{tuple(t.shape)}", _quote(str(t.dtype))) if part)
    return f'  {key} [label="{label}", fillcolor="{color}"];'


def _saved(node: Any, key: str) -> list[str]:
    """A dashed box for each tensor that ``node`` keeps."""
    lines = []
    for i, (name, t) in enumerate(node.saved_items() if isinstance(node, Node) else ()):
        lines.append(_box(f"{key}s{i}", name, t, "orange"))
        lines.append(f'  {key}s{i} -> {key} [style="dashed", arrowhead="none"];')
    return lines


def _quote(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
