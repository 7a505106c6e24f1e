"""Modules of subgraphs, and whether two Graphs are the same."""

from __future__ import annotations

from taeda.nn import Module

from ...graph import Graph
from ...graph_module import GraphModule
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """A module that has the modules of a dict as children."""

    def __init__(self, d: dict[str, Module | None]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """A module of its own for a part of ``gm``'s Graph.

    Args:
        gm: the module that the part is from.
        subgraph: the part.
        comp_name: the name of the new module in its parent, for the map of paths.
        class_name: the name of the new module's class.
    Returns:
        The module, and the old path of each of its submodules by the new one.
    """
    holder = HolderModule({})
    old_paths: dict[str, str] = {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        *prefix, name = node.target.split(".")
        target: Module = holder
        source: Module = gm
        for part in prefix:
            source = getattr(source, part)
            if not hasattr(target, part):
                target.add_module(part, HolderModule({}))
            target = getattr(target, part)
        if not hasattr(target, name):
            setattr(target, name, getattr(source, name))
        if node.op == "call_module":
            old_paths[f"{comp_name}.{node.target}"] = node.target
    return GraphModule(holder, subgraph, class_name), old_paths


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two Graphs do the same with the same targets, whatever their Nodes are called."""
    matches = SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right)
    return bool(matches)
