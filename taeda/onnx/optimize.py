"""Passes over the nodes of a graph: what nothing uses is left out, and what is there twice is there once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_RANDOM = frozenset(
    "RandomNormal RandomUniform RandomNormalLike RandomUniformLike Bernoulli Multinomial Dropout".split()
)


def _graphs(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def uses(node: Any) -> set[str]:
    """The names that a node reads, those of its graphs too."""
    found = set(node.input) - {""}
    for graph in _graphs(node):
        found |= {x.name for x in graph.output}
        for inner in graph.node:
            found |= uses(inner)
    return found


def without_dead(nodes: list[Any], outputs: set[str]) -> list[Any]:
    """The nodes that the outputs depend on."""
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            for graph in _graphs(node):
                inner = without_dead(list(graph.node), {x.name for x in graph.output})
                del graph.node[:]
                graph.node.extend(inner)
            needed |= uses(node)
            kept.append(node)
    return kept[::-1]


def shared(nodes: list[Any], outputs: set[str]) -> list[Any]:
    """The nodes without copies of each other and without Identity nodes, the outputs' own aside."""
    renamed: dict[str, str] = {}
    seen: dict[Any, Any] = {}
    kept = []
    for node in nodes:
        _rename(node, renamed)
        if node.op_type == "Identity" and node.output[0] not in outputs:
            renamed[node.output[0]] = node.input[0]
            continue
        drawn = node.op_type in _RANDOM or node.domain  # a function may draw numbers
        if drawn or any(True for _ in _graphs(node)) or outputs.intersection(node.output):
            kept.append(node)
            continue
        key = (
            node.op_type, node.domain, tuple(node.input), len(node.output),
            tuple(sorted(a.SerializeToString(deterministic=True) for a in node.attribute)),
        )  # fmt: skip
        first = seen.setdefault(key, node)
        if first is node:
            kept.append(node)
        else:
            renamed.update(zip(node.output, first.output, strict=True))
    return _direct(kept, outputs)


def _direct(nodes: list[Any], outputs: set[str]) -> list[Any]:
    """Outputs that are an Identity of a node's own result are that result."""
    made = {name: (node, i) for node in nodes for i, name in enumerate(node.output)}
    renamed: dict[str, str] = {}
    gone = set()
    for node in nodes:
        source = node.input[0] if node.op_type == "Identity" and node.output[0] in outputs else ""
        if source in made and source not in outputs and source not in renamed:
            renamed[source] = node.output[0]
            gone.add(id(node))
    kept = [n for n in nodes if id(n) not in gone]
    for node in kept:
        for i, name in enumerate(node.output):
            node.output[i] = renamed.get(name, name)
        _rename(node, renamed)
    return kept


def _rename(node: Any, names: dict[str, str]) -> None:
    if not names:
        return
    for i, name in enumerate(node.input):
        node.input[i] = names.get(name, name)
    for graph in _graphs(node):
        for inner in graph.node:
            _rename(inner, names)
