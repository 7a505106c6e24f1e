"""Sizes of the values of a Graph, and new targets for its Nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

from taeda._core import Tensor

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from .shape_prop import ShapeProp, TensorMetadata

__all__ = ["get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with", "size_bytes"]


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Any, new_op: str, new_target: Any
) -> None:
    """Give Nodes of one kind and target another kind and target."""
    graph = Graph()
    values: dict[Node, Node] = {}
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            args, kwargs = map_arg(node.args, values.__getitem__), map_arg(node.kwargs, values.__getitem__)
            values[node] = graph.create_node(new_op, new_target, args, kwargs, node.name)
        else:
            values[node] = graph.node_copy(node, values.__getitem__)
    fx_module.graph = graph


class size_bytes(NamedTuple):
    """Bytes of a Node's value, and of it with the parameters that it uses."""

    output_size: int
    total_size: int


def get_size_of_all_nodes(fx_module: GraphModule, args: list[Tensor] | None = None) -> None:
    """Set ``size_bytes`` of every Node; ``args`` are inputs to run the module on."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)


def get_tensor_meta(node: Node) -> TensorMetadata:
    """The entry of :class:`ShapeProp` for a Node.

    Args:
        node: the Node.

    Returns:
        Sizes, dtype and layout.

    Raises:
        RuntimeError: nothing.
    """
    meta = node.meta.get("tensor_meta")
    if not meta:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run."
        )
    return meta


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The bytes of a Node's value, and of it with its parameters."""
    total = 0
    if node.op == "call_module":
        module = dict(fx_module.named_modules())[node.target]
        total += sum(p.numel() * p.element_size() for _, p in (*module.named_parameters(), *module.named_buffers()))
    meta = get_tensor_meta(node)
    count = 1
    for size in meta.shape:
        count *= size
    output = count * meta.dtype.itemsize
    return size_bytes(output, total + output)
