"""``CSEPass``: equal calls with the same arguments become one."""

from __future__ import annotations

from typing import Any

from taeda._namespaces import complete
from taeda.utils import _pytree as pytree

from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node
from ....operator_schemas import draws
from ...infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]


def get_CSE_banned_ops() -> set[Any]:
    """Functions whose calls are never shared: those that draw random numbers or make memory that is written later."""
    known = complete()
    return {known["empty"], known["empty_like"], *filter(draws, known.values())}


class CSEPass(PassBase):
    """Shares equal calls of functions. The result is a new module. If something is written in place, nothing is shared.

    Args:
        banned_ops: functions whose calls stay apart.
    """

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        super().__init__()
        self.banned_ops = set() if banned_ops is None else banned_ops

    def call(self, graph_module: GraphModule) -> PassResult:
        """The module with equal calls shared."""
        graph = Graph()
        values: dict[Node, Node] = {}
        known: dict[Any, Node] = {}
        changed, may_share = False, not any(node.writes() for node in graph_module.graph.nodes)
        for node in graph_module.graph.nodes:
            key = self._key(node, values) if may_share and self._same_again(node) else None
            if key is not None and key in known:
                values[node], changed = known[key], True
                continue
            values[node] = graph.node_copy(node, values.__getitem__)
            if key is not None:
                known[key] = values[node]
        graph._codegen = graph_module.graph._codegen
        return PassResult(GraphModule(graph_module, graph), changed)

    def _same_again(self, node: Node) -> bool:
        """Whether a second call would give the same."""
        shared = node.op == "call_function" and node.target not in self.banned_ops
        return shared and not node.is_impure() and not draws(node.target)

    @staticmethod
    def _key(node: Node, values: dict[Node, Node]) -> Any:
        """A key that is equal for equal calls; None if the arguments cannot be compared."""
        leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
        items = tuple((type(x), repr(x.start) + repr(x.stop) + repr(x.step)) if isinstance(x, slice)
                      else (type(x), values.get(x, x) if isinstance(x, Node) else x) for x in leaves)  # fmt: skip
        try:
            hash(items)
        except TypeError:
            return None
        return node.target, items, str(spec)
