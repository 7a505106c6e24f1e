"""``CapabilityBasedPartitioner``: a program as parts that a backend can run, each a submodule, and the rest."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence

from ... import _names
from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ..operator_support import OperatorSupportBase
from ..tools_common import CALLABLE_NODE_OPS, legalize_graph

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """Nodes that become one submodule, in the order of the Graph."""

    def __init__(self, id: int | None = None, nodes: Iterable[Node] | None = None) -> None:
        self.id, self.nodes = id, dict.fromkeys(nodes or ())

    def __repr__(self) -> str:
        return str(list(self.nodes))

    def add_node(self, node: Node) -> None:
        """Take in a Node."""
        self.nodes[node] = None

    def remove_node(self, node: Node) -> None:
        """Give up a Node."""
        del self.nodes[node]

    def size(self) -> int:
        """The number of Nodes."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Joins supported Nodes that follow from each other to parts as large as can be, without cycles between parts.

    Args:
        graph_module: the program.
        operator_support: says which Nodes are supported.
        allows_single_node_partition: keep parts that compute one thing.
        non_compute_ops: names of functions that do not count as computing.
        allowed_single_node_partition_ops: names of functions that may be alone.
    """

    def __init__(
        self, graph_module: GraphModule, operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False, non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or ()
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or ()

    def propose_partitions(self) -> list[Partition]:
        """The parts."""
        modules = dict(self.graph_module.named_modules())
        nodes = [n for n in self.graph_module.graph.nodes if n.op in CALLABLE_NODE_OPS]
        owner: dict[Node, Partition] = {}
        made: list[Partition] = []
        for node in reversed(nodes):
            if not self.operator_support.is_node_supported(modules, node):
                continue
            own = Partition(None, [node])
            for other in dict.fromkeys([*(owner[u] for u in node.users if u in owner), *made]):
                if other.nodes and other is not own and not _cycle({*own.nodes, *other.nodes}, owner):
                    first, second = (other, own) if own.id is None or own.id > other.id else (own, other)  # type: ignore[operator]
                    for n in second.nodes:
                        first.add_node(n)
                        owner[n] = first
                    second.nodes, own = {}, first
            if own.id is None:
                own.id = len(made)
                owner[node] = own
                made.append(own)
        for node in nodes:  # a part of a tuple is where the tuple is
            source = node.args[0] if node.target is operator.getitem else None
            if isinstance(source, Node) and source in owner and owner.get(node) is not owner[source]:
                if node in owner:
                    owner[node].remove_node(node)
                owner[node] = owner[source]
                owner[node].add_node(node)
        places = {n: i for i, n in enumerate(nodes)}
        for part in made:
            part.nodes = dict.fromkeys(sorted(part.nodes, key=places.__getitem__))
        return [p for p in made if p.nodes and (self.allows_single_node_partition or self._computes(p))]

    def _computes(self, partition: Partition) -> bool:
        """Whether a part does more than one thing, or one that may be alone."""
        names = [_name(n) for n in partition.nodes if n.target is not operator.getitem]
        counted = [n for n in names if n not in self.non_compute_ops]
        return len(counted) > 1 or any(n in self.allowed_single_node_partition_ops for n in counted)

    def fuse_partitions(self, partitions: Collection[Partition], prefix: str = "fused_") -> GraphModule:
        """The program with parts as submodules, ``fused_0`` and so on by their ids."""
        for partition in partitions:
            _fuse(self.graph_module, list(partition.nodes), f"{prefix}{partition.id}")
        made = legalize_graph(self.graph_module)
        made.recompile()
        return made

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """:meth:`fuse_partitions` of :meth:`propose_partitions`."""
        return self.fuse_partitions(self.propose_partitions(), prefix)

    def remove_bookend_non_compute_ops(self, partitions: Collection[Partition]) -> None:
        """Take Nodes that do not compute out of the beginnings and ends of parts."""
        for partition in partitions:
            for ends, next_to in ((list(partition.nodes), "all_input_nodes"), (list(partition.nodes)[::-1], "users")):
                for node in ends:
                    alone = all(n not in partition.nodes for n in getattr(node, next_to))
                    if alone and _name(node) in self.non_compute_ops:
                        partition.remove_node(node)


def _name(node: Node) -> str:
    return node.target if isinstance(node.target, str) else _names.qualified_name(node.target)


def _cycle(nodes: set[Node], owner: Mapping[Node, Partition]) -> bool:
    """Whether a way leads out of ``nodes`` and back, if all of a part runs at once."""
    left = [u for n in nodes for u in n.users if u not in nodes]
    seen = set(left)
    while left:
        node = left.pop()
        together = owner[node].nodes if node in owner and not nodes & owner[node].nodes.keys() else (node,)
        for user in (u for n in together for u in n.users):
            if user in nodes:
                return True
            if user not in seen:
                seen.add(user)
                left.append(user)
    return False


def _fuse(module: GraphModule, nodes: list[Node], name: str) -> None:
    """Put a submodule in the place of ``nodes``."""
    inner, values, inside = Graph(), dict[Node, Node](), set(nodes)
    for given in dict.fromkeys(x for n in nodes for x in n.all_input_nodes if x not in inside):
        values[given] = inner.placeholder(given.name)
        values[given].meta = dict(given.meta)
    inputs = list(values)
    for node in nodes:
        values[node] = inner.node_copy(node, values.__getitem__)
    results = [n for n in nodes if any(u not in inside for u in n.users)]
    inner.output(values[results[0]] if len(results) == 1 else tuple(values[n] for n in results))
    setattr(module, name, GraphModule(module, inner, name))
    with module.graph.inserting_after(nodes[-1]):
        called = module.graph.call_module(name, tuple(inputs))
    if len(results) == 1:
        called.meta = dict(results[0].meta)
        results[0].replace_all_uses_with(called)
    last = called
    for i, node in enumerate(results if len(results) > 1 else ()):
        with module.graph.inserting_after(last):
            last = module.graph.call_function(operator.getitem, (called, i))
        last.meta = dict(node.meta)
        for user in [u for u in node.users if u not in inside]:
            user.replace_input_with(node, last)
    for node in reversed(nodes):
        module.graph.erase_node(node)
