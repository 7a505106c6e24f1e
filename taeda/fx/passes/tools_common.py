"""Questions about Nodes, and Graphs in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taeda.nn import Module

from .. import _names
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node

__all__ = [
    "CALLABLE_NODE_OPS", "get_acc_ops_name", "get_node_target", "is_node_output_tensor", "legalize_graph",
    "stable_topological_sort",
]  # fmt: skip

#: The ops of Nodes that call something.
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k: Any) -> str:
    """The name of a function as messages show it."""
    return k if isinstance(k, str) else f"{k.__module__}.{k.__name__}"


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """The target of a Node: the class of a module, the path of a function, the name of a method."""
    if node.op == "call_module":
        module = submodules[node.target]
        return f"{type(module).__module__}.{type(module).__qualname__}"
    return node.target if isinstance(node.target, str) else _names.qualified_name(node.target)


def is_node_output_tensor(node: Node) -> bool:
    """Whether the value was a tensor when :class:`ShapeProp` ran."""
    from taeda._core import Tensor

    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, Tensor)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Put every Node behind those that it uses, and else leave the order. ``gm`` is changed, and given back.

    Args:
        gm: the module.

    Returns:
        ``gm``.

    Raises:
        RuntimeError: the Nodes depend on each other in a circle.
    """
    done: dict[Node, Node] = {}
    graph = Graph(tracer_cls=gm.graph._tracer_cls)
    graph._codegen = gm.graph._codegen
    waiting = list(gm.graph.nodes)
    while waiting:
        left = []
        for node in waiting:
            if node.op != "output" and all(used in done for used in node.all_input_nodes):
                done[node] = graph.node_copy(node, done.__getitem__)
            else:
                left.append(node)
        if len(left) == len(waiting):
            if any(node.op != "output" for node in left):
                raise RuntimeError(f"Input graph has cycles, unable to add {[n for n in left if n.op != 'output']}")
            for node in left:
                graph.node_copy(node, done.__getitem__)
            break
        waiting = left
    gm.graph = graph
    return gm


legalize_graph = stable_topological_sort
