"""Passes over the nodes of a graph: they drop unused nodes, merge equal ones, and fold batch normalisation into the
layer before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from taeda.nn.utils.fusion import fuse_conv_bn_weights

from .._typed import Tensor

_RANDOM = frozenset(
    "RandomNormal RandomUniform RandomNormalLike RandomUniformLike Bernoulli Multinomial Dropout".split()
)


def _graphs(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def uses(node: Any) -> set[str]:
    """The names that a node and its graphs read."""
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


def fold_normalization(
    nodes: list[Any], outputs: set[str], weights: dict[str, Tensor], value_of: Callable[[str], Tensor | None]
) -> set[str]:
    """Put the factors of batch normalisation into the layer before it, and rename its result. The nodes are changed.

    Args:
        nodes: those of the graph, in order.
        outputs: names of the graph's outputs.
        weights: tensors by name; those of the layers are replaced, and a bias is added where there is none.
        value_of: gives constants by name, weights or others; None for what is computed.
    Returns:
        The names of weights that have other values now.
    """
    reads = Counter(x for node in nodes for x in (*node.input, *(uses(node) - set(node.input))))
    made = {x: node for node in nodes for x in node.output}
    changed: set[str] = set()
    renamed: dict[str, str] = {}
    for node in list(nodes):
        _rename(node, renamed)
        if node.op_type != "BatchNormalization" or len(node.output) != 1 or node.domain:
            continue
        layer, result = made.get(node.input[0]), node.input[0]
        if layer is None or layer.domain or reads[result] != 1 or result in outputs:
            continue
        new = _folded(layer, node, value_of)
        names = list(layer.input[1:])
        if new is None or any(n not in weights or reads[n] != 1 for n in names):
            continue
        if len(names) == 1:
            stem = names[0].removesuffix("weight")
            names.append(next(n for n in (f"{stem}bias", f"{stem}bias_of_{layer.name}") if n not in weights))
            layer.input.append(names[1])
            reads[names[1]] = 1
        weights.update(zip(names, new, strict=True))
        changed.update(names)
        nodes.remove(node)
        renamed[node.output[0]] = result
        reads[result] = reads[node.output[0]]
        if node.output[0] in outputs:  # an output keeps its name
            del renamed[node.output[0]]
            layer.output[0] = node.output[0]
            made[node.output[0]] = layer
    return changed


def _folded(layer: Any, norm: Any, value_of: Callable[[str], Tensor | None]) -> tuple[Tensor, Tensor] | None:
    """Weight and bias of a layer that also does the normalisation; None if there is no such layer."""
    if any(a.name == "training_mode" and a.i for a in norm.attribute):
        return None
    options = {a.name: a for a in layer.attribute}
    if layer.op_type == "Gemm":
        if any(n in options and options[n].f != 1 for n in ("alpha", "beta")) or "transA" in options:
            return None
        transposed = "transB" not in options or not options["transB"].i
    elif layer.op_type in ("Conv", "ConvTranspose"):
        transposed = layer.op_type == "ConvTranspose"
        if transposed and "group" in options and options["group"].i != 1:
            return None
    else:
        return None
    values = [value_of(x) for x in (*layer.input[1:], *norm.input[1:])]
    if len(layer.input) == 2:
        values.insert(1, None)
    weight, bias, scale, shift, mean, variance = values
    if (
        weight is None
        or weight.itemsize < 4
        or (bias is None and len(layer.input) > 2)
        or mean is None
        or variance is None
    ):
        return None
    if scale is None or shift is None or mean.dtype is not weight.dtype or mean.dim() != 1:
        return None
    if bias is not None and bias.shape != mean.shape:
        return None
    epsilon = next((a.f for a in norm.attribute if a.name == "epsilon"), 1e-5)
    made = fuse_conv_bn_weights(weight, bias, mean, variance, epsilon, scale, shift, transposed)
    return made[0].detach(), made[1].detach()
