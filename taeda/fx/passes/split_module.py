"""``split_module``: one GraphModule as several, by a function that says where each Node goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda.nn import Module

from ..graph import Graph
from ..graph_module import GraphModule, _get_attr
from ..node import Node, map_arg

__all__ = ["Partition", "split_module"]


class Partition:
    """A part: its Nodes, its inputs from other parts, and its outputs to others. All by name, in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n"
            f" partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


class _Split:
    """The work of :func:`split_module`."""

    def __init__(self, m: GraphModule, root: Module, affix: str | None) -> None:
        self.module, self.root, self.affix = m, root, affix
        self.parts: dict[str, Partition] = {}
        self.of: dict[Node, str] = {}

    def assign(self, split_callback: Callable[[Node], Any]) -> None:
        """Give every call a part."""
        for node in self.module.graph.nodes:
            if node.op in ("placeholder", "get_attr", "output"):
                continue
            label = f"{self.affix}_{split_callback(node)}" if self.affix else str(split_callback(node))
            part = self.parts.setdefault(label, Partition(label))
            part.node_names.append(node.name)
            self.of[node] = label

    def connect(self) -> None:
        """Note which values pass from part to part."""
        for node in self.module.graph.nodes:
            for used in node.all_input_nodes:
                user, maker = self.of.get(node), self.of.get(used)
                if user != maker:
                    if maker is not None:
                        self.parts[maker].outputs[used.name] = None
                    if user is not None:
                        self.parts[user].inputs[used.name] = None
                        if maker is not None:
                            self.parts[user].dependencies[maker] = None
                            self.parts[maker].dependents[user] = None

    def order(self) -> list[str]:
        """The parts, each after those that it depends on.

        Returns:
            Names of parts.
        Raises:
            RuntimeError: two parts depend on each other.
        """
        waiting = {name: set(part.dependencies) for name, part in self.parts.items()}
        ready = [name for name, before in waiting.items() if not before]
        done = []
        while ready:
            name = ready.pop(0)
            done.append(name)
            for other in self.parts[name].dependents:
                waiting[other].discard(name)
                if not waiting[other]:
                    ready.append(other)
        if len(done) != len(self.parts):
            raise RuntimeError("cycle exists between partitions!")
        return done

    def fill(self, order: list[str], keep_names: bool) -> None:
        """Copy the Nodes into the Graphs of their parts."""
        named = {node.name: node for node in self.module.graph.nodes}
        for name in order:
            part = self.parts[name]
            for label in part.inputs:
                old = named[label]
                made = part.graph.placeholder(label, type_expr=old.type)
                made.meta = dict(old.meta)
                part.environment[old] = made
        for node in self.module.graph.nodes:
            if node in self.of:
                part = self.parts[self.of[node]]
                target = node.target
                if node.op == "call_module":
                    target = node.target.replace(".", "_")
                    part.targets[target] = _get_attr(self.module, node.target)
                args = map_arg(node.args, part.environment.__getitem__)
                kwargs = map_arg(node.kwargs, part.environment.__getitem__)
                own = node.name if keep_names else None
                made = part.graph.create_node(node.op, target, args, kwargs, own, node.type)
                made.meta = dict(node.meta)
                part.environment[node] = made

    def base(self, order: list[str], qualname_map: dict[str, str] | None, as_needed: bool) -> GraphModule:
        """The module that calls the parts in order. It gets attributes first, or as they are needed."""
        graph = Graph()
        named = {node.name: node for node in self.module.graph.nodes}
        values: dict[Node, Node] = {}
        modules: dict[str, Any] = {}
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                default = node.args[0] if node.args else ...
                values[node] = graph.placeholder(node.target, type_expr=node.type, default_value=default)
                values[node].meta = dict(node.meta)

        def get(node: Node) -> None:
            if node.op == "get_attr" and node not in values:
                values[node] = graph.get_attr(node.target)
                modules[node.target] = _get_attr(self.module, node.target)

        for node in () if as_needed else self.module.graph.nodes:
            get(node)
        for name in order:
            for label in self.parts[name].inputs:
                get(named[label])
            self._call(self.parts[name], graph, values, modules, named, qualname_map)
        for node in self.module.graph.nodes:
            get(node)
            if node.op == "output":
                made = graph.output(map_arg(node.args[0], values.__getitem__), node.type)
                made.meta = dict(node.meta)
        return GraphModule(modules, graph)

    def _call(self, part: Partition, graph: Graph, values: dict, modules: dict, named: dict, qualname_map: Any) -> None:
        """Close the Graph of a part, and call it."""
        results = tuple(part.environment[named[label]] for label in part.outputs)
        if results:
            part.graph.output(results[0] if len(results) == 1 else results)
        else:
            part.graph.output(None)
        if qualname_map is not None:
            for target in part.targets:
                original = next((n.target for n in self.module.graph.nodes
                                 if isinstance(n.target, str) and n.target.replace(".", "_") == target),
                                 target)  # fmt: skip
                qualname_map[f"{part.submod_name}.{target}"] = original
        modules[part.submod_name] = GraphModule(part.targets, part.graph)
        made = graph.call_module(part.submod_name, tuple(values[named[label]] for label in part.inputs))
        if len(results) == 1:
            values[named[next(iter(part.outputs))]] = made
            return
        from operator import getitem

        for i, label in enumerate(part.outputs):
            values[named[label]] = graph.call_function(getitem, (made, i))


def split_module(
    m: GraphModule, root_m: Module, split_callback: Callable[[Node], Any], qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False, keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True, *, partition_affix: str | None = None, **options: Any,
) -> GraphModule:  # fmt: skip
    """A module that calls ``submod_0``, ``submod_1`` and so on, which have the Nodes of ``m`` among them.

    Args:
        m: the module.
        root_m: the module that ``m`` was traced from.
        split_callback: called with each Node that is a call; gives the name of its part.
        qualname_map: is filled with the old path of each submodule and attribute, by the new one.
        keep_original_order: call the parts in the order of their first Nodes.
        keep_original_node_name: Nodes of the parts are called as in ``m``.
        keep_original_input_name: accepted.
        partition_affix: goes into the names of the parts.
        **options: accepted.
    Returns:
        The module.
    Raises:
        RuntimeError: two parts depend on each other.
    """
    work = _Split(m, root_m, partition_affix)
    work.assign(split_callback)
    work.connect()
    order = work.order()
    if keep_original_order:
        order = list(work.parts)
    work.fill(order, bool(keep_original_node_name))
    return work.base(order, qualname_map, bool(keep_original_order))
